//! Time.
#![expect(unsafe_code, reason = "foreign functions")]

use super::{replace, sleep_until};
use crate::world::{point, with};
use libc::{c_int, c_uint, clockid_t, timespec};

const SECOND_NS: u64 = 1_000_000_000;

/// The kernel's coarse clock has the time of the last tick.
const TICK_NS: u64 = 4_000_000;

/// The time of day at 0 of the monotonic clock.
const EPOCH_NS: u64 = 1_700_000_000 * SECOND_NS;

/// The lower bits of the clock of a thread's CPU time.
const OF_THREAD: clockid_t = 4 | 2;

/// # Safety
/// `time` must point to a time, or be null.
pub(super) unsafe fn nanoseconds(time: *const timespec) -> Option<u64> {
    // SAFETY: the caller's promise.
    let time = unsafe { time.as_ref() }?;
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Some(
        seconds
            .saturating_mul(SECOND_NS)
            .saturating_add(time.tv_nsec as u64),
    )
}

pub(super) fn of(ns: u64) -> timespec {
    timespec {
        tv_sec: (ns / SECOND_NS) as i64,
        tv_nsec: (ns % SECOND_NS) as i64,
    }
}

fn read(clock: clockid_t) -> Result<u64, i32> {
    point();
    with(|world| {
        let now_ns = world.core.now_ns;
        match clock {
            libc::CLOCK_MONOTONIC | libc::CLOCK_MONOTONIC_RAW | libc::CLOCK_BOOTTIME => Ok(now_ns),
            libc::CLOCK_MONOTONIC_COARSE => Ok(now_ns / TICK_NS * TICK_NS),
            libc::CLOCK_REALTIME | libc::CLOCK_REALTIME_COARSE | libc::CLOCK_TAI => {
                Ok(EPOCH_NS + now_ns)
            }
            libc::CLOCK_THREAD_CPUTIME_ID => Ok(world.core.tasks.current().cpu_ns),
            libc::CLOCK_PROCESS_CPUTIME_ID => {
                Ok(world.core.tasks.all.iter().map(|it| it.cpu_ns).sum())
            }
            _ if clock < 0 && clock & 7 == OF_THREAD => {
                let task = world
                    .core
                    .tasks
                    .numbered(!(clock >> 3))
                    .ok_or(libc::EINVAL)?;
                Ok(world.core.tasks.all[task].cpu_ns)
            }
            _ => Err(libc::EINVAL),
        }
    })
}

fn gettime(clock: clockid_t, time: *mut timespec) -> c_int {
    let now = read(clock).map(|now_ns| {
        // SAFETY: the caller gave a place for the time.
        unsafe { time.write(of(now_ns)) };
        0
    });
    super::answer(now) as c_int
}

fn nanosleep_on(clock: clockid_t, flags: c_int, time: *const timespec) -> c_int {
    point();
    // SAFETY: the caller gave a time.
    let Some(ns) = (unsafe { nanoseconds(time) }) else {
        return libc::EFAULT;
    };
    let now_ns = with(|world| world.core.now_ns);
    let until_ns = match (flags & libc::TIMER_ABSTIME, clock) {
        (0, _) => now_ns.saturating_add(ns),
        (_, libc::CLOCK_REALTIME) => ns.saturating_sub(EPOCH_NS),
        _ => ns,
    };
    if until_ns > now_ns {
        sleep_until(until_ns);
    }
    0
}

replace! {
    fn clock_gettime(clock: clockid_t, time: *mut timespec) -> c_int;
    if true => gettime(clock, time)

    fn clock_nanosleep(clock: clockid_t, flags: c_int, time: *const timespec, left: *mut timespec) -> c_int;
    if true => { let _ = left; nanosleep_on(clock, flags, time) }

    fn nanosleep(time: *const timespec, left: *mut timespec) -> c_int;
    if true => { let _ = left; nanosleep_on(libc::CLOCK_MONOTONIC, 0, time) }

    fn usleep(time_us: c_uint) -> c_int;
    if true => nanosleep_on(libc::CLOCK_MONOTONIC, 0, &of(u64::from(time_us) * 1000))
}
