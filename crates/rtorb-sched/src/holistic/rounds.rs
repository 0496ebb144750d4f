//! Jitter and responses in turn, until neither changes.

use std::sync::Arc;

use super::earliest::DeadlineLane;
use super::fixed::Streams;
use super::relatives::{Relatives, relatives};
use super::{Found, Policy, Step};
use crate::limits::Limits;
use crate::response::Response;
use crate::utilisation::Utilisation;

/// What does not depend on times.
pub(crate) struct Layout {
    lanes: Vec<Placed>,
    pub(crate) relatives: Vec<Relatives>,
    /// The steps that each one's end releases.
    pub(crate) followers: Vec<Vec<usize>>,
}

/// A processor, and its steps: the most urgent first.
pub(crate) struct Placed {
    pub(crate) policy: Policy,
    pub(crate) order: Vec<usize>,
}

/// The state of an analysis. Jitters only grow, so what was found for smaller ones is a lower bound for larger ones.
#[derive(Clone)]
pub(crate) struct Rounds<'a> {
    steps: &'a [Step],
    layout: Arc<Layout>,
    limits: Limits,
    lanes: Vec<Lane>,
    /// The first step that was found to miss its deadline.
    missed: Option<usize>,
    jitter_ns: Vec<u64>,
    /// The jitters that the responses were found with, last.
    seen_ns: Vec<u64>,
    /// What is known of the jitters: a number, or why not.
    standing: Vec<Standing>,
    worst: Vec<Worst>,
    responses: Vec<Response>,
}

/// How far the analysis of a processor is.
#[derive(Clone, Copy)]
struct Lane {
    /// From which level on its steps ask for more than there is.
    overload_from: Option<u32>,
    /// From which level on something has changed.
    changed_from: Option<u32>,
}

/// What is known of a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Standing {
    Bounded,
    Undecided,
    Unbounded,
}

/// The job of a step that is latest: it arrives so long after the window begins, and the window is so long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Worst {
    pub(super) arrival_ns: i128,
    pub(super) window_ns: u64,
}

impl Worst {
    /// `None` over 2^64 ns.
    pub(super) fn response_ns(self) -> Option<u64> {
        u64::try_from(i128::from(self.window_ns) - self.arrival_ns).ok()
    }
}

/// One step and what it must be set against.
#[derive(Clone, Copy)]
pub(super) struct Subject<'a> {
    pub(super) index: usize,
    pub(super) steps: &'a [Step],
    pub(super) jitter_ns: &'a [u64],
    pub(super) relatives: &'a Relatives,
}

impl Subject<'_> {
    pub(super) fn own_jitter_ns(&self) -> u64 {
        self.jitter_ns[self.index]
    }
}

/// How many more evaluations of demand there may be for one step.
#[derive(Clone, Copy)]
pub(super) struct Budget(pub(super) u32);

impl Budget {
    pub(super) fn spend(&mut self) -> Option<()> {
        self.0 = self.0.checked_sub(1)?;
        Some(())
    }
}

impl<'a> Rounds<'a> {
    pub(crate) fn new(steps: &'a [Step], layout: &Arc<Layout>, limits: Limits) -> Self {
        let lane = |placed: &Placed| Lane {
            overload_from: overload_from(steps, &placed.order),
            changed_from: placed.order.first().map(|&first| steps[first].level),
        };
        let mut rounds = Self {
            steps,
            layout: Arc::clone(layout),
            limits,
            lanes: layout.lanes.iter().map(lane).collect(),
            missed: None,
            jitter_ns: steps.iter().map(|step| step.task.jitter_ns).collect(),
            seen_ns: vec![0; steps.len()],
            standing: vec![Standing::Bounded; steps.len()],
            worst: vec![Worst::default(); steps.len()],
            responses: vec![Response::Bounded { ns: 0 }; steps.len()],
        };
        // Delays are jitter from the beginning.
        let roots = (0..steps.len()).filter(|&index| steps[index].after.is_none());
        let mut all: Vec<usize> = roots.collect();
        while let Some(index) = all.pop() {
            rounds.hand_on(index);
            all.extend(&layout.followers[index]);
        }
        rounds
    }

