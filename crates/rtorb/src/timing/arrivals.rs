//! The arrivals of a servant's calls, and which of them come too soon after the one before.

use super::connection_arrivals::{
    ConnectionArrivals, ServantOperation, TimedArrival, TooManyPeriods,
};
use super::enforcement::{EarlyCalls, Enforcement};
use crate::clock::monotonic_ns;
use crate::strategies::PeriodScope;
use core::sync::atomic::{AtomicU64, Ordering};
use rtorb_os::clock::sleep_until;

/// How the calls of a servant are timed: when the last one arrived, for each annotated operation of its interface, and what happens to
/// calls beyond their times.
#[derive(Debug)]
pub(crate) struct ServantTiming {
    pub(super) enforcement: Enforcement,
    /// The number of the servant in this process.
    number: u64,
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
    /// It was delayed before it was served.
    Delayed,
    Refused,
    /// It is refused because its connection has too many periods in progress.
    Untracked,
    /// It is refused because its deadline is before its time.
    Expired,
}

/// The number of the servant that was activated last.
static LAST_NUMBER: AtomicU64 = AtomicU64::new(0);

impl ServantTiming {
    /// Makes the timing of a servant with `operations` annotated operations, none of which has been called.
    pub(crate) fn new(operations: usize, enforcement: Enforcement) -> Self {
        Self {
            enforcement,
            number: LAST_NUMBER.fetch_add(1, Ordering::Relaxed) + 1,
            arrived_ns: (0..operations).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// Records a call of the operation at `place`, and waits until it may be served. A collocated call has no connection. A call that
    /// would wait until `latest_ns` or longer is refused at once.
    pub(super) fn admit(
        &self,
        place: usize,
        arrived_ns: u64,
        period_ns: u64,
        connection: Option<&ConnectionArrivals>,
        latest_ns: impl Fn() -> u64,
    ) -> Arrival {
        let delay_max_ns = match self.enforcement.early {
            EarlyCalls::Delay(most) => u64::try_from(most.as_nanos()).unwrap_or(u64::MAX),
            EarlyCalls::Count | EarlyCalls::Refuse => 0,
        };
        let due = |before_ns: u64| match before_ns {
            0 => arrived_ns,
            before_ns => arrived_ns.max(before_ns.saturating_add(period_ns)),
        };
        let record = |before_ns: u64| match self.enforcement.early {
            // Several threads may serve calls at once: the latest arrival stays.
            EarlyCalls::Count => Some(arrived_ns.max(before_ns)),
            _ => {
                let due_ns = due(before_ns);
                let is_in_time = due_ns == arrived_ns
                    || due_ns - arrived_ns <= delay_max_ns && due_ns < latest_ns();
                is_in_time.then_some(due_ns)
            }
        };
        let call = TimedArrival {
            operation: ServantOperation {
                servant: self.number,
                place,
            },
            arrived_ns,
            period_ns,
        };
        let Ok(recorded) = self.update(call, connection, record) else {
            return self.untracked();
        };
        let (Ok(before_ns) | Err(before_ns)) = recorded;
        let admission = match recorded {
            Err(before_ns) if due(before_ns) - arrived_ns <= delay_max_ns => CallAdmission::Expired,
            Err(_) => CallAdmission::Refused,
            Ok(_) if self.enforcement.early == EarlyCalls::Count => CallAdmission::Served,
            Ok(_) if due(before_ns) > arrived_ns => CallAdmission::Delayed,
            Ok(_) => CallAdmission::Served,
        };
        if admission == CallAdmission::Delayed && monotonic_ns() < due(before_ns) {
            sleep_until(due(before_ns));
        }
        let gap_ns = match self.enforcement.early {
            EarlyCalls::Count => arrived_ns.abs_diff(before_ns),
            _ => arrived_ns.saturating_sub(before_ns),
        };
        Arrival {
            gap_ns: (before_ns > 0).then_some(gap_ns),
            admission,
        }
    }

    /// Replaces the time of the last call that counts for the period of this one.
    fn update(
        &self,
        call: TimedArrival,
        connection: Option<&ConnectionArrivals>,
        record: impl Fn(u64) -> Option<u64>,
    ) -> Result<Result<u64, u64>, TooManyPeriods> {
        if self.enforcement.scope == PeriodScope::Connection
            && let Some(connection) = connection
        {
            return connection.update(call, record);
        }
        // The generated code knows no other place.
        let last = self.arrived_ns.get(call.operation.place);
        Ok(last.map_or(Ok(0), |last| {
            last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, record)
        }))
    }

    /// The arrival of a call whose period cannot be tracked.
    #[cold]
    fn untracked(&self) -> Arrival {
        Arrival {
            gap_ns: None,
            admission: match self.enforcement.early {
                EarlyCalls::Count => CallAdmission::Served,
                EarlyCalls::Refuse | EarlyCalls::Delay(_) => CallAdmission::Untracked,
            },
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
        let Arrival { gap_ns, admission } =
            timing.admit(0, arrived_ns, PERIOD_NS, None, || u64::MAX);
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
    fn a_call_whose_time_is_after_its_deadline_is_refused_and_does_not_move_the_time_of_the_next_one()
     {
        let timing = timing(EarlyCalls::Delay(Duration::from_nanos(2 * PERIOD_NS)));
        assert_eq!(admitted(&timing, 500), (None, CallAdmission::Served));
        let early = |latest_ns| {
            timing
                .admit(0, 600, PERIOD_NS, None, || latest_ns)
                .admission
        };
        assert_eq!(early(1500), CallAdmission::Expired);
        assert_eq!(early(1501), CallAdmission::Delayed);
        assert_eq!(early(2501), CallAdmission::Delayed);
        assert_eq!(early(9999), CallAdmission::Refused, "the delay is too long");
    }

    #[test]
    fn a_delayed_call_is_served_when_the_period_is_over() {
        let period_ns = 20_000_000;
        let never = || u64::MAX;
        let timing = timing(EarlyCalls::Delay(Duration::from_nanos(2 * period_ns)));
        let first_ns = monotonic_ns();
        assert_eq!(
            timing.admit(0, first_ns, period_ns, None, never).admission,
            CallAdmission::Served
        );
        let arrived_ns = monotonic_ns();
        let second = timing.admit(0, arrived_ns, period_ns, None, never);
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
    fn of_connections(early: EarlyCalls) -> ServantTiming {
        let enforcement = Enforcement {
            early,
            scope: PeriodScope::Connection,
            ..Enforcement::default()
        };
        ServantTiming::new(2, enforcement)
    }

    #[test]
    fn each_connection_has_a_period_of_its_own_and_collocated_calls_have_one_together() {
        use CallAdmission::{Refused, Served};
        let timing = of_connections(EarlyCalls::Refuse);
        let (one, another) = (ConnectionArrivals::new(4), ConnectionArrivals::new(4));
        let admitted = |timing: &ServantTiming, arrived_ns, connection| {
            let arrival = timing.admit(0, arrived_ns, PERIOD_NS, connection, || u64::MAX);
            (arrival.gap_ns, arrival.admission)
        };
        for (arrived_ns, connection, expected) in [
            (500, Some(&one), (None, Served)),
            (600, Some(&another), (None, Served)),
            (700, None, (None, Served)),
            (1499, Some(&one), (Some(999), Refused)),
            (1500, Some(&one), (Some(1000), Served)),
            (1599, Some(&another), (Some(999), Refused)),
            (1699, None, (Some(999), Refused)),
            (1700, None, (Some(1000), Served)),
        ] {
            assert_eq!(
                admitted(&timing, arrived_ns, connection),
                expected,
                "{arrived_ns}"
            );
        }
        let of_other = of_connections(EarlyCalls::Refuse);
        assert_eq!(admitted(&of_other, 1600, Some(&one)), (None, Served));
    }

    #[test]
    fn a_connection_with_too_many_periods_is_refused_further_ones_unless_they_are_only_counted() {
        let one = ConnectionArrivals::new(1);
        let admission = |timing: &ServantTiming, place| {
            timing
                .admit(place, 500, PERIOD_NS, Some(&one), || u64::MAX)
                .admission
        };
        let delay = EarlyCalls::Delay(Duration::from_nanos(PERIOD_NS));
        let refusing = of_connections(EarlyCalls::Refuse);
        assert_eq!(admission(&refusing, 0), CallAdmission::Served);
        assert_eq!(admission(&refusing, 1), CallAdmission::Untracked);
        assert_eq!(
            admission(&of_connections(delay), 0),
            CallAdmission::Untracked
        );
        let counting = of_connections(EarlyCalls::Count);
        assert_eq!(admission(&counting, 0), CallAdmission::Served);
    }
}
