//! Monotonic time in nanoseconds, and sleeping until a time of it.

mod ticks;
mod utc;

pub use ticks::{Moment, TickClock};
pub use utc::{UtcOffset, known_utc_offset, utc_offset};

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

/// CPU time of the thread of this process with that number, in nanoseconds; `None` if there is no such thread.
pub fn thread_cpu_ns_of(thread_id: u32) -> Option<u64> {
    let thread = libc::clockid_t::try_from(thread_id).ok()?;
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // The kernel's number of the clock: `MAKE_THREAD_CPUCLOCK` of its posix-timers.h.
    let clock = !thread << 3 | CPU_CLOCK_OF_THREAD;
    // SAFETY: `time` is writable during the call; the kernel checks the clock's number.
    let returned = unsafe { libc::clock_gettime(clock, &raw mut time) };
    (returned == 0).then(|| time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// The lower bits of the clock of a thread's CPU time: CPUCLOCK_PERTHREAD_MASK and CPUCLOCK_SCHED.
const CPU_CLOCK_OF_THREAD: libc::clockid_t = 4 | 2;

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::thread::thread_id;

    #[test]
    fn the_cpu_time_of_a_thread_is_what_the_thread_itself_reads() {
        let before = thread_cpu_ns();
        let read = thread_cpu_ns_of(thread_id()).expect("the thread is there");
        assert!((before..=thread_cpu_ns()).contains(&read));
        assert_eq!(thread_cpu_ns_of(u32::MAX), None);
    }
}
