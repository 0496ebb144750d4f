//! Makes SIGTERM and SIGINT, and SIGHUP if it is wanted, events that a thread waits for. They do not end the process then.

use crate::clock::monotonic_ns;
use crate::futex;
use crate::refused::{Refused, Resource};
use crate::signal_handler;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use rustix::io::Errno;

/// Waits for SIGTERM or SIGINT, or [for SIGHUP too](Self::watch_with_hangup). While a process has such values, the first of these signals does not end the process: all values
/// get it.
///
/// A signal that comes more than a second later ends the process at once, with status 128 plus the signal's number, so that a user
/// can end a shutdown that hangs. A signal within the second has no effect: timeout(1) sends each signal twice.
#[derive(Debug)]
pub struct Termination {
    /// The number of signals delivered before.
    delivered_before: u32,
    is_cancelled: AtomicBool,
}

impl Termination {
    /// Starts to watch for the next signal. The handlers of the signals stay installed.
    ///
    /// # Errors
    /// [`Refused`] if there are 65,535 others, or the kernel refuses the handlers.
    pub fn watch() -> Result<Self, Refused> {
        Self::watch_for(&[libc::SIGTERM, libc::SIGINT])
    }

    /// Starts to watch for the next signal, SIGHUP too: by it, a process learns that its terminal is gone. A process that ignores SIGHUP, as
    /// nohup(1) has it, goes on to ignore it.
    ///
    /// The signal has one handler in a process: the last of this and [`Hangup::watch`](crate::hangup::Hangup::watch) gets it.
    ///
    /// # Errors
    /// As those of [`watch`](Self::watch).
    pub fn watch_with_hangup() -> Result<Self, Refused> {
        if signal_handler::is_ignored(libc::SIGHUP)? {
            Self::watch()
        } else {
            Self::watch_for(&[libc::SIGTERM, libc::SIGINT, libc::SIGHUP])
        }
    }

    fn watch_for(signals: &[libc::c_int]) -> Result<Self, Refused> {
        let before = STATE
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |state| {
                (state & WATCHES < WATCHES).then_some(state + 1)
            })
            .map_err(|_| Resource::SignalHandler.refused(Errno::AGAIN))?;
        let watch = Self {
            delivered_before: before >> WATCHES_BITS,
            is_cancelled: AtomicBool::new(false),
        };
        for signal in signals {
            // SAFETY: the handler uses only what is async-signal-safe, as it says.
            unsafe { signal_handler::install(*signal, handle)? };
        }
        Ok(watch)
    }

    /// True if a signal came.
    pub fn has_come(&self) -> bool {
        STATE.load(Ordering::SeqCst) >> WATCHES_BITS != self.delivered_before
    }

    /// Waits until a signal comes, or another thread [cancels](Self::cancel) the wait; false if it was cancelled first.
    pub fn wait(&self) -> bool {
        loop {
            let seen = CHANGES.load(Ordering::SeqCst);
            if self.has_come() {
                return true;
            }
            if self.is_cancelled.load(Ordering::SeqCst) {
                return false;
            }
            futex::wait(&CHANGES, seen, None);
        }
    }

    /// Ends the wait of another thread.
    pub fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::SeqCst);
        wake();
    }
}

impl Drop for Termination {
    fn drop(&mut self) {
        // A signal that was delivered has ended all watches.
        let _ = STATE.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |state| {
            (state >> WATCHES_BITS == self.delivered_before && state & WATCHES > 0)
                .then(|| state - 1)
        });
    }
}

/// The handler. It may interrupt any code, so it uses only atomic instructions, the clock, the waking of threads, which does not
/// fail and so leaves the error number of the interrupted thread alone, and _exit(2).
extern "C" fn handle(signal: libc::c_int) {
    let now_ns = monotonic_ns();
    let delivered = STATE.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |state| {
        (state & WATCHES > 0).then(|| {
            // Before the watches end: a handler on another thread that finds none also finds this time. The maximum, because a
            // handler that was kept from the CPU here must not set back the time of the other one. If the last watch is dropped
            // at this moment, this signal has no effect, as one that came a moment earlier.
            DELIVERED_NS.fetch_max(now_ns, Ordering::SeqCst);
            (state & !WATCHES).wrapping_add(1 << WATCHES_BITS)
        })
    });
    if delivered.is_ok() {
        wake();
        return;
    }
    if now_ns.saturating_sub(DELIVERED_NS.load(Ordering::SeqCst)) > SAME_WISH_NS {
        // SAFETY: _exit is async-signal-safe (signal-safety(7)) and takes one number.
        unsafe { libc::_exit(128 + signal) }
    }
}

/// Wakes all waiting threads; each looks again.
fn wake() {
    CHANGES.fetch_add(1, Ordering::SeqCst);
    futex::wake(&CHANGES, i32::MAX as u32);
}

/// The number of signals delivered, modulo 65,536, above the number of values that wait for the next one.
static STATE: AtomicU32 = AtomicU32::new(0);

/// The bits of [`STATE`] that count the values.
const WATCHES: u32 = (1 << WATCHES_BITS) - 1;
const WATCHES_BITS: u32 = 16;

/// The futex: changes whenever a waiting thread shall look again.
static CHANGES: AtomicU32 = AtomicU32::new(0);

/// When the last signal was delivered.
static DELIVERED_NS: AtomicU64 = AtomicU64::new(0);

/// A signal within this time after another one has no effect.
const SAME_WISH_NS: u64 = 1_000_000_000;
