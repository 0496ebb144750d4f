//! The budget of strangers: how many of their turns begin in a period.
//!
//! A stranger is a client that connects, or one of which no message has been served yet. Its turns cost a lane time before anything is known of it.

use crate::Limits;
use crate::clock::{monotonic_ns, nanoseconds, sleep_until};
use crate::server::ServerCore;
use rtorb_os::sync::Mutex;

/// Bounds the turns of strangers in each period. Periods follow each other without a gap while turns are taken; the first turn after a
/// period without any begins a new series of them.
#[derive(Debug)]
pub(crate) struct StrangerTurns {
    turns_max: u64,
    period_ns: u64,
    /// The begin of the first period of the series.
    begun_ns: u64,
    /// The turns in all periods of the series.
    taken: u64,
}

/// How long a thread that waits for a turn does not look whether the ORB stops, in nanoseconds.
const STOP_LATENCY_NS: u64 = 100_000_000;

impl StrangerTurns {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            turns_max: limits.stranger_turns_max as u64,
            period_ns: nanoseconds(limits.stranger_period),
            begun_ns: 0,
            taken: 0,
        }
    }

    /// Takes a turn that begins now.
    ///
    /// # Errors
    /// The time at which the next turn may begin, if all turns of this period are taken.
    pub(super) fn take(&mut self, now_ns: u64) -> Result<(), u64> {
        let next_ns = self.next_ns(now_ns);
        if next_ns > now_ns {
            return Err(next_ns);
        }
        self.taken += 1;
        Ok(())
    }

    /// Takes the next turn, and returns when it may begin.
    fn reserve(&mut self, now_ns: u64) -> u64 {
        let next_ns = self.next_ns(now_ns);
        self.taken += 1;
        next_ns
    }

    /// Returns when the period of the next turn begins or began.
    fn next_ns(&mut self, now_ns: u64) -> u64 {
        let periods = self.taken / self.turns_max;
        let next_ns = periods
            .saturating_mul(self.period_ns)
            .saturating_add(self.begun_ns);
        if now_ns < next_ns.saturating_add(self.period_ns) {
            return next_ns;
        }
        (self.begun_ns, self.taken) = (now_ns, 0);
        now_ns
    }
}

/// Waits for a turn of a stranger, which has a thread of its own or an accepting thread. Returns earlier if the ORB stops.
pub(crate) fn await_turn(orb: &ServerCore, turns: &Mutex<StrangerTurns>) {
    let mut now_ns = monotonic_ns();
    let at_ns = turns.lock().reserve(now_ns);
    if at_ns > now_ns {
        orb.state.note_held_back();
    }
    while at_ns > now_ns && !orb.is_stopping() {
        sleep_until(at_ns.min(now_ns + STOP_LATENCY_NS));
        now_ns = monotonic_ns();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;

    const PERIOD_NS: u64 = 10_000_000;

    fn turns(turns_max: usize) -> StrangerTurns {
        StrangerTurns::new(&Limits::with(|limits| {
            limits.stranger_turns_max = turns_max;
            limits.stranger_period = Duration::from_nanos(PERIOD_NS);
        }))
    }

    #[test]
    fn as_many_turns_begin_in_each_period_as_the_limit_says() {
        for turns_max in [1, 2, 25] {
            let mut turns = turns(turns_max);
            let begun_ns = 7 * PERIOD_NS + 1;
            // Asked each 100 us, for ten periods, and more often than turns may begin.
            let mut begun = [0; 10];
            for step in 0..1000 {
                let now_ns = begun_ns + step * PERIOD_NS / 100;
                let taken = turns.take(now_ns);
                let period = (now_ns - begun_ns) / PERIOD_NS;
                let next_ns = begun_ns + (period + 1) * PERIOD_NS;
                assert!(taken.is_ok() || taken == Err(next_ns), "{taken:?}");
                begun[period as usize] += usize::from(taken.is_ok());
            }
            assert_eq!(begun, [turns_max; 10]);
        }
    }

    #[test]
    fn a_period_begins_with_its_first_turn() {
        let mut turns = turns(2);
        assert_eq!(turns.take(PERIOD_NS), Ok(()));
        // The period of the first turn is over, and nothing of its budget is left for the next one.
        for now_ns in [2 * PERIOD_NS + 5, 2 * PERIOD_NS + 6] {
            assert_eq!(turns.take(now_ns), Ok(()));
        }
        assert_eq!(turns.take(3 * PERIOD_NS), Err(3 * PERIOD_NS + 5));
        assert_eq!(turns.take(3 * PERIOD_NS + 5), Ok(()));
    }

    #[test]
    fn reserved_turns_begin_in_their_order_and_so_many_in_each_period() {
        let mut turns = turns(3);
        let reserved: Vec<_> = (0..10)
            .map(|_| turns.reserve(PERIOD_NS) / PERIOD_NS)
            .collect();
        assert_eq!(reserved, [1, 1, 1, 2, 2, 2, 3, 3, 3, 4]);
        assert_eq!(turns.take(2 * PERIOD_NS), Err(4 * PERIOD_NS));
    }
}
