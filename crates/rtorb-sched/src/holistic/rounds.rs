//! The fixed point of jitters and responses.

use std::sync::Arc;

use super::counts::Interferer;
use super::earliest::DeadlineDemand;
use super::fixed::LevelDemand;
use super::relatives::{Relation, Relatives, relatives};
use super::search::{LatestJob, StepBudget, Subject};
use super::{FIRST_NS, SchedulingPolicy, Step, StepResponse};
use crate::limits::SearchLimits;
use crate::response::Response;
use crate::utilisation::{Utilisation, share};

/// The part of an analysis that does not depend on times.
pub(crate) struct Layout {
    processors: Vec<ProcessorLayout>,
    pub(crate) relatives: Vec<Relatives>,
    /// The successors of each step.
    pub(crate) followers: Vec<Vec<usize>>,
}

/// The policy of a processor, and its steps, the most urgent first.
pub(crate) struct ProcessorLayout {
    pub(crate) policy: SchedulingPolicy,
    pub(crate) order: Vec<usize>,
    /// Those with static offsets, in the same order.
    phased: Vec<usize>,
}

/// The state of an analysis. Jitters only grow, so a result for smaller jitters is a lower bound for larger ones.
#[derive(Clone)]
pub(crate) struct Rounds<'a> {
    steps: &'a [Step],
    layout: Arc<Layout>,
    limits: SearchLimits,
    processors: Vec<ProcessorState>,
    /// The first step that is known to miss its deadline.
    missed: Option<usize>,
    jitter_ns: Vec<u64>,
    /// The jitters used for the latest responses.
    seen_ns: Vec<u64>,
    /// Whether each jitter is known.
    release: Vec<ReleaseState>,
    worst: Vec<LatestJob>,
    responses: Vec<Response>,
}

/// The progress of the analysis on a processor.
#[derive(Clone, Copy)]
struct ProcessorState {
    /// The first level at which the utilisation exceeds 1.
    overload_from: Option<u32>,
    /// The most urgent level that must be analysed again.
    changed_from: Option<u32>,
}

/// Whether the latest release of a step is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ReleaseState {
    Bounded,
    Undecided,
    Unbounded,
}

impl<'a> Rounds<'a> {
    pub(crate) fn new(steps: &'a [Step], layout: &Arc<Layout>, limits: SearchLimits) -> Self {
        let processor = |processor: &ProcessorLayout| ProcessorState {
            overload_from: overload_from(steps, &processor.order),
            changed_from: processor.order.first().map(|&first| steps[first].level),
        };
        let mut rounds = Self {
            steps,
            layout: Arc::clone(layout),
            limits,
            processors: layout.processors.iter().map(processor).collect(),
            missed: None,
            jitter_ns: steps.iter().map(|step| step.task.jitter_ns).collect(),
            seen_ns: vec![0; steps.len()],
            release: vec![ReleaseState::Bounded; steps.len()],
            worst: vec![LatestJob::default(); steps.len()],
            responses: vec![Response::Bounded { ns: 0 }; steps.len()],
        };
        // The initial jitters include the delays.
        let roots = (0..steps.len()).filter(|&index| steps[index].after.is_none());
        let mut all: Vec<usize> = roots.collect();
        while let Some(index) = all.pop() {
            rounds.propagate(index);
            all.extend(&layout.followers[index]);
        }
        rounds
    }

