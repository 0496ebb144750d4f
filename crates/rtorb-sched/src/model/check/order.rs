//! The order of priorities: the strategy ranks the whole system, because CORBA priorities mean the same on every node.
//!
//! Rate-monotonic, deadline-monotonic and maximum-urgency-first rank each owner by the least period, the shortest deadline, or
//! the criticality and then the deadline. These include its own code, its two-way callees, and chains.
//!
//! `optimal` keeps the deadline-monotonic order if it holds. Else it builds an order from the least urgent upwards (Audsley
//! 1991): each place goes to an owner that meets its deadlines there with all others above. That is optimal if no segment
//! releases another, because then neither execution nor blocking nor jitter depends on the order above. If the end of one segment
//! releases another, jitter does. Then the search uses the jitter of the last order, analyses the order it finds, and repeats
//! this for a few rounds, as in the heuristic of Gutiérrez García and González Harbour (1995). No bound rests on the search:
//! every order that it returns is analysed in full. Given priorities keep their order.

use std::collections::BTreeSet;

use super::ModelError;
use super::priorities::assign;
use super::steps::{Analysis, View};
use crate::holistic::SchedulingPolicy;
use crate::holistic::Step;
use crate::levels::{Strategy, ranked};
use crate::model::composition::sum_ns;
use crate::response::Demand;
use crate::{Response, Task};

/// The number of rounds of `optimal`.
const TRIES: usize = 8;

/// Returns the bounds with the strategy's priorities, and a remark on the search.
pub(super) fn analysis(
    view: &View<'_>,
    strategy: Strategy,
) -> Result<(Analysis, Option<&'static str>), ModelError> {
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
    let try_it = |ranks: &[u32]| -> Result<Analysis, ModelError> {
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
        .composition
        .segments
        .iter()
        .any(|segment| segment.after.is_some());
    Ok((first, Some(if chained { NONE_FOUND } else { NONE_EXISTS })))
}

const NONE_EXISTS: &str = "no order of fixed priorities meets all deadlines, as far as the response-time test can tell \
    (Audsley 1991): the bounds are for the deadline-monotonic order";
const NONE_FOUND: &str = "the search found no order of fixed priorities that meets all deadlines. It is a heuristic if there are calls \
    between CPUs, oneways or events. The bounds are for the deadline-monotonic order";

/// Returns the jitter of each segment. If a predecessor has no bound, it is assumed to end at its deadline.
fn jitters(view: &View<'_>, analysis: &Analysis) -> Vec<u64> {
    let jitter = |index: usize| {
        let step = &analysis.steps[index];
        match step
            .after
            .map(|before| (before, analysis.found[before].response))
        {
            None => step.task.jitter_ns,
            Some((_, Response::Bounded { .. })) => analysis.found[index].release_ns,
            Some((before, _)) => {
                let until = analysis.steps[before].task.deadline_ns;
                let earlier = until.saturating_add(step.delay_ns);
                step.task.jitter_ns.saturating_add(earlier)
            }
        }
    };
    (0..view.composition.segments.len()).map(jitter).collect()
}

/// Returns the ranks of Audsley's search with these jitters; `None` if there is no order.
fn search(view: &View<'_>, jitters: &[u64]) -> Option<Vec<u32>> {
    let mut search = OrderSearch::new(view, jitters);
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

struct OrderSearch<'a> {
    view: &'a View<'a>,
    /// The steps without blocking; each candidate adds its own.
    steps: Vec<Step>,
    /// The groups without a rank, the longest deadline last; owners of one given priority form a group.
    left: Vec<Vec<usize>>,
    /// The demand on each processor of the groups without a rank.
    demand: Vec<Demand>,
    settled: Vec<bool>,
    /// The groups that failed since their processors' demand changed last, by their first owner.
    failed: Vec<bool>,
}

impl<'a> OrderSearch<'a> {
    fn new(view: &'a View<'a>, jitters: &[u64]) -> Self {
        let mut steps = view.steps(&|_| 0);
        for (step, &jitter_ns) in steps.iter_mut().zip(jitters) {
            step.task.jitter_ns = jitter_ns;
        }
        let owners = &view.goals.owners;
        let mut demand = vec![Demand::default(); view.composition.processors.len()];
        let segments = view.composition.segments.len();
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

    /// Returns the index of a group that can be the least urgent of those left.
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
            let kernel = sum_ns(&self.view.composition.segments[segment].blocking);
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
        let processor = &self.view.composition.processors[self.steps[segment].processor];
        processor.scheduling == SchedulingPolicy::FixedPriority
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
