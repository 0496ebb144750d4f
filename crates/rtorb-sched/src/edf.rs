//! The processor demand test: whether earliest deadline first on one processor meets all deadlines.
//!
//! Jobs with arrival and deadline inside an interval of length t demand at most
//!
//! ```text
//! (9)  h(t) = sum over tasks: A+(t + J - D) C,    which is (floor((t + J - D) / T) + 1) C without bursts
//! ```
//!
//! All deadlines hold exactly if `h(t) + B(t) <= t` at each deadline in the longest busy period (Baruah, Rosier and Howell
//! 1990; with jitter, Spuri 1996). B(t) is the blocking of the tasks whose deadline is at most t (Baker 1991); with it the
//! test is sufficient only. The test visits deadlines from the last one backwards, in the steps of Zhang and Burns (2009).
//! Least laxity first meets all deadlines whenever earliest deadline first does (Mok 1983).

use crate::holistic::{Begins, SchedulingPolicy, Step, holistic};
use crate::limits::SearchLimits;
use crate::response::Response;
use crate::task::Task;
use crate::utilisation::Utilisation;

/// The result of the demand test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DemandResult {
    /// All deadlines hold.
    Meets,
    /// The utilisation exceeds the processor.
    Overload,
    /// The demand of an interval exceeds its length.
    Misses {
        /// A task whose deadline is the end of the interval.
        task: usize,
        /// The shortest such interval found, in ns, from a moment when all tasks are released at once, each as late as its jitter
        /// allows.
        interval_ns: u64,
    },
    /// The search ended early: [`SearchLimits::steps_max`], or a number over 2^64 ns.
    Undecided,
}

/// Runs the demand test.
///
/// # Panics
/// If a task has no period.
#[must_use]
pub fn demand(tasks: &[Task], limits: SearchLimits) -> DemandResult {
    if Utilisation::of(tasks).exceeds_one() {
        return DemandResult::Overload;
    }
    let mut search = DemandTest {
        tasks,
        steps_left: limits.steps_max,
    };
    search.run().unwrap_or(DemandResult::Undecided)
}

/// Returns the worst-case response time of each task, from its arrival (Spuri 1996). It is the analysis of
/// [`holistic`](mod@crate::holistic) for one processor and transactions of one step. With the blocking of the demand test, all
/// deadlines hold here exactly if they hold there.
///
/// # Panics
/// If a task has no period.
#[must_use]
pub fn response_times(tasks: &[Task], limits: SearchLimits) -> Vec<Response> {
    let step = |(transaction, &task): (usize, &Task)| Step {
        task,
        processor: 0,
        level: 0,
        after: None,
        delay_ns: 0,
        transaction,
        begins: Begins::AtEnd,
        thread_until: None,
        may_be_overtaken: false,
    };
    let steps: Vec<Step> = tasks.iter().enumerate().map(step).collect();
    let found = holistic(&steps, &[SchedulingPolicy::EarliestDeadline], limits);
    found.into_iter().map(|found| found.response).collect()
}

