//! The delay of a message between two CPUs.

use super::super::composition::Part;
use super::super::report::Layer;
use super::super::system::{Placement, System};
use super::ComposeError;
use super::costs::Costs;
use super::segments::{add, part};

/// The transfer of a message between two CPUs.
#[derive(Clone, Copy)]
pub(super) struct Transfer<'a> {
    /// The behaviour that sends it or causes it.
    pub(super) caller: usize,
    /// The name of the receiver.
    pub(super) called: &'a str,
    /// The line of the call.
    pub(super) line: usize,
    /// The sender's node and CPU.
    pub(super) from: Placement,
    /// The receiver's node and CPU.
    pub(super) to: Placement,
    pub(super) bytes: u32,
}

impl Transfer<'_> {
    /// Returns its delay besides the execution at both ends: the network between nodes, and the wake-up of the receiving CPU.
    pub(super) fn delay(
        &self,
        system: &System,
        costs: &mut Costs<'_>,
    ) -> Result<Vec<Part>, ComposeError> {
        let mut delay = Vec::new();
        if self.from.node != self.to.node {
            self.network(system, &mut delay)?;
        }
        if self.from != self.to {
            let wake_ns = costs.remote_wake(self.to.node);
            let woken = part(Layer::OperatingSystem, "wake-up of another CPU", 1, wake_ns);
            add(&mut delay, woken);
        }
        Ok(delay)
    }

    fn network(&self, system: &System, delay: &mut Vec<Part>) -> Result<(), ComposeError> {
        let (from, to) = (self.from.node, self.to.node);
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
            let sent_ns = on_wire_ns(self.bytes, bits_per_second);
            add(delay, part(Layer::Hardware, &data, 1, sent_ns));
        }
        Ok(())
    }
}

/// Returns the transmission time, in ns, rounded up.
fn on_wire_ns(bytes: u32, bits_per_second: u64) -> u64 {
    let bits = u128::from(bytes) * 8 * 1_000_000_000;
    let ns = bits.div_ceil(u128::from(bits_per_second.max(1)));
    u64::try_from(ns).unwrap_or(u64::MAX)
}
