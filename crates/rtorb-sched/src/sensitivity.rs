//! Sensitivity analysis: how much the execution times of steps may grow before a deadline is missed.
//!
//! Longer execution never shortens a response, so bisection finds the largest growth with which all deadlines hold (sensitivity
//! analysis in this sense: Lehoczky, Sha and Ding 1989; Bini, Di Natale and Buttazzo 2008). Three facts shorten the search:
//!
//! * A response grows at least by the additional execution of the growing steps in its worst window. The least slack divided by
//!   their jobs in it is an upper bound, and often the result.
//! * Jitters and responses only grow, so each trial begins with those of the last growth that held.
//! * If no response affects other processors, only the steps on the growing steps' processors are analysed, each separately. A
//!   step that meets its deadline `t` with `n(t)` jobs of growing steps has at least `(t - demand(t)) / n(t)` left at that one
//!   point of time (the scheduling points of Bini and Buttazzo 2004). It is searched only if others have more.

use std::sync::Arc;

use crate::holistic::rounds::{Layout, Rounds};
use crate::holistic::{SchedulingPolicy, Step, StepResponse};
use crate::limits::SearchLimits;
use crate::response::Response;
use crate::stream::{Stream, StreamSet, demand_in};

/// The largest growth of execution times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Growth {
    /// The growth of each growing step, in ns. If it is negative, each must shrink by so much for all deadlines to hold (no
    /// execution time becomes negative). `None` if no change of these steps makes all deadlines hold, or no step grows. Never
    /// more than is true. Exact to the nanosecond if no response affects other steps; otherwise at most a thousandth and 1 ns
    /// below the true value.
    pub by_ns: Option<i64>,
    /// The step that misses its deadline with more growth, or misses it already.
    pub breaks_first: Option<usize>,
}

/// A set of steps that was analysed once, for any number of growth queries.
pub struct GrowthAnalysis<'a> {
    steps: &'a [Step],
    layout: Arc<Layout>,
    limits: SearchLimits,
    now: Rounds<'a>,
    /// The first step that is not proven to meet its deadline.
    misses: Option<usize>,
    /// The slack of each step without successors and without relatives on its processor.
    alone: Vec<Option<LocalSlack>>,
    /// The streams that may delay such a step, by position in its processor's order of levels.
    above: Vec<Vec<Stream>>,
}

/// The slack of a step whose response depends on its own processor only.
#[derive(Clone, Copy, Debug)]
struct LocalSlack {
    /// The streams that may delay it, including its own: an index into `above`.
    above: usize,
    /// The time from its latest release to its deadline, in ns.
    until_ns: u64,
    /// The unused time until then, in ns.
    spare_ns: u64,
}

/// Returns how much these steps may grow, together and each by the same.
///
/// For several queries about the same steps, create a [`GrowthAnalysis`].
///
/// # Panics
/// As [`holistic`](crate::holistic()); if `growing` names a missing step.
#[must_use]
pub fn may_grow(
    steps: &[Step],
    processors: &[SchedulingPolicy],
    growing: &[usize],
    limits: SearchLimits,
) -> Growth {
    GrowthAnalysis::new(steps, processors, limits).may_grow(growing)
}

impl<'a> GrowthAnalysis<'a> {
    /// Analyses the steps.
    ///
    /// # Panics
    /// As [`holistic`](crate::holistic()).
    #[must_use]
    pub fn new(steps: &'a [Step], processors: &[SchedulingPolicy], limits: SearchLimits) -> Self {
        let layout = Arc::new(Layout::new(steps, processors));
        let mut now = Rounds::new(steps, &layout, limits);
        now.run();
        let mut sensitivity = Self {
            steps,
            layout,
            limits,
            misses: misses(steps, &now),
            now,
            alone: vec![None; steps.len()],
            above: Vec::new(),
        };
        if sensitivity.misses.is_none() {
            (0..processors.len()).for_each(|processor| sensitivity.find_local_steps(processor));
        }
        sensitivity
    }

    /// Returns the responses without growth.
    #[must_use]
    pub fn found(&self) -> Vec<StepResponse> {
        self.now.found()
    }

