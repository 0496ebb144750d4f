//! Makes SIGUSR1 an event that a thread looks for. It does not end the process then.

use crate::refused::Refused;
use crate::signal_handler;
use core::cell::Cell;
use core::sync::atomic::{AtomicU32, Ordering};

/// Counts SIGUSR1, by which a user asks a running process for something. The first value makes the process keep running after this
/// signal, for good.
#[derive(Debug)]
pub struct UserSignal {
    /// The number of signals that were seen.
    seen: Cell<u32>,
}

impl UserSignal {
    /// Starts to watch for signals.
    ///
    /// # Errors
    /// [`Refused`] if the kernel refuses the handler.
    pub fn watch() -> Result<Self, Refused> {
        let watch = Self {
            seen: Cell::new(DELIVERED.load(Ordering::SeqCst)),
        };
        // SAFETY: the handler uses only an atomic instruction.
        unsafe { signal_handler::install(libc::SIGUSR1, handle)? };
        Ok(watch)
    }

    /// Returns true if a signal came since the value was made or asked last. Several signals in the meantime count as one.
    pub fn came_since(&self) -> bool {
        let delivered = DELIVERED.load(Ordering::SeqCst);
        self.seen.replace(delivered) != delivered
    }
}

/// The handler. It may interrupt any code, so it uses only an atomic instruction.
extern "C" fn handle(_signal: libc::c_int) {
    DELIVERED.fetch_add(1, Ordering::SeqCst);
}

/// The number of signals delivered.
static DELIVERED: AtomicU32 = AtomicU32::new(0);
