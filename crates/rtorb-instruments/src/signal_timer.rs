//! A timer that interrupts its thread periodically, as the tick of a clock interrupts a program that computes.
//!
//! It serves to measure what such interrupts cost. A thread with periodic work uses `rtorb_os::timer::PeriodicTimer` instead, which
//! interrupts no system call and runs no code between two instructions of other code.

use crate::{InstrumentError, check};
use core::mem::MaybeUninit;
use core::ptr;
use core::sync::atomic::{AtomicU64, Ordering};
use rustix::io::Errno;

/// A POSIX timer (timer_create(2)) on CLOCK_MONOTONIC that sends a signal to the thread that created it. The handler only
/// counts.
///
/// It takes the first real-time signal, SIGRTMIN, for the whole process. The handler stays installed when the timer is
/// dropped, because a signal may still be pending. The kernel restarts interrupted system calls where it can (SA_RESTART).
#[derive(Debug)]
pub struct SignalTimer {
    /// The C library uses it as a pointer, so the timer is not `Send`.
    id: libc::timer_t,
}

impl SignalTimer {
    /// Creates a timer for the calling thread. It is not started.
    ///
    /// # Errors
    /// A limit on timers or signals is reached.
    pub fn for_this_thread() -> Result<Self, InstrumentError> {
        install_handler()?;
        // SAFETY: zero is valid for every field.
        let mut event: libc::sigevent = unsafe { MaybeUninit::zeroed().assume_init() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = libc::SIGRTMIN();
        event.sigev_notify_thread_id = rustix::thread::gettid().as_raw_pid();
        let mut id: libc::timer_t = ptr::null_mut();
        let clock = libc::CLOCK_MONOTONIC;
        // SAFETY: `event` and `id` are valid during the call.
        let returned = unsafe { libc::timer_create(clock, &raw mut event, &raw mut id) };
        check(returned).map(|()| Self { id }).map_err(refused)
    }

    /// Interrupts first at `first_ns` of CLOCK_MONOTONIC, then every `period_ns`, until it is stopped. Signals that cannot be handled in time are dropped, not queued.
    ///
    /// # Errors
    /// EINVAL when one of the two is 0.
    pub fn start(&mut self, first_ns: u64, period_ns: u64) -> Result<(), InstrumentError> {
        // For the kernel, 0 means a stopped timer, or one that expires once.
        if first_ns == 0 || period_ns == 0 {
            return Err(refused(Errno::INVAL));
        }
        self.set(first_ns, period_ns)
    }

    /// Stops the timer. A pending signal is still counted.
    pub fn stop(&mut self) {
        // Zero times are valid for every timer.
        let _ = self.set(0, 0);
    }

    fn set(&mut self, first_ns: u64, period_ns: u64) -> Result<(), InstrumentError> {
        let times = libc::itimerspec {
            it_interval: timespec(period_ns),
            it_value: timespec(first_ns),
        };
        let (flags, previous) = (libc::TIMER_ABSTIME, ptr::null_mut());
        // SAFETY: the timer exists until `self` is dropped, `times` outlives the call, and null is allowed for the old times.
        let returned = unsafe { libc::timer_settime(self.id, flags, &raw const times, previous) };
        check(returned).map_err(refused)
    }
}

impl Drop for SignalTimer {
    fn drop(&mut self) {
        // SAFETY: the timer exists, and nothing uses it after this.
        let _ = unsafe { libc::timer_delete(self.id) };
    }
}

/// The number of timer signals that this process has handled.
pub fn handled() -> u64 {
    HANDLED.load(Ordering::Relaxed)
}

extern "C" fn count(_signal: libc::c_int) {
    // A handler may interrupt any code, so it only makes an atomic addition.
    HANDLED.fetch_add(1, Ordering::Relaxed);
}

fn install_handler() -> Result<(), InstrumentError> {
    // SAFETY: zero is valid for every field: no flags, an empty mask.
    let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    action.sa_sigaction = count as extern "C" fn(libc::c_int) as usize;
    action.sa_flags = libc::SA_RESTART;
    let (signal, previous) = (libc::SIGRTMIN(), ptr::null_mut());
    // SAFETY: the handler is async-signal-safe, `action` outlives the call, and null is allowed for the old action.
    let returned = unsafe { libc::sigaction(signal, &raw const action, previous) };
    check(returned).map_err(refused)
}

fn refused(errno: Errno) -> InstrumentError {
    InstrumentError {
        instrument: "a timer that sends signals",
        errno,
        remedy: match errno {
            Errno::INVAL => "start it at a moment and with a period that are not 0",
            _ => "use fewer timers, or raise `ulimit -i`",
        },
    }
}

fn timespec(ns: u64) -> libc::timespec {
    libc::timespec {
        tv_sec: (ns / 1_000_000_000) as _,
        tv_nsec: (ns % 1_000_000_000) as _,
    }
}

static HANDLED: AtomicU64 = AtomicU64::new(0);

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::time::{ClockId, clock_gettime};

    fn monotonic_ns() -> u64 {
        let now = clock_gettime(ClockId::Monotonic);
        now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
    }

    /// One test for all, because the process has one count.
    #[test]
    fn it_interrupts_only_while_it_is_started() {
        let mut timer = SignalTimer::for_this_thread().expect("a timer");
        let unset = timer.start(0, 1).expect_err("never");
        assert_eq!(unset.errno, Errno::INVAL);
        let before = handled();
        let first_ns = monotonic_ns() + 2_000_000;
        timer.start(first_ns, 1_000_000).expect("started");
        while monotonic_ns() < first_ns + 60_000_000_000 && handled() - before < 5 {}
        assert!(handled() - before >= 5);
        assert!(monotonic_ns() >= first_ns + 4_000_000, "too many too early");
        timer.stop();
        let stopped = handled();
        let end_ns = monotonic_ns() + 5_000_000;
        while monotonic_ns() < end_ns {}
        assert_eq!(handled(), stopped);
    }

    #[test]
    fn a_refusal_says_what_to_do() {
        for (errno, remedy) in [(Errno::AGAIN, "ulimit -i"), (Errno::INVAL, "not 0")] {
            let text = refused(errno).to_string();
            assert!(
                text.contains("a timer that sends signals") && text.contains(remedy),
                "{text}"
            );
        }
    }
}
