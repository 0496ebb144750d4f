//! The lanes that dispatch by deadline, one for each CPU of the system that schedules by earliest deadline, and the deadlines of calls
//! to them.

use std::collections::HashMap;
use std::ops::RangeInclusive;

use rtorb_sched::model::{
    Call, CallWay, CheckReport, ComponentLoading, LaneOrder, Placement, SchedulingPolicy, System,
    Trigger,
};
use serde::{Deserialize, Serialize};

use super::NATIVE_MAX;

/// The native priorities of a lane that dispatches by deadline, and of the threads that release its jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Levels {
    /// The native priority of the lane: that of its lowest level.
    pub(crate) lowest: u8,
    /// The number of levels, each with a native priority of its own.
    pub(crate) count: u32,
    /// True if a lane above it passes jobs on to it.
    pub(crate) passes_on: bool,
}

impl Levels {
    /// Returns the levels of a component; `None` if its CPU schedules by fixed priorities.
    ///
    /// # Errors
    /// In words, what of the component cannot be run by deadline, and what to do.
    pub(super) fn of(
        system: &System,
        component: usize,
        loading: Option<&ComponentLoading>,
    ) -> Result<Option<Self>, String> {
        let one = &system.components[component];
        let place = Placement {
            node: one.node,
            cpu: one.cpu,
        };
        if system.scheduling(place) != SchedulingPolicy::EarliestDeadline {
            return Ok(None);
        }
        let lacks = || format!("the analysis gives {} no lane", one.name);
        let loading = loading.ok_or_else(lacks)?;
        if let Some(reason) = &loading.lacks_lane {
            return Err(format!("{reason}, to run the system"));
        }
        let mut lanes = loading.lanes.iter();
        let lane = lanes.find(|lane| lane.order == LaneOrder::EarliestDeadline);
        let lane = lane.ok_or_else(lacks)?;
        let lowest = u8::try_from(lane.priority)
            .ok()
            .filter(|lowest| *lowest > 0);
        let releasing = i64::from(lane.priority) + i64::from(lane.threads) + 1;
        let lowest = lowest.filter(|_| releasing <= i64::from(NATIVE_MAX));
        let lowest = lowest.ok_or_else(|| {
            format!(
                "the lane of {} has {} levels from priority {}, and a run has 1 to {NATIVE_MAX}, with one for the I/O thread and one for \
                 releases: choose `priorities` of the system that leave room, or fewer `levels` at its node",
                loading.component, lane.threads, lane.priority
            )
        })?;
        Ok(Some(Self {
            lowest,
            count: lane.threads,
            passes_on: loading.lanes.len() > 1,
        }))
    }

    /// Returns the priority and the threads of each lane, the most urgent first.
    pub(super) fn lanes(self) -> Vec<(u8, u32)> {
        let passing = self.passes_on.then_some((self.releasing(), 1));
        let by_deadline = (self.lowest, self.count);
        passing.into_iter().chain([by_deadline]).collect()
    }

    /// Returns the native priorities of the levels.
    pub(crate) fn priorities(self) -> RangeInclusive<u8> {
        self.lowest..=self.releasing() - 2
    }

    /// Returns the ceiling of its mutexes: the priority of the highest level. No job begins while one is held.
    pub(super) fn ceiling(self) -> u8 {
        *self.priorities().end()
    }

    /// Returns the native priority of the threads that release jobs or pass them on: above the levels and above the lane's I/O thread.
    pub(crate) fn releasing(self) -> u8 {
        // Both are at most `NATIVE_MAX`.
        self.lowest + self.count as u8 + 1
    }
}

/// The deadlines that order jobs, in ns from the arrival of the root.
pub(super) struct OrderDeadlines<'a> {
    system: &'a System,
    /// Of each behaviour that has a thread or a job of its own, and executes by deadline.
    of: HashMap<&'a str, u64>,
}

impl<'a> OrderDeadlines<'a> {
    /// Takes them from the analysis.
    pub(super) fn of(system: &'a System, checked: &'a CheckReport) -> Self {
        let components = checked.loading.components.iter();
        let deadlines = components.flat_map(|component| &component.deadlines);
        Self {
            system,
            of: deadlines
                .map(|(name, deadline_ns)| (name.as_str(), *deadline_ns))
                .collect(),
        }
    }

    /// Returns that of a behaviour.
    pub(super) fn of_behaviour(&self, behaviour: usize) -> Option<u64> {
        let name = self.system.behaviours[behaviour].name.as_str();
        self.of.get(name).copied()
    }

    /// Returns that which a call brings; `None` if it brings none of its own. A call that is waited for inherits that of the job too.
    pub(super) fn of_call(&self, caller: usize, call: &Call) -> Option<u64> {
        match call.way {
            CallWay::TwoWay if self.stays(caller, call) => None,
            CallWay::TwoWay => self.of_behaviour(caller),
            CallWay::OneWay => call.to.first().and_then(|to| self.of_behaviour(*to)),
            CallWay::Event { .. } => None,
        }
    }

    /// True if a call stays on the level of its caller: on a CPU by deadline, the caller's thread performs the callee too.
    pub(super) fn stays(&self, caller: usize, call: &Call) -> bool {
        let place = self.system.placement(caller);
        let is_here = |to: &usize| self.system.placement(*to) == place;
        call.way == CallWay::TwoWay
            && self.system.scheduling(place) == SchedulingPolicy::EarliestDeadline
            && call.to.iter().all(is_here)
    }
}

/// Returns the relative deadline of a root, which is its period if the file gives none.
pub(super) fn own_deadline_ns(system: &System, behaviour: usize) -> u64 {
    let one = &system.behaviours[behaviour];
    one.deadline_ns.unwrap_or(match one.trigger {
        Trigger::Periodic { period_ns, .. } => period_ns,
        Trigger::Sporadic { gap_ns, .. } => gap_ns,
        Trigger::Called => u64::MAX,
    })
}
