//! How much longer steps may execute before a deadline breaks.
//!
//! Whether all deadlines hold is the same test for every execution time, and longer execution never makes a response shorter;
//! so the most that they may grow is found by halving what is left (sensitivity analysis in this sense: Lehoczky, Sha and Ding
//! 1989; Bini, Di Natale and Buttazzo 2008). What is already known makes that short:
//!
//! * A response grows at least by what the growing steps execute more in the window that was the worst. The least slack
//!   divided by their jobs in it is an upper bound, which often is the answer.
//! * Jitters and responses only grow, so each test begins with those of the last growth that held.
//! * Where no response is handed on to other steps, only the steps on the growing steps' processors are looked at, each for
//!   itself: one that meets its deadline `t` with `n(t)` jobs of growing steps has at least `(t - demand(t)) / n(t)` left, at that one
//!   point of time (the scheduling points of Bini and Buttazzo 2004), and is searched only if that is less than others have.

use std::collections::HashMap;
use std::sync::Arc;

use crate::holistic::rounds::{Layout, Rounds};
use crate::holistic::{Found, Policy, Step};
use crate::limits::Limits;
use crate::response::Response;

/// How much longer steps may execute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Growth {
    /// All growing steps by this each, in ns; negative: by so much each must get shorter for all to hold (none gets
    /// shorter than nothing). `None` if no change of theirs makes all hold, or none of them grows. Never more than is true. To the
    /// nanosecond where no response is handed on to other steps; else at most a thousandth of it, and 1 ns, less than is true.
    pub by_ns: Option<i64>,
    /// The step whose deadline is missed with more, or that is missed already.
    pub breaks_first: Option<usize>,
}

/// A system of steps, analysed once, of which any number of growths may be asked.
pub struct Sensitivity<'a> {
    steps: &'a [Step],
    layout: Arc<Layout>,
    limits: Limits,
    now: Rounds<'a>,
    /// The first step that is not known to meet its deadline.
    misses: Option<usize>,
    /// Of each step that hands on no response and has no relatives where it runs, what is left before its deadline.
    alone: Vec<Option<Alone>>,
    /// What may go before such a step, by place in its processor's order of levels.
    above: Vec<Vec<Stream>>,
}

/// Steps of one period and jitter.
#[derive(Clone, Copy, Debug)]
struct Stream {
    period_ns: u64,
    jitter_ns: u64,
    worst_ns: u64,
}

/// What is left to a step whose response depends on its own processor only.
#[derive(Clone, Copy, Debug)]
struct Alone {
    /// What goes before it, with itself: a place in `above`.
    above: usize,
    /// From its latest release to its deadline, in ns.
    until_ns: u64,
    /// What nobody asks for by then, in ns.
    spare_ns: u64,
}

/// How much these steps may grow, together and each by the same.
///
/// To ask this more than once of the same steps, make a [`Sensitivity`].
///
/// # Panics
/// As [`holistic`](crate::holistic()); if `growing` names a step that is not there.
#[must_use]
pub fn may_grow(
    steps: &[Step],
    processors: &[Policy],
    growing: &[usize],
    limits: Limits,
) -> Growth {
    Sensitivity::new(steps, processors, limits).may_grow(growing)
}

