//! The measured loop, the same as cyclictest's: sleep until an absolute moment, and see how late it is.

use rtorb_host::placement::{Placement, obtained_by_priority};
use rtorb_instruments::replay::sample_taken;
use rtorb_os::clock::{monotonic_ns, sleep_until};
use rtorb_os::sched::SchedPolicy;
use rtorb_os::thread::{ThreadConfig, spawn};
use serde::{Deserialize, Serialize};

use crate::experiment::split_mix::SplitMix64;
use crate::processes::probe::{self, Answer};

/// What is asked: how late a periodic thread wakes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// Where the thread runs, and with what priority.
    pub placement: Placement,
    /// From one moment to the next, in nanoseconds.
    pub interval_ns: u64,
    /// How many times it wakes.
    pub samples: usize,
    /// Where every moment is drawn, from what.
    #[serde(default)]
    pub seed: Option<u64>,
}

impl probe::Question for Question {
    const ROLE: &'static str = "probe-wakeup";

    /// One series: for each wake-up, the nanoseconds from the moment that was set until the thread ran.
    fn answer(&self) -> Result<Answer, String> {
        let config = ThreadConfig {
            policy: self.placement.fifo.map(SchedPolicy::Fifo),
            affinity: self.placement.cpu.into_iter().collect(),
            ..ThreadConfig::default()
        };
        // Written once, so that each page is there and the thread's own before it measures.
        let mut late_ns = vec![NOT_TAKEN; self.samples];
        let mut moments = Moments {
            interval_ns: self.interval_ns,
            drawn: self.seed.map(SplitMix64::seeded),
        };
        let thread = spawn("wakeup", &config, move || {
            measure(&mut moments, &mut late_ns);
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

/// Fills in how late each wake-up is, and marks each.
fn measure(moments: &mut Moments, late_ns: &mut [u64]) {
    let mut next_ns = monotonic_ns() + moments.interval_ns;
    for late in late_ns {
        sleep_until(next_ns);
        let now_ns = monotonic_ns();
        sample_taken();
        *late = now_ns.saturating_sub(next_ns);
        next_ns = moments.next(next_ns, now_ns);
    }
}

/// When the thread wakes.
struct Moments {
    interval_ns: u64,
    drawn: Option<SplitMix64>,
}

impl Moments {
    /// The one after a wake-up. It is never in the past: the thread never runs without sleeping.
    fn next(&mut self, last_ns: u64, now_ns: u64) -> u64 {
        match &mut self.drawn {
            Some(drawn) => now_ns + self.interval_ns / 2 + drawn.draw_below(self.interval_ns),
            None => next_moment(last_ns, self.interval_ns, now_ns),
        }
    }
}

/// The first moment of the period that is not before `now_ns`: those that have passed are left out, as cyclictest leaves them
/// out.
fn next_moment(last_ns: u64, interval_ns: u64, now_ns: u64) -> u64 {
    let missed = now_ns.saturating_sub(last_ns + 1) / interval_ns;
    last_ns + (missed + 1) * interval_ns
}

/// No thread is ever so late.
const NOT_TAKEN: u64 = u64::MAX;

#[cfg(test)]
mod tests {
    use rtorb_instruments::replay::samples_taken;

    use super::*;
    use crate::processes::probe::Question as _;

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
            seed: None,
        };
        let marked = samples_taken();
        let answer = question.answer().unwrap();
        assert_eq!(answer.samples[0].len(), 7);
        assert!(answer.samples[0].iter().all(|late_ns| *late_ns > 0));
        assert!(!answer.scheduling.is_empty());
        assert!(samples_taken() >= marked + 7);
    }

    #[test]
    fn drawn_moments_are_within_an_interval_of_the_next_one_and_the_same_for_a_seed() {
        let drawn = |seed| {
            let mut moments = Moments {
                interval_ns: 1_000,
                drawn: Some(SplitMix64::seeded(seed)),
            };
            [(); 50].map(|()| moments.next(0, 10_000))
        };
        assert!(drawn(1).iter().all(|ns| (10_500..11_500).contains(ns)));
        assert_eq!(drawn(1), drawn(1));
        assert_ne!(drawn(1), drawn(2));
    }
}
