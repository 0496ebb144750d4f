//! A cache of platform costs, and their assumptions.

use std::collections::BTreeMap;

use super::super::platform::{Cost, EventCost, Platform};
use super::super::report::Assumption;
use super::super::system::System;

/// The costs of the platforms, and the assumptions of those used.
pub(super) struct Costs<'a> {
    system: &'a System,
    platforms: &'a [Platform],
    /// In the order in which they were first needed.
    assumed: Vec<Assumption>,
    /// Costs by node, service and payload: most are needed again and again.
    known: BTreeMap<(usize, &'static str, u32), u64>,
    events: BTreeMap<(usize, u64, u32), EventCost>,
    about_nodes: Vec<bool>,
}

impl<'a> Costs<'a> {
    pub(super) fn of(system: &'a System, platforms: &'a [Platform]) -> Self {
        Self {
            system,
            platforms,
            assumed: Vec::new(),
            known: BTreeMap::new(),
            events: BTreeMap::new(),
            about_nodes: vec![false; platforms.len()],
        }
    }

    pub(super) fn platform(&self, node: usize) -> &'a Platform {
        &self.platforms[node]
    }

    pub(super) fn assumptions(self) -> Vec<Assumption> {
        self.assumed
    }

    pub(super) fn switch(&mut self, node: usize, ready_tasks: u64) -> u64 {
        let cost = self.platform(node).context_switch(ready_tasks);
        self.kept(node, &cost)
    }

    pub(super) fn tick(&mut self, node: usize) -> u64 {
        self.kept(node, self.platform(node).tick())
    }

    /// Returns the tick's period: the file's, or else the profile's.
    pub(super) fn tick_period(&mut self, node: usize) -> u64 {
        match self.system.nodes[node].tick_ns {
            Some(ns) => ns.max(1),
            None => self.kept(node, self.platform(node).tick_period()).max(1),
        }
    }

    pub(super) fn release_interrupt(&mut self, node: usize) -> u64 {
        self.once(node, "release_interrupt", 0, |platform| {
            platform.release_interrupt().clone()
        })
    }

    pub(super) fn release_jitter(&mut self, node: usize) -> u64 {
        self.once(node, "release_jitter", 0, |platform| {
            platform.release_jitter().clone()
        })
    }

    pub(super) fn blocking(&mut self, node: usize) -> u64 {
        self.once(node, "blocking", 0, |platform| platform.blocking().clone())
    }

    pub(super) fn contended_lock(&mut self, node: usize) -> u64 {
        self.once(node, "contended_lock", 0, |platform| {
            platform.contended_lock().clone()
        })
    }

    pub(super) fn remote_wake(&mut self, node: usize) -> u64 {
        self.once(node, "remote_wake", 0, |platform| {
            platform.remote_wake().clone()
        })
    }

    /// Returns the cost of a two-way call on both sides.
    pub(super) fn call(&mut self, node: usize, payload_bytes: u32) -> u64 {
        self.once(node, "call", payload_bytes, |platform| {
            platform.call(payload_bytes)
        })
    }

    /// Returns the client's side of a two-way call, in ns: sending the request, and receiving the reply.
    pub(super) fn client_side(&mut self, node: usize, payload_bytes: u32) -> (u64, u64) {
        let client_ns = self.call(node, payload_bytes).div_ceil(2);
        (client_ns.div_ceil(2), client_ns / 2)
    }

    /// Returns the server's side: the rest of the call.
    pub(super) fn server_side(&mut self, node: usize, payload_bytes: u32) -> u64 {
        self.call(node, payload_bytes) / 2
    }

    pub(super) fn send(&mut self, node: usize, payload_bytes: u32) -> u64 {
        self.once(node, "send", payload_bytes, |platform| {
            platform.send(payload_bytes)
        })
    }

    pub(super) fn event(&mut self, node: usize, consumers: u64, payload_bytes: u32) -> EventCost {
        let of = (node, consumers, payload_bytes);
        if let Some(cost) = self.events.get(&of) {
            return cost.clone();
        }
        let cost = self.platform(node).event(consumers, payload_bytes);
        self.assume(node, cost.assumption.as_deref());
        self.events.insert(of, cost.clone());
        cost
    }

    /// Records the assumptions of a node's platform when something runs there.
    pub(super) fn uses(&mut self, node: usize) {
        if !core::mem::replace(&mut self.about_nodes[node], true) {
            for what in self.platform(node).assumptions() {
                self.assume(node, Some(&what));
            }
        }
    }

    fn once(
        &mut self,
        node: usize,
        service: &'static str,
        bytes: u32,
        ask: impl FnOnce(&Platform) -> Cost,
    ) -> u64 {
        if let Some(ns) = self.known.get(&(node, service, bytes)) {
            return *ns;
        }
        let cost = ask(self.platform(node));
        let ns = self.kept(node, &cost);
        self.known.insert((node, service, bytes), ns);
        ns
    }

    fn kept(&mut self, node: usize, cost: &Cost) -> u64 {
        self.assume(node, cost.assumption.as_deref());
        cost.ns
    }

    fn assume(&mut self, node: usize, what: Option<&str>) {
        let Some(what) = what else { return };
        let name = &self.system.nodes[node].name;
        let known = |known: &Assumption| known.node.as_ref() == Some(name) && known.what == what;
        if !self.assumed.iter().any(known) {
            self.assumed.push(Assumption {
                node: Some(name.clone()),
                what: what.to_owned(),
            });
        }
    }
}
