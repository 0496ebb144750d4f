//! The clock that deadlines are measured with. Unit tests can make it virtual.

#[cfg(test)]
pub(crate) use crate::tests::clock::{coarse_monotonic_ns, monotonic_ns, sleep_until};
#[cfg(test)]
use crate::tests::clock::{known_utc_offset, utc_offset};
use rtorb_os::clock::UtcOffset;
#[cfg(not(test))]
pub(crate) use rtorb_os::clock::{coarse_monotonic_ns, monotonic_ns, sleep_until};
#[cfg(not(test))]
use rtorb_os::clock::{known_utc_offset, utc_offset};
use rtorb_wire::giop::UtcOrigin;
use std::time::Duration;

/// Returns a time in nanoseconds; `u64::MAX` if it is longer than that.
pub(crate) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Returns the time of UTC at the beginning of the monotonic clock, as it is known at `now_ns` of that clock.
pub(crate) fn utc_origin(now_ns: u64) -> UtcOrigin {
    origin(utc_offset(now_ns))
}

/// Returns the same; `None` if it has to be measured.
#[inline]
pub(crate) fn known_utc_origin(now_ns: u64) -> Option<UtcOrigin> {
    known_utc_offset(now_ns).map(origin)
}

#[inline]
fn origin(offset: UtcOffset) -> UtcOrigin {
    UtcOrigin {
        earliest_ticks: offset.earliest_ticks,
        latest_ticks: offset.latest_ticks,
    }
}