/// Returns, for each task, the task that blocks its jobs for longest where a lane has only `levels` native priorities; `None` for
/// no blocking.
///
/// A job that is due before the running one starts on the next level, one native priority higher. If all levels are taken, it
/// waits; when a level gets free, the waiting job that is due first starts on it, unless the running one is due earlier. With
/// `l(i) = D(i) - J(i)`, the blocking is
///
/// ```text
/// (8)  B(i) = max C(k)  over the tasks k with  D(k) > l(i)  and at least N - 1 other tasks m with  D(m) > l(k)
/// ```
///
/// where tasks with the same deadline and no jitter count once: there is no blocking if N is at least the number of different
/// relative deadlines and no job has jitter. The argument, for a job of
/// `i` that is due at `d`, and the last moment 0 before its release at which no job due until `d` was waiting or started:
///
/// 1. At 0 the levels have only jobs that are due after `d`. From 0 to the end of the job, some job due until `d` waits or runs.
/// 2. If a level is free at 0, the first such job starts at once. If not, it waits for the job `k` on the last level only: the
///    others on the levels are due later than `k`, so they do not run before it ends, and then a waiting job is due earlier.
/// 3. No job due after `d` starts after 0 while one due until `d` waits, and none runs while one is on a level, because a job
///    starts only if it is due before those below it. So `k` is the only job due after `d` that runs, and it runs once, for at
///    most `C(k)`.
/// 4. `k` had started before `i` was released, and is due later: `D(k) > l(i)`. It had started on the last level: each of the
///    N - 1 jobs below it had started before `k` was released, and is due later, so `D(m) > l(k)`. They are of different tasks,
///    because of two jobs of one task the later one is due later; and so it is with tasks of one deadline without jitter.
///
/// It is Baker's argument (1991) with the last level as the resource that cannot be preempted. A job that suspends
/// itself keeps its level: that counts as execution.
#[must_use]
pub fn level_holders(tasks: &[Task], levels: u32) -> Vec<Option<usize>> {
    let deadlines = different_deadlines(tasks);
    let below = usize::try_from(levels)
        .unwrap_or(usize::MAX)
        .saturating_sub(1);
    let may_be_last = |task: &Task| {
        let until =
            deadlines.partition_point(|&(deadline_ns, _)| deadline_ns <= first_deadline(task));
        // The task itself is one of them if it has jitter.
        let itself = usize::from(task.deadline_ns > first_deadline(task));
        deadlines.len() - until - itself >= below
    };
    let mut last: Vec<usize> = (0..tasks.len())
        .filter(|&index| may_be_last(&tasks[index]))
        .collect();
    last.sort_by_key(|&index| core::cmp::Reverse(tasks[index].worst_ns));
    let holder = |(index, task): (usize, &Task)| {
        let blocks =
            |&&holder: &&usize| holder != index && tasks[holder].deadline_ns > first_deadline(task);
        last.iter().find(blocks).copied()
    };
    tasks.iter().enumerate().map(holder).collect()
}

/// Returns the least number of levels with which no job waits for one.
#[must_use]
pub fn levels_needed(tasks: &[Task]) -> u32 {
    let different = different_deadlines(tasks).len();
    u32::try_from(different).unwrap_or(u32::MAX).max(1)
}

/// Returns the relative deadlines. Those of tasks without jitter count once; a task with jitter counts by itself.
fn different_deadlines(tasks: &[Task]) -> Vec<(u64, Option<usize>)> {
    let deadline =
        |(index, task): (usize, &Task)| (task.deadline_ns, (task.jitter_ns > 0).then_some(index));
    let mut deadlines: Vec<_> = tasks.iter().enumerate().map(deadline).collect();
    deadlines.sort_unstable();
    deadlines.dedup();
    deadlines
}

struct DemandTest<'a> {
    tasks: &'a [Task],
    steps_left: u32,
}

