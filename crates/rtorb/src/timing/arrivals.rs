//! The arrivals of a servant's calls, and which of them come too soon after the one before.

use super::enforcement::{EarlyCalls, Enforcement};
use crate::clock::monotonic_ns;
use core::sync::atomic::{AtomicU64, Ordering};
use rtorb_os::clock::sleep_until;

/// How the calls of a servant are timed: when the last one arrived, for each annotated operation of its interface, and what happens to
/// calls beyond their times.
#[derive(Debug)]
pub(crate) struct ServantTiming {
    pub(super) enforcement: Enforcement,
    arrived_ns: Box<[AtomicU64]>,
}

/// The arrival of a call of an operation with a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arrival {
    /// The time since the call before; `None` for the first one.
    pub(super) gap_ns: Option<u64>,
    pub(super) admission: CallAdmission,
}

/// What happens to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallAdmission {
    Served,
    /// It is served later than it could have been.
    Delayed,
    Refused,
}

impl ServantTiming {
    /// The timing of a servant with so many annotated operations, none of which has been called.
    pub(crate) fn new(operations: usize, enforcement: Enforcement) -> Self {
        Self {
            enforcement,
            arrived_ns: (0..operations).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// Records a call of the operation at `place`, and waits until it may be served.
    pub(super) fn admit(&self, place: usize, arrived_ns: u64, period_ns: u64) -> Arrival {
        let served = Arrival {
            gap_ns: None,
            admission: CallAdmission::Served,
        };
        let Some(last) = self.arrived_ns.get(place) else {
            return served;
        };
        let EarlyCalls::Count = self.enforcement.early else {
            return self.admit_after(last, arrived_ns, period_ns);
        };
        // Several threads may serve calls at once: the latest arrival stays.
        let before_ns = last.fetch_max(arrived_ns, Ordering::Relaxed);
        Arrival {
            gap_ns: (before_ns > 0).then(|| arrived_ns.abs_diff(before_ns)),
            ..served
        }
    }

    /// Admits a call if it may be served now, or soon enough; a refused one is not recorded.
    fn admit_after(&self, last: &AtomicU64, arrived_ns: u64, period_ns: u64) -> Arrival {
        let delay_max_ns = match self.enforcement.early {
            EarlyCalls::Delay(most) => u64::try_from(most.as_nanos()).unwrap_or(u64::MAX),
            EarlyCalls::Count | EarlyCalls::Refuse => 0,
        };
        let due = |before_ns: u64| match before_ns {
            0 => arrived_ns,
            before_ns => arrived_ns.max(before_ns.saturating_add(period_ns)),
        };
        let recorded = last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |before_ns| {
            let due_ns = due(before_ns);
            (due_ns - arrived_ns <= delay_max_ns).then_some(due_ns)
        });
        let (Ok(before_ns) | Err(before_ns)) = recorded;
        let admission = match recorded {
            Err(_) => CallAdmission::Refused,
            Ok(_) if due(before_ns) > arrived_ns => CallAdmission::Delayed,
            Ok(_) => CallAdmission::Served,
        };
        if admission == CallAdmission::Delayed && monotonic_ns() < due(before_ns) {
            sleep_until(due(before_ns));
        }
        Arrival {
            gap_ns: (before_ns > 0).then(|| arrived_ns.saturating_sub(before_ns)),
            admission,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const PERIOD_NS: u64 = 1000;

    fn timing(early: EarlyCalls) -> ServantTiming {
        let enforcement = Enforcement {
            early,
            ..Enforcement::default()
        };
        ServantTiming::new(1, enforcement)
    }

    fn admitted(timing: &ServantTiming, arrived_ns: u64) -> (Option<u64>, CallAdmission) {
        let Arrival { gap_ns, admission } = timing.admit(0, arrived_ns, PERIOD_NS);
        (gap_ns, admission)
    }

    #[test]
    fn a_refused_call_does_not_move_the_time_of_the_next_one() {
        let timing = timing(EarlyCalls::Refuse);
        assert_eq!(admitted(&timing, 500), (None, CallAdmission::Served));
        assert_eq!(admitted(&timing, 1000), (Some(500), CallAdmission::Refused));
        assert_eq!(admitted(&timing, 1499), (Some(999), CallAdmission::Refused));
        assert_eq!(admitted(&timing, 1500), (Some(1000), CallAdmission::Served));
        assert_eq!(admitted(&timing, 1501), (Some(1), CallAdmission::Refused));
    }

    #[test]
    fn early_calls_that_are_delayed_get_one_period_each_until_the_delay_is_too_long() {
        // All of these times are past, so nothing sleeps.
        let timing = timing(EarlyCalls::Delay(Duration::from_nanos(2 * PERIOD_NS)));
        assert_eq!(admitted(&timing, 500), (None, CallAdmission::Served));
        assert_eq!(admitted(&timing, 500), (Some(0), CallAdmission::Delayed));
        assert_eq!(admitted(&timing, 500), (Some(0), CallAdmission::Delayed));
        assert_eq!(admitted(&timing, 500), (Some(0), CallAdmission::Refused));
        assert_eq!(admitted(&timing, 1500), (Some(0), CallAdmission::Delayed));
        assert_eq!(admitted(&timing, 4500), (Some(1000), CallAdmission::Served));
    }

    #[test]
    fn a_delayed_call_is_served_when_the_period_is_over() {
        let period_ns = 20_000_000;
        let timing = timing(EarlyCalls::Delay(Duration::from_nanos(2 * period_ns)));
        let first_ns = monotonic_ns();
        assert_eq!(
            timing.admit(0, first_ns, period_ns).admission,
            CallAdmission::Served
        );
        let arrived_ns = monotonic_ns();
        let second = timing.admit(0, arrived_ns, period_ns);
        assert!(monotonic_ns() >= first_ns + period_ns);
        // A busy host may have delayed the test itself.
        let expected = match arrived_ns - first_ns {
            gap_ns if gap_ns < period_ns => CallAdmission::Delayed,
            _ => CallAdmission::Served,
        };
        assert_eq!(second.admission, expected);
        assert_eq!(second.gap_ns, Some(arrived_ns - first_ns));
    }

    #[test]
    fn a_call_that_is_only_counted_is_served_at_once() {
        let timing = timing(EarlyCalls::Count);
        assert_eq!(admitted(&timing, 500), (None, CallAdmission::Served));
        assert_eq!(admitted(&timing, 600), (Some(100), CallAdmission::Served));
        assert_eq!(admitted(&timing, 650), (Some(50), CallAdmission::Served));
    }
}
