//! Ctrl-C and SIGTERM: the run stops after the burst in hand, its children are ended, its partial report is written.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rtorb_os::thread::ThreadConfig;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Tells whether somebody wants the program to end. Cheap to clone; all clones tell the same.
#[derive(Clone, Debug, Default)]
pub struct Interrupt {
    requested: Arc<AtomicBool>,
}

impl Interrupt {
    /// One that nothing triggers but [`Self::request`].
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// One that SIGINT and SIGTERM trigger. A second signal ends the program at once: its children end with it.
    ///
    /// # Errors
    /// What the system said to the signal handlers.
    pub fn on_signals() -> std::io::Result<Self> {
        let interrupt = Self::new();
        for signal in [SIGINT, SIGTERM] {
            // In this order: the first signal finds the flag clear and only sets it.
            signal_hook::flag::register_conditional_shutdown(
                signal,
                128 + signal,
                Arc::clone(&interrupt.requested),
            )?;
            signal_hook::flag::register(signal, Arc::clone(&interrupt.requested))?;
        }
        Ok(interrupt)
    }

    /// Asks the program to end.
    pub fn request(&self) {
        self.requested.store(true, Ordering::SeqCst);
    }

    /// Whether the program should end.
    #[must_use]
    pub fn requested(&self) -> bool {
        self.requested.load(Ordering::SeqCst)
    }
}

/// Calls `end` when SIGINT or SIGTERM arrives, on a thread that does nothing else; for servers.
///
/// # Errors
/// That the handlers or the thread were refused.
pub fn on_signal(end: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let wait = move || {
        if signals.forever().next().is_some() {
            end();
        }
    };
    rtorb_os::thread::spawn("signals", &ThreadConfig::default(), wait)
        .map(drop)
        .map_err(std::io::Error::other)
}
