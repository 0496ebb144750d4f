//! The bound of every behaviour (of its activation with the least slack) and of every chain.

use super::super::report::{BehaviourBound, ChainBound, Standing};
use super::super::system::{Chain, Placement};
use super::goals::period_ns;
use super::shares;
use super::steps::{Analysis, View};
use crate::Response;

/// Returns the standing of a deadline.
pub(super) fn standing(response: Response, deadline_ns: u64) -> Standing {
    match response.meets(deadline_ns) {
        Some(true) => Standing::Holds,
        Some(false) => Standing::Misses,
        None => Standing::NotProven,
    }
}

/// Returns the deadline minus the bound.
pub(super) fn slack_ns(response: Response, deadline_ns: u64) -> Option<i64> {
    let slack = i128::from(deadline_ns) - i128::from(response.bound_ns()?);
    Some(i64::try_from(slack).unwrap_or(if slack < 0 { i64::MIN } else { i64::MAX }))
}

/// Returns a key that is greater for a worse result.
fn badness(response: Response, deadline_ns: u64) -> (Standing, i128) {
    let late = match response {
        Response::Bounded { ns } | Response::Undecided { at_least_ns: ns } => {
            i128::from(ns) - i128::from(deadline_ns)
        }
        Response::Unbounded => i128::MAX,
    };
    (standing(response, deadline_ns), late)
}

/// Returns the activation of a behaviour with the least slack.
pub(super) fn worst_activation(
    view: &View<'_>,
    analysis: &Analysis,
    behaviour: usize,
) -> Option<usize> {
    let activations = view.goals.of_behaviour[behaviour].iter().copied();
    activations.rev().max_by_key(|&index| {
        let done = view.composition.activations[index].done;
        badness(
            analysis.found[done].response,
            view.goals.deadlines_ns[index],
        )
    })
}

/// Returns the activation of a chain with the least slack.
pub(super) fn worst_of_chain(view: &View<'_>, analysis: &Analysis, chain: usize) -> Option<usize> {
    let activations = view.goals.of_chain[chain].iter().copied();
    activations.rev().max_by_key(|&index| {
        let done = view.composition.activations[index].done;
        badness(
            analysis.found[done].response,
            view.system.chains[chain].deadline_ns,
        )
    })
}

/// Returns the bound of every behaviour, without sensitivity and explanation.
pub(super) fn behaviours(view: &View<'_>, analysis: &Analysis) -> Vec<BehaviourBound> {
    let all = 0..view.system.behaviours.len();
    all.map(|index| behaviour(view, analysis, index)).collect()
}

fn behaviour(view: &View<'_>, analysis: &Analysis, index: usize) -> BehaviourBound {
    let behaviour = &view.system.behaviours[index];
    let Placement { node, cpu } = view.system.placement(index);
    let processor = format!("{}/{cpu}", view.system.nodes[node].name);
    let Some(worst) = worst_activation(view, analysis, index) else {
        return never_begun(view, index, processor);
    };
    let activation = &view.composition.activations[worst];
    let owner = view.goals.owner_of[activation.done];
    let response = analysis.found[activation.done].response;
    let deadline_ns = view.goals.deadlines_ns[worst];
    let bound_ns = response.bound_ns();
    let trigger = view.system.behaviours[activation.root].trigger;
    BehaviourBound {
        behaviour: behaviour.name.clone(),
        root: view.system.behaviours[activation.root].name.clone(),
        processor,
        priority: analysis.priorities[owner],
        assigned: view.goals.owners[owner].given.is_none() && analysis.priorities[owner].is_some(),
        period_ns: period_ns(&view.system.behaviours[activation.root]),
        jobs: trigger.burst().jobs,
        offset_ns: trigger.offset_ns(),
        deadline_ns,
        bound_ns,
        slack_ns: slack_ns(response, deadline_ns),
        standing: standing(response, deadline_ns),
        shares: match bound_ns {
            Some(_) => shares::of_activation(view, analysis, worst),
            None => vec![],
        },
        by_root: by_root(view, analysis, index),
        sensitivity: None,
        explanation: String::new(),
    }
}

