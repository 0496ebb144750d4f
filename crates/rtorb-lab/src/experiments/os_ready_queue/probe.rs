//! The tasks of P3 Table 4 as threads of a probe: a clock that makes them ready, and the switch from task 1 to task 2.
//!
//! The clock is the most urgent thread. It sleeps until each tick; at every whole period it wakes task 1 and all interference
//! tasks by one futex. None of them can run before it sleeps again, so all are in the ready queue; then task 1 is the most
//! urgent, computes, reads the time and triggers task 2, which is more urgent still.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};

use rtorb_os::clock::monotonic_ns;
use rtorb_os::futex;
use rtorb_os::sched::SchedPolicy;
use rtorb_os::timer::PeriodicTimer;
use serde::{Deserialize, Serialize};

use crate::contestants::ping_pong::futex::sleep_while;
use crate::processes::begin_together::Threads;
use crate::processes::probe::{self, Answer};

/// A task set and a clock. The answer has one set of samples, from the end of task 1 to the beginning of task 2, and the
/// number `dropped`: samples at which an interference task was not in the ready queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// All tasks together: 2 or more.
    pub tasks: u32,
    /// From tick to tick; a period of 1 ms is a whole number of them.
    pub resolution_us: u64,
    /// Periods to measure.
    pub periods: u32,
}

impl probe::Question for Question {
    const ROLE: &'static str = "probe-ready-queue";

    /// Runs the task set and times its switches.
    fn answer(&self) -> Result<Answer, String> {
        let interference = self.tasks.saturating_sub(2);
        let set = Arc::new(TaskSet::new(interference));
        let periods = u64::from(self.periods + WARM_UP);
        let begin_ns = monotonic_ns() + LEAD_NS;
        let end_ns = begin_ns + periods * PERIOD_NS;
        let give_up_ns = end_ns + PATIENCE_NS;
        let mut threads = Threads::new();
        {
            let (set, resolution_ns) = (Arc::clone(&set), self.resolution_us * 1_000);
            threads.add("clock", fifo(CLOCK), move || {
                set.tick([begin_ns, end_ns], resolution_ns);
                Samples::default()
            })?;
        }
        {
            let (set, mut samples) = (Arc::clone(&set), Samples::with_room_for(self.periods));
            threads.add("task-two", fifo(TASK_2), move || {
                set.task_2(give_up_ns, &mut samples);
                samples
            })?;
        }
        {
            let set = Arc::clone(&set);
            threads.add("task-one", fifo(TASK_1), move || {
                set.task_1(give_up_ns);
                Samples::default()
            })?;
        }
        for task in 0..interference as usize {
            let set = Arc::clone(&set);
            threads.add(
                &format!("interference-{task}"),
                fifo(INTERFERENCE),
                move || {
                    set.interfere(task, give_up_ns);
                    Samples::default()
                },
            )?;
        }
        let (scheduling, samples) = threads.run("task set")?;
        let samples = samples.into_iter().nth(1).unwrap_or_default();
        Ok(Answer {
            samples: vec![samples.switch_ns],
            numbers: [("dropped".to_owned(), f64::from(samples.dropped))].into(),
            scheduling,
            ..Answer::default()
        })
    }
}

/// What the threads share.
#[derive(Debug)]
struct TaskSet {
    /// The number of the period that the clock began last; all tasks but the second sleep on it.
    period: AtomicU32,
    /// The number of the period whose task 1 has ended; task 2 sleeps on it.
    trigger: AtomicU32,
    task_1_end_ns: AtomicU64,
    /// The period in which each interference task ran last.
    ran: Vec<AtomicU32>,
}

impl TaskSet {
    fn new(interference: u32) -> Self {
        Self {
            period: AtomicU32::new(0),
            trigger: AtomicU32::new(0),
            task_1_end_ns: AtomicU64::new(0),
            ran: (0..interference).map(|_| AtomicU32::new(0)).collect(),
        }
    }

    fn tick(&self, [begin_ns, end_ns]: [u64; 2], resolution_ns: u64) {
        let mut clock = PeriodicTimer::starting_at(begin_ns, resolution_ns);
        let sleepers = self.ran.len() as u32 + 1;
        while clock.next_ns() < end_ns {
            let tick = clock.wait();
            if (tick.scheduled_ns - begin_ns).is_multiple_of(PERIOD_NS) {
                self.period.fetch_add(1, Release);
                futex::wake(&self.period, sleepers);
            }
        }
        self.period.store(OVER, Release);
        futex::wake(&self.period, sleepers);
    }

