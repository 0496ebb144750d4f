//! Monotonic time in nanoseconds, and sleeping until a time of it.

mod utc;

pub use utc::{UtcOffset, utc_offset};

use rustix::thread::ClockId as SleepClock;
use rustix::time::{ClockId, Timespec, clock_gettime};

/// Nanoseconds of CLOCK_MONOTONIC, which cannot be set and started before the program did.
///
/// The vDSO reads it without a system call where the clock source allows.
#[inline]
pub fn monotonic_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::Monotonic))
}

/// The same clock at the kernel's last tick, at most some milliseconds ago, for a fraction of the cost.
///
/// It is exact enough for timeouts, which are far longer.
#[inline]
pub fn coarse_monotonic_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::MonotonicCoarse))
}

/// CPU time of the calling thread in nanoseconds.
pub fn thread_cpu_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::ThreadCPUTime))
}

/// Sleeps until `deadline_ns` of [`monotonic_ns`], also when signals interrupt.
///
/// The time is absolute, so a periodic thread does not drift.
pub fn sleep_until(deadline_ns: u64) {
    let deadline = timespec(deadline_ns);
    while rustix::thread::clock_nanosleep_absolute(SleepClock::Monotonic, &deadline).is_err() {}
}

/// Converts nanoseconds to the kernel's structure.
pub fn timespec(ns: u64) -> Timespec {
    Timespec {
        tv_sec: (ns / 1_000_000_000) as i64,
        tv_nsec: (ns % 1_000_000_000) as _,
    }
}

fn nanoseconds(time: Timespec) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
