//! Virtual time, for each test thread its own. A thread without it has the real clock.

use super::world;
use core::cell::Cell;
use rtorb_os::clock::UtcOffset;

thread_local! {
    /// The virtual time; 0 if there is none.
    static NOW_NS: Cell<u64> = const { Cell::new(0) };
}

/// The kernel's tick, by which the coarse clock moves.
const TICK_NS: u64 = 4_000_000;

/// When virtual time begins: soon after the start of the host, so that timers of the host are due at once.
pub(crate) const BEGIN_NS: u64 = TICK_NS;

pub(crate) fn monotonic_ns() -> u64 {
    match NOW_NS.get() {
        0 => rtorb_os::clock::monotonic_ns(),
        now_ns => now_ns,
    }
}

pub(crate) fn coarse_monotonic_ns() -> u64 {
    match NOW_NS.get() {
        0 => rtorb_os::clock::coarse_monotonic_ns(),
        now_ns => now_ns - now_ns % TICK_NS,
    }
}

/// Sleeps; on virtual time the others act meanwhile.
pub(crate) fn sleep_until(deadline_ns: u64) {
    if is_virtual() {
        world::run_until(|| false, Some(deadline_ns));
    } else {
        rtorb_os::clock::sleep_until(deadline_ns);
    }
}

/// The time of UTC at which the monotonic clock of virtual time begins: 9 September 2001, 1:46:40.
pub(crate) const BEGUN_TICKS: u64 = 0x01b2_1dd2_1381_4000 + 10_000_000_000_000_000;

/// The distance of the monotonic clock from UTC.
pub(crate) fn utc_offset(now_ns: u64) -> UtcOffset {
    if is_virtual() {
        UtcOffset {
            earliest_ticks: BEGUN_TICKS,
            latest_ticks: BEGUN_TICKS,
        }
    } else {
        rtorb_os::clock::utc_offset(now_ns)
    }
}

/// The same; `None` if it would have to be measured.
pub(crate) fn known_utc_offset(now_ns: u64) -> Option<UtcOffset> {
    if is_virtual() {
        Some(utc_offset(now_ns))
    } else {
        rtorb_os::clock::known_utc_offset(now_ns)
    }
}

/// True if the time of this thread is virtual.
pub(crate) fn is_virtual() -> bool {
    NOW_NS.get() != 0
}

/// Makes the time of this thread virtual.
pub(crate) fn begin() {
    NOW_NS.set(BEGIN_NS);
}

/// Gives this thread the real clock again.
pub(crate) fn end() {
    NOW_NS.set(0);
}

/// Moves virtual time on.
pub(crate) fn advance_to(ns: u64) {
    assert!(ns >= NOW_NS.get(), "time runs backwards");
    NOW_NS.set(ns);
}
