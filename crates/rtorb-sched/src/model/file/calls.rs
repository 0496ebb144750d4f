//! Reads calls: resolves names and checks each kind of call.

use std::collections::BTreeSet;

use super::names::Names;
use super::tables::{CallTable, Callees, File, WayName};
use super::values::Integer;
use super::{LineError, Lines, Place};
use crate::model::system::{Call, CallWay, System};

/// Adds the calls to the behaviours, all of which have been read.
pub(super) fn read(
    system: &mut System,
    file: &File,
    behaviours: &Names,
    channels: &Names,
    lines: &Lines,
) {
    let linked = system
        .links
        .iter()
        .flat_map(|link| [link.between, [link.between[1], link.between[0]]])
        .collect();
    let tables = file.component.iter().flat_map(|table| &table.behaviour);
    let mut calls = Vec::with_capacity(system.behaviours.len());
    for (caller, table) in tables.enumerate() {
        let one = CallReader {
            system,
            behaviours,
            channels,
            linked: &linked,
            lines,
        };
        // Suggestions for misspelt names take long in a large file.
        let each = table.calls.iter().take_while(|_| !lines.is_full());
        let each = each.filter_map(|call| lines.keep(one.call(caller, call)));
        calls.push(each.collect::<Vec<Call>>());
    }
    for (behaviour, calls) in system.behaviours.iter_mut().zip(calls) {
        behaviour.calls = calls;
    }
}

struct CallReader<'a> {
    system: &'a System,
    behaviours: &'a Names,
    channels: &'a Names,
    linked: &'a BTreeSet<[usize; 2]>,
    lines: &'a Lines,
}

impl CallReader<'_> {
    fn call(&self, caller: usize, table: &CallTable) -> Result<Call, LineError> {
        let line = self.lines.of(&table.to);
        let to = self.callees(table, line)?;
        let way = self.way(table, line)?;
        let count = self.count(table)?;
        let lingering_ns = self.lingering_ns(caller, table, &to)?;
        let from = self.system.placement(caller).node;
        let at = |place: usize| &self.system.behaviours[place].name;
        if let CallWay::Event { channel } = way {
            let (channel, middle) = (&self.system.channels[channel].name, self.node_of(channel));
            self.check_link([from, middle], line, at(caller), channel)?;
            for callee in &to {
                let end = self.system.placement(*callee).node;
                self.check_link([middle, end], line, channel, at(*callee))?;
            }
        } else {
            for callee in &to {
                let end = self.system.placement(*callee).node;
                self.check_link([from, end], line, at(caller), at(*callee))?;
            }
        }
        Ok(Call {
            to,
            way,
            payload_bytes: table.payload.map_or(0, Integer::small),
            count,
            lingering_ns,
            line: line.line,
        })
    }

    /// Returns how long both sides of a call linger; only of a two-way call within one node.
    fn lingering_ns(
        &self,
        caller: usize,
        table: &CallTable,
        callees: &[usize],
    ) -> Result<u64, LineError> {
        let Some(lingering) = &table.lingering else {
            return Ok(0);
        };
        let line = self.lines.of(lingering);
        if table.way != WayName::TwoWay {
            let reason = "only two-way calls linger: remove lingering";
            return Err(LineError::at(line, reason));
        }
        let node = |behaviour| self.system.placement(behaviour).node;
        if callees.iter().any(|callee| node(*callee) != node(caller)) {
            let reason =
                "caller and callee are on different nodes, which share no memory: remove lingering";
            return Err(LineError::at(line, reason));
        }
        Ok(lingering.get_ref().0)
    }

    fn node_of(&self, channel: usize) -> usize {
        self.system.channels[channel].node
    }

    /// Returns the callees; only an event has several, each once.
    fn callees(&self, table: &CallTable, line: Place) -> Result<Vec<usize>, LineError> {
        let names = match table.to.get_ref() {
            Callees::One(name) => return Ok(vec![self.behaviours.find(name, line)?]),
            Callees::Many(names) => names,
        };
        if names.is_empty() {
            let reason = "the call has no callee: name a behaviour, or remove the call";
            return Err(LineError::at(line, reason));
        }
        if names.len() > CALLEES_MAX {
            let reason = format!(
                "an event has at most {CALLEES_MAX} consumers, but here are {}",
                names.len()
            );
            return Err(LineError::at(line, reason));
        }
        if names.len() > 1 && table.way != WayName::Event {
            let reason = "only an event has several consumers: write a call for each, or way = \"event\" and a channel";
            return Err(LineError::at(line, reason));
        }
        let mut callees = Vec::with_capacity(names.len());
        let mut known = BTreeSet::new();
        for name in names {
            let (text, line) = (name.get_ref(), self.lines.of(name));
            let callee = self.behaviours.find(text, line)?;
            if !known.insert(callee) {
                let reason = format!(
                    "{text:?} is named twice, but a consumer receives an event once: remove one"
                );
                return Err(LineError::at(line, reason));
            }
            callees.push(callee);
        }
        Ok(callees)
    }

    fn way(&self, table: &CallTable, line: Place) -> Result<CallWay, LineError> {
        match (table.way, &table.channel) {
            (WayName::TwoWay, None) => Ok(CallWay::TwoWay),
            (WayName::OneWay, None) => Ok(CallWay::OneWay),
            (WayName::Event, Some(channel)) => Ok(CallWay::Event {
                channel: self
                    .channels
                    .find(channel.get_ref(), self.lines.of(channel))?,
            }),
            (WayName::Event, None) => Err(LineError::at(
                line,
                "an event goes through a channel: write channel = with the name of a [[channel]]",
            )),
            (_, Some(channel)) => Err(LineError::at(
                self.lines.of(channel),
                "only an event goes through a channel: write way = \"event\", or remove the channel",
            )),
        }
    }

    fn count(&self, table: &CallTable) -> Result<u32, LineError> {
        let Some(count) = &table.count else {
            return Ok(1);
        };
        let number = Integer::small(*count.get_ref());
        if number > 1 && table.way != WayName::TwoWay {
            let reason = format!(
                "count is {number}, but only two-way calls have a count: write this call {number} times"
            );
            return Err(LineError::at(self.lines.of(count), reason));
        }
        Ok(number)
    }

    fn check_link(
        &self,
        ends: [usize; 2],
        line: Place,
        from: &str,
        to: &str,
    ) -> Result<(), LineError> {
        if ends[0] == ends[1] || self.linked.contains(&ends) {
            return Ok(());
        }
        let [one, other] = ends.map(|node| &self.system.nodes[node].name);
        let reason = format!(
            "{from:?} is on {one:?} and {to:?} is on {other:?}, but there is no link between these nodes: write a [[link]] with between = [{one:?}, {other:?}] and a latency"
        );
        Err(LineError::at(line, reason))
    }
}

/// The maximum number of consumers of one event.
const CALLEES_MAX: usize = 1_000;
