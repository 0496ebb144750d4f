//! The distance of the monotonic clock from UTC, for times that other processes and hosts read.

use super::{monotonic_ns, nanoseconds};
use core::sync::atomic::{AtomicU64, Ordering};
use rustix::time::{ClockId, clock_gettime};

/// The distance of CLOCK_MONOTONIC from UTC, as it was when it was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UtcOffset {
    /// The time since 1970 at the beginning of the monotonic clock, in nanoseconds. Negative values wrap.
    pub offset_ns: u64,
    /// The largest error of the measurement: how long it took.
    pub inaccuracy_ns: u64,
}

/// A measurement is used for this time. So long two processes of a host disagree after somebody has set the clock.
const VALID_NS: u64 = 100_000_000;

/// A measurement, and the monotonic time until which it is used. One place, because each place costs a call an instruction.
struct Measurement {
    offset_ns: AtomicU64,
    inaccuracy_ns: AtomicU64,
    valid_until_ns: AtomicU64,
}

/// The last measurement. Threads that measure at once write the same within the error.
static LAST: Measurement = Measurement {
    offset_ns: AtomicU64::new(0),
    inaccuracy_ns: AtomicU64::new(0),
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
    Some(UtcOffset {
        offset_ns: LAST.offset_ns.load(Ordering::Relaxed),
        inaccuracy_ns: LAST.inaccuracy_ns.load(Ordering::Relaxed),
    })
}

/// Measures it: of several tries the quickest, since a thread may lose its CPU between two clocks.
#[cold]
fn measure() -> UtcOffset {
    let tries = (0..TRIES).map(|_| {
        let before_ns = monotonic_ns();
        let utc_ns = nanoseconds(clock_gettime(ClockId::Realtime));
        UtcOffset {
            offset_ns: utc_ns.wrapping_sub(before_ns),
            inaccuracy_ns: monotonic_ns() - before_ns,
        }
    });
    let best = tries.min_by_key(|offset| offset.inaccuracy_ns);
    let offset = best.expect("it is tried at least once");
    LAST.offset_ns.store(offset.offset_ns, Ordering::Relaxed);
    (LAST.inaccuracy_ns).store(offset.inaccuracy_ns, Ordering::Relaxed);
    (LAST.valid_until_ns).store(monotonic_ns() + VALID_NS, Ordering::Release);
    offset
}

/// Enough for one that is not interrupted.
const TRIES: u32 = 3;

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{SystemTime, UNIX_EPOCH};

    #[test]
    fn monotonic_time_and_the_distance_are_the_time_of_day() {
        for _ in 0..3 {
            let now_ns = monotonic_ns();
            let offset = utc_offset(now_ns);
            let day = SystemTime::now().duration_since(UNIX_EPOCH);
            let day_ns = day.expect("it is after 1970").as_nanos() as u64;
            let error_ns = day_ns.abs_diff(now_ns.wrapping_add(offset.offset_ns));
            assert!(error_ns < 1_000_000_000, "{offset:?}: {error_ns} ns");
            assert!(offset.inaccuracy_ns < 1_000_000_000, "{offset:?}");
        }
    }
}
