//! The levels of a lane that serves its requests in the order of their urgency: which request runs, and where.
//!
//! The jobs of such a lane nest like a stack, as those of one CPU do under EDF (T. P. Baker, *Stack-Based Scheduling of Realtime
//! Processes*, Real-Time Systems 3 (1), 1991). Each level has a thread, one native priority above that of the level below. A request
//! that is more urgent than the top of the stack begins one level higher, so the kernel preempts the top, and no running thread changes
//! its priority. Any other request waits:
//!
//! ```text
//! level 2 |            -C-                 C is more urgent than B
//! level 1 |       -B--     ----            B is more urgent than A
//! level 0 | --A---             --------  D waits for A
//! ```
//!
//! If all levels are taken, a request waits although it is more urgent than the top: for this one job only, because the most urgent of
//! the waiting requests begins when the top ends. As many levels as the lane has different relative deadlines are enough, because a
//! request preempts none with the same relative deadline.
//!
//! A lane in the order of arrival has *parallel* levels: each is an equal thread, and a request begins on any that is idle.
//!
//! This file decides, and has no threads, locks and clock.

#[cfg(test)]
mod tests;

use super::urgency::{Importance, Urgency};
use crate::timing::Criticality;
use core::cmp::{Ordering, Reverse};
use core::mem;
use std::collections::BinaryHeap;

/// The jobs that run and those that wait.
#[derive(Clone, Debug)]
pub(super) struct Levels<J> {
    /// The job of each level; `None` while the level is idle.
    running: Box<[Option<Ranked>]>,
    /// The number of levels up to the highest one that is taken. An idle level below it had a job that ended while the job above was
    /// suspended.
    height: usize,
    waiting: BinaryHeap<WaitingJob<J>>,
    /// True if a job may begin on any idle level.
    is_parallel: bool,
    /// The number of jobs that have arrived.
    arrived: u64,
}

/// A job that shall begin now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Start<J> {
    pub(super) level: usize,
    pub(super) job: J,
}

/// The place of a job in the order: its urgency, and among equals its arrival. The least one is the most urgent.
type Ranked = (Urgency, u64);

/// A job that waits.
#[derive(Clone, Debug)]
struct WaitingJob<J> {
    rank: Ranked,
    criticality: Criticality,
    job: J,
}

impl<J> Levels<J> {
    /// So many idle levels, with room for `waiting_max` waiting jobs, so that adding one makes no heap call.
    pub(super) fn new(levels: usize, waiting_max: usize) -> Self {
        Self {
            is_parallel: false,
            running: vec![None; levels].into(),
            height: 0,
            waiting: BinaryHeap::with_capacity(waiting_max),
            arrived: 0,
        }
    }

    /// As [`new`](Self::new), but a job may begin on any idle level.
    pub(super) fn parallel(levels: usize, waiting_max: usize) -> Self {
        Self {
            is_parallel: true,
            ..Self::new(levels, waiting_max)
        }
    }

    /// Adds a job. Returns it with its level if it shall begin now; otherwise it waits.
    pub(super) fn arrive(&mut self, importance: Importance, job: J) -> Option<Start<J>> {
        let rank = (importance.urgency, self.arrived);
        self.arrived += 1;
        if self.may_begin(rank) {
            return Some(self.begin(rank, job));
        }
        self.waiting.push(WaitingJob {
            rank,
            criticality: importance.criticality,
            job,
        });
        None
    }

    /// Ends the job of a level. Returns the job that shall begin now, if there is one: on this level, unless lower ones have become idle
    /// in the meantime.
    ///
    /// If the job of a higher level is suspended, none begins: it counts as running.
    pub(super) fn end(&mut self, level: usize) -> Option<Start<J>> {
        self.running[level] = None;
        while self.height > 0 && self.running[self.height - 1].is_none() {
            self.height -= 1;
        }
        let rank = self.waiting.peek()?.rank;
        if !self.may_begin(rank) {
            return None;
        }
        let next = self.waiting.pop()?;
        Some(self.begin(next.rank, next.job))
    }

    /// Takes out the most urgent job that waits, without beginning it.
    pub(super) fn pop(&mut self) -> Option<J> {
        self.waiting.pop().map(|waiting| waiting.job)
    }

    /// The waiting jobs that are less critical than `than`.
    pub(super) fn less_critical(&self, than: Criticality) -> impl Iterator<Item = &J> {
        self.waiting_below(than).map(|waiting| &waiting.job)
    }

    /// Takes out the least critical job that waits, if it is less critical than `than`; of several, the least urgent.
    ///
    /// It looks at each waiting job, and makes no heap call.
    #[cold]
    pub(super) fn shed(&mut self, than: Criticality) -> Option<J> {
        let order = |waiting: &&WaitingJob<J>| (waiting.criticality, Reverse(waiting.rank));
        let least = self.waiting_below(than).min_by_key(order)?.rank;
        self.take(|waiting| waiting.rank == least)
    }

    /// Takes out a job that waits and for which `is_meant` returns true.
    ///
    /// It looks at each waiting job, and makes no heap call.
    #[cold]
    pub(super) fn take_job(&mut self, is_meant: impl Fn(&J) -> bool) -> Option<J> {
        self.take(|waiting| is_meant(&waiting.job))
    }

    fn take(&mut self, is_meant: impl Fn(&WaitingJob<J>) -> bool) -> Option<J> {
        let place = self.waiting.iter().position(is_meant)?;
        // The vector has the order of the iterator.
        let mut waiting = mem::take(&mut self.waiting).into_vec();
        let taken = waiting.swap_remove(place);
        self.waiting = waiting.into();
        Some(taken.job)
    }

    fn waiting_below(&self, than: Criticality) -> impl Iterator<Item = &WaitingJob<J>> {
        self.waiting
            .iter()
            .filter(move |waiting| waiting.criticality < than)
    }

    /// True if a level is free above the stack, and the job is more urgent than the top; or if any of parallel levels is idle.
    fn may_begin(&self, rank: Ranked) -> bool {
        if self.is_parallel {
            return self.running.iter().any(Option::is_none);
        }
        let top = self.height.checked_sub(1).and_then(|top| self.running[top]);
        self.height < self.running.len() && top.is_none_or(|top| rank < top)
    }

    fn begin(&mut self, rank: Ranked, job: J) -> Start<J> {
        let idle = self.running.iter().position(Option::is_none);
        let level = idle.filter(|_| self.is_parallel).unwrap_or(self.height);
        self.running[level] = Some(rank);
        self.height = self.height.max(level + 1);
        Start { level, job }
    }
}

impl<J> Ord for WaitingJob<J> {
    /// The heap has its greatest element on top: the most urgent job.
    fn cmp(&self, other: &Self) -> Ordering {
        other.rank.cmp(&self.rank)
    }
}

impl<J> PartialOrd for WaitingJob<J> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<J> PartialEq for WaitingJob<J> {
    fn eq(&self, other: &Self) -> bool {
        self.rank == other.rank
    }
}

impl<J> Eq for WaitingJob<J> {}