    fn task_1(&self, deadline_ns: u64) {
        let mut seen = 0;
        while let Some(period) = sleep_while(&self.period, seen, Some(deadline_ns)) {
            seen = period;
            let work_end_ns = monotonic_ns() + TASK_1_WORK_NS;
            let mut now_ns = monotonic_ns();
            while now_ns < work_end_ns {
                now_ns = monotonic_ns();
            }
            self.task_1_end_ns.store(now_ns, Release);
            self.trigger.store(seen, Release);
            futex::wake(&self.trigger, 1);
            if seen == OVER {
                return;
            }
        }
    }

    fn task_2(&self, deadline_ns: u64, samples: &mut Samples) {
        let mut seen = 0;
        while let Some(period) = sleep_while(&self.trigger, seen, Some(deadline_ns))
            && period != OVER
        {
            let begin_ns = monotonic_ns();
            seen = period;
            if period <= WARM_UP {
                continue;
            }
            if self.all_are_ready(period) {
                samples.push(begin_ns - self.task_1_end_ns.load(Acquire))
            } else {
                samples.dropped += 1
            }
        }
    }

    /// The clock made them ready in this period, so they are until they run.
    fn all_are_ready(&self, period: u32) -> bool {
        self.ran.iter().all(|ran| ran.load(Relaxed) < period)
    }

    fn interfere(&self, task: usize, deadline_ns: u64) {
        let mut seen = 0;
        while let Some(period) = sleep_while(&self.period, seen, Some(deadline_ns))
            && period != OVER
        {
            seen = period;
            self.ran[task].store(period, Relaxed);
        }
    }
}

/// Samples in the making. Nothing is allocated while they are taken.
#[derive(Debug, Default)]
struct Samples {
    switch_ns: Vec<u64>,
    dropped: u32,
}

impl Samples {
    fn with_room_for(periods: u32) -> Self {
        Self {
            switch_ns: Vec::with_capacity(periods as usize),
            dropped: 0,
        }
    }

    fn push(&mut self, switch_ns: u64) {
        self.switch_ns.push(switch_ns);
    }
}

fn fifo(priority: u8) -> Option<SchedPolicy> {
    Some(SchedPolicy::Fifo(priority))
}

/// Of task 1 and the interference tasks (P3 Table 4).
pub(super) const PERIOD_NS: u64 = 1_000_000;
/// Long enough that what the clock's interrupt left to do is done when task 1 ends.
pub(super) const TASK_1_WORK_NS: u64 = 20_000;
/// Periods that are not counted.
pub(super) const WARM_UP: u32 = 5;
/// More urgent than all tasks, less than the probe's main thread, which only waits meanwhile.
pub(super) const CLOCK: u8 = 45;
pub(super) const TASK_2: u8 = 43;
pub(super) const TASK_1: u8 = 42;
pub(super) const INTERFERENCE: u8 = 41;
/// From when the threads are made to the first period.
const LEAD_NS: u64 = 5_000_000;
/// From the last period until those give up whom nobody woke.
const PATIENCE_NS: u64 = 500_000_000;
/// Tells the tasks to end.
const OVER: u32 = u32::MAX;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::processes::probe::Question as _;

    #[test]
    fn a_task_is_ready_until_it_runs_in_this_period() {
        let set = TaskSet::new(2);
        set.ran[0].store(6, Relaxed);
        set.ran[1].store(3, Relaxed);
        assert!(
            set.all_are_ready(7),
            "one was even late for the last period"
        );
        set.ran[1].store(7, Relaxed);
        assert!(!set.all_are_ready(7));
    }

    const ATTEMPTS: usize = 20;

    #[test]
    fn every_period_is_a_sample_or_left_out() {
        if !rtorb_host::system::fifo_is_granted() {
            println!("skipped: the host grants no SCHED_FIFO");
            return;
        }
        let question = Question {
            tasks: 5,
            resolution_us: 500,
            periods: 20,
        };
        // Other tests have threads of its priority on the same CPU, and may leave it no period at all.
        let counted =
            |answer: &Answer| answer.samples[0].len() + answer.numbers["dropped"] as usize;
        let mut answers = (0..ATTEMPTS).map(|_| question.answer().unwrap());
        let answer = answers.find(|answer| counted(answer) > 0);
        let answer = answer.expect("one period in some attempt");
        assert!(counted(&answer) <= 20, "{}", counted(&answer));
        // The clock, five tasks, and whatever else is in this process.
        let threads: usize = answer.scheduling.iter().map(|kind| kind.threads).sum();
        assert!(threads >= 6, "{:?}", answer.scheduling);
    }
}
