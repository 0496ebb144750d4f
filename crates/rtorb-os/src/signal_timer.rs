//! A timer that interrupts the thread that made it, at equal distances: what the tick of a clock is to a program that computes.
//!
//! For measuring what such interrupts cost. A thread that has something to do at equal distances sleeps instead, with a
//! [`PeriodicTimer`](crate::timer::PeriodicTimer): no system call is interrupted then, and no code runs between two
//! instructions of other code.

use crate::refused::{Refused, What};
use crate::sched::last_error;
use crate::thread::thread_id;
use core::mem::MaybeUninit;
use core::ptr;
use core::sync::atomic::{AtomicU64, Ordering};
use rustix::io::Errno;

/// A POSIX timer (timer_create(2)) on CLOCK_MONOTONIC that sends a signal to the thread that made it. The signal's handler
/// counts and does nothing else.
///
/// It takes the first real-time signal, SIGRTMIN, for the whole process, and leaves the handler in place when it is dropped,
/// since a signal may still be on its way. System calls that it interrupts are begun again where the kernel can (SA_RESTART).
#[derive(Debug)]
pub struct SignalTimer {
    /// A pointer for the C library: so the timer stays with its thread.
    id: libc::timer_t,
}

impl SignalTimer {
    /// A timer of the calling thread that is not started.
    ///
    /// # Errors
    /// [`Refused`] when the process may have no more timers or signals.
    pub fn for_this_thread() -> Result<Self, Refused> {
        install_handler()?;
        // SAFETY: zero is a value of all of its fields.
        let mut event: libc::sigevent = unsafe { MaybeUninit::zeroed().assume_init() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = libc::SIGRTMIN();
        event.sigev_notify_thread_id = thread_id().cast_signed();
        let mut id: libc::timer_t = ptr::null_mut();
        // SAFETY: both are ours for as long as the call takes.
        match unsafe { libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut id) } {
            0 => Ok(Self { id }),
            _ => Err(refused(last_error())),
        }
    }

    /// Interrupts first at `first_ns` of [`monotonic_ns`](crate::clock::monotonic_ns), then every `period_ns`, until it is
    /// stopped. Signals that cannot be handled in time are left out, not queued.
    ///
    /// # Errors
    /// [`Refused`] with EINVAL when one of the two is 0.
    pub fn start(&mut self, first_ns: u64, period_ns: u64) -> Result<(), Refused> {
        // To the kernel, 0 would be a timer that is stopped, or one that comes once.
        if first_ns == 0 || period_ns == 0 {
            return Err(refused(Errno::INVAL));
        }
        self.set(first_ns, period_ns)
    }

    /// Interrupts no more. A signal that is on its way is still counted.
    pub fn stop(&mut self) {
        // Zero is valid for a timer that is there.
        let _ = self.set(0, 0);
    }

    fn set(&mut self, first_ns: u64, period_ns: u64) -> Result<(), Refused> {
        let times = libc::itimerspec {
            it_interval: timespec(period_ns),
            it_value: timespec(first_ns),
        };
        // SAFETY: the timer is ours until it is dropped, the times outlive the call, and what they were is not asked for.
        let answer = unsafe {
            libc::timer_settime(
                self.id,
                libc::TIMER_ABSTIME,
                &raw const times,
                ptr::null_mut(),
            )
        };
        match answer {
            0 => Ok(()),
            _ => Err(refused(last_error())),
        }
    }
}

impl Drop for SignalTimer {
    fn drop(&mut self) {
        // SAFETY: the timer is ours, and nobody uses it after this.
        let _ = unsafe { libc::timer_delete(self.id) };
    }
}

/// How many signals of such timers this process has handled.
pub fn handled() -> u64 {
    HANDLED.load(Ordering::Relaxed)
}

extern "C" fn count(_signal: libc::c_int) {
    // An atomic addition is all that this handler does: it may interrupt any code.
    HANDLED.fetch_add(1, Ordering::Relaxed);
}

fn install_handler() -> Result<(), Refused> {
    // SAFETY: zero is a value of all of its fields: no flags, an empty mask.
    let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    action.sa_sigaction = count as extern "C" fn(libc::c_int) as usize;
    action.sa_flags = libc::SA_RESTART;
    // SAFETY: the handler is safe in a signal, the action outlives the call, and what was there before is not asked for.
    match unsafe { libc::sigaction(libc::SIGRTMIN(), &raw const action, ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(refused(last_error())),
    }
}

fn timespec(ns: u64) -> libc::timespec {
    libc::timespec {
        tv_sec: (ns / 1_000_000_000) as _,
        tv_nsec: (ns % 1_000_000_000) as _,
    }
}

fn refused(errno: Errno) -> Refused {
    Refused {
        what: What::SignalTimer,
        errno,
    }
}

static HANDLED: AtomicU64 = AtomicU64::new(0);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{monotonic_ns, sleep_until};

    /// One test, since the count is the process's.
    #[test]
    fn it_interrupts_from_when_it_is_started_until_it_is_stopped() {
        let mut timer = SignalTimer::for_this_thread().expect("a timer");
        let unset = timer.start(0, 1).expect_err("never");
        assert_eq!(unset.errno, Errno::INVAL);
        let before = handled();
        let first_ns = monotonic_ns() + 2_000_000;
        timer.start(first_ns, 1_000_000).expect("started");
        while monotonic_ns() < first_ns + 1_000_000_000 && handled() - before < 5 {}
        assert!(handled() - before >= 5);
        assert!(monotonic_ns() >= first_ns + 4_000_000, "too many too early");
        timer.stop();
        let stopped = handled();
        // A sleep that a signal interrupted would go on all the same.
        sleep_until(monotonic_ns() + 5_000_000);
        assert_eq!(handled(), stopped);
    }
}
