//! The change of a channel to other urgencies while it runs: lanes exchange their priorities, and consumers get another order.
//!
//! A consumer stays in its lane, because its events would otherwise take two ways and overtake each other. So the consumers of one
//! lane must have the priority of one lane after the change too. The set of the lanes' priorities stays: the host has permitted
//! them.

use super::channel_core::{lane_for, most_urgent, turn_after_ns};
use super::consumer::Consumer;
use super::lane::Lane;
use super::priority_source::{PrioritySource, Urgency};
use super::registry::Registry;
use super::subscriptions::Subscriptions;
use core::sync::atomic::{AtomicU64, Ordering};
use rtorb::rt::Priority;
use rtorb_os::sync::MutexGuard;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A change that is possible. It keeps consumers from connecting and from leaving.
#[derive(Debug)]
pub(crate) struct Reorder<'c> {
    registry: MutexGuard<'c, Registry>,
    lanes: &'c [Arc<Lane<Consumer>>],
    /// The new priority of each lane.
    priorities: Vec<Priority>,
    consumers: BTreeMap<u64, (Arc<Consumer>, Urgency)>,
}

impl<'c> Reorder<'c> {
    /// Finds the new priority of each lane and the new urgency of each consumer.
    ///
    /// # Errors
    /// The part that cannot change.
    pub(crate) fn prepare(
        lanes: &'c [Arc<Lane<Consumer>>],
        registry: MutexGuard<'c, Registry>,
        source: &dyn PrioritySource,
    ) -> Result<Self, String> {
        let mut consumers = BTreeMap::new();
        let mut assigned = Assignment::of(lanes);
        for (consumer, rt_infos) in registry.rt_infos() {
            let most = most_urgent(source, rt_infos);
            let (urgency, rt_info) =
                most.map_err(|error| format!("consumer {}: {error}", consumer.number()))?;
            assigned.assign(consumer, rt_info, urgency.priority)?;
            consumers.insert(consumer.number(), (Arc::clone(consumer), urgency));
        }
        Ok(Self {
            registry,
            lanes,
            priorities: assigned.priorities(),
            consumers,
        })
    }

    /// Changes lanes and consumers. An event is distributed in the old order or in the new one. `reorders` counts the changes.
    pub(crate) fn carry_out(
        self,
        subscriptions: &Subscriptions<Arc<Consumer>>,
        reorders: &AtomicU64,
    ) {
        for (consumer, urgency) in self.consumers.values() {
            consumer.reorder(turn_after_ns(urgency));
        }
        subscriptions.reorder(|consumer| {
            let known = self.consumers.get(&consumer.number());
            // The registry has every consumer of the lookup table.
            known.map_or(i32::MIN, |(_, urgency)| i32::from(urgency.priority.get()))
        });
        for (lane, priority) in self.lanes.iter().zip(&self.priorities) {
            lane.set_priority(*priority);
        }
        reorders.fetch_add(1, Ordering::Release);
        drop(self.registry);
    }
}

/// Which lane gets which of the priorities.
struct Assignment<'c> {
    lanes: &'c [Arc<Lane<Consumer>>],
    /// The current priority of each lane.
    current: Vec<Priority>,
    /// For each lane, the index in `current` of its new priority, and an `rt_info` that needs it.
    wanted: Vec<Option<(usize, i32)>>,
}

impl<'c> Assignment<'c> {
    fn of(lanes: &'c [Arc<Lane<Consumer>>]) -> Self {
        Self {
            lanes,
            current: lanes.iter().map(|lane| lane.priority()).collect(),
            wanted: vec![None; lanes.len()],
        }
    }

    fn assign(
        &mut self,
        consumer: &Consumer,
        rt_info: i32,
        priority: Priority,
    ) -> Result<(), String> {
        let target = lane_for(priority, &self.current);
        let own = |lane: &Arc<Lane<Consumer>>| Arc::ptr_eq(lane, consumer.lane());
        let Some(lane) = self.lanes.iter().position(own) else {
            return Ok(());
        };
        if let Some((other, known)) = self.wanted[lane]
            && other != target
        {
            return Err(format!(
                "the consumers of rt_info {known} and rt_info {rt_info} share a lane and would need different ones: disconnect one of \
                 them, or restart the channel"
            ));
        }
        let taken = self.wanted.iter().enumerate().find_map(|(other, wanted)| {
            let (index, known) = (*wanted)?;
            (other != lane && index == target).then_some(known)
        });
        if let Some(known) = taken {
            return Err(format!(
                "the consumers of rt_info {known} and rt_info {rt_info} have lanes of their own and would need one: disconnect one \
                 of them, or restart the channel"
            ));
        }
        self.wanted[lane] = Some((target, rt_info));
        Ok(())
    }

    /// The new priorities. Lanes without consumers share what is left, in their order.
    fn priorities(self) -> Vec<Priority> {
        let is_left = |index: &usize| {
            let mut wanted = self.wanted.iter().flatten();
            !wanted.any(|(taken, _)| taken == index)
        };
        let mut left = (0..self.current.len()).filter(is_left);
        let index = |wanted: &Option<(usize, i32)>| match wanted {
            Some((index, _)) => Some(*index),
            None => left.next(),
        };
        let indices = self.wanted.iter().filter_map(index);
        indices.map(|index| self.current[index]).collect()
    }
}
