//! The priorities of a change: behaviours whose ranges from the old to the new priority overlap share one.

use std::collections::HashMap;

use super::super::system::{CallWay, Locking, System};
use super::{SystemMode, TransitionError, fixed};

/// The priority of each behaviour that has its own, by its name.
pub(super) struct Priorities<'a>(HashMap<&'a str, i16>);

impl<'a> Priorities<'a> {
    pub(super) fn of(mode: SystemMode<'a>) -> Self {
        let components = mode.report.loading.components.iter();
        let priorities = components.flat_map(|component| &component.priorities);
        Self(
            priorities
                .map(|(name, priority)| (name.as_str(), *priority))
                .collect(),
        )
    }

    /// Returns the highest priority at which each behaviour runs: a callee of a two-way call has its caller's.
    fn highest(&self, system: &System) -> Vec<Option<i16>> {
        let names = system.behaviours.iter().map(|one| one.name.as_str());
        let mut highest: Vec<Option<i16>> = names.map(|name| self.0.get(name).copied()).collect();
        let mut has_changed = true;
        while has_changed {
            has_changed = false;
            for (caller, behaviour) in system.behaviours.iter().enumerate() {
                let calls = behaviour.calls.iter();
                for call in calls.filter(|call| call.way == CallWay::TwoWay) {
                    for &callee in &call.to {
                        if highest[callee] < highest[caller] {
                            highest[callee] = highest[caller];
                            has_changed = true;
                        }
                    }
                }
            }
        }
        highest
    }
}

/// Gives each behaviour that has a priority in one of the modes that of its band.
pub(super) fn assign(system: &mut System, modes: &[Priorities<'_>; 2]) {
    let range = |name: &str| {
        let both = || modes.iter().filter_map(|mode| mode.0.get(name).copied());
        Some((both().max()?, both().min()?))
    };
    let names = system.behaviours.iter().map(|one| one.name.as_str());
    let ranges: Vec<Option<(i16, i16)>> = names.map(range).collect();
    let mut order: Vec<usize> = (0..ranges.len()).collect();
    order.sort_by_key(|&index| core::cmp::Reverse(ranges[index]));
    let mut band: Option<(i16, i16)> = None;
    for index in order {
        system.behaviours[index].priority = ranges[index].map(|(most, least)| {
            let (top, lowest) = band
                .filter(|(_, lowest)| most >= *lowest)
                .unwrap_or((most, least));
            band = Some((top, lowest.min(least)));
            top
        });
    }
}

/// Checks that mutexes keep their ceilings.
pub(super) fn check_ceilings(
    systems: [&System; 2],
    modes: &[Priorities<'_>; 2],
) -> Result<(), TransitionError> {
    let [old, new] = [0, 1].map(|mode| ceilings(systems[mode], &modes[mode]));
    let differs = |name: &&&str| {
        new.get(**name)
            .is_some_and(|ceiling| *ceiling != old[**name])
    };
    match old.keys().filter(differs).min() {
        None => Ok(()),
        Some(name) => Err(fixed(
            &format!("the ceiling of {name}, which is the highest priority of those that lock it,"),
            "a thread may hold the mutex",
        )),
    }
}

fn ceilings<'s>(system: &'s System, priorities: &Priorities<'_>) -> HashMap<&'s str, Option<i16>> {
    let highest = priorities.highest(system);
    let ceiling = |resource: usize| {
        let lockers = system.behaviours.iter().zip(&highest);
        let lockers = lockers.filter(|(behaviour, _)| {
            let mut sections = behaviour.sections.iter();
            sections.any(|section| section.resource == resource)
        });
        lockers.filter_map(|(_, priority)| *priority).max()
    };
    let resources = system.resources.iter().enumerate();
    resources
        .filter(|(_, resource)| resource.locking == Locking::Ceiling)
        .map(|(index, resource)| (resource.name.as_str(), ceiling(index)))
        .collect()
}
