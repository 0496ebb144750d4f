//! The distance of the monotonic clock from UTC, for times that other processes and hosts read.

use super::{monotonic_ns, nanoseconds};
use core::sync::atomic::{AtomicU64, Ordering};
use rustix::time::{ClockId, clock_gettime};

/// The distance of CLOCK_MONOTONIC from UTC, as it was when it was measured: the time of UTC at the beginning of that clock, in units of
/// 100 ns since 15 October 1582, as CORBA counts UTC. It is in an interval, which is as long as the measurement took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UtcOffset {
    /// The earliest that it may be.
    pub earliest_ticks: u64,
    /// The latest that it may be.
    pub latest_ticks: u64,
}

/// Nanoseconds of the unit.
const TICK_NS: i128 = 100;

/// 1 January 1970 in the unit.
const UNIX_EPOCH_TICKS: i128 = 0x01B2_1DD2_1381_4000;

impl UtcOffset {
    /// The offset, if it was `utc_ns` after 1970 at a time of the monotonic clock from `before_ns` to `after_ns`.
    fn between(before_ns: u64, utc_ns: u64, after_ns: u64) -> Self {
        // Negative if UTC was set to a time soon after 1970.
        let offset_ns = |monotonic_ns| i128::from(utc_ns) - i128::from(monotonic_ns);
        let earliest = offset_ns(after_ns).div_euclid(TICK_NS);
        let latest = -(-offset_ns(before_ns)).div_euclid(TICK_NS);
        // It is after 1582 and before 2600.
        let [earliest_ticks, latest_ticks] =
            [earliest, latest].map(|ticks| (UNIX_EPOCH_TICKS + ticks) as u64);
        Self {
            earliest_ticks,
            latest_ticks,
        }
    }

    const fn inaccuracy_ticks(self) -> u64 {
        self.latest_ticks - self.earliest_ticks
    }
}

/// A measurement is used for this time. So long two processes of a host disagree after somebody has set the clock.
const VALID_NS: u64 = 100_000_000;

/// A measurement, and the monotonic time until which it is used. One place, because each place costs a call an instruction.
struct Measurement {
    earliest_ticks: AtomicU64,
    /// The length of the interval, and not its end: a thread that reads this beside the beginning of another measurement still has an
    /// interval.
    inaccuracy_ticks: AtomicU64,
    valid_until_ns: AtomicU64,
}

/// The last measurement. Threads that measure at once write the same within the error.
static LAST: Measurement = Measurement {
    earliest_ticks: AtomicU64::new(0),
    inaccuracy_ticks: AtomicU64::new(0),
    valid_until_ns: AtomicU64::new(0),
};

/// Returns the distance at `now_ns` of the monotonic clock. It is measured again ten times a second.
#[inline]
pub fn utc_offset(now_ns: u64) -> UtcOffset {
    known_utc_offset(now_ns).unwrap_or_else(measure)
}

/// Returns the distance at `now_ns` of the monotonic clock; `None` if [`utc_offset`] would measure it.
#[inline]
pub fn known_utc_offset(now_ns: u64) -> Option<UtcOffset> {
    if now_ns >= LAST.valid_until_ns.load(Ordering::Acquire) {
        return None;
    }
    let earliest_ticks = LAST.earliest_ticks.load(Ordering::Relaxed);
    let inaccuracy_ticks = LAST.inaccuracy_ticks.load(Ordering::Relaxed);
    Some(UtcOffset {
        earliest_ticks,
        latest_ticks: earliest_ticks.wrapping_add(inaccuracy_ticks),
    })
}

/// Measures it: of several tries the quickest, since a thread may lose its CPU between two clocks.
#[cold]
fn measure() -> UtcOffset {
    let tries = (0..TRIES).map(|_| {
        let before_ns = monotonic_ns();
        let utc_ns = nanoseconds(clock_gettime(ClockId::Realtime));
        UtcOffset::between(before_ns, utc_ns, monotonic_ns())
    });
    let best = tries.min_by_key(|offset| offset.inaccuracy_ticks());
    let offset = best.expect("it is tried at least once");
    (LAST.earliest_ticks).store(offset.earliest_ticks, Ordering::Relaxed);
    (LAST.inaccuracy_ticks).store(offset.inaccuracy_ticks(), Ordering::Relaxed);
    (LAST.valid_until_ns).store(monotonic_ns() + VALID_NS, Ordering::Release);
    offset
}

/// Enough for one that is not interrupted.
const TRIES: u32 = 3;

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{SystemTime, UNIX_EPOCH};

    const SECOND: u64 = 10_000_000;

    #[test]
    fn monotonic_time_and_the_distance_are_the_time_of_day() {
        for _ in 0..3 {
            let before_ns = monotonic_ns();
            let day = SystemTime::now().duration_since(UNIX_EPOCH);
            let now_ns = monotonic_ns();
            let offset = utc_offset(now_ns);
            let day_ticks = day.expect("it is after 1970").as_nanos() as u64 / 100;
            // The thread may have been without a CPU in between.
            let [earliest, latest] = [before_ns, now_ns]
                .map(|ns| offset.latest_ticks - UNIX_EPOCH_TICKS as u64 + ns / 100);
            let is_near = earliest < day_ticks + SECOND && day_ticks < latest + SECOND;
            assert!(is_near, "{offset:?}: {day_ticks}, {earliest} to {latest}");
            assert!(offset.inaccuracy_ticks() < SECOND, "{offset:?}");
        }
    }

    /// The clock was set forward, and one of the two words is written.
    #[test]
    fn half_of_a_measurement_is_an_interval() {
        let now_ns = monotonic_ns();
        let earliest = utc_offset(now_ns).earliest_ticks;
        LAST.earliest_ticks
            .store(earliest + 5_000, Ordering::Relaxed);
        let offset = known_utc_offset(now_ns).expect("it was measured after this time");
        assert!(offset.latest_ticks >= offset.earliest_ticks, "{offset:?}");
    }

    #[test]
    fn the_interval_is_as_long_as_the_measurement_took_and_what_is_rounded() {
        let ticks = |before_ns, utc_ns, after_ns| {
            let offset = UtcOffset::between(before_ns, utc_ns, after_ns);
            [offset.earliest_ticks, offset.latest_ticks]
                .map(|ticks| i128::from(ticks) - UNIX_EPOCH_TICKS)
        };
        assert_eq!(ticks(600, 1_000, 600), [4, 4]);
        assert_eq!(ticks(600, 1_001, 600), [4, 5]);
        assert_eq!(ticks(600, 1_001, 601), [4, 5]);
        assert_eq!(ticks(600, 1_001, 602), [3, 5]);
        // UTC is 1970, and the host has run for longer.
        assert_eq!(ticks(150, 0, 150), [-2, -1]);
    }
}
