//! A fixed amount of computation: what a measured program does where its time must be a property of its work.
//!
//! It is counted in steps and never ends by the clock. A program that computes until some time has passed would hide what
//! interrupts it.

use rtorb_os::clock::monotonic_ns;
use serde::{Deserialize, Serialize};

/// So many steps, each of which needs the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Computation {
    /// How many.
    pub steps: u64,
}

impl Computation {
    /// One that takes about `ns` here when nothing interrupts it: from the shortest of a few trials, since whatever
    /// disturbs a trial makes it longer. Takes some ten times `ns`, and never more than a fraction of a second for the
    /// first look.
    #[must_use]
    pub fn lasting(ns: u64) -> Self {
        let first_look = Self { steps: TRIAL_STEPS };
        let guess = first_look.scaled(ns, first_look.shortest_ns());
        guess.scaled(ns, guess.shortest_ns())
    }

    /// Computes. It touches no memory beyond its stack, and makes no system call.
    #[inline(never)]
    pub fn run(self) {
        let mut state = std::hint::black_box(SEED);
        for _ in 0..self.steps {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
        }
        std::hint::black_box(state);
    }

    fn shortest_ns(self) -> u64 {
        let trial = |_| {
            let begin_ns = monotonic_ns();
            self.run();
            monotonic_ns() - begin_ns
        };
        (0..TRIALS).map(trial).min().unwrap_or(1).max(1)
    }

    /// The steps for `wanted_ns`, when these took `took_ns`.
    fn scaled(self, wanted_ns: u64, took_ns: u64) -> Self {
        let steps = u128::from(self.steps) * u128::from(wanted_ns) / u128::from(took_ns.max(1));
        Self {
            steps: u64::try_from(steps).unwrap_or(u64::MAX).clamp(1, STEPS_MAX),
        }
    }
}

/// Some tens of microseconds, and in a program that was not optimized some hundreds.
const TRIAL_STEPS: u64 = 20_000;
const TRIALS: usize = 5;
/// Some ten seconds: more than any experiment asks for.
const STEPS_MAX: u64 = 10_000_000_000;
/// Any number but 0, which the steps would leave as it is.
const SEED: u64 = 0x9E37_79B9_7F4A_7C15;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_grow_with_the_time_that_is_wanted() {
        let thousand = Computation { steps: 1_000 };
        assert_eq!(thousand.scaled(5_000, 1_000).steps, 5_000);
        assert_eq!(thousand.scaled(0, 1_000).steps, 1);
        assert_eq!(thousand.scaled(1, 0).steps, 1_000);
        assert_eq!(thousand.scaled(u64::MAX, 1).steps, STEPS_MAX);
    }

    #[test]
    fn what_lasts_longer_has_more_steps() {
        let (short, long) = (
            Computation::lasting(10_000),
            Computation::lasting(10_000_000),
        );
        assert!(long.steps > short.steps, "{long:?} {short:?}");
    }
}