    /// Continues from this state, with longer execution of some steps.
    pub(crate) fn grown<'b>(&self, steps: &'b [Step], grown: &[usize]) -> Rounds<'b> {
        let mut rounds = self.clone().with_steps(steps);
        for &index in grown {
            rounds.change(index);
            let processor = steps[index].processor;
            rounds.processors[processor].overload_from =
                overload_from(steps, &self.layout.processors[processor].order);
        }
        rounds
    }

    /// Analyses until nothing changes any more.
    pub(crate) fn run(&mut self) {
        self.run_while(|_| true);
    }

    /// Analyses until a deadline is known to be missed, and returns that step. Without one, all deadlines hold or are undecided.
    pub(crate) fn run_to_miss(&mut self) -> Option<usize> {
        self.run_while(|rounds| rounds.missed.is_none());
        self.missed
    }

    fn run_while(&mut self, go_on: impl Fn(&Self) -> bool) {
        for round in 0..self.limits.rounds_max {
            // Further rounds are useless if a deadline is missed anyway.
            if round > self.limits.rounds_max / 10 && self.missed.is_some() {
                break;
            }
            let changed = self
                .processors
                .iter()
                .position(|processor| processor.changed_from.is_some());
            let Some(first) = changed else {
                if self.find_late_threads() {
                    continue;
                }
                return;
            };
            for processor in first..self.processors.len() {
                self.analyse(processor);
                if !go_on(self) {
                    return;
                }
            }
        }
        let mut processors = self.processors.iter();
        let is_changed = processors.any(|processor| processor.changed_from.is_some());
        if is_changed || self.find_late_threads() {
            // Jitter only grows from round to round, so each of these values is a lower bound of the final one.
            self.responses
                .iter_mut()
                .for_each(|response| *response = response.at_least());
        }
    }

    /// Marks the roots whose thread may be busy when the next job arrives. Returns true if there is one more.
    fn find_late_threads(&mut self) -> bool {
        let mut found = false;
        for index in 0..self.steps.len() {
            let step = &self.steps[index];
            let Some(done) = step.thread_until else {
                continue;
            };
            let is_free = self.responses[done].meets(step.task.arrivals().gap_ns()) == Some(true);
            if !is_free && self.release[index] == ReleaseState::Bounded {
                self.release[index] = ReleaseState::Undecided;
                self.change(index);
                found = true;
            }
        }
        found
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

    /// Returns the same state for other steps.
    pub(crate) fn with_steps(self, steps: &[Step]) -> Rounds<'_> {
        Rounds {
            steps,
            layout: self.layout,
            limits: self.limits,
            processors: self.processors,
            missed: self.missed,
            jitter_ns: self.jitter_ns,
            seen_ns: self.seen_ns,
            release: self.release,
            worst: self.worst,
            responses: self.responses,
        }
    }

    pub(crate) fn found(&self) -> Vec<StepResponse> {
        let each = (0..self.steps.len()).map(|index| self.found_of(index));
        each.collect()
    }

    /// Analyses the changed levels of a processor.
    fn analyse(&mut self, processor: usize) {
        let Some(from) = self.processors[processor].changed_from.take() else {
            return;
        };
        let layout = Arc::clone(&self.layout);
        let state = &layout.processors[processor];
        match state.policy {
            SchedulingPolicy::FixedPriority => self.analyse_levels(processor, &state.order, from),
            SchedulingPolicy::EarliestDeadline => self.analyse_deadlines(processor, &state.order),
        }
    }

    fn analyse_levels(&mut self, processor: usize, order: &[usize], from: u32) {
        let mut demand = LevelDemand::default();
        let mut release = ReleaseState::Bounded;
        for level in order.chunk_by(|&a, &b| self.steps[a].level == self.steps[b].level) {
            for &index in level {
                self.seen_ns[index] = self.jitter_ns[index];
                demand.add(&self.steps[index].task, self.seen_ns[index]);
                release = release.max(self.release[index]);
            }
            let current = self.steps[level[0]].level;
            if self.processors[processor]
                .overload_from
                .is_some_and(|overload| current >= overload)
            {
                release = ReleaseState::Unbounded;
            }
            if current < from {
                continue;
            }
            for &index in level {
                let mut budget = StepBudget(self.limits.steps_max);
                let subject = self.subject(index);
                let decided = match release {
                    ReleaseState::Unbounded => None,
                    _ => Some(demand.worst(&subject, &mut budget)),
                };
                self.answer(index, decided, release);
            }
        }
    }

    fn analyse_deadlines(&mut self, processor: usize, order: &[usize]) {
        let mut release = order.iter().map(|&index| self.release[index]).max();
        if self.processors[processor].overload_from.is_some() {
            release = Some(ReleaseState::Unbounded);
        }
        let release = release.unwrap_or(ReleaseState::Bounded);
        order
            .iter()
            .for_each(|&index| self.seen_ns[index] = self.jitter_ns[index]);
        let all = DeadlineDemand::new(self.steps, &self.seen_ns, order, self.limits);
        for &index in order {
            let mut budget = StepBudget(self.limits.steps_max);
            let known = self.worst[index];
            let subject = self.subject(index);
            let decided = match release {
                ReleaseState::Unbounded => None,
                _ => Some(all.worst(&subject, known, &mut budget)),
            };
            self.answer(index, decided, release);
        }
    }

    fn subject(&self, index: usize) -> Subject<'_> {
        let step = &self.steps[index];
        let processor = &self.layout.processors[step.processor];
        let phased = match processor.policy {
            SchedulingPolicy::EarliestDeadline => processor.phased.len(),
            SchedulingPolicy::FixedPriority => {
                let above = |&other: &usize| self.steps[other].level <= step.level;
                processor.phased.partition_point(above)
            }
        };
        Subject {
            index,
            steps: self.steps,
            jitter_ns: &self.seen_ns,
            relatives: &self.layout.relatives[index],
            phased: &processor.phased[..phased],
        }
    }

    /// Records the result of a step: the latest job, and whether all candidates were analysed.
    fn answer(&mut self, index: usize, decided: Option<(LatestJob, bool)>, release: ReleaseState) {
        let response = match decided {
            None => Response::Unbounded,
            Some((worst, complete)) => {
                self.worst[index] = worst;
                match worst.response_ns() {
                    Some(ns) if complete && release == ReleaseState::Bounded => {
                        Response::Bounded { ns }
                    }
                    Some(at_least_ns) => Response::Undecided { at_least_ns },
                    None => Response::Undecided {
                        at_least_ns: u64::MAX,
                    },
                }
            }
        };
        let deadline_ns = self.steps[index].task.deadline_ns;
        if deadline_ns != FIRST_NS && response.meets(deadline_ns) == Some(false) {
            self.missed.get_or_insert(index);
        }
        if response != self.responses[index] {
            self.responses[index] = response;
            self.propagate(index);
        }
    }

    /// Propagates a step's response to the jitter of its successors.
    fn propagate(&mut self, index: usize) {
        let layout = Arc::clone(&self.layout);
        for &follower in &layout.followers[index] {
            let step = &self.steps[follower];
            let early_ns = self.overlap_ns(index, follower);
            let (mut release, before_ns) = match self.responses[index] {
                Response::Bounded { ns } => (ReleaseState::Bounded, ns),
                Response::Undecided { at_least_ns } => (ReleaseState::Undecided, at_least_ns),
                Response::Unbounded => (ReleaseState::Unbounded, 0),
            };
            let sum = before_ns
                .saturating_sub(early_ns)
                .checked_add(step.delay_ns)
                .and_then(|sum| sum.checked_add(step.task.jitter_ns));
            if sum.is_none() {
                release = release.max(ReleaseState::Undecided);
            }
            let jitter_ns = sum
                .unwrap_or(self.jitter_ns[follower])
                .max(self.jitter_ns[follower]);
            let release = release.max(self.release[follower]);
            if jitter_ns != self.jitter_ns[follower] || release != self.release[follower] {
                self.jitter_ns[follower] = jitter_ns;
                self.release[follower] = release;
                self.change(follower);
            }
        }
    }

    /// Returns how much of a step's response is execution that an early follower begins. The message that releases the follower is
    /// sent without it.
    fn overlap_ns(&self, index: usize, follower: usize) -> u64 {
        let its = self.layout.relatives[index].overlapping(self.steps, follower);
        its.fold(0, |sum, step| {
            sum.saturating_add(self.steps[step].task.worst_ns)
        })
    }

    /// Marks a step, and those that it may delay, for another analysis.
    fn change(&mut self, index: usize) {
        let step = &self.steps[index];
        let changed = &mut self.processors[step.processor].changed_from;
        *changed = Some(changed.map_or(step.level, |level| level.min(step.level)));
    }

    /// Returns the blocking in a step's window.
    fn blocking_ns(&self, index: usize) -> u64 {
        let step = &self.steps[index];
        let processor = &self.layout.processors[step.processor];
        if processor.policy == SchedulingPolicy::FixedPriority {
            return step.task.blocking_ns;
        }
        let due_ns = self.worst[index].arrival_ns + i128::from(step.task.deadline_ns);
        let is_due = |other: &&usize| {
            let first_ns = i128::from(self.steps[**other].task.deadline_ns);
            first_ns - i128::from(self.seen_ns[**other]) <= due_ns
        };
        let due = processor.order.iter().filter(is_due);
        let blocking = due.map(|&other| self.steps[other].task.blocking_ns);
        blocking.max().unwrap_or_default()
    }

    /// Returns the number of the step's own jobs in its window.
    fn own_jobs(&self, index: usize) -> u64 {
        let (step, worst) = (&self.steps[index], self.worst[index]);
        let own = Interferer {
            relation: Relation::Itself,
            has_later: Relation::Itself.has_later(self.steps, index),
            arrivals: step.task.arrivals(),
            jitter_ns: self.seen_ns[index],
            lag: None,
        };
        own.jobs(worst.arrival_ns, worst.window_ns)
    }

    /// Returns the result in terms of jitter and periods.
    fn found_of(&self, index: usize) -> StepResponse {
        let worst = self.worst[index];
        let period = i128::from(self.steps[index].task.arrivals().period_ns);
        let since = |step: usize| worst.arrival_ns + i128::from(self.seen_ns[step]);
        let whole = |step: &usize| since(*step) >= 0 && since(*step) % period == 0;
        let chain =
            core::iter::once(index).chain(self.layout.relatives[index].before.iter().copied());
        let begins_with = chain.clone().find(whole).unwrap_or(index);
        let number = |value: i128| u64::try_from(value).unwrap_or_default();
        StepResponse {
            response: self.responses[index],
            window_ns: worst.window_ns,
            begins_with,
            jitter_ns: self.seen_ns[begins_with],
            release_ns: self.seen_ns[index],
            job: number(since(begins_with) / period),
            later_ns: number(since(begins_with) % period),
            own_jobs: self.own_jobs(index),
            blocking_ns: self.blocking_ns(index),
        }
    }
}