impl DemandTest<'_> {
    /// `None` if the search ended early.
    fn run(&mut self) -> Option<DemandResult> {
        let Some(first) = self
            .tasks
            .iter()
            .map(|task| first_deadline(task).max(1))
            .min()
        else {
            return Some(DemandResult::Meets);
        };
        if let Some((task, _)) = self.hopeless() {
            return Some(DemandResult::Misses {
                task,
                interval_ns: first_deadline(&self.tasks[task]),
            });
        }
        let busy = self.busy_period()?;
        let Some(mut interval) = self.last_deadline_until(busy) else {
            return Some(DemandResult::Meets);
        };
        loop {
            let needed = self.needed(interval)?;
            if needed > interval {
                return self.first_miss(first, interval);
            }
            let next = if needed < interval {
                self.last_deadline_until(needed)
            } else {
                interval
                    .checked_sub(1)
                    .and_then(|before| self.last_deadline_until(before))
            };
            match next {
                Some(next) if needed > first || needed == interval => interval = next,
                _ => return Some(DemandResult::Meets),
            }
        }
    }

    /// Returns a task whose jitter leaves no time to wait or to execute.
    fn hopeless(&self) -> Option<(usize, &Task)> {
        let mut all = self.tasks.iter().enumerate();
        all.find(|(_, task)| {
            let needs_time = task.worst_ns > 0 || task.blocking_ns > 0;
            let needed_ns = task.jitter_ns.saturating_add(u64::from(needs_time));
            task.deadline_ns < needed_ns
        })
    }

    /// Returns the length of the longest busy period.
    fn busy_period(&mut self) -> Option<u64> {
        let blocking = self.tasks.iter().map(|task| task.blocking_ns).max()?;
        let mut length = 1;
        loop {
            self.steps_left = self.steps_left.checked_sub(1)?;
            let needed = self.tasks.iter().try_fold(blocking, |sum, task| {
                let span = u64::checked_add(length, task.jitter_ns)?;
                let jobs = task.arrivals().jobs_in(span.into());
                sum.checked_add(jobs.checked_mul(task.worst_ns)?)
            })?;
            if needed <= length {
                return Some(length);
            }
            length = needed;
        }
    }

    /// Returns the demand and blocking of an interval.
    fn needed(&mut self, interval: u64) -> Option<u64> {
        self.steps_left = self.steps_left.checked_sub(1)?;
        let mut sum: u64 = 0;
        let mut blocking = 0;
        for task in self.tasks {
            let Some(after) = interval.checked_sub(first_deadline(task)) else {
                continue;
            };
            let jobs = task.arrivals().jobs_until(after.into());
            sum = sum.checked_add(jobs.checked_mul(task.worst_ns)?)?;
            blocking = blocking.max(task.blocking_ns);
        }
        sum.checked_add(blocking)
    }

    /// Returns the last deadline at or before `end`.
    fn last_deadline_until(&self, end: u64) -> Option<u64> {
        let last = |task: &Task| {
            let after = end.checked_sub(first_deadline(task))?;
            Some(first_deadline(task) + task.arrivals().last_growth_ns(after))
        };
        self.tasks.iter().filter_map(last).max()
    }

    /// Returns the first interval whose demand exceeds it, searching from the beginning; else the known one.
    fn first_miss(&mut self, first: u64, known: u64) -> Option<DemandResult> {
        let mut interval = first;
        while interval < known {
            match self.needed(interval) {
                Some(needed) if needed <= interval => {}
                Some(_) => break,
                None => {
                    interval = known;
                    break;
                }
            }
            interval = self.next_deadline_after(interval).min(known);
        }
        let ends_here = |task: &Task| {
            let after = interval.checked_sub(first_deadline(task));
            after.is_some_and(|after| task.arrivals().last_growth_ns(after) == after)
        };
        let task = self.tasks.iter().position(ends_here)?;
        Some(DemandResult::Misses {
            task,
            interval_ns: interval,
        })
    }

    fn next_deadline_after(&self, end: u64) -> u64 {
        let next = |task: &Task| {
            let first = first_deadline(task);
            match end.checked_sub(first) {
                None => first,
                Some(after) => {
                    let next = i128::from(first) + task.arrivals().next_growth_ns(after.into());
                    u64::try_from(next).unwrap_or(u64::MAX)
                }
            }
        };
        self.tasks.iter().map(next).min().unwrap_or(u64::MAX)
    }
}

/// Returns the time from the latest release to the deadline.
fn first_deadline(task: &Task) -> u64 {
    task.deadline_ns.saturating_sub(task.jitter_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_processor_meets_deadlines_at_the_periods() {
        let tasks = [
            Task::periodic(4, 1),
            Task::periodic(6, 2),
            Task::periodic(12, 5),
        ];
        assert_eq!(demand(&tasks, SearchLimits::default()), DemandResult::Meets);
        assert_eq!(demand(&[], SearchLimits::default()), DemandResult::Meets);
        let more = [Task::periodic(4, 3), Task::periodic(6, 2)];
        assert_eq!(
            demand(&more, SearchLimits::default()),
            DemandResult::Overload
        );
    }

    #[test]
    fn the_first_miss_is_named() {
        let tasks = [
            Task::periodic(100, 3).with_deadline(5),
            Task::periodic(100, 3).with_deadline(5),
            Task::periodic(1000, 500),
        ];
        let missed = demand(&tasks, SearchLimits::default());
        assert_eq!(
            missed,
            DemandResult::Misses {
                task: 0,
                interval_ns: 5
            }
        );
        let none = Task::periodic(10, 0);
        for jittery in [
            Task::periodic(10, 1).with_jitter(10),
            none.with_jitter(10).with_blocking(1),
            none.with_jitter(11),
        ] {
            let missed = demand(&[jittery], SearchLimits::default());
            assert!(
                matches!(missed, DemandResult::Misses { task: 0, .. }),
                "{missed:?}"
            );
        }
        let at_once = [none.with_jitter(10)];
        assert_eq!(
            demand(&at_once, SearchLimits::default()),
            DemandResult::Meets
        );
    }

    #[test]
    fn blocking_counts_at_the_shortest_deadline() {
        let blocked = |ns| {
            [
                Task::periodic(10, 4).with_blocking(ns),
                Task::periodic(100, 10),
            ]
        };
        assert_eq!(
            demand(&blocked(6), SearchLimits::default()),
            DemandResult::Meets
        );
        assert!(matches!(
            demand(&blocked(7), SearchLimits::default()),
            DemandResult::Misses { task: 0, .. }
        ));
    }
}