    /// How much these steps may grow, together and each by the same.
    ///
    /// # Panics
    /// If one of them is missing.
    #[must_use]
    pub fn may_grow(&self, growing: &[usize]) -> Growth {
        match self.misses {
            _ if growing.is_empty() => Growth {
                by_ns: None,
                breaks_first: self.misses,
            },
            Some(_) => self.must_shrink(growing),
            None => self.grows(growing),
        }
    }

    fn grows(&self, growing: &[usize]) -> Growth {
        let (most_ns, breaks_first) = self.upper_bound(growing, &self.now);
        match self.affected_alone(growing) {
            Some(affected) => self.grows_alone(growing, &affected, most_ns, breaks_first),
            None => self.search(growing, most_ns, breaks_first),
        }
    }

    /// Returns an upper bound of the further growth, and the step that misses its deadline beyond it: the slack divided by the
    /// jobs in the worst window.
    fn upper_bound(&self, growing: &[usize], at: &Rounds<'_>) -> (u64, usize) {
        let mut least = (u64::MAX, growing[0]);
        for &grown in growing {
            for &index in &self.layout.processor(self.steps[grown].processor).order {
                let jobs: u64 = match self.policy(index) {
                    SchedulingPolicy::FixedPriority if self.goes_before(grown, index) => growing
                        .iter()
                        .map(|&other| self.jobs_in_window(other, index, at))
                        .sum(),
                    _ => u64::from(index == grown),
                };
                if let Some(most_ns) = self.slack_ns(index, at).checked_div(jobs) {
                    least = least.min((most_ns, index));
                }
            }
        }
        least
    }

    /// Returns a lower bound of the jobs of another step in the worst window of a step; longer windows have no fewer.
    fn jobs_in_window(&self, other: usize, index: usize, at: &Rounds<'_>) -> u64 {
        if other == index {
            return 1;
        }
        if self.layout.relatives[index].contains(other) || !self.goes_before(other, index) {
            return 0;
        }
        if self.steps[other].task.phase.is_some() {
            return 0;
        }
        let span = u128::from(at.window_ns(index)) + u128::from(at.jitter_ns(other));
        self.steps[other].task.arrivals().jobs_in(span)
    }

    fn policy(&self, index: usize) -> SchedulingPolicy {
        self.layout.processor(self.steps[index].processor).policy
    }

    /// Returns whether `one` may delay `other`, by their levels.
    fn goes_before(&self, one: usize, other: usize) -> bool {
        let (one, other) = (&self.steps[one], &self.steps[other]);
        one.processor == other.processor && one.level <= other.level
    }

    fn slack_ns(&self, index: usize, at: &Rounds<'_>) -> u64 {
        let deadline_ns = self.steps[index].task.deadline_ns;
        let bound_ns = at.responses()[index].bound_ns();
        deadline_ns - bound_ns.unwrap_or(deadline_ns)
    }
}

/// Searches with whole analyses.
impl GrowthAnalysis<'_> {
    /// Finds the largest growth up to `most_ns`, beyond which `breaks_first` misses its deadline.
    fn search(&self, growing: &[usize], most_ns: u64, mut breaks_first: usize) -> Growth {
        let mut holds = (0, self.now.clone());
        let mut breaks = most_ns.saturating_add(1);
        let mut steps = self.steps.to_vec();
        let mut next = most_ns;
        while breaks - holds.0 > 1 + holds.0 / RESOLUTION {
            change(&mut steps, self.steps, growing, |worst_ns| {
                worst_ns.saturating_add(next)
            });
            let mut tried = holds.1.grown(&steps, growing);
            match tried.run_to_miss().or_else(|| misses(&steps, &tried)) {
                Some(missed) => (breaks, breaks_first) = (next, missed),
                None => {
                    // The windows are longer now and contain more jobs.
                    let (more_ns, first) = self.upper_bound(growing, &tried);
                    holds = (next, tried.with_steps(self.steps));
                    let most_ns = next.saturating_add(more_ns);
                    if most_ns < breaks - 1 {
                        (breaks, breaks_first) = (most_ns + 1, first);
                        next = most_ns;
                        continue;
                    }
                }
            }
            next = u64::midpoint(holds.0, breaks);
        }
        Growth {
            by_ns: Some(signed(holds.0)),
            breaks_first: Some(breaks_first),
        }
    }

    /// Finds by how much these steps must shrink for all deadlines to hold.
    fn must_shrink(&self, growing: &[usize]) -> Growth {
        let none = Growth {
            by_ns: None,
            breaks_first: self.misses,
        };
        let longest = growing
            .iter()
            .map(|&index| self.steps[index].task.worst_ns)
            .max();
        let (mut holds, mut misses_still) = (longest.unwrap_or(0), 0);
        let mut steps = self.steps.to_vec();
        change(&mut steps, self.steps, growing, |_| 0);
        let mut least = Rounds::new(&steps, &self.layout, self.limits);
        if least
            .run_to_miss()
            .or_else(|| misses(&steps, &least))
            .is_some()
        {
            return none;
        }
        let mut shorter = self.steps.to_vec();
        while holds - misses_still > 1 + misses_still / RESOLUTION {
            let by_ns = u64::midpoint(holds, misses_still);
            change(&mut shorter, self.steps, growing, |worst_ns| {
                worst_ns.saturating_sub(by_ns)
            });
            let mut tried = least.grown(&shorter, growing);
            match tried.run_to_miss().or_else(|| misses(&shorter, &tried)) {
                Some(_) => misses_still = by_ns,
                None => holds = by_ns,
            }
        }
        Growth {
            by_ns: Some(-signed(holds)),
            ..none
        }
    }
}

