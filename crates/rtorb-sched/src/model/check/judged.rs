//! Bounds to verdicts: of every behaviour the activation with the least slack, of every chain the one along it.

use super::super::checked::{BehaviourBound, ChainBound, Standing};
use super::super::system::Chain;
use super::goals::period_ns;
use super::shares;
use super::steps::{Analysed, View};
use crate::Response;

/// What a bound says of a deadline.
pub(super) fn standing(response: Response, deadline_ns: u64) -> Standing {
    match response.meets(deadline_ns) {
        Some(true) => Standing::Holds,
        Some(false) => Standing::Misses,
        None => Standing::NotProven,
    }
}

/// The deadline less the bound.
pub(super) fn slack_ns(response: Response, deadline_ns: u64) -> Option<i64> {
    let slack = i128::from(deadline_ns) - i128::from(response.bound_ns()?);
    Some(i64::try_from(slack).unwrap_or(if slack < 0 { i64::MIN } else { i64::MAX }))
}

/// The worse of two answers has the greater of these.
fn badness(response: Response, deadline_ns: u64) -> (Standing, i128) {
    let late = match response {
        Response::Bounded { ns } | Response::Undecided { at_least_ns: ns } => {
            i128::from(ns) - i128::from(deadline_ns)
        }
        Response::Unbounded => i128::MAX,
    };
    (standing(response, deadline_ns), late)
}

/// Of a behaviour's activations the one with the least slack.
pub(super) fn worst_activation(
    view: &View<'_>,
    analysed: &Analysed,
    behaviour: usize,
) -> Option<usize> {
    let activations = view.goals.of_behaviour[behaviour].iter().copied();
    activations.rev().max_by_key(|&index| {
        let done = view.composed.activations[index].done;
        badness(
            analysed.found[done].response,
            view.goals.deadlines_ns[index],
        )
    })
}

/// Of the activations along a chain the one that is done last.
pub(super) fn worst_of_chain(view: &View<'_>, analysed: &Analysed, chain: usize) -> Option<usize> {
    let activations = view.goals.of_chain[chain].iter().copied();
    activations.rev().max_by_key(|&index| {
        let done = view.composed.activations[index].done;
        badness(
            analysed.found[done].response,
            view.system.chains[chain].deadline_ns,
        )
    })
}

/// Every behaviour, without what the sensitivity and the words say of it.
pub(super) fn behaviours(view: &View<'_>, analysed: &Analysed) -> Vec<BehaviourBound> {
    let all = 0..view.system.behaviours.len();
    all.map(|index| behaviour(view, analysed, index)).collect()
}

fn behaviour(view: &View<'_>, analysed: &Analysed, index: usize) -> BehaviourBound {
    let behaviour = &view.system.behaviours[index];
    let (node, cpu) = view.system.place(index);
    let processor = format!("{}/{cpu}", view.system.nodes[node].name);
    let Some(worst) = worst_activation(view, analysed, index) else {
        return never_begun(view, index, processor);
    };
    let activation = &view.composed.activations[worst];
    let owner = view.goals.owner_of[activation.done];
    let response = analysed.found[activation.done].response;
    let deadline_ns = view.goals.deadlines_ns[worst];
    let bound_ns = response.bound_ns();
    BehaviourBound {
        behaviour: behaviour.name.clone(),
        root: view.system.behaviours[activation.root].name.clone(),
        processor,
        priority: analysed.priorities[owner],
        assigned: view.goals.owners[owner].given.is_none() && analysed.priorities[owner].is_some(),
        period_ns: period_ns(&view.system.behaviours[activation.root]),
        deadline_ns,
        bound_ns,
        slack_ns: slack_ns(response, deadline_ns),
        standing: standing(response, deadline_ns),
        shares: match bound_ns {
            Some(_) => shares::of_activation(view, analysed, worst),
            None => vec![],
        },
        by_root: by_root(view, analysed, index),
        sensitivity: None,
        explanation: String::new(),
    }
}

/// What nothing begins has no response.
fn never_begun(view: &View<'_>, index: usize, processor: String) -> BehaviourBound {
    let behaviour = &view.system.behaviours[index];
    BehaviourBound {
        behaviour: behaviour.name.clone(),
        root: behaviour.name.clone(),
        processor,
        priority: behaviour.priority,
        assigned: false,
        period_ns: 0,
        deadline_ns: behaviour.deadline_ns.unwrap_or(0),
        bound_ns: None,
        slack_ns: None,
        standing: Standing::NotProven,
        shares: vec![],
        by_root: vec![],
        sensitivity: None,
        explanation: "Nobody calls it that anything begins: give it a caller, a period or a gap."
            .to_owned(),
    }
}

/// The bound from each root, of several activations the last.
fn by_root(view: &View<'_>, analysed: &Analysed, behaviour: usize) -> Vec<(String, Option<u64>)> {
    let mut roots: Vec<(usize, Option<u64>)> = vec![];
    for &index in &view.goals.of_behaviour[behaviour] {
        let activation = &view.composed.activations[index];
        let bound = analysed.found[activation.done].response.bound_ns();
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

/// Every chain, without words.
pub(super) fn chains(view: &View<'_>, analysed: &Analysed) -> Vec<ChainBound> {
    let chains = view.system.chains.iter().enumerate();
    chains
        .map(|(index, chain)| self::chain(view, analysed, index, chain))
        .collect()
}

fn chain(view: &View<'_>, analysed: &Analysed, index: usize, chain: &Chain) -> ChainBound {
    let name = |&behaviour: &usize| view.system.behaviours[behaviour].name.clone();
    let worst = worst_of_chain(view, analysed, index);
    let response =
        worst.map(|worst| analysed.found[view.composed.activations[worst].done].response);
    let shares = match worst.zip(response.and_then(Response::bound_ns)) {
        Some((worst, _)) => shares::of_chain(view, analysed, worst),
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
            None => "No calls lead along it: its behaviours do not begin each other.".to_owned(),
        },
    }
}

/// What misses its deadline first: of the most urgent priority, then of the shortest deadline.
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