impl Layout {
    /// # Panics
    /// As [`holistic`](super::holistic()).
    pub(crate) fn new(steps: &[Step], policies: &[SchedulingPolicy]) -> Self {
        let mut processors: Vec<ProcessorLayout> = policies
            .iter()
            .map(|&policy| ProcessorLayout {
                policy,
                order: Vec::new(),
                phased: Vec::new(),
            })
            .collect();
        let mut followers = vec![Vec::new(); steps.len()];
        for (index, step) in steps.iter().enumerate() {
            assert!(step.task.period_ns > 0, "a step has a period");
            processors[step.processor].order.push(index);
            if let Some(before) = step.after {
                followers[before].push(index);
            }
        }
        for processor in &mut processors {
            processor.order.sort_by_key(|&index| steps[index].level);
            let phased = |index: &&usize| steps[**index].task.phase.is_some();
            processor.phased = processor.order.iter().filter(phased).copied().collect();
        }
        Self {
            processors,
            relatives: relatives(steps, policies),
            followers,
        }
    }

    pub(crate) fn processor(&self, processor: usize) -> &ProcessorLayout {
        &self.processors[processor]
    }
}

#[expect(clippy::cast_precision_loss, reason = "about")]
/// Returns the first level, from the most urgent on, at which the utilisation exceeds 1.
fn overload_from(steps: &[Step], order: &[usize]) -> Option<u32> {
    // The rounding error is far smaller than the margin.
    let each = |&index: &usize| {
        let task = &steps[index].task;
        let (execution_ns, period_ns) = share(task.arrivals(), task.worst_ns);
        execution_ns as f64 / period_ns as f64
    };
    if order.iter().map(each).sum::<f64>() < 1.0 - 1e-6 {
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