/// Searches step by step.
impl GrowthAnalysis<'_> {
    /// Finds the steps of a processor that can be analysed separately.
    fn find_local_steps(&mut self, processor: usize) {
        let layout = Arc::clone(&self.layout);
        let mut set = StreamSet::default();
        for level in layout
            .processor(processor)
            .order
            .chunk_by(|&a, &b| self.steps[a].level == self.steps[b].level)
        {
            for &index in level {
                set.add(&self.steps[index].task, self.now.jitter_ns(index));
            }
            if set.overflowed {
                return;
            }
            let local: Vec<usize> = level
                .iter()
                .copied()
                .filter(|&index| self.is_local(index))
                .collect();
            if !local.is_empty() {
                self.above.push(set.streams.clone());
            }
            for index in local {
                self.alone[index] = self.alone(index);
            }
        }
    }

    /// Returns whether a step has no successors, no relatives on its processor, and its longest response in its first job of a
    /// busy period.
    fn is_local(&self, index: usize) -> bool {
        self.policy(index) == SchedulingPolicy::FixedPriority
            && self.layout.followers[index].is_empty()
            && self.layout.relatives[index].is_empty()
            && self.steps[index].task.phase.is_none()
            && self.steps[index].task.deadline_ns <= self.steps[index].task.arrivals().gap_ns()
    }

    fn alone(&self, index: usize) -> Option<LocalSlack> {
        let step = &self.steps[index];
        let alone = LocalSlack {
            above: self.above.len() - 1,
            until_ns: step
                .task
                .deadline_ns
                .checked_sub(self.now.jitter_ns(index))?,
            spare_ns: 0,
        };
        let arriving_ns = alone.until_ns.checked_add(step.task.tail_ns())?;
        let asked_ns = self.asked_ns(index, alone, arriving_ns)?;
        Some(LocalSlack {
            spare_ns: alone.until_ns.saturating_sub(asked_ns),
            ..alone
        })
    }

    /// Returns the demand of a step's window before its job ends. For a job without execution the window includes its tail.
    fn asked_ns(&self, index: usize, alone: LocalSlack, window_ns: u64) -> Option<u64> {
        let task = &self.steps[index].task;
        let mut asked_ns = demand_in(&self.above[alone.above], window_ns)?;
        // The step itself has only one job.
        asked_ns -= (self.jobs_in(index, window_ns)? - 1) * task.worst_ns;
        asked_ns.checked_add(task.blocking_ns)
    }

    /// Returns the number of jobs of growing steps in a window of a step.
    fn growing_jobs(&self, index: usize, window_ns: u64, growing: &[usize]) -> Option<u64> {
        let above = growing
            .iter()
            .filter(|&&other| self.goes_before(other, index));
        let jobs = above.map(|&other| {
            if other == index {
                return Some(1);
            }
            self.jobs_in(other, window_ns)
        });
        jobs.sum()
    }

    fn jobs_in(&self, other: usize, window_ns: u64) -> Option<u64> {
        let span = window_ns.checked_add(self.now.jitter_ns(other))?;
        Some(self.steps[other].task.arrivals().jobs_in(span.into()))
    }

    /// Returns the steps whose responses grow, if each can be analysed separately.
    fn affected_alone(&self, growing: &[usize]) -> Option<Vec<usize>> {
        let mut affected = Vec::new();
        for &grown in growing {
            for &index in &self.layout.processor(self.steps[grown].processor).order {
                if index == grown
                    || self.policy(grown) == SchedulingPolicy::EarliestDeadline
                    || self.goes_before(grown, index)
                {
                    self.alone[index]?;
                    affected.push(index);
                }
            }
        }
        affected.sort_unstable();
        affected.dedup();
        Some(affected)
    }

    /// Finds the largest growth: the minimum over the affected steps.
    fn grows_alone(
        &self,
        growing: &[usize],
        affected: &[usize],
        mut least_ns: u64,
        mut breaks_first: usize,
    ) -> Growth {
        let surely = |&index: &usize| (self.surely_ns(index, growing), index);
        let mut each: Vec<(u64, usize)> = affected.iter().map(surely).collect();
        // Begins with the smallest lower bound: then most of the others need one test only.
        each.sort_unstable();
        for (surely_ns, index) in each {
            if surely_ns >= least_ns {
                break;
            }
            if self.bears(index, growing, least_ns) {
                continue;
            }
            let (mut holds, mut breaks) = (surely_ns, least_ns);
            while breaks - holds > 1 {
                let by_ns = u64::midpoint(holds, breaks);
                if self.bears(index, growing, by_ns) {
                    holds = by_ns;
                } else {
                    breaks = by_ns;
                }
            }
            (least_ns, breaks_first) = (holds, index);
        }
        Growth {
            by_ns: Some(signed(least_ns)),
            breaks_first: Some(breaks_first),
        }
    }

    /// Returns a lower bound of the growth that a step tolerates, from its deadline alone.
    fn surely_ns(&self, index: usize, growing: &[usize]) -> u64 {
        let bears = |alone: LocalSlack| {
            let tail_ns = self.steps[index].task.tail_ns();
            let arriving_ns = alone.until_ns.checked_add(tail_ns)?;
            let jobs = self.growing_jobs(index, arriving_ns, growing)?;
            Some(alone.spare_ns / jobs.max(1))
        };
        self.alone[index].and_then(bears).unwrap_or(0)
    }

    /// Returns whether a step meets its deadline with this growth, which is not 0.
    fn bears(&self, index: usize, growing: &[usize], by_ns: u64) -> bool {
        let Some(alone) = self.alone[index] else {
            return false;
        };
        // A growing job has execution.
        let tail_ns = if growing.contains(&index) {
            0
        } else {
            self.steps[index].task.tail_ns()
        };
        let asked = |window_ns: u64| {
            let arriving_ns = window_ns.checked_add(tail_ns)?;
            let jobs = self.growing_jobs(index, arriving_ns, growing)?;
            let asked_ns = self.asked_ns(index, alone, arriving_ns)?;
            asked_ns.checked_add(jobs.checked_mul(by_ns)?)
        };
        // The jobs in the present worst window also run in a longer one.
        let now_ns = self.now.window_ns(index);
        let grown = self
            .growing_jobs(index, now_ns, growing)
            .and_then(|jobs| jobs.checked_mul(by_ns));
        let mut window_ns = now_ns.saturating_add(grown.unwrap_or(u64::MAX));
        for _ in 0..self.limits.steps_max {
            if window_ns > alone.until_ns {
                return false;
            }
            match asked(window_ns) {
                Some(asked) if asked <= window_ns => return true,
                Some(asked) => window_ns = asked,
                None => return false,
            }
        }
        false
    }
}

/// Returns the first step that is not proven to meet its deadline, if there is one.
fn misses(steps: &[Step], rounds: &Rounds<'_>) -> Option<usize> {
    let meets =
        |(step, response): (&Step, &Response)| response.meets(step.task.deadline_ns) == Some(true);
    let all = steps.iter().zip(rounds.responses());
    all.map(meets).position(|meets| !meets)
}

/// Changes the execution times of the growing steps.
fn change(steps: &mut [Step], original: &[Step], growing: &[usize], change: impl Fn(u64) -> u64) {
    for &index in growing {
        steps[index].task.worst_ns = change(original[index].task.worst_ns);
    }
}

fn signed(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}

/// A result may be too small by this fraction of itself.
const RESOLUTION: u64 = 1_000;
