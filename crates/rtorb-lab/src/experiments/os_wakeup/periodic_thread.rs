//! The measured loop, the same as cyclictest's: sleep until an absolute moment, and see how late it is.

use rtorb_os::clock::{monotonic_ns, sleep_until};
use rtorb_os::sched::SchedPolicy;
use rtorb_os::thread::{ThreadConfig, spawn};
use serde::{Deserialize, Serialize};

use crate::processes::placement::{Placement, obtained_by_priority};
use crate::processes::probe::Answer;

/// What is asked: how late a periodic thread wakes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// Where the thread runs, and with what priority.
    pub placement: Placement,
    /// From one moment to the next, in nanoseconds.
    pub interval_ns: u64,
    /// How many times it wakes.
    pub samples: usize,
}

impl Question {
    /// One series: for each wake-up, the nanoseconds from the moment that was set until the thread ran.
    ///
    /// # Errors
    /// That there is no such thread on this host.
    pub(crate) fn answer(&self) -> Result<Answer, String> {
        let config = ThreadConfig {
            policy: self.placement.fifo.map(SchedPolicy::Fifo),
            affinity: self.placement.cpu.into_iter().collect(),
            ..ThreadConfig::default()
        };
        let (interval_ns, mut late_ns) = (self.interval_ns, vec![0; self.samples]);
        let thread = spawn("wakeup", &config, move || {
            measure(interval_ns, &mut late_ns);
            late_ns
        });
        let thread = thread.map_err(|refused| refused.to_string())?;
        // While the first samples are taken, which are not kept.
        let scheduling = obtained_by_priority("rtorb", std::process::id());
        let late_ns = thread
            .join()
            .ok()
            .flatten()
            .ok_or("the measuring thread panicked")?;
        Ok(Answer {
            samples: vec![late_ns],
            scheduling,
            ..Answer::default()
        })
    }
}

/// Fills in how late each wake-up is. A moment that has passed already is left out, as cyclictest leaves it out: the
/// thread never runs without sleeping.
fn measure(interval_ns: u64, late_ns: &mut [u64]) {
    let mut next_ns = monotonic_ns() + interval_ns;
    for late in late_ns {
        sleep_until(next_ns);
        let now_ns = monotonic_ns();
        *late = now_ns.saturating_sub(next_ns);
        next_ns = next_moment(next_ns, interval_ns, now_ns);
    }
}

/// The first moment of the period that is not before `now_ns`.
fn next_moment(last_ns: u64, interval_ns: u64, now_ns: u64) -> u64 {
    let missed = now_ns.saturating_sub(last_ns + 1) / interval_ns;
    last_ns + (missed + 1) * interval_ns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_that_have_passed_are_left_out() {
        assert_eq!(next_moment(1_000, 100, 1_030), 1_100);
        assert_eq!(next_moment(1_000, 100, 1_100), 1_100);
        assert_eq!(next_moment(1_000, 100, 1_101), 1_200);
        assert_eq!(next_moment(1_000, 100, 1_999), 2_000);
        assert_eq!(next_moment(1_000, 100, 990), 1_100);
    }

    #[test]
    fn a_question_is_answered_with_as_many_samples() {
        let question = Question {
            placement: Placement::default(),
            interval_ns: 100_000,
            samples: 7,
        };
        let answer = question.answer().unwrap();
        assert_eq!(answer.samples[0].len(), 7);
        assert!(answer.samples[0].iter().all(|late_ns| *late_ns > 0));
        assert!(!answer.scheduling.is_empty());
    }
}
