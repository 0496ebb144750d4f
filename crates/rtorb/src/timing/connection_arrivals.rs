//! The arrivals of the calls of one connection, where the `@period` of an operation is that of each client.

use rtorb_os::sync::Mutex;

/// When the connection's calls of operations with a period arrived last.
///
/// An entry is needed only until its period is over; then it is used again. So a call allocates memory only if the connection has more
/// periods in progress than ever before.
#[derive(Debug)]
pub(crate) struct ConnectionArrivals {
    last: Mutex<Vec<LastArrival>>,
    periods_max: usize,
}

/// An operation of a servant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ServantOperation {
    /// The number of the servant in this process.
    pub(super) servant: u64,
    /// The operation's place among the annotated ones of the interface.
    pub(super) place: usize,
}

#[derive(Clone, Copy, Debug)]
struct LastArrival {
    operation: ServantOperation,
    at_ns: u64,
    /// When the period is over.
    until_ns: u64,
}

/// A call of an operation with a period.
#[derive(Clone, Copy, Debug)]
pub(super) struct TimedArrival {
    pub(super) operation: ServantOperation,
    pub(super) arrived_ns: u64,
    pub(super) period_ns: u64,
}

/// The connection has as many periods in progress as it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooManyPeriods;

impl ConnectionArrivals {
    /// Creates the state of a new connection, which may have `periods_max` periods in progress at a time.
    pub(crate) fn new(periods_max: usize) -> Self {
        Self {
            last: Mutex::new(Vec::new()),
            periods_max,
        }
    }

    /// Replaces the last arrival of the call's operation, 0 for none, by what `record` returns. Returns the one before: `Ok` if it was
    /// replaced, `Err` if `record` returned `None`.
    pub(super) fn update(
        &self,
        call: TimedArrival,
        record: impl Fn(u64) -> Option<u64>,
    ) -> Result<Result<u64, u64>, TooManyPeriods> {
        let mut last = self.last.lock();
        let known = last.iter().position(|one| one.operation == call.operation);
        let before_ns = known.map_or(0, |at| last[at].at_ns);
        let Some(at_ns) = record(before_ns) else {
            return Ok(Err(before_ns));
        };
        let entry = LastArrival {
            operation: call.operation,
            at_ns,
            until_ns: at_ns.saturating_add(call.period_ns),
        };
        let is_over = |one: &LastArrival| one.until_ns <= call.arrived_ns;
        match known.or_else(|| last.iter().position(is_over)) {
            Some(at) => last[at] = entry,
            None if last.len() < self.periods_max => last.push(entry),
            None => return Err(TooManyPeriods),
        }
        Ok(Ok(before_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD_NS: u64 = 1000;

    fn call(servant: u64, arrived_ns: u64) -> TimedArrival {
        TimedArrival {
            operation: ServantOperation { servant, place: 0 },
            arrived_ns,
            period_ns: PERIOD_NS,
        }
    }

    fn arrive(
        arrivals: &ConnectionArrivals,
        call: TimedArrival,
    ) -> Result<Result<u64, u64>, TooManyPeriods> {
        arrivals.update(call, |_| Some(call.arrived_ns))
    }

    #[test]
    fn each_operation_of_each_servant_has_an_arrival_of_its_own() {
        let arrivals = ConnectionArrivals::new(3);
        let mut other_place = call(1, 30);
        other_place.operation.place = 1;
        for call in [call(1, 10), call(2, 20), other_place] {
            assert_eq!(arrive(&arrivals, call), Ok(Ok(0)), "{call:?}");
        }
        assert_eq!(arrive(&arrivals, call(1, 40)), Ok(Ok(10)));
        assert_eq!(arrive(&arrivals, call(2, 50)), Ok(Ok(20)));
        assert_eq!(arrivals.update(call(1, 60), |_| None), Ok(Err(40)));
        assert_eq!(arrive(&arrivals, call(1, 70)), Ok(Ok(40)), "it stayed");
    }

    #[test]
    fn a_period_that_is_over_gives_its_place_to_another_one_and_no_memory_is_added() {
        let arrivals = ConnectionArrivals::new(2);
        for (servant, arrived_ns) in [(1, 10), (2, 20)] {
            assert_eq!(arrive(&arrivals, call(servant, arrived_ns)), Ok(Ok(0)));
        }
        let full = arrive(&arrivals, call(3, 10 + PERIOD_NS - 1));
        assert_eq!(full, Err(TooManyPeriods));
        assert_eq!(arrive(&arrivals, call(3, 10 + PERIOD_NS)), Ok(Ok(0)));
        let known = arrive(&arrivals, call(2, 10 + PERIOD_NS));
        assert_eq!(known, Ok(Ok(20)), "its period was not over");
        assert_eq!(arrivals.last.lock().len(), 2);
    }
}
