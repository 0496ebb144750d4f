//! The lanes that dispatch by deadline: one for each CPU of the system that schedules by earliest deadline.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use rtorb_sched::model::{Locking, Placement, SchedulingPolicy, System, Trigger};
use serde::{Deserialize, Serialize};

use super::NATIVE_MAX;

/// The native priorities of a lane that dispatches by deadline, and of the threads that release its jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Levels {
    /// The number of levels, each with a native priority of its own.
    pub(crate) count: u32,
}

impl Levels {
    /// Returns the levels of a component; `None` if its CPU schedules by fixed priorities.
    ///
    /// # Errors
    /// In words, what of the component cannot be run by deadline, and what to do.
    pub(super) fn of(system: &System, component: usize) -> Result<Option<Self>, String> {
        let one = &system.components[component];
        let place = Placement {
            node: one.node,
            cpu: one.cpu,
        };
        if system.scheduling(place) != SchedulingPolicy::EarliestDeadline {
            return Ok(None);
        }
        refuse_others(system, component, place)?;
        refuse_calls(system, component)?;
        refuse_ceilings(system, component)?;
        let count = system.nodes[one.node]
            .levels
            .unwrap_or_else(|| deadlines(system, component));
        if count > COUNT_MAX {
            return Err(format!(
                "{} needs {count} levels, and a run has at most {COUNT_MAX}: write fewer `levels` at its node",
                one.name
            ));
        }
        Ok(Some(Self { count }))
    }

    /// Returns the native priority of the lane: that of its lowest level.
    pub(crate) const fn lowest(self) -> u8 {
        LOWEST
    }

    /// Returns the native priorities of the levels.
    pub(crate) fn priorities(self) -> RangeInclusive<u8> {
        LOWEST..=self.releasing() - 2
    }

    /// Returns the native priority of the threads that release jobs: above the levels and above the lane's I/O thread.
    pub(crate) fn releasing(self) -> u8 {
        // Both are at most `NATIVE_MAX`.
        LOWEST + self.count as u8 + 1
    }
}

/// The relative deadline of a root, which is its period if the file gives none.
pub(super) fn deadline_ns(system: &System, behaviour: usize) -> u64 {
    let one = &system.behaviours[behaviour];
    one.deadline_ns.unwrap_or(match one.trigger {
        Trigger::Periodic { period_ns, .. } => period_ns,
        Trigger::Sporadic { gap_ns, .. } => gap_ns,
        Trigger::Called => u64::MAX,
    })
}

/// Counts the different relative deadlines of a component's behaviours. With as many levels, no job waits for a free one.
fn deadlines(system: &System, component: usize) -> u32 {
    let ours = (0..system.behaviours.len()).filter(|at| is_of(system, *at, component));
    let different: BTreeSet<u64> = ours.map(|at| deadline_ns(system, at)).collect();
    (different.len() as u32).max(1)
}

fn is_of(system: &System, behaviour: usize, component: usize) -> bool {
    system.behaviours[behaviour].component == component
}

fn refuse_others(system: &System, component: usize, place: Placement) -> Result<(), String> {
    let components = system.components.iter().enumerate();
    let mut others = components
        .filter(|(at, other)| {
            *at != component && (other.node, other.cpu) == (place.node, place.cpu)
        })
        .map(|(_, other)| &other.name);
    let mut channels = system.channels.iter();
    let channel = channels
        .find(|one| (one.node, one.cpu) == (place.node, place.cpu))
        .map(|one| &one.name);
    match others.next().or(channel) {
        None => Ok(()),
        Some(other) => Err(format!(
            "{} and {other} share CPU {} of {}, which schedules by earliest deadline, and in a run one lane of one process orders all \
             jobs of such a CPU: put the behaviours into one component to run the system",
            system.components[component].name, place.cpu, system.nodes[place.node].name
        )),
    }
}

fn refuse_calls(system: &System, component: usize) -> Result<(), String> {
    let mut ours = system
        .behaviours
        .iter()
        .filter(|one| one.component == component);
    match ours.find(|one| one.trigger == Trigger::Called || !one.calls.is_empty()) {
        None => Ok(()),
        Some(behaviour) => Err(format!(
            "{} calls or is called on a CPU that schedules by earliest deadline, where a run has periodic and sporadic behaviours \
             only: write scheduling = \"fixed-priority\" for that CPU to run the system",
            behaviour.name
        )),
    }
}

fn refuse_ceilings(system: &System, component: usize) -> Result<(), String> {
    let mut ours = system
        .resources
        .iter()
        .filter(|one| one.component == component);
    match ours.find(|one| one.locking == Locking::Ceiling) {
        None => Ok(()),
        Some(resource) => Err(format!(
            "{} of {} has a ceiling, which is a priority, and its CPU schedules by earliest deadline: write mutex = \"inheritance\" to \
             run the system",
            resource.name, system.components[component].name
        )),
    }
}

const LOWEST: u8 = 40;
/// So that the releasing threads have a priority too.
const COUNT_MAX: u32 = (NATIVE_MAX - LOWEST - 1) as u32;
