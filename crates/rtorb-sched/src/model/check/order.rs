//! Priorities where the file gives none: the strategy's ranks over the whole system, for CORBA priorities mean the same on every node.
//!
//! Rate-monotonic, deadline-monotonic and maximum-urgency-first rank what has a thread of its own by the least period, the shortest
//! deadline, or the criticality and then the deadline of all that it carries: its own code, the two-way calls below it, and chains.
//!
//! `optimal` keeps the deadline-monotonic order where it holds. Else it builds an order from the least urgent upwards (Audsley 1991):
//! each place goes to what meets its deadlines there with all others above. That is optimal where nothing is released by another
//! segment: then neither execution nor blocking nor jitter depends on the order above. Where the end of one segment releases another,
//! jitter does. Then the search takes the jitter of the last order that was tried, tries the order that it finds, and so on for a few
//! rounds, as in the heuristic of Gutiérrez García and González Harbour (1995). No answer rests on the search: whatever order comes
//! out of it is analysed whole. Given priorities keep their order in it.

use std::collections::BTreeSet;

use super::super::system::Scheduling;
use super::ModelError;
use super::priorities::assign;
use super::steps::{Analysed, View, sum};
use crate::holistic::Step;
use crate::levels::{Strategy, ranked};
use crate::response::Demand;
use crate::{Response, Task};

/// How often `optimal` tries with the jitter of the last try.
const TRIES: usize = 8;

/// The bounds with priorities by a strategy; and what to say of how they came about.
pub(super) fn analysed(
    view: &View<'_>,
    strategy: Strategy,
) -> Result<(Analysed, Option<&'static str>), ModelError> {
    let owners = &view.goals.owners;
    let by_deadline = || ranked(owners.iter().map(|owner| owner.deadline_ns));
    let ranks = match strategy {
        Strategy::RateMonotonic => ranked(owners.iter().map(|owner| owner.period_ns)),
        Strategy::DeadlineMonotonic | Strategy::Optimal => by_deadline(),
        Strategy::MaximumUrgencyFirst => ranked(
            owners
                .iter()
                .map(|owner| (core::cmp::Reverse(owner.criticality), owner.deadline_ns)),
        ),
        Strategy::EarliestDeadlineFirst | Strategy::MinimumLaxityFirst => {
            return Err(ModelError::Strategy { strategy });
        }
    };
    let try_it = |ranks: &[u32]| -> Result<Analysed, ModelError> {
        Ok(view.analyse(assign(owners, ranks, view.system.priorities)?))
    };
    let first = try_it(&ranks)?;
    if strategy != Strategy::Optimal || view.holds(&first.found) {
        return Ok((first, None));
    }
    let mut jitters = jitters(view, &first);
    for _ in 0..TRIES {
        let Some(ranks) = search(view, &jitters) else {
            break;
        };
        let next = try_it(&ranks)?;
        if view.holds(&next.found) {
            return Ok((next, None));
        }
        let of_next = self::jitters(view, &next);
        if of_next == jitters {
            break;
        }
        jitters = of_next;
    }
    let chained = view
        .composed
        .segments
        .iter()
        .any(|segment| segment.after.is_some());
    Ok((first, Some(if chained { NONE_FOUND } else { NONE_EXISTS })))
}

const NONE_EXISTS: &str = "no order of fixed priorities meets all deadlines, as far as the response-time test can tell \
    (Audsley 1991): the deadline-monotonic order is shown";
const NONE_FOUND: &str = "the search for an order of fixed priorities that meets all deadlines found none, and where calls \
    go from CPU to CPU or nobody waits for them it is a heuristic: the deadline-monotonic order is shown";

/// The jitter of each segment in an answer. Where that is none, what comes before is thought to be done at its deadline.
fn jitters(view: &View<'_>, analysed: &Analysed) -> Vec<u64> {
    let jitter = |index: usize| {
        let step = &analysed.steps[index];
        match step
            .after
            .map(|before| (before, analysed.found[before].response))
        {
            None => step.task.jitter_ns,
            Some((_, Response::Bounded { .. })) => analysed.found[index].jitter_ns,
            Some((before, _)) => {
                let until = analysed.steps[before].task.deadline_ns;
                let earlier = until.saturating_add(step.delay_ns);
                step.task.jitter_ns.saturating_add(earlier)
            }
        }
    };
    (0..view.composed.segments.len()).map(jitter).collect()
}

/// Ranks by Audsley's search where each segment has this jitter; `None` if there are none.
fn search(view: &View<'_>, jitters: &[u64]) -> Option<Vec<u32>> {
    let mut search = Search::new(view, jitters);
    let mut ranks = vec![0; view.goals.owners.len()];
    let mut rank = u32::try_from(search.left.len()).ok()?;
    while !search.left.is_empty() {
        let place = search.next()?;
        rank -= 1;
        let group = search.left.remove(place);
        search.settle(&group);
        group.iter().for_each(|&owner| ranks[owner] = rank);
    }
    Some(ranks)
}

