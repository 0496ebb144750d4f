//! The lane that serves all jobs of a CPU by deadline, and why a CPU has none.

use super::super::super::report::{LaneLoading, LaneOrder};
use super::super::super::system::{CallWay, Placement};
use super::super::steps::{Analysis, View};
use super::Draft;
use crate::edf;
use crate::holistic::SchedulingPolicy;
use crate::task::Task;

/// Adds the lanes of the CPUs that schedule by deadline, and the deadlines that order their jobs.
pub(super) fn add(view: &View<'_>, analysis: &Analysis, components: &mut [Draft]) {
    let system = view.system;
    for owner in &view.goals.owners {
        let by_deadline = |segment: &usize| {
            let processor = view.composition.segments[*segment].processor;
            view.composition.processors[processor].scheduling == SchedulingPolicy::EarliestDeadline
        };
        if owner.segments.iter().any(by_deadline) {
            let behaviour = &system.behaviours[owner.behaviour];
            let deadlines = &mut components[behaviour.component].deadlines;
            deadlines.push((behaviour.name.clone(), owner.deadline_ns));
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
        let lane = lane(view, analysis, place, processor);
        for component in here {
            match &lane {
                Ok(lane) => components[component].by_deadline = Some(*lane),
                Err(reason) => components[component].lacks_lane = Some(reason.clone()),
            }
        }
    }
}

fn lane(
    view: &View<'_>,
    analysis: &Analysis,
    place: Placement,
    processor: usize,
) -> Result<LaneLoading, String> {
    check_processes(view, place)?;
    check_calls(view, place)?;
    let levels = view.composition.processors[processor].levels;
    let levels = levels.unwrap_or_else(|| edf::levels_needed(&tasks(view, analysis, processor)));
    let range = view.system.priorities;
    let lowest = range.most_urgent.checked_sub_unsigned(levels);
    let lowest = lowest.filter(|lowest| *lowest >= range.least_urgent);
    let lowest = lowest.and_then(|lowest| i16::try_from(lowest).ok());
    let priority = lowest.ok_or_else(|| {
        format!(
            "CPU {} of {} needs {levels} levels, each a priority, and one for the I/O thread, and `priorities` allows {}: allow more, or write \
             fewer `levels` at the node",
            place.cpu,
            view.system.nodes[place.node].name,
            range.count()
        )
    })?;
    Ok(LaneLoading {
        priority,
        threads: levels,
        order: LaneOrder::EarliestDeadline,
    })
}

/// Returns the segments of a CPU as tasks. One that another one releases may have any jitter.
fn tasks(view: &View<'_>, analysis: &Analysis, processor: usize) -> Vec<Task> {
    let steps = analysis.steps[..view.composition.segments.len()].iter();
    let here = steps.filter(|step| step.processor == processor);
    here.map(|step| match step.after {
        Some(_) => step.task.with_jitter(u64::MAX),
        None => step.task,
    })
    .collect()
}

/// One lane of one process orders all jobs of a CPU.
fn check_processes(view: &View<'_>, place: Placement) -> Result<(), String> {
    let system = view.system;
    let components = system.components.iter();
    let components = components.map(|one| (&one.name, one.node, one.cpu));
    let channels = system.channels.iter();
    let channels = channels.map(|one| (&one.name, one.node, one.cpu));
    let mut names = components
        .chain(channels)
        .filter(|(_, node, cpu)| (*node, *cpu) == (place.node, place.cpu))
        .map(|(name, ..)| name);
    match (names.next(), names.next()) {
        (Some(one), Some(other)) => Err(format!(
            "{one} and {other} share CPU {} of {}, which schedules by earliest deadline, and one lane of one process orders all jobs of such \
             a CPU: put the behaviours into one component",
            place.cpu, system.nodes[place.node].name
        )),
        _ => Ok(()),
    }
}

/// A job that waits for another CPU keeps its level, and events bring no deadline.
fn check_calls(view: &View<'_>, place: Placement) -> Result<(), String> {
    let system = view.system;
    let is_here = |behaviour: usize| system.placement(behaviour) == place;
    for (caller, behaviour) in system.behaviours.iter().enumerate() {
        for call in &behaviour.calls {
            let name = &behaviour.name;
            match call.way {
                CallWay::TwoWay if is_here(caller) && !call.to.iter().all(|to| is_here(*to)) => {
                    return Err(format!(
                        "{name} waits for another CPU, and keeps its level of the lane meanwhile, which no bound covers: make the call \
                         one-way"
                    ));
                }
                CallWay::Event { .. } if is_here(caller) => {
                    return Err(format!(
                        "{name} sends events, which a channel orders by priorities, and its CPU schedules by earliest deadline: make the \
                         call one-way"
                    ));
                }
                CallWay::Event { .. } => {
                    if let Some(to) = call.to.iter().find(|to| is_here(**to)) {
                        return Err(format!(
                            "{} receives events, which bring no deadline, and its CPU schedules by earliest deadline: make the call of \
                             {name} one-way",
                            system.behaviours[*to].name
                        ));
                    }
                }
                CallWay::TwoWay | CallWay::OneWay => {}
            }
        }
    }
    Ok(())
}
