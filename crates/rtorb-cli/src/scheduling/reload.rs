//! A thread that reads a file again on SIGHUP.

use std::sync::Arc;

use rtorb_os::hangup::Hangup;
use rtorb_os::thread::{JoinHandle, ThreadConfig, spawn};
use rtorb_services::scheduling::{SystemChange, text_of_ns};

use super::if_preempted;

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
pub(super) fn words(change: &SystemChange) -> String {
    let mut text = format!("{} operations changed", change.operations_changed);
    match (&change.unproven, change.longest_old_job_ns) {
        (Some(unproven), _) => text += &format!("; not proven: {unproven}"),
        (None, Some(ns)) => {
            text += &format!(
                "; every deadline holds{}, and work of the old system ends within {}",
                if_preempted(change.needs_preemption),
                text_of_ns(ns)
            );
        }
        (None, None) => {}
    }
    text
}