/// Returns the bound of a behaviour that nothing releases: it has no response.
fn never_begun(view: &View<'_>, index: usize, processor: String) -> BehaviourBound {
    let behaviour = &view.system.behaviours[index];
    BehaviourBound {
        behaviour: behaviour.name.clone(),
        root: behaviour.name.clone(),
        processor,
        priority: behaviour.priority,
        assigned: false,
        period_ns: 0,
        jobs: 1,
        offset_ns: None,
        deadline_ns: behaviour.deadline_ns.unwrap_or(0),
        bound_ns: None,
        slack_ns: None,
        standing: Standing::NotProven,
        shares: vec![],
        by_root: vec![],
        sensitivity: None,
        explanation: "It never runs, because none of its callers has a root: give it a caller, a period or a gap."
            .to_owned(),
    }
}

/// Returns the bound from each root; of several activations the longest.
fn by_root(view: &View<'_>, analysis: &Analysis, behaviour: usize) -> Vec<(String, Option<u64>)> {
    let mut roots: Vec<(usize, Option<u64>)> = vec![];
    for &index in &view.goals.of_behaviour[behaviour] {
        let activation = &view.composition.activations[index];
        let bound = analysis.found[activation.done].response.bound_ns();
        match roots.iter_mut().find(|(root, _)| *root == activation.root) {
            Some((_, known)) => *known = known.zip(bound).map(|(a, b)| a.max(b)),
            None => roots.push((activation.root, bound)),
        }
    }
    let name = |root: usize| view.system.behaviours[root].name.clone();
    roots
        .into_iter()
        .map(|(root, bound)| (name(root), bound))
        .collect()
}

/// Returns the bound of every chain, without explanation.
pub(super) fn chains(view: &View<'_>, analysis: &Analysis) -> Vec<ChainBound> {
    let chains = view.system.chains.iter().enumerate();
    chains
        .map(|(index, chain)| self::chain(view, analysis, index, chain))
        .collect()
}

fn chain(view: &View<'_>, analysis: &Analysis, index: usize, chain: &Chain) -> ChainBound {
    let name = |&behaviour: &usize| view.system.behaviours[behaviour].name.clone();
    let worst = worst_of_chain(view, analysis, index);
    let response =
        worst.map(|worst| analysis.found[view.composition.activations[worst].done].response);
    let shares = match worst.zip(response.and_then(Response::bound_ns)) {
        Some((worst, _)) => shares::of_chain(view, analysis, worst),
        None => vec![],
    };
    ChainBound {
        chain: chain.name.clone(),
        through: chain.through.iter().map(name).collect(),
        deadline_ns: chain.deadline_ns,
        bound_ns: response.and_then(Response::bound_ns),
        slack_ns: response.and_then(|response| slack_ns(response, chain.deadline_ns)),
        standing: response.map_or(Standing::NotProven, |response| {
            standing(response, chain.deadline_ns)
        }),
        shares,
        explanation: match response {
            Some(_) => String::new(),
            None => {
                "No calls lead along this chain: its behaviours do not call each other.".to_owned()
            }
        },
    }
}

/// Returns the first behaviour or chain that misses its deadline: the most urgent priority, then the shortest deadline.
pub(super) fn first_miss(
    view: &View<'_>,
    behaviours: &[BehaviourBound],
    chains: &[ChainBound],
) -> Option<String> {
    let urgency = |priority: Option<i16>| core::cmp::Reverse(priority.unwrap_or(i16::MIN));
    let missing = behaviours
        .iter()
        .filter(|each| each.standing == Standing::Misses);
    let missing =
        missing.map(|each| (urgency(each.priority), each.deadline_ns, 0, &each.behaviour));
    let ends = chains.iter().zip(&view.system.chains);
    let ends = ends
        .filter(|(each, _)| each.standing == Standing::Misses)
        .map(|(each, chain)| {
            let last = chain
                .through
                .last()
                .and_then(|&last| behaviours[last].priority);
            (urgency(last), each.deadline_ns, 1, &each.chain)
        });
    let first = missing
        .chain(ends)
        .min_by_key(|&(urgency, deadline_ns, kind, _)| (urgency, deadline_ns, kind));
    first.map(|(.., name)| name.clone())
}