struct Search<'a> {
    view: &'a View<'a>,
    /// The steps as if nobody were below anybody: blocking is that of each candidate.
    steps: Vec<Step>,
    /// What is still to be placed, the longest deadline last; those of one given priority together.
    left: Vec<Vec<usize>>,
    /// What each processor executes before the least urgent of those that are left, and that one.
    demand: Vec<Demand>,
    settled: Vec<bool>,
    /// Groups that failed since their processors' demand changed last, by their first owner.
    failed: Vec<bool>,
}

impl<'a> Search<'a> {
    fn new(view: &'a View<'a>, jitters: &[u64]) -> Self {
        let mut steps = view.steps(&|_| 0);
        for (step, &jitter_ns) in steps.iter_mut().zip(jitters) {
            step.task.jitter_ns = jitter_ns;
        }
        let owners = &view.goals.owners;
        let mut demand = vec![Demand::default(); view.composed.processors.len()];
        let segments = view.composed.segments.len();
        let counts = |&(index, _): &(usize, &Step)| {
            index >= segments || owners[view.goals.owner_of[index]].fixed
        };
        for (_, step) in steps.iter().enumerate().filter(counts) {
            demand[step.processor].add(&step.task);
        }
        let mut left: Vec<Vec<usize>> = vec![];
        let mut order: Vec<usize> = (0..owners.len())
            .filter(|&owner| owners[owner].fixed)
            .collect();
        order.sort_by_key(|&owner| owners[owner].given);
        for group in
            order.chunk_by(|&a, &b| owners[a].given.is_some() && owners[a].given == owners[b].given)
        {
            left.push(group.to_vec());
        }
        left.sort_by_key(|group| group.iter().map(|&owner| owners[owner].deadline_ns).min());
        Self {
            view,
            steps,
            left,
            demand,
            settled: vec![false; owners.len()],
            failed: vec![false; owners.len()],
        }
    }

    /// The place of a group that can be the least urgent of those left.
    fn next(&mut self) -> Option<usize> {
        let given = |group: &Vec<usize>| self.view.goals.owners[group[0]].given;
        let lowest_given = self.left.iter().filter_map(given).min();
        for place in (0..self.left.len()).rev() {
            let group = &self.left[place];
            let turn = given(group).is_none() || given(group) == lowest_given;
            if !turn || self.failed[group[0]] {
                continue;
            }
            if self.can_be_lowest(group) {
                return Some(place);
            }
            let first = group[0];
            self.failed[first] = true;
        }
        None
    }

    fn can_be_lowest(&self, group: &[usize]) -> bool {
        let owner_of = &self.view.goals.owner_of;
        let level = |segment: usize| match owner_of[segment] {
            owner if self.settled[owner] => 2,
            owner if group.contains(&owner) => 1,
            _ => 0,
        };
        let holds = |&segment: &usize| {
            let task: Task = self.steps[segment].task;
            let demand = &self.demand[self.steps[segment].processor];
            let kernel = sum(&self.view.composed.segments[segment].blocking);
            let waits = self.view.waits(segment, &level);
            let blocking = waits
                .iter()
                .fold(kernel, |sum, wait| sum.saturating_add(wait.ns));
            let response = demand
                .without(&task)
                .response(&task.with_blocking(blocking), self.view.limits);
            !demand.exceeds_one() && response.meets(task.deadline_ns) == Some(true)
        };
        let segments = group
            .iter()
            .flat_map(|&owner| &self.view.goals.owners[owner].segments);
        segments
            .filter(|&&segment| self.is_fixed(segment))
            .all(holds)
    }

    fn is_fixed(&self, segment: usize) -> bool {
        let processor = &self.view.composed.processors[self.steps[segment].processor];
        processor.scheduling == Scheduling::FixedPriority
    }

    fn settle(&mut self, group: &[usize]) {
        for &owner in group {
            self.settled[owner] = true;
            for &segment in &self.view.goals.owners[owner].segments {
                let step = &self.steps[segment];
                self.demand[step.processor].remove(&step.task);
            }
        }
        let steps = &self.steps;
        let owners = &self.view.goals.owners;
        let places = |owner: usize| {
            owners[owner]
                .segments
                .iter()
                .map(|&segment| steps[segment].processor)
        };
        let changed: BTreeSet<usize> = group.iter().flat_map(|&owner| places(owner)).collect();
        for group in &self.left {
            let mut mine = group.iter().flat_map(|&owner| places(owner));
            self.failed[group[0]] &= !mine.any(|processor| changed.contains(&processor));
        }
    }
}
