//! Makes SIGHUP an event that a thread waits for. It does not end the process then.

use crate::futex;
use crate::refused::Refused;
use crate::signal_handler;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Waits for SIGHUP, by which daemons read their files again. The first value makes the process keep running after this signal, for
/// good.
#[derive(Debug)]
pub struct Hangup {
    /// The number of signals that the thread that waits has seen.
    seen: AtomicU32,
    is_cancelled: AtomicBool,
}

impl Hangup {
    /// Starts to watch for signals. Signals that come before a [`wait`](Self::wait) end it at once.
    ///
    /// # Errors
    /// [`Refused`] if the kernel refuses the handler.
    pub fn watch() -> Result<Self, Refused> {
        let watch = Self {
            seen: AtomicU32::new(DELIVERED.load(Ordering::SeqCst)),
            is_cancelled: AtomicBool::new(false),
        };
        // SAFETY: the handler uses only atomic instructions and the waking of threads.
        unsafe { signal_handler::install(libc::SIGHUP, handle)? };
        Ok(watch)
    }

    /// Waits until a signal comes, or another thread [cancels](Self::cancel) the wait; false if it was cancelled. Several signals in
    /// the meantime count as one.
    pub fn wait(&self) -> bool {
        loop {
            let changes = CHANGES.load(Ordering::SeqCst);
            if self.is_cancelled.load(Ordering::SeqCst) {
                return false;
            }
            let delivered = DELIVERED.load(Ordering::SeqCst);
            if self.seen.swap(delivered, Ordering::SeqCst) != delivered {
                return true;
            }
            futex::wait(&CHANGES, changes, None);
        }
    }

    /// Ends the wait of another thread, now and later.
    pub fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::SeqCst);
        wake();
    }
}

/// The handler. It may interrupt any code, so it uses only atomic instructions and the waking of threads.
extern "C" fn handle(_signal: libc::c_int) {
    DELIVERED.fetch_add(1, Ordering::SeqCst);
    wake();
}

/// Wakes all waiting threads; each looks again.
fn wake() {
    CHANGES.fetch_add(1, Ordering::SeqCst);
    futex::wake(&CHANGES, i32::MAX as u32);
}

/// The number of signals delivered.
static DELIVERED: AtomicU32 = AtomicU32::new(0);

/// The futex: changes whenever a waiting thread shall look again.
static CHANGES: AtomicU32 = AtomicU32::new(0);
