//! The explanations of missed deadlines, and the assumptions about priorities.

use std::collections::BTreeSet;

use super::super::report::{Assumption, BehaviourBound, ChainBound, Share, Standing};
use super::super::system::{Behaviour, Enforcement, System, Trigger};
use super::super::verdict::rounded_up;
use super::advice::{Advice, MissedDeadline};
use super::steps::{Analysis, View};
use super::{bounds, processor_use};
use crate::holistic::SchedulingPolicy;
use crate::times::text_of_ns;
use crate::{Response, Task, Utilisation};

/// The number of misses with advice: the first ones need correction first.
const ADVISED: usize = 3;

/// The number of shares in an explanation.
const LARGEST: usize = 4;

/// Explains each miss and each unproven deadline: what takes the time, and what would help.
pub(super) fn explain(
    view: &View<'_>,
    analysis: &Analysis,
    behaviours: &mut [BehaviourBound],
    chains: &mut [ChainBound],
) {
    let mut missed: Vec<(usize, usize)> = vec![];
    for (index, behaviour) in behaviours.iter().enumerate() {
        let worst = bounds::worst_activation(view, analysis, index);
        if let Some(worst) = worst.filter(|_| behaviour.standing != Standing::Holds) {
            missed.push((index, worst));
        }
    }
    missed.sort_by_key(|&(index, _)| {
        (
            core::cmp::Reverse(behaviours[index].priority),
            behaviours[index].deadline_ns,
        )
    });
    let mut advice = Advice::new(view, analysis);
    for (place, &(index, worst)) in missed.iter().enumerate() {
        let behaviour = &mut behaviours[index];
        let target = MissedDeadline {
            activation: worst,
            deadline_ns: behaviour.deadline_ns,
        };
        behaviour.explanation = why(view, analysis, target, &behaviour.shares);
        behaviour.explanation += &allowed(&view.system.behaviours[index]);
        let may_try = place < ADVISED && !view.has_suspensions();
        if may_try && behaviour.standing == Standing::Misses {
            behaviour.explanation += &advice.about(target);
        }
    }
    for (index, chain) in chains.iter_mut().enumerate() {
        let worst = bounds::worst_of_chain(view, analysis, index);
        if let Some(activation) = worst.filter(|_| chain.standing != Standing::Holds) {
            let target = MissedDeadline {
                activation,
                deadline_ns: chain.deadline_ns,
            };
            chain.explanation = why(view, analysis, target, &chain.shares);
            if chain.standing == Standing::Misses {
                chain.explanation += &advice.about(target);
            }
        }
    }
}

/// Says what the operation of a behaviour allows, if some of its calls may be late. A bound on the response time does not say how many calls are late.
fn allowed(behaviour: &Behaviour) -> String {
    behaviour.miss_ratio.map_or_else(String::new, |ratio| {
        format!(
            " Its operation allows {} late of {} calls (@statistical), which is measured, not proven: Orb::timing counts it.",
            ratio.misses, ratio.calls
        )
    })
}

fn why(view: &View<'_>, analysis: &Analysis, target: MissedDeadline, shares: &[Share]) -> String {
    let activation = &view.composition.activations[target.activation];
    let root = &view.system.behaviours[activation.root].name;
    let deadline = rounded_up(target.deadline_ns);
    match analysis.found[activation.done].response {
        Response::Bounded { ns } => format!(
            "It may end {} after its deadline of {deadline} from the arrival of {root}. The largest shares of its {} are {}.{}",
            rounded_up(ns.saturating_sub(target.deadline_ns)),
            rounded_up(ns),
            largest(shares),
            overload(view, analysis, activation.done).unwrap_or_default(),
        ),
        Response::Unbounded => overload(view, analysis, activation.done).map_or_else(
            || {
                "It has no bound, because its predecessor or a more urgent behaviour on its CPU has none.".to_owned()
            },
            |overload| format!("It has no bound.{overload} So response times grow without bound."),
        ),
        Response::Undecided { .. } if late_thread(view, analysis, activation.done).is_some() => {
            late_thread(view, analysis, activation.done).unwrap_or_default()
        }
        Response::Undecided { at_least_ns } => format!(
            "The search ended undecided: the response takes at least {} from the arrival of {root}, and the deadline is {deadline}. \
             The utilisation of its CPU is close to 100 %, or jitter grows along its calls. Shorter execution makes it decidable.{}",
            rounded_up(at_least_ns),
            overload(view, analysis, activation.done).unwrap_or_default(),
        ),
    }
}

