//! Worst response times under preemptive fixed priorities, with jitter, blocking and arbitrary deadlines.
//!
//! The recurrence is that of Joseph and Pandya (1986) in the form of Audsley, Burns, Richardson, Tindell and Wellings
//! (1993), over all jobs of a busy period (Lehoczky 1990) where a job may still run when the next arrives (Tindell, Burns
//! and Wellings 1994):
//!
//! ```text
//! w(q) = B + (q + 1) C + sum over j as urgent or more: ceil((w(q) + J_j) / T_j) C_j
//! R    = max over q: J + w(q) - q T,   for q = 0, 1, ... until w(q) + J <= (q + 1) T
//! ```
//!
//! Tasks of one level count against each other in whole. That makes the answer a bound for every order among them that
//! leaves no work waiting while the processor is idle, and that keeps each task's own jobs in order: first come first
//! served (SCHED_FIFO), by deadline, by laxity, preemptively or not.

use std::collections::BTreeMap;

use crate::limits::Limits;
use crate::task::Task;
use crate::utilisation::Utilisation;

/// How long after its arrival a job is done, at worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Response {
    /// Never later than this.
    Bounded {
        /// In ns.
        ns: u64,
    },
    /// More is asked for than the processor can do: responses grow without end.
    Unbounded,
    /// The search ended before the answer: [`Limits::steps_max`], or a number over 2^64 ns.
    Undecided {
        /// What it is at least, in ns.
        at_least_ns: u64,
    },
}

impl Response {
    /// Whether a deadline holds; `None` when that is not known.
    #[must_use]
    pub const fn meets(self, deadline_ns: u64) -> Option<bool> {
        match self {
            Self::Bounded { ns } => Some(ns <= deadline_ns),
            Self::Unbounded => Some(false),
            Self::Undecided { at_least_ns } if at_least_ns > deadline_ns => Some(false),
            Self::Undecided { .. } => None,
        }
    }

    /// The bound, if there is one, in ns.
    #[must_use]
    pub const fn bound_ns(self) -> Option<u64> {
        match self {
            Self::Bounded { ns } => Some(ns),
            _ => None,
        }
    }
}

/// The worst response time of each task, from its arrival (release jitter is part of it).
///
/// `levels` has each task's level; 0 is the most urgent. Tasks of one level count against each other.
///
/// # Panics
/// If there are not as many levels as tasks, or a task has no period.
#[must_use]
pub fn response_times(tasks: &[Task], levels: &[u32], limits: Limits) -> Vec<Response> {
    assert_eq!(tasks.len(), levels.len(), "a level for each task");
    let mut order: Vec<usize> = (0..tasks.len()).collect();
    order.sort_by_key(|&index| levels[index]);
    let mut answers = vec![Response::Unbounded; tasks.len()];
    let mut demand = Demand::default();
    for level in order.chunk_by(|&a, &b| levels[a] == levels[b]) {
        level.iter().for_each(|&index| demand.add(&tasks[index]));
        let fits = !demand.exceeds_one();
        for &index in level.iter().filter(|_| fits) {
            answers[index] = demand
                .without(&tasks[index])
                .response(&tasks[index], limits);
        }
    }
    answers
}

/// What tasks ask of the processor: those of one period and jitter as one, for their ceilings are the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Demand {
    worst_ns: BTreeMap<(u64, u64), u64>,
    /// A sum was over 2^64 ns.
    overflowed: bool,
}

impl Demand {
    pub(crate) fn add(&mut self, task: &Task) {
        assert!(task.period_ns > 0, "a task has a period");
        let worst = self
            .worst_ns
            .entry((task.period_ns, task.jitter_ns))
            .or_default();
        let (sum, overflowed) = worst.overflowing_add(task.worst_ns);
        *worst = sum;
        self.overflowed |= overflowed;
    }

