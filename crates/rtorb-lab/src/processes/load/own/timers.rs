//! The load `timers`: many timers expire at the same instant.

use std::io;
use std::os::fd::OwnedFd;

use rtorb_os::clock::monotonic_ns;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

use super::workers::Begun;
use crate::processes::load::TIMERS;

/// Waits for all of them, so that each has somebody to wake.
pub(super) fn expire_together(mut begun: Begun) -> io::Result<()> {
    let timers = armed()?;
    let mut waited_for: Vec<PollFd<'_>> = timers
        .iter()
        .map(|timer| PollFd::new(timer, PollFlags::IN))
        .collect();
    loop {
        poll(&mut waited_for, None)?;
        for timer in &timers {
            let mut expirations = [0; size_of::<u64>()];
            rustix::io::read(timer, &mut expirations)?;
        }
        begun.done_something()?;
    }
}

fn armed() -> io::Result<Vec<OwnedFd>> {
    let timers: Vec<OwnedFd> = (0..TIMERS)
        .map(|_| timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC))
        .collect::<Result<_, _>>()?;
    let when = Itimerspec {
        it_interval: timespec(PERIOD_NS),
        it_value: timespec(monotonic_ns() + FIRST_NS),
    };
    for timer in &timers {
        timerfd_settime(timer, TimerfdTimerFlags::ABSTIME, &when)?;
    }
    Ok(timers)
}

fn timespec(ns: u64) -> Timespec {
    Timespec {
        tv_sec: (ns / 1_000_000_000).cast_signed(),
        tv_nsec: (ns % 1_000_000_000).cast_signed(),
    }
}

/// No multiple of it is near a period that is measured: every phase of that meets the instant.
const PERIOD_NS: u64 = 1_130_000;
/// Later than the last one is armed.
const FIRST_NS: u64 = 2_000_000;
