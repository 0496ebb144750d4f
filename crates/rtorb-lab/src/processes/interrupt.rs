//! Ctrl-C and SIGTERM: the run stops after the burst in hand, its children are ended, its partial report is written.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rtorb_os::Refused;
use rtorb_os::termination::Termination;

/// Tells whether somebody wants the program to end. Cheap to clone; all clones tell the same.
#[derive(Clone, Debug, Default)]
pub struct Interrupt {
    requested: Arc<AtomicBool>,
    signals: Option<Arc<Termination>>,
}

impl Interrupt {
    /// One that nothing triggers but [`Self::request`].
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// One that SIGINT and SIGTERM trigger. Another signal, more than a second later, ends the program at once: its children end
    /// with it.
    ///
    /// # Errors
    /// The system refused the signal handlers.
    pub fn on_signals() -> Result<Self, Refused> {
        let signals = Some(Arc::new(Termination::watch()?));
        let requested = Arc::default();
        Ok(Self { requested, signals })
    }

    /// Asks the program to end.
    pub fn request(&self) {
        self.requested.store(true, Ordering::SeqCst);
    }

    /// Whether the program should end.
    #[must_use]
    pub fn requested(&self) -> bool {
        let signals = self.signals.as_ref();
        self.requested.load(Ordering::SeqCst) || signals.is_some_and(|signals| signals.has_come())
    }
}
