//! Calls at a rate, with their response times.

use rtorb_os::clock::{monotonic_ns, sleep_until};
use rtorb_results::statistics::{Recorder, Statistics};
use serde::Serialize;

/// The number and the rate of calls.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// The number of calls.
    pub count: u64,
    /// Calls a second; `None` for one directly after the other.
    pub rate_hz: Option<f64>,
}

/// The response times of repeated calls.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Repeated {
    /// The calls that ended well.
    pub count: u64,
    /// The calls that began later than their rate says, because the one before took too long.
    pub late: u64,
    /// The response times in nanoseconds: at a rate from when each call was due.
    pub latency_ns: Statistics,
}

/// Calls again and again, and ends at the first failure.
pub fn repeat<E>(pace: Pace, mut call: impl FnMut() -> Result<(), E>) -> (Repeated, Option<E>) {
    let mut recorder = Recorder::new();
    let period_ns = pace.rate_hz.map(|rate| (1e9 / rate) as u64);
    let begin_ns = monotonic_ns();
    let (mut late, mut failure) = (0, None);
    for number in 0..pace.count {
        let due_ns =
            period_ns.map(|period_ns| begin_ns.saturating_add(period_ns.saturating_mul(number)));
        if let Some(due_ns) = due_ns {
            if number > 0 && monotonic_ns() > due_ns {
                late += 1;
            } else {
                sleep_until(due_ns);
            }
        }
        let before_ns = due_ns.unwrap_or_else(monotonic_ns);
        let result = call();
        let after_ns = monotonic_ns();
        if let Err(error) = result {
            failure = Some(error);
            break;
        }
        recorder.record(after_ns - before_ns);
    }
    let repeated = Repeated {
        count: recorder.count(),
        late,
        latency_ns: recorder.statistics(),
    };
    (repeated, failure)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first call takes three periods: the next ones are late, and that is in their times.
    #[test]
    fn a_late_call_is_timed_from_when_it_was_due() {
        let pace = Pace {
            count: 4,
            rate_hz: Some(100.0),
        };
        let mut calls = 0;
        let first_is_long = || {
            calls += 1;
            if calls == 1 {
                sleep_until(monotonic_ns() + 30_000_000);
            }
            Ok::<(), ()>(())
        };
        let (repeated, _) = repeat(pace, first_is_long);
        assert!(repeated.late >= 2, "{repeated:?}");
        assert!(repeated.latency_ns.p50 >= 9_000_000.0, "{repeated:?}");
    }

    #[test]
    fn calls_keep_their_rate_and_end_at_a_failure() {
        let pace = Pace {
            count: 5,
            rate_hz: Some(1000.0),
        };
        let begin_ns = monotonic_ns();
        let (repeated, failure) = repeat(pace, || Ok::<(), ()>(()));
        assert!(monotonic_ns() - begin_ns >= 4_000_000);
        assert_eq!((repeated.count, failure), (5, None));
        let mut left = 3;
        let (repeated, failure) = repeat(pace, || {
            left -= 1;
            if left == 0 { Err("over") } else { Ok(()) }
        });
        assert_eq!((repeated.count, failure), (2, Some("over")));
    }
}
