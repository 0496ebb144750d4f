//! A thread that reads a file again on SIGHUP.

use std::sync::Arc;

use rtorb_os::hangup::Hangup;
use rtorb_os::thread::{JoinHandle, ThreadConfig, spawn};
use rtorb_services::scheduling::{Change, text_of_ns};

/// A thread that does its work on each SIGHUP.
pub(super) struct Reload {
    hangup: Arc<Hangup>,
    thread: JoinHandle<Option<()>>,
}

impl Reload {
    /// Starts the thread.
    pub(super) fn start(work: impl Fn() + Send + 'static) -> anyhow::Result<Self> {
        let hangup = Arc::new(Hangup::watch()?);
        let watched = Arc::clone(&hangup);
        let thread = spawn("rtorb-reload", &ThreadConfig::default(), move || {
            while watched.wait() {
                work();
            }
        })?;
        Ok(Self { hangup, thread })
    }

    /// Ends the thread after the work in hand.
    pub(super) fn end(self) {
        self.hangup.cancel();
        // A panic of the work has been reported.
        let _ = self.thread.join();
    }
}

/// Describes a change that took place.
pub(super) fn words(change: &Change) -> String {
    let mut text = format!("{} operations changed", change.operations_changed);
    if let Some(ns) = change.longest_old_job_ns {
        text += &format!(
            "; every deadline holds, and work of the old system ends within {}",
            text_of_ns(ns)
        );
    }
    if let Some(unproven) = &change.unproven {
        text += &format!("; not proven: {unproven}");
    }
    text
}
