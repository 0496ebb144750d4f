//! Worst response times under preemptive fixed priorities, with jitter, blocking and arbitrary deadlines.
//!
//! The recurrence is that of Joseph and Pandya (1986) in the form of Audsley, Burns, Richardson, Tindell and Wellings (1993). It
//! covers all jobs of a busy period (Lehoczky 1990), because a job may still run when the next one arrives (Tindell, Burns and
//! Wellings 1994):
//!
//! ```text
//! (2)  w(q) = B + (q + 1) C + sum over j as urgent or more: A_j(w(q) + J_j) C_j
//! (3)  R    = max over q: J + w(q) - t(q),   for q = 0, 1, ... until w(q) + J <= t(q + 1)
//! ```
//!
//! `A_j` is the arrival curve of equation (1), `ceil(s / T_j)` without bursts, and `t(q)` the least time from the first to the job
//! with this number, `q T` without bursts. (2) is that of Audsley et al. 1993, with the jobs of Lehoczky 1990;
//! (3) that of Tindell, Burns and Wellings 1994. If `C` is 0, what arrives at `w(q)` delays the job too: then (2) has `A_j(w(q) + J_j + 1)`.
//!
//! Tasks of one level interfere with each other in full. So the result bounds every work-conserving order among them that keeps
//! each task's own jobs in order: first come first served (SCHED_FIFO), by deadline or by laxity, preemptive or not.

use std::collections::BTreeMap;

use crate::arrivals::Arrivals;
use crate::limits::SearchLimits;
use crate::stream::{Stream, demand_in};
use crate::task::Task;
use crate::utilisation::{Utilisation, share};

/// The worst-case response time of a job, from its arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Response {
    /// The job ends by this time.
    Bounded {
        /// In ns.
        ns: u64,
    },
    /// The demand exceeds the processor: response times grow without bound.
    Unbounded,
    /// The search ended early: [`SearchLimits::steps_max`], or a number over 2^64 ns.
    Undecided {
        /// A lower bound of the response time, in ns.
        at_least_ns: u64,
    },
}

impl Response {
    /// Returns whether a deadline holds; `None` if that is not known.
    #[must_use]
    pub const fn meets(self, deadline_ns: u64) -> Option<bool> {
        match self {
            Self::Bounded { ns } => Some(ns <= deadline_ns),
            Self::Unbounded => Some(false),
            Self::Undecided { at_least_ns } if at_least_ns > deadline_ns => Some(false),
            Self::Undecided { .. } => None,
        }
    }

    /// Returns the same response if its bound is only known to be reached, and perhaps exceeded.
    pub(crate) const fn at_least(self) -> Self {
        match self {
            Self::Bounded { ns } => Self::Undecided { at_least_ns: ns },
            other => other,
        }
    }

    /// Returns the bound in ns, if there is one.
    #[must_use]
    pub const fn bound_ns(self) -> Option<u64> {
        match self {
            Self::Bounded { ns } => Some(ns),
            _ => None,
        }
    }
}

/// Returns the worst-case response time of each task, from its arrival; release jitter is part of it.
///
/// `levels` holds the level of each task; 0 is the most urgent. Tasks of one level interfere with each other.
///
/// # Panics
/// If `tasks` and `levels` differ in length, or a task has no period.
#[must_use]
pub fn response_times(tasks: &[Task], levels: &[u32], limits: SearchLimits) -> Vec<Response> {
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

/// The demand of tasks on a processor. Tasks with the same arrivals and jitter are one entry, because they have equally many jobs
/// in a window.
#[derive(Clone, Debug, Default)]
pub(crate) struct Demand {
    worst_ns: BTreeMap<(Arrivals, u64), u64>,
    /// A sum was over 2^64 ns.
    overflowed: bool,
}

impl Demand {
    pub(crate) fn add(&mut self, task: &Task) {
        assert!(task.period_ns > 0, "a task has a period");
        let worst = self
            .worst_ns
            .entry((task.arrivals(), task.jitter_ns))
            .or_default();
        let (sum, overflowed) = worst.overflowing_add(task.worst_ns);
        *worst = sum;
        self.overflowed |= overflowed;
    }

    /// Removes a task that was added.
    pub(crate) fn remove(&mut self, task: &Task) {
        let key = (task.arrivals(), task.jitter_ns);
        if let Some(worst) = self.worst_ns.get_mut(&key) {
            *worst = worst.wrapping_sub(task.worst_ns);
        }
    }

    pub(crate) fn exceeds_one(&self) -> bool {
        let shares = self
            .worst_ns
            .iter()
            .map(|(&(arrivals, _), &worst)| share(arrivals, worst));
        self.overflowed || Utilisation::of_shares(shares).exceeds_one()
    }

    /// Returns the demand without one task that was added.
    pub(crate) fn without(&self, task: &Task) -> Interference {
        let own = (task.arrivals(), task.jitter_ns);
        let each = self.worst_ns.iter().map(|(&key, &worst)| Stream {
            arrivals: key.0,
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

/// The demand that may delay one task.
pub(crate) struct Interference {
    streams: Vec<Stream>,
}

impl Interference {
    /// Returns the task's worst response time under this interference, which must leave it a share of the processor.
    pub(crate) fn response(&self, task: &Task, limits: SearchLimits) -> Response {
        let mut search = ResponseSearch {
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

    /// Analyses each job of the longest busy period; `None` if the search ended early.
    fn over_busy_period(&self, task: &Task, search: &mut ResponseSearch) -> Option<()> {
        let mut base = task.blocking_ns.checked_add(task.worst_ns)?;
        let mut window = base;
        for number in 0.. {
            let arrived_ns = task.arrivals().arrival_ns(number)?;
            let note = |window| search.note(task, window, arrived_ns);
            window = self.fixed_point(base, window, task.tail_ns(), note)?;
            search.note(task, window, arrived_ns)?;
            let next_ns = task.arrivals().arrival_ns(number + 1)?;
            if window.checked_add(task.jitter_ns)? <= next_ns {
                return Some(());
            }
            base = base.checked_add(task.worst_ns)?;
            window = window.checked_add(task.worst_ns)?;
        }
        None
    }

    /// Returns the least window that holds `base` and all that arrives in it and its tail, searching upwards from `window`.
    fn fixed_point(
        &self,
        base: u64,
        mut window: u64,
        tail_ns: u64,
        mut step: impl FnMut(u64) -> Option<()>,
    ) -> Option<u64> {
        loop {
            step(window)?;
            let arriving_ns = window.checked_add(tail_ns)?;
            let needed = demand_in(&self.streams, arriving_ns)?.checked_add(base)?;
            if needed <= window {
                return Some(needed);
            }
            window = needed;
        }
    }
}

struct ResponseSearch {
    steps_left: u32,
    worst_ns: u64,
}

impl ResponseSearch {
    /// Records a lower bound of a job's window; `None` after too many steps.
    fn note(&mut self, task: &Task, window: u64, arrived_ns: u64) -> Option<()> {
        self.steps_left = self.steps_left.checked_sub(1)?;
        let response = window
            .checked_add(task.jitter_ns)?
            .saturating_sub(arrived_ns);
        self.worst_ns = self.worst_ns.max(response);
        Some(())
    }
}
