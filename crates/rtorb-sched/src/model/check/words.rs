//! Why a deadline is missed, in words, and what the bounds rest on.

use std::collections::BTreeSet;

use super::super::checked::{Assumption, BehaviourBound, ChainBound, Share, Standing};
use super::super::system::Scheduling;
use super::super::verdict::rounded_up;
use super::advice::{Advice, Target};
use super::steps::{Analysed, View};
use super::{judged, used};
use crate::{Response, Task, Utilisation};

/// How many misses are told with what would help; the first of them is what is to be mended first.
const ADVISED: usize = 3;

/// How many shares are told.
const LARGEST: usize = 4;

/// Says of each miss, and of what is not proven, what takes the time and what would help.
pub(super) fn explain(
    view: &View<'_>,
    analysed: &Analysed,
    behaviours: &mut [BehaviourBound],
    chains: &mut [ChainBound],
) {
    let mut missed: Vec<(usize, usize)> = vec![];
    for (index, behaviour) in behaviours.iter().enumerate() {
        let worst = judged::worst_activation(view, analysed, index);
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
    let mut advice = Advice::new(view, analysed);
    for (place, &(index, worst)) in missed.iter().enumerate() {
        let behaviour = &mut behaviours[index];
        let target = Target {
            activation: worst,
            deadline_ns: behaviour.deadline_ns,
        };
        behaviour.explanation = why(view, analysed, target, &behaviour.shares);
        if place < ADVISED && behaviour.standing == Standing::Misses {
            behaviour.explanation += &advice.about(target);
        }
    }
    for (index, chain) in chains.iter_mut().enumerate() {
        let worst = judged::worst_of_chain(view, analysed, index);
        if let Some(activation) = worst.filter(|_| chain.standing != Standing::Holds) {
            let target = Target {
                activation,
                deadline_ns: chain.deadline_ns,
            };
            chain.explanation = why(view, analysed, target, &chain.shares);
            if chain.standing == Standing::Misses {
                chain.explanation += &advice.about(target);
            }
        }
    }
}

fn why(view: &View<'_>, analysed: &Analysed, target: Target, shares: &[Share]) -> String {
    let activation = &view.composed.activations[target.activation];
    let root = &view.system.behaviours[activation.root].name;
    let deadline = rounded_up(target.deadline_ns);
    match analysed.found[activation.done].response {
        Response::Bounded { ns } => format!(
            "It may be done {} after its deadline of {deadline} from the arrival of {root}. Of the {} are {}.{}",
            rounded_up(ns.saturating_sub(target.deadline_ns)),
            rounded_up(ns),
            largest(shares),
            overload(view, analysed, activation.done).unwrap_or_default(),
        ),
        Response::Unbounded => overload(view, analysed, activation.done).map_or_else(
            || {
                "It has no bound: what comes before it, or a more urgent behaviour on its CPU, has none either.".to_owned()
            },
            |overload| format!("It has no bound.{overload} So responses grow without end."),
        ),
        Response::Undecided { at_least_ns } => format!(
            "The search ended before the answer: it takes {} or more from the arrival of {root}, and its deadline is {deadline}. \
             What is asked of its CPU is close to all there is, or jitter grows along its calls; shorter execution decides it.{}",
            rounded_up(at_least_ns),
            overload(view, analysed, activation.done).unwrap_or_default(),
        ),
    }
}

/// What takes most of the time.
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

/// Where more is asked of a CPU on the way than it can do: by what is as urgent as what comes there.
fn overload(view: &View<'_>, analysed: &Analysed, done: usize) -> Option<String> {
    let mut next = Some(done);
    while let Some(step) = next {
        let mine = &analysed.steps[step];
        let fixed =
            view.composed.processors[mine.processor].scheduling == Scheduling::FixedPriority;
        let counts = |other: &&crate::holistic::Step| {
            other.processor == mine.processor && (!fixed || other.level <= mine.level)
        };
        let tasks: Vec<Task> = analysed
            .steps
            .iter()
            .filter(counts)
            .map(|step| step.task)
            .collect();
        let used = Utilisation::of(&tasks);
        if used.exceeds_one() {
            let processor = &view.composed.processors[mine.processor];
            return Some(format!(
                " CPU {} of {} is asked for {} by what is as urgent as this or more, and has no more than 100 %.",
                processor.cpu,
                view.system.nodes[processor.node].name,
                used::percent(used.millionths()),
            ));
        }
        next = view.composed.segments[step].after;
    }
    None
}

/// What bounds rest on where priorities decide.
pub(super) fn of_priorities(
    view: &View<'_>,
    analysed: &Analysed,
    about: Option<&'static str>,
) -> Vec<Assumption> {
    let whole = |what: &str| Assumption {
        node: None,
        what: what.to_owned(),
    };
    let mut assumptions: Vec<Assumption> = about.into_iter().map(whole).collect();
    for (index, node) in view.system.nodes.iter().enumerate() {
        if node.scheduling != Scheduling::FixedPriority {
            continue;
        }
        let here = |segment: &super::super::composed::Segment| {
            view.composed.processors[segment.processor].node == index
        };
        let segments = view.composed.segments.iter().zip(&view.goals.owner_of);
        let used = segments
            .filter(|(segment, _)| here(segment))
            .filter_map(|(_, &owner)| analysed.priorities[owner]);
        let used: BTreeSet<i16> = used.collect();
        if used.is_empty() {
            continue;
        }
        let mut what = "threads run under SCHED_FIFO, in lanes and at priorities as `loading` has them, and nothing else on these \
                        CPUs is as urgent"
            .to_owned();
        if used.len() > NATIVE {
            what += &format!(
                "; {} priorities are used here, and SCHED_FIFO has {NATIVE}: those that the ORB's mapping puts together are \
                 later than this says",
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

/// The real-time priorities of Linux.
const NATIVE: usize = 99;
