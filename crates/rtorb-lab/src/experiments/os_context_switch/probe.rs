//! Two threads on one CPU that hand it to each other.
//!
//! The answer of a test has two sets of samples, as many in each and taken in turns: the hand-over, and the same calls with nobody to
//! hand over to.

use serde::{Deserialize, Serialize};
use strum::VariantNames;

use crate::experiments::os_services::probe::{Question, mutex};
use crate::processes::probe::Answer;

mod suspend_resume;
mod yields;

/// How one thread hands the CPU to another (P0 section 3.1).
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, VariantNames,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
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
        Self::VARIANTS[self as usize]
    }
}

/// Times a test.
pub(in crate::experiments) fn time(question: &Question, test: Test) -> Result<Answer, String> {
    use mutex::From::ReleaseBesideFree;
    match test {
        Test::SuspendResume => suspend_resume::time(question),
        Test::Yield => yields::time(question),
        Test::Synchronized => mutex::time::<rtorb_os::sync::Mutex<()>>(question, ReleaseBesideFree),
        Test::SynchronizedPlain => mutex::time::<std::sync::Mutex<()>>(question, ReleaseBesideFree),
    }
}

/// Yields of each thread in a batch.
pub(super) const YIELDS: u32 = 16;
/// Tells the other thread to end.
const OVER: u32 = u32::MAX;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::os_services::probe::{NOT_IN_TURN, Service};
    use crate::processes::probe::Question as _;

    /// Under any scheduling: what comes back is whole, whatever its size.
    #[test]
    fn every_test_answers_pairs_of_samples() {
        for test in Test::ALL {
            let question = Question {
                service: Service::Switch(test),
                samples: 20,
                low_priority: None,
                pause_ns_max: 0,
                seed: 1,
                other: None,
            };
            let answer = question.answer().unwrap();
            let [hand_over, uncontended] = &answer.samples[..] else {
                panic!("{test:?}: two sets of samples");
            };
            assert_eq!(hand_over.len(), uncontended.len(), "{test:?}");
            let counted = hand_over.len() + answer.numbers[NOT_IN_TURN] as usize;
            assert!(counted <= 20, "{test:?}: {counted}");
            assert!(!answer.scheduling.is_empty());
        }
    }
}
