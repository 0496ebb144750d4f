//! Two threads on one CPU that hand it to each other, timed in a probe.

use rtorb_os::sched::SchedPolicy;
use serde::{Deserialize, Serialize};

use crate::processes::begin_together::Threads;
use crate::processes::probe::{self, Answer};

mod suspend_resume;
mod synchronized;
mod yields;

/// What to time. The answer has two sets of samples, as many in each and taken in turns: the hand-over, and the same calls
/// with nobody to hand over to; and the number `dropped`: hand-overs that were none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// How the CPU is handed over.
    pub test: Test,
    /// How many samples to take; fewer are answered when it takes longer than a second.
    pub samples: usize,
    /// Whether the threads are to have SCHED_FIFO; otherwise they have what the probe has.
    pub fifo: bool,
}

/// How one thread hands the CPU to another (P0 section 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Test {
    /// The less urgent wakes the more urgent, which sleeps again, by a futex. Linux suspends no thread otherwise (P0: "N/A").
    SuspendResume,
    /// Both call sched_yield(2) again and again.
    Yield,
    /// The less urgent gives back a mutex that the more urgent waits for, with priority inheritance.
    Synchronized,
    /// The same with a mutex without inheritance.
    SynchronizedPlain,
}

impl Test {
    /// Every one, in the order of the published tables.
    pub const ALL: [Self; 4] = [
        Self::SuspendResume,
        Self::Yield,
        Self::Synchronized,
        Self::SynchronizedPlain,
    ];

    /// The value of the label `test`.
    pub(in crate::experiments) const fn label(self) -> &'static str {
        match self {
            Self::SuspendResume => "suspend_resume",
            Self::Yield => "yield",
            Self::Synchronized => "synchronized",
            Self::SynchronizedPlain => "synchronized_plain",
        }
    }
}

impl probe::Question for Question {
    const ROLE: &'static str = "probe-context-switch";

    fn answer(&self) -> Result<Answer, String> {
        match self.test {
            Test::SuspendResume => suspend_resume::time(self),
            Test::Yield => yields::time(self),
            Test::Synchronized => synchronized::time::<rtorb_os::sync::Mutex<()>>(self),
            Test::SynchronizedPlain => synchronized::time::<std::sync::Mutex<()>>(self),
        }
    }
}

/// Samples in the making. Nothing is allocated while they are taken.
#[derive(Debug, Default)]
struct Samples {
    hand_over_ns: Vec<u64>,
    uncontended_ns: Vec<u64>,
    dropped: u32,
}

impl Samples {
    fn with_room_for(count: usize) -> Self {
        Self {
            hand_over_ns: Vec::with_capacity(count),
            uncontended_ns: Vec::with_capacity(count),
            dropped: 0,
        }
    }

    fn push(&mut self, hand_over_ns: u64, uncontended_ns: u64) {
        self.hand_over_ns.push(hand_over_ns);
        self.uncontended_ns.push(uncontended_ns);
    }
}

fn run(
    question: &Question,
    [first_priority, second_priority]: [u8; 2],
    first: impl FnOnce() -> Samples + Send + 'static,
    second: impl FnOnce() + Send + 'static,
) -> Result<Answer, String> {
    let policy = |priority| question.fifo.then_some(SchedPolicy::Fifo(priority));
    let mut threads = Threads::new();
    threads.add("first", policy(first_priority), first)?;
    threads.add("second", policy(second_priority), || {
        second();
        Samples::default()
    })?;
    let (scheduling, samples) = threads.run("the two threads")?;
    let samples = samples.into_iter().next().unwrap_or_default();
    Ok(Answer {
        samples: vec![samples.hand_over_ns, samples.uncontended_ns],
        numbers: [("dropped".to_owned(), f64::from(samples.dropped))].into(),
        scheduling,
        ..Answer::default()
    })
}

fn rounds(question: &Question) -> u32 {
    let samples = u32::try_from(question.samples).unwrap_or(u32::MAX);
    samples.saturating_add(WARM_UP).min(OVER - 1)
}

/// Less urgent than the probe's main thread, which only waits meanwhile.
pub(super) const LOW: u8 = 40;
pub(super) const HIGH: u8 = 41;
/// Yields of each thread in a batch.
pub(super) const YIELDS: u32 = 16;
/// Rounds that are not counted: what is used is in the caches then.
pub(super) const WARM_UP: u32 = 10;
/// Most of all that one question may take.
const BUDGET_NS: u64 = 1_000_000_000;
/// Tells the other thread to end.
const OVER: u32 = u32::MAX;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::processes::probe::Question as _;

    /// Under any scheduling: what comes back is whole, whatever its size.
    #[test]
    fn every_test_answers_pairs_of_samples() {
        for test in Test::ALL {
            let question = Question {
                test,
                samples: 20,
                fifo: false,
            };
            let answer = question.answer().unwrap();
            let [hand_over, uncontended] = &answer.samples[..] else {
                panic!("{test:?}: two sets of samples");
            };
            assert_eq!(hand_over.len(), uncontended.len(), "{test:?}");
            let counted = hand_over.len() + answer.numbers["dropped"] as usize;
            assert!(counted <= 20, "{test:?}: {counted}");
            assert!(!answer.scheduling.is_empty());
        }
    }
}