    /// Goes on from here with the same steps, of which these execute longer.
    pub(crate) fn grown<'b>(&self, steps: &'b [Step], grown: &[usize]) -> Rounds<'b> {
        let mut rounds = self.clone().with_steps(steps);
        for &index in grown {
            rounds.change(index);
            let lane = steps[index].processor;
            rounds.lanes[lane].overload_from = overload_from(steps, &self.layout.lanes[lane].order);
        }
        rounds
    }

    /// Looks at what has changed until nothing changes any more.
    pub(crate) fn run(&mut self) {
        self.run_while(|_| true);
    }

    /// The same until a deadline is known to be missed: whose, if there is one. Without one, all hold or are undecided.
    pub(crate) fn run_to_miss(&mut self) -> Option<usize> {
        self.run_while(|rounds| rounds.missed.is_none());
        self.missed
    }

    fn run_while(&mut self, go_on: impl Fn(&Self) -> bool) {
        for round in 0..self.limits.rounds_max {
            // Jitters that still chase each other then are for nothing, where a deadline is missed anyway.
            if round > self.limits.rounds_max / 10 && self.missed.is_some() {
                break;
            }
            let changed = self
                .lanes
                .iter()
                .position(|lane| lane.changed_from.is_some());
            let Some(first) = changed else {
                return;
            };
            for lane in first..self.lanes.len() {
                self.analyse(lane);
                if !go_on(self) {
                    return;
                }
            }
        }
        if self.lanes.iter().any(|lane| lane.changed_from.is_some()) {
            // Jitter only grows from round to round, so each of these is a time that is really reached in the bound.
            self.responses
                .iter_mut()
                .for_each(|response| *response = at_least(*response));
        }
    }

    pub(crate) fn responses(&self) -> &[Response] {
        &self.responses
    }

    pub(crate) fn jitter_ns(&self, index: usize) -> u64 {
        self.seen_ns[index]
    }

    pub(crate) fn window_ns(&self, index: usize) -> u64 {
        self.worst[index].window_ns
    }

    /// The same state, for these steps.
    pub(crate) fn with_steps(self, steps: &[Step]) -> Rounds<'_> {
        Rounds {
            steps,
            layout: self.layout,
            limits: self.limits,
            lanes: self.lanes,
            missed: self.missed,
            jitter_ns: self.jitter_ns,
            seen_ns: self.seen_ns,
            standing: self.standing,
            worst: self.worst,
            responses: self.responses,
        }
    }

    pub(crate) fn found(&self) -> Vec<Found> {
        let each = (0..self.steps.len()).map(|index| self.found_of(index));
        each.collect()
    }

    /// Looks again at what has changed on a processor.
    fn analyse(&mut self, lane: usize) {
        let Some(from) = self.lanes[lane].changed_from.take() else {
            return;
        };
        let layout = Arc::clone(&self.layout);
        let placed = &layout.lanes[lane];
        match placed.policy {
            Policy::FixedPriority => self.analyse_levels(lane, &placed.order, from),
            Policy::EarliestDeadline => self.analyse_deadlines(lane, &placed.order),
        }
    }

    fn analyse_levels(&mut self, lane: usize, order: &[usize], from: u32) {
        let mut streams = Streams::default();
        let mut standing = Standing::Bounded;
        for level in order.chunk_by(|&a, &b| self.steps[a].level == self.steps[b].level) {
            for &index in level {
                self.seen_ns[index] = self.jitter_ns[index];
                streams.add(&self.steps[index].task, self.seen_ns[index]);
                standing = standing.max(self.standing[index]);
            }
            let current = self.steps[level[0]].level;
            if self.lanes[lane]
                .overload_from
                .is_some_and(|overload| current >= overload)
            {
                standing = Standing::Unbounded;
            }
            if current < from {
                continue;
            }
            for &index in level {
                let mut budget = Budget(self.limits.steps_max);
                let subject = self.subject(index);
                let decided = match standing {
                    Standing::Unbounded => None,
                    _ => Some(streams.worst(&subject, &mut budget)),
                };
                self.answer(index, decided, standing);
            }
        }
    }

    fn analyse_deadlines(&mut self, lane: usize, order: &[usize]) {
        let mut standing = order.iter().map(|&index| self.standing[index]).max();
        if self.lanes[lane].overload_from.is_some() {
            standing = Some(Standing::Unbounded);
        }
        let standing = standing.unwrap_or(Standing::Bounded);
        order
            .iter()
            .for_each(|&index| self.seen_ns[index] = self.jitter_ns[index]);
        let all = DeadlineLane::new(self.steps, &self.seen_ns, order, self.limits);
        for &index in order {
            let mut budget = Budget(self.limits.steps_max);
            let known = self.worst[index];
            let subject = self.subject(index);
            let decided = match standing {
                Standing::Unbounded => None,
                _ => Some(all.worst(&subject, known, &mut budget)),
            };
            self.answer(index, decided, standing);
        }
    }

    fn subject(&self, index: usize) -> Subject<'_> {
        Subject {
            index,
            steps: self.steps,
            jitter_ns: &self.seen_ns,
            relatives: &self.layout.relatives[index],
        }
    }

    /// Takes a step's answer: the latest job, and whether it is known to be the latest of all.
    fn answer(&mut self, index: usize, decided: Option<(Worst, bool)>, standing: Standing) {
        let response = match decided {
            None => Response::Unbounded,
            Some((worst, complete)) => {
                self.worst[index] = worst;
                match worst.response_ns() {
                    Some(ns) if complete && standing == Standing::Bounded => {
                        Response::Bounded { ns }
                    }
                    Some(at_least_ns) => Response::Undecided { at_least_ns },
                    None => Response::Undecided {
                        at_least_ns: u64::MAX,
                    },
                }
            }
        };
        if response.meets(self.steps[index].task.deadline_ns) == Some(false) {
            self.missed.get_or_insert(index);
        }
        if response != self.responses[index] {
            self.responses[index] = response;
            self.hand_on(index);
        }
    }

    /// Gives what follows a step the jitter that its response means.
    fn hand_on(&mut self, index: usize) {
        let layout = Arc::clone(&self.layout);
        for &follower in &layout.followers[index] {
            let step = &self.steps[follower];
            let (mut standing, before_ns) = match self.responses[index] {
                Response::Bounded { ns } => (Standing::Bounded, ns),
                Response::Undecided { at_least_ns } => (Standing::Undecided, at_least_ns),
                Response::Unbounded => (Standing::Unbounded, 0),
            };
            let sum = before_ns
                .checked_add(step.delay_ns)
                .and_then(|sum| sum.checked_add(step.task.jitter_ns));
            if sum.is_none() {
                standing = standing.max(Standing::Undecided);
            }
            let jitter_ns = sum
                .unwrap_or(self.jitter_ns[follower])
                .max(self.jitter_ns[follower]);
            let standing = standing.max(self.standing[follower]);
            if jitter_ns != self.jitter_ns[follower] || standing != self.standing[follower] {
                self.jitter_ns[follower] = jitter_ns;
                self.standing[follower] = standing;
                self.change(follower);
            }
        }
    }

    /// Has a step, and what it may go before, looked at again.
    fn change(&mut self, index: usize) {
        let step = &self.steps[index];
        let changed = &mut self.lanes[step.processor].changed_from;
        *changed = Some(changed.map_or(step.level, |level| level.min(step.level)));
    }

    /// The blocking in a step's window.
    fn blocking_ns(&self, index: usize) -> u64 {
        let step = &self.steps[index];
        let lane = &self.layout.lanes[step.processor];
        if lane.policy == Policy::FixedPriority {
            return step.task.blocking_ns;
        }
        let due_ns = self.worst[index].arrival_ns + i128::from(step.task.deadline_ns);
        let is_due = |other: &&usize| {
            let first_ns = i128::from(self.steps[**other].task.deadline_ns);
            first_ns - i128::from(self.seen_ns[**other]) <= due_ns
        };
        let due = lane.order.iter().filter(is_due);
        let blocking = due.map(|&other| self.steps[other].task.blocking_ns);
        blocking.max().unwrap_or_default()
    }

    /// The answer in the terms of jitter, periods, and what is left.
    fn found_of(&self, index: usize) -> Found {
        let worst = self.worst[index];
        let period = i128::from(self.steps[index].task.period_ns);
        let since = |step: usize| worst.arrival_ns + i128::from(self.seen_ns[step]);
        let whole = |step: &usize| since(*step) >= 0 && since(*step) % period == 0;
        let chain =
            core::iter::once(index).chain(self.layout.relatives[index].before.iter().copied());
        let begins_with = chain.clone().find(whole).unwrap_or(index);
        let number = |value: i128| u64::try_from(value).unwrap_or_default();
        Found {
            response: self.responses[index],
            window_ns: worst.window_ns,
            begins_with,
            jitter_ns: self.seen_ns[begins_with],
            job: number(since(begins_with) / period),
            later_ns: number(since(begins_with) % period),
            own_jobs: number(since(index) / period + 1),
            blocking_ns: self.blocking_ns(index),
        }
    }
}

