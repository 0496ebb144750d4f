//! What is between two CPUs.

use super::super::checked::Layer;
use super::super::composed::Part;
use super::super::system::System;
use super::ComposeError;
use super::costs::Costs;
use super::segments::{add, part};

/// A message on its way.
#[derive(Clone, Copy)]
pub(super) struct Trip<'a> {
    /// The behaviour that sends it, or had it sent.
    pub(super) caller: usize,
    /// Who gets it.
    pub(super) called: &'a str,
    /// The line of the call.
    pub(super) line: usize,
    /// Node and CPU.
    pub(super) from: (usize, u32),
    /// Node and CPU.
    pub(super) to: (usize, u32),
    pub(super) octets: u32,
}

impl Trip<'_> {
    /// What delays it beyond what both ends execute: the network between nodes, and the wake-up of the CPU that gets it.
    pub(super) fn delay(
        &self,
        system: &System,
        costs: &mut Costs<'_>,
    ) -> Result<Vec<Part>, ComposeError> {
        let mut delay = Vec::new();
        if self.from.0 != self.to.0 {
            self.network(system, &mut delay)?;
        }
        if self.from != self.to {
            let wake_ns = costs.remote_wake(self.to.0);
            let woken = part(Layer::OperatingSystem, "wake-up of another CPU", 1, wake_ns);
            add(&mut delay, woken);
        }
        Ok(delay)
    }

    fn network(&self, system: &System, delay: &mut Vec<Part>) -> Result<(), ComposeError> {
        let (from, to) = (self.from.0, self.to.0);
        let joins = [[from, to], [to, from]];
        let mut links = system.links.iter();
        let Some(link) = links.find(|link| joins.contains(&link.between)) else {
            return Err(ComposeError::NoLink {
                line: self.line,
                caller: system.behaviours[self.caller].name.clone(),
                called: self.called.to_owned(),
                from: system.nodes[from].name.clone(),
                to: system.nodes[to].name.clone(),
            });
        };
        let [one, other] = link.between.map(|node| &system.nodes[node].name);
        let latency = format!("network between {one} and {other}");
        add(delay, part(Layer::Hardware, &latency, 1, link.latency_ns));
        if let Some(bits_per_second) = link.bits_per_second {
            let data = format!("data between {one} and {other}");
            let sent_ns = on_wire_ns(self.octets, bits_per_second);
            add(delay, part(Layer::Hardware, &data, 1, sent_ns));
        }
        Ok(())
    }
}

/// How long so many octets are sent, in ns, rounded up.
fn on_wire_ns(octets: u32, bits_per_second: u64) -> u64 {
    let bits = u128::from(octets) * 8 * 1_000_000_000;
    let ns = bits.div_ceil(u128::from(bits_per_second.max(1)));
    u64::try_from(ns).unwrap_or(u64::MAX)
}