/// Says which root has no bound, because its thread may be busy when its next job arrives: that of this segment, or else another one that
/// may delay it.
fn late_thread(view: &View<'_>, analysis: &Analysis, done: usize) -> Option<String> {
    let segments = &view.composition.segments;
    let root = segments[done].root;
    let late = view.late_threads(analysis);
    let own = late.iter().find(|(first, _)| segments[*first].root == root);
    let delaying = || {
        late.iter()
            .find(|(first, _)| delays(analysis, *first, done))
    };
    let &(first, busy_ns) = own.or_else(delaying)?;
    let at = segments[first].root;
    let one = &view.system.behaviours[at];
    let name = &one.name;
    let whose = if at == root {
        String::new()
    } else {
        format!("The search ended undecided, perhaps because late jobs of {name} delay it. ")
    };
    let busy = busy_ns.map_or_else(
        || "which has no bound".to_owned(),
        |ns| format!("which may take {}", rounded_up(ns)),
    );
    let gap_ns = match one.trigger {
        Trigger::Sporadic { gap_ns, .. } => gap_ns,
        trigger => trigger.period_ns().unwrap_or(0),
    };
    Some(format!(
        "{whose}The thread of {name} begins no job before the last one has ended, also while that one waits for another CPU, {busy}. But its \
         jobs may arrive {} apart, so they may wait for each other, and nothing bounds for how long. Let {name} arrive less often, make what \
         it waits for shorter, or call it oneway.",
        text_of_ns(gap_ns)
    ))
}

/// Returns true if a step has no bound because the release of another one has none.
fn delays(analysis: &Analysis, late: usize, step: usize) -> bool {
    let steps = &analysis.steps;
    let level = |step: usize| match analysis.policies[steps[step].processor] {
        SchedulingPolicy::FixedPriority => u64::from(steps[step].level),
        SchedulingPolicy::EarliestDeadline => 0,
    };
    // The most urgent level of each processor that has such a release.
    let mut from = vec![u64::MAX; analysis.policies.len()];
    let has_no_bound = |from: &[u64], step: usize| level(step) >= from[steps[step].processor];
    let mut next = Some(late);
    while let Some(released) = next {
        from[steps[released].processor] = level(released);
        next = (0..steps.len()).find(|&index| {
            let before = steps[index].after;
            before.is_some_and(|before| has_no_bound(&from, before)) && !has_no_bound(&from, index)
        });
    }
    has_no_bound(&from, step)
}

/// Formats the largest shares.
fn largest(shares: &[Share]) -> String {
    let mut largest: Vec<&Share> = shares.iter().filter(|share| share.ns > 0).collect();
    largest.sort_by_key(|share| core::cmp::Reverse(share.ns));
    let told = |share: &&&Share| {
        let times = match share.times {
            0 | 1 => String::new(),
            times => format!(" ({times} times)"),
        };
        format!(
            "{} {}{times}",
            rounded_up(share.ns.unsigned_abs()),
            share.what
        )
    };
    let told: Vec<String> = largest
        .iter()
        .take(LARGEST)
        .map(|share| told(&share))
        .collect();
    told.join(", ")
}

