//! Services that one thread has by itself: reading the clock, a system call, setting a timer.

use std::hint::black_box;

use rtorb_os::clock::{monotonic_ns, timespec};
use rustix::process::getppid;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

use super::{Pauses, Question, Samples, run};
use crate::processes::probe::Answer;

pub(super) fn clock_read(question: &Question) -> Result<Answer, String> {
    time(question, || Ok(()))
}

pub(super) fn system_call(question: &Question) -> Result<Answer, String> {
    let ask = || {
        black_box(getppid());
        Ok(())
    };
    time(question, ask)
}

pub(super) fn set_timer(question: &Question) -> Result<Answer, String> {
    let said = |errno: rustix::io::Errno| format!("a timer: {errno}");
    let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC).map_err(said)?;
    // It is never reached: a timer that runs is set again, as for the timeout of each call.
    let never = Itimerspec {
        it_interval: timespec(0),
        it_value: timespec(FAR_NS),
    };
    let set = move || {
        let set = timerfd_settime(&timer, TimerfdTimerFlags::empty(), &never);
        set.map(drop).map_err(said)
    };
    time(question, set)
}

fn time(
    question: &Question,
    mut ask: impl FnMut() -> Result<(), String> + Send + 'static,
) -> Result<Answer, String> {
    let mut samples = Samples::of(question);
    let mut pauses = Pauses::of(question);
    let work = move || {
        loop {
            pauses.pause();
            let begin_ns = monotonic_ns();
            ask()?;
            if !samples.end(begin_ns) {
                return Ok(Some(samples));
            }
        }
    };
    run(question, Box::new(work), None)
}

/// An hour.
const FAR_NS: u64 = 3_600_000_000_000;