impl Layout {
    /// # Panics
    /// As [`holistic`](super::holistic()).
    pub(crate) fn new(steps: &[Step], processors: &[Policy]) -> Self {
        let mut lanes: Vec<Placed> = processors
            .iter()
            .map(|&policy| Placed {
                policy,
                order: Vec::new(),
            })
            .collect();
        let mut followers = vec![Vec::new(); steps.len()];
        for (index, step) in steps.iter().enumerate() {
            assert!(step.task.period_ns > 0, "a step has a period");
            lanes[step.processor].order.push(index);
            if let Some(before) = step.after {
                followers[before].push(index);
            }
        }
        for lane in &mut lanes {
            lane.order.sort_by_key(|&index| steps[index].level);
        }
        Self {
            lanes,
            relatives: relatives(steps, processors),
            followers,
        }
    }

    pub(crate) fn lane(&self, processor: usize) -> &Placed {
        &self.lanes[processor]
    }
}

#[expect(clippy::cast_precision_loss, reason = "about")]
/// The level with which steps, from the most urgent on, ask for more than the processor has.
fn overload_from(steps: &[Step], order: &[usize]) -> Option<u32> {
    // Rounding is far less than what is left.
    let share =
        |&index: &usize| steps[index].task.worst_ns as f64 / steps[index].task.period_ns as f64;
    if order.iter().map(share).sum::<f64>() < 1.0 - 1e-6 {
        return None;
    }
    let exceeds = |count: usize| {
        Utilisation::of(order[..count].iter().map(|&index| &steps[index].task)).exceeds_one()
    };
    if !exceeds(order.len()) {
        return None;
    }
    let (mut fits, mut too_many) = (0, order.len());
    while fits + 1 < too_many {
        let middle = usize::midpoint(fits, too_many);
        if exceeds(middle) {
            too_many = middle;
        } else {
            fits = middle;
        }
    }
    Some(steps[order[too_many - 1]].level)
}

fn at_least(response: Response) -> Response {
    match response {
        Response::Bounded { ns } => Response::Undecided { at_least_ns: ns },
        other => other,
    }
}