/// Returns which CPU on the way is overloaded, by behaviours that are at least as urgent.
fn overload(view: &View<'_>, analysis: &Analysis, done: usize) -> Option<String> {
    let mut next = Some(done);
    while let Some(step) = next {
        let mine = &analysis.steps[step];
        let fixed = view.composition.processors[mine.processor].scheduling
            == SchedulingPolicy::FixedPriority;
        let counts = |other: &&crate::holistic::Step| {
            other.processor == mine.processor && (!fixed || other.level <= mine.level)
        };
        let tasks: Vec<Task> = analysis
            .steps
            .iter()
            .filter(counts)
            .map(|step| step.task)
            .collect();
        let used = Utilisation::of(&tasks);
        if used.exceeds_one() {
            let processor = &view.composition.processors[mine.processor];
            return Some(format!(
                " The behaviours on CPU {} of {} that are at least as urgent use {} of it, which is more than 100 %.",
                processor.cpu,
                view.system.nodes[processor.node].name,
                processor_use::percent(used.millionths()),
            ));
        }
        next = view.composition.segments[step].after;
    }
    None
}

/// Returns the assumptions about priorities.
pub(super) fn of_priorities(
    view: &View<'_>,
    analysis: &Analysis,
    about: Option<&'static str>,
) -> Vec<Assumption> {
    let whole = |what: &str| Assumption {
        node: None,
        what: what.to_owned(),
    };
    let mut assumptions: Vec<Assumption> = about.into_iter().map(whole).collect();
    for (index, node) in view.system.nodes.iter().enumerate() {
        let here = |segment: &super::super::composition::Segment| {
            let processor = &view.composition.processors[segment.processor];
            processor.node == index && processor.scheduling == SchedulingPolicy::FixedPriority
        };
        let segments = view.composition.segments.iter().zip(&view.goals.owner_of);
        let used = segments
            .filter(|(segment, _)| here(segment))
            .filter_map(|(_, &owner)| analysis.priorities[owner]);
        let used: BTreeSet<i16> = used.collect();
        if used.is_empty() {
            continue;
        }
        let mut what = "threads run under SCHED_FIFO, with the lanes and priorities of `loading`, and no other thread on these \
                        CPUs is as urgent"
            .to_owned();
        if used.len() > NATIVE {
            what += &format!(
                "; the system uses {} priorities here, but SCHED_FIFO has {NATIVE}: those that the ORB maps to one priority respond \
                 later than these bounds",
                used.len()
            );
        }
        assumptions.push(Assumption {
            node: Some(node.name.clone()),
            what,
        });
    }
    assumptions
}

/// Returns the assumptions about offsets and enforcement.
pub(super) fn of_releases(system: &System) -> Vec<Assumption> {
    let mut assumptions = Vec::new();
    let offsets = system
        .behaviours
        .iter()
        .filter_map(|one| one.trigger.offset_ns());
    if offsets.count() > 1 {
        assumptions.push(
            "behaviours with an offset on one node are released by one clock, and begin to count at the same moment. Offsets on \
             different nodes are not related"
                .to_owned(),
        );
    }
    for (index, behaviour) in system.behaviours.iter().enumerate() {
        let name = &behaviour.name;
        let (what, budget) = match behaviour.enforcement {
            Enforcement::Count => continue,
            Enforcement::Demote(_) if !system.is_bounded_by_demotion(index) => {
                assumptions.push(format!(
                    "no job of {name} exceeds its budget: one that does has no bound, nor has what it calls, what calls it or what waits for it, \
                     and its thread must skip the jobs that arrive until it ends. Its whole execution counts for others: write policy = \"stop\" \
                     to bound it"
                ));
                continue;
            }
            Enforcement::Demote(budget) => (
                "goes on below all real-time work, so that this job and what it calls have no bound, and then skips the jobs that arrive until it ends;",
                budget,
            ),
            Enforcement::Stop(budget) => ("stops", budget),
        };
        assumptions.push(format!(
            "{name} {what} at most {} after its budget of {}",
            text_of_ns(budget.granularity_ns),
            text_of_ns(budget.budget_ns)
        ));
    }
    let whole = |what| Assumption { node: None, what };
    assumptions.into_iter().map(whole).collect()
}

/// The number of real-time priorities of Linux.
const NATIVE: usize = 99;