    /// Takes a task out that was added.
    pub(crate) fn remove(&mut self, task: &Task) {
        let key = (task.period_ns, task.jitter_ns);
        if let Some(worst) = self.worst_ns.get_mut(&key) {
            *worst = worst.wrapping_sub(task.worst_ns);
        }
    }

    pub(crate) fn exceeds_one(&self) -> bool {
        let shares = self
            .worst_ns
            .iter()
            .map(|(&(period, _), &worst)| (worst, period));
        self.overflowed || Utilisation::of_shares(shares).exceeds_one()
    }

    /// What is left when one task, which was added, is taken out.
    pub(crate) fn without(&self, task: &Task) -> Interference {
        let own = (task.period_ns, task.jitter_ns);
        let each = self.worst_ns.iter().map(|(&key, &worst)| Stream {
            period_ns: key.0,
            jitter_ns: key.1,
            worst_ns: if key == own {
                worst - task.worst_ns
            } else {
                worst
            },
        });
        Interference {
            streams: each.filter(|stream| stream.worst_ns > 0).collect(),
        }
    }
}

/// What may run before one task.
pub(crate) struct Interference {
    streams: Vec<Stream>,
}

struct Stream {
    period_ns: u64,
    jitter_ns: u64,
    worst_ns: u64,
}

impl Interference {
    /// The task's worst response among these, which leave it something of the processor.
    pub(crate) fn response(&self, task: &Task, limits: Limits) -> Response {
        let mut search = Search {
            steps_left: limits.steps_max,
            worst_ns: 0,
        };
        match self.over_busy_period(task, &mut search) {
            Some(()) => Response::Bounded {
                ns: search.worst_ns,
            },
            None => Response::Undecided {
                at_least_ns: search.worst_ns,
            },
        }
    }

    /// Looks at each job of the longest busy period; `None` when the search ended early.
    fn over_busy_period(&self, task: &Task, search: &mut Search) -> Option<()> {
        let mut base = task.blocking_ns.checked_add(task.worst_ns)?;
        let mut window = base.max(1);
        let mut arrived_ns: u64 = 0;
        loop {
            window =
                self.fixed_point(base, window, |window| search.note(task, window, arrived_ns))?;
            search.note(task, window, arrived_ns)?;
            arrived_ns = arrived_ns.checked_add(task.period_ns)?;
            if window.checked_add(task.jitter_ns)? <= arrived_ns {
                return Some(());
            }
            base = base.checked_add(task.worst_ns)?;
            window = window.checked_add(task.worst_ns)?;
        }
    }

    /// The least window that holds `base` and all that arrives in it, from a window that is not larger.
    fn fixed_point(
        &self,
        base: u64,
        mut window: u64,
        mut step: impl FnMut(u64) -> Option<()>,
    ) -> Option<u64> {
        loop {
            step(window)?;
            let needed = self.arriving_in(window)?.checked_add(base)?;
            if needed <= window {
                return Some(needed);
            }
            window = needed;
        }
    }

    fn arriving_in(&self, window: u64) -> Option<u64> {
        self.streams.iter().try_fold(0_u64, |sum, stream| {
            let jobs = window
                .checked_add(stream.jitter_ns)?
                .div_ceil(stream.period_ns);
            sum.checked_add(jobs.checked_mul(stream.worst_ns)?)
        })
    }
}

struct Search {
    steps_left: u32,
    worst_ns: u64,
}

impl Search {
    /// Takes note of a window that a job needs at least; `None` when there were too many.
    fn note(&mut self, task: &Task, window: u64, arrived_ns: u64) -> Option<()> {
        self.steps_left = self.steps_left.checked_sub(1)?;
        let response = window
            .checked_add(task.jitter_ns)?
            .saturating_sub(arrived_ns);
        // A first guess of 1 ns stands for a job that needs nothing.
        if window > 1 || task.worst_ns > 0 {
            self.worst_ns = self.worst_ns.max(response);
        } else {
            self.worst_ns = self.worst_ns.max(response - window);
        }
        Some(())
    }
}
