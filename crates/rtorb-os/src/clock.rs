//! Monotonic time in nanoseconds, and sleeping until a moment of it.

use rustix::thread::ClockId as SleepClock;
use rustix::time::{ClockId, Timespec, clock_gettime};

/// Nanoseconds of CLOCK_MONOTONIC, which no one sets and which counts from some moment before the program began.
///
/// Answered by the vDSO where the clock source allows: no system call.
#[inline]
pub fn monotonic_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::Monotonic))
}

/// The same clock as it was at the kernel's last tick, at most some milliseconds ago, for a fraction of the cost.
///
/// Enough for timeouts, which are far longer.
#[inline]
pub fn coarse_monotonic_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::MonotonicCoarse))
}

/// Processor time of the calling thread in nanoseconds.
pub fn thread_cpu_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::ThreadCPUTime))
}

/// Sleeps until `deadline_ns` of [`monotonic_ns`], however often a signal interrupts.
///
/// The time is absolute, so that a periodic thread does not drift.
pub fn sleep_until(deadline_ns: u64) {
    let deadline = timespec(deadline_ns);
    while rustix::thread::clock_nanosleep_absolute(SleepClock::Monotonic, &deadline).is_err() {}
}

/// The nanoseconds as the kernel takes them.
pub fn timespec(ns: u64) -> Timespec {
    Timespec {
        tv_sec: (ns / 1_000_000_000) as i64,
        tv_nsec: (ns % 1_000_000_000) as _,
    }
}

fn nanoseconds(time: Timespec) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
