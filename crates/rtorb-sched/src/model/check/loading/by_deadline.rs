//! The lane that serves all jobs of a CPU by deadline, the one that passes jobs on to it, and why a CPU has none.

use std::collections::BTreeSet;

use super::super::super::report::{LaneLoading, LaneOrder};
use super::super::super::system::{CallWay, Placement, System};
use super::super::steps::{Analysis, View};
use super::{Draft, ceilings};
use crate::edf;
use crate::holistic::SchedulingPolicy;

/// Adds the lanes of the CPUs that schedule by deadline, and the deadlines that order their jobs.
pub(super) fn add(view: &View<'_>, analysis: &Analysis, components: &mut [Draft]) {
    let system = view.system;
    let own_ns = own_deadlines(view);
    for owner in &view.goals.owners {
        if let Some(deadline_ns) = own_ns[owner.behaviour] {
            let behaviour = &system.behaviours[owner.behaviour];
            let deadlines = &mut components[behaviour.component].deadlines;
            deadlines.push((behaviour.name.clone(), deadline_ns));
        }
    }
    for (processor, what) in view.composition.processors.iter().enumerate() {
        if what.scheduling != SchedulingPolicy::EarliestDeadline {
            continue;
        }
        let place = Placement {
            node: what.node,
            cpu: what.cpu,
        };
        let here = system.components.iter().enumerate();
        let here = here.filter(|(_, one)| (one.node, one.cpu) == (place.node, place.cpu));
        let here: Vec<usize> = here.map(|(index, _)| index).collect();
        let lanes = lanes(view, analysis, &own_ns, place, processor);
        for &component in &here {
            let draft = &mut components[component];
            match &lanes {
                Ok(lanes) => {
                    let others = here.iter().filter(|other| **other != component);
                    let names = others.map(|other| system.components[*other].name.clone());
                    draft.process_with = names.collect();
                    draft.by_deadline = Some(lanes.clone());
                }
                Err(reason) => draft.lacks_lane = Some(reason.clone()),
            }
        }
    }
}

/// Returns the deadline that orders the jobs of each behaviour, of those that have a thread or a job of their own and execute by deadline.
fn own_deadlines(view: &View<'_>) -> Vec<Option<u64>> {
    let by_deadline = |segment: &usize| {
        let processor = view.composition.segments[*segment].processor;
        view.composition.processors[processor].scheduling == SchedulingPolicy::EarliestDeadline
    };
    let mut own_ns = vec![None; view.system.behaviours.len()];
    for owner in &view.goals.owners {
        if owner.segments.iter().any(by_deadline) {
            own_ns[owner.behaviour] = Some(owner.deadline_ns);
        }
    }
    own_ns
}

/// Returns the lanes of a CPU, the most urgent first.
fn lanes(
    view: &View<'_>,
    analysis: &Analysis,
    own_ns: &[Option<u64>],
    place: Placement,
    processor: usize,
) -> Result<Vec<LaneLoading>, String> {
    check_channels(view, place)?;
    check_calls(view, place)?;
    ceilings::check(view, own_ns, place)?;
    let levels = view.composition.processors[processor].levels;
    let levels =
        levels.unwrap_or_else(|| edf::levels_needed(&view.jobs(&analysis.steps, processor).1));
    let range = view.system.priorities;
    let above = levels.saturating_add(u32::from(passes_on(view, place)));
    let lowest = range.most_urgent.checked_sub_unsigned(above);
    let lowest = lowest.filter(|lowest| *lowest >= range.least_urgent);
    let lowest = lowest.and_then(|lowest| i16::try_from(lowest).ok());
    let priority = lowest.ok_or_else(|| {
        format!(
            "CPU {} of {} needs {levels} levels, each a priority, {}, and `priorities` allows {}: allow more, or write fewer `levels` at the \
             node",
            place.cpu,
            view.system.nodes[place.node].name,
            if above > levels {
                "one for the I/O thread and one for the lane that passes jobs on"
            } else {
                "and one for the I/O thread"
            },
            range.count()
        )
    })?;
    let by_deadline = LaneLoading {
        priority,
        threads: levels,
        order: LaneOrder::EarliestDeadline,
    };
    // Above the I/O thread. It passes each job on at once.
    let passing = (above > levels).then(|| LaneLoading {
        priority: i16::try_from(range.most_urgent).unwrap_or(i16::MAX),
        threads: 1,
        order: LaneOrder::Fifo,
    });
    Ok(passing.into_iter().chain([by_deadline]).collect())
}

/// Returns true if jobs of a CPU are passed on to its lane with levels.
fn passes_on(view: &View<'_>, place: Placement) -> bool {
    let system = view.system;
    let mut behaviours = system.behaviours.iter().enumerate();
    behaviours.any(|(caller, behaviour)| {
        behaviour.calls.iter().any(|call| {
            let is_passed_on = |to: &usize| {
                system.placement(*to) == place && system.is_passed_on(caller, call.way, *to)
            };
            call.to.iter().any(is_passed_on)
        })
    })
}

/// A channel is a process of its own, and its lanes know no deadlines.
fn check_channels(view: &View<'_>, place: Placement) -> Result<(), String> {
    let system = view.system;
    let mut channels = system.channels.iter();
    let here = channels.find(|one| (one.node, one.cpu) == (place.node, place.cpu));
    here.map_or(Ok(()), |channel| {
        Err(format!(
            "the channel {} is on CPU {} of {}, which schedules by earliest deadline, and a channel orders events by priorities: give it a CPU \
             with fixed priorities",
            channel.name, place.cpu, system.nodes[place.node].name
        ))
    })
}

/// A call that leads back to the CPU of its caller would wait for the lane, whose uppermost level the caller keeps.
fn check_calls(view: &View<'_>, place: Placement) -> Result<(), String> {
    let system = view.system;
    let is_here = |behaviour: &usize| system.placement(*behaviour) == place;
    for caller in (0..system.behaviours.len()).filter(is_here) {
        let left = waited_for(system, caller).filter(|callee| !is_here(callee));
        let mut meanwhile: BTreeSet<usize> = left.collect();
        let mut next: Vec<usize> = meanwhile.iter().copied().collect();
        while let Some(behaviour) = next.pop() {
            if is_here(&behaviour) {
                return Err(format!(
                    "{} waits for another CPU, which calls {} back: the lane of its CPU serves no call of a job whose level it keeps. Make one \
                     of these calls one-way",
                    system.behaviours[caller].name, system.behaviours[behaviour].name
                ));
            }
            let more = waited_for(system, behaviour);
            next.extend(more.filter(|callee| meanwhile.insert(*callee)));
        }
    }
    Ok(())
}

/// Returns the behaviours for which one waits.
fn waited_for(system: &System, behaviour: usize) -> impl Iterator<Item = usize> {
    let calls = system.behaviours[behaviour].calls.iter();
    let waited = calls.filter(|call| call.way == CallWay::TwoWay);
    waited.flat_map(|call| call.to.iter().copied())
}