impl<'a> Sensitivity<'a> {
    /// Analyses steps as they are.
    ///
    /// # Panics
    /// As [`holistic`](crate::holistic()).
    #[must_use]
    pub fn new(steps: &'a [Step], processors: &[Policy], limits: Limits) -> Self {
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
            (0..processors.len()).for_each(|processor| sensitivity.set_apart(processor));
        }
        sensitivity
    }

    /// The answer for steps as they are.
    #[must_use]
    pub fn found(&self) -> Vec<Found> {
        self.now.found()
    }

    /// How much these steps may grow, together and each by the same.
    ///
    /// # Panics
    /// If one of them is not there.
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
            Some(affected) => self.grows_alone(growing, &affected, (most_ns, breaks_first)),
            None => self.search(growing, most_ns, breaks_first),
        }
    }

    /// A growth beyond one that holds that is not less than the most there may be, and who breaks beyond it: slack by jobs in the
    /// worst window.
    fn upper_bound(&self, growing: &[usize], at: &Rounds<'_>) -> (u64, usize) {
        let mut least = (u64::MAX, growing[0]);
        for &grown in growing {
            for &index in &self.layout.lane(self.steps[grown].processor).order {
                let jobs: u64 = match self.policy(index) {
                    Policy::FixedPriority if self.goes_before(grown, index) => growing
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

    /// How many jobs of another step certainly run in the worst window of a step; they run in longer windows too.
    fn jobs_in_window(&self, other: usize, index: usize, at: &Rounds<'_>) -> u64 {
        if other == index {
            return 1;
        }
        let relatives = &self.layout.relatives[index];
        let related = relatives.before.contains(&other) || relatives.after.contains(&other);
        if related || !self.goes_before(other, index) {
            return 0;
        }
        let span = u128::from(at.window_ns(index)) + u128::from(at.jitter_ns(other));
        u64::try_from(span.div_ceil(u128::from(self.steps[other].task.period_ns)))
            .unwrap_or(u64::MAX)
    }

    fn policy(&self, index: usize) -> Policy {
        self.layout.lane(self.steps[index].processor).policy
    }

    /// Whether, by its level, one may run before the other on the same processor.
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

/// Searches by whole analyses.
impl Sensitivity<'_> {
    /// The most that holds, from nothing to `most_ns`, more than which `breaks_first` does not bear.
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
                    // Windows are longer now, and hold more jobs.
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

    /// How much shorter these must get for all to hold.
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

/// Searches of steps each for itself.
impl Sensitivity<'_> {
    /// Finds the steps of a processor that can be looked at each for itself.
    fn set_apart(&mut self, processor: usize) {
        let layout = Arc::clone(&self.layout);
        let mut streams: Vec<Stream> = Vec::new();
        let mut places = HashMap::new();
        let order = &layout.lane(processor).order;
        for level in order.chunk_by(|&a, &b| self.steps[a].level == self.steps[b].level) {
            for &index in level {
                let task = &self.steps[index].task;
                let (period_ns, jitter_ns) = (task.period_ns, self.now.jitter_ns(index));
                let place = *places.entry((period_ns, jitter_ns)).or_insert_with(|| {
                    streams.push(Stream {
                        period_ns,
                        jitter_ns,
                        worst_ns: 0,
                    });
                    streams.len() - 1
                });
                // More than fits is more than a deadline bears.
                streams[place].worst_ns = streams[place].worst_ns.saturating_add(task.worst_ns);
            }
            let lonely: Vec<usize> = level
                .iter()
                .copied()
                .filter(|&index| self.is_lonely(index))
                .collect();
            if !lonely.is_empty() {
                self.above.push(streams.clone());
            }
            for index in lonely {
                self.alone[index] = self.alone(index);
            }
        }
    }

    /// Whether a step's response is handed on to none, none of its chain runs where it does, and its first job in a busy period is
    /// the latest.
    fn is_lonely(&self, index: usize) -> bool {
        self.policy(index) == Policy::FixedPriority
            && self.layout.followers[index].is_empty()
            && self.layout.relatives[index].is_empty()
            && self.steps[index].task.deadline_ns <= self.steps[index].task.period_ns
    }

    fn alone(&self, index: usize) -> Option<Alone> {
        let step = &self.steps[index];
        let alone = Alone {
            above: self.above.len() - 1,
            until_ns: step
                .task
                .deadline_ns
                .checked_sub(self.now.jitter_ns(index))?,
            spare_ns: 0,
        };
        let asked_ns = self.asked_ns(index, alone, alone.until_ns)?;
        Some(Alone {
            spare_ns: alone.until_ns.saturating_sub(asked_ns),
            ..alone
        })
    }

    /// What must be done in a window of a step before its job ends.
    fn asked_ns(&self, index: usize, alone: Alone, window_ns: u64) -> Option<u64> {
        let task = &self.steps[index].task;
        let mut asked_ns: u64 = 0;
        for stream in &self.above[alone.above] {
            let span = window_ns.checked_add(stream.jitter_ns)?;
            let jobs = span.div_ceil(stream.period_ns);
            asked_ns = asked_ns.checked_add(jobs.checked_mul(stream.worst_ns)?)?;
        }
        // Of itself there is one job only.
        asked_ns -= (self.jobs_in(index, window_ns)? - 1) * task.worst_ns;
        asked_ns.checked_add(task.blocking_ns)
    }

    /// How many jobs of growing steps are in a window of a step.
    fn growing_jobs(&self, index: usize, window_ns: u64, growing: &[usize]) -> Option<u64> {
        let above = growing
            .iter()
            .filter(|&&other| self.goes_before(other, index));
        let jobs = above.map(|&other| match other == index {
            true => Some(1),
            false => self.jobs_in(other, window_ns),
        });
        jobs.sum()
    }

    fn jobs_in(&self, other: usize, window_ns: u64) -> Option<u64> {
        let span = window_ns.checked_add(self.now.jitter_ns(other))?;
        Some(span.div_ceil(self.steps[other].task.period_ns))
    }

    /// The steps whose responses grow, if each can be looked at for itself.
    fn affected_alone(&self, growing: &[usize]) -> Option<Vec<usize>> {
        let mut affected = Vec::new();
        for &grown in growing {
            for &index in &self.layout.lane(self.steps[grown].processor).order {
                if index == grown
                    || self.policy(grown) == Policy::EarliestDeadline
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

    /// The most that holds: the least of what each affected step bears.
    fn grows_alone(&self, growing: &[usize], affected: &[usize], most: (u64, usize)) -> Growth {
        let (mut least_ns, mut breaks_first) = most;
        let surely = |&index: &usize| (self.surely_ns(index, growing), index);
        let mut each: Vec<(u64, usize)> = affected.iter().map(surely).collect();
        // Whoever seems to bear least first: then most of the others need one look.
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

    /// A growth that a step bears, told from its deadline alone.
    fn surely_ns(&self, index: usize, growing: &[usize]) -> u64 {
        let bears = |alone: Alone| {
            let jobs = self.growing_jobs(index, alone.until_ns, growing)?;
            Some(alone.spare_ns / jobs.max(1))
        };
        self.alone[index].and_then(bears).unwrap_or(0)
    }

    /// Whether a step meets its deadline when these have grown so much.
    fn bears(&self, index: usize, growing: &[usize], by_ns: u64) -> bool {
        let Some(alone) = self.alone[index] else {
            return false;
        };
        let asked = |window_ns: u64| {
            let jobs = self.growing_jobs(index, window_ns, growing)?;
            let asked_ns = self.asked_ns(index, alone, window_ns)?;
            asked_ns.checked_add(jobs.checked_mul(by_ns)?)
        };
        // What runs in the worst window as it is runs in a longer one too.
        let now_ns = self.now.window_ns(index).max(1);
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

/// The first step that is not known to meet its deadline, if there is one.
fn misses(steps: &[Step], rounds: &Rounds<'_>) -> Option<usize> {
    let meets =
        |(step, response): (&Step, &Response)| response.meets(step.task.deadline_ns) == Some(true);
    let all = steps.iter().zip(rounds.responses());
    all.map(meets).position(|meets| !meets)
}

/// Gives the growing steps other execution times.
fn change(steps: &mut [Step], original: &[Step], growing: &[usize], change: impl Fn(u64) -> u64) {
    for &index in growing {
        steps[index].task.worst_ns = change(original[index].task.worst_ns);
    }
}

fn signed(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}

/// The part of an answer that it may be less than is true.
const RESOLUTION: u64 = 1_000;
