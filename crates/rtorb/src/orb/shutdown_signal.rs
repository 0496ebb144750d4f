//! Shuts an ORB down when the process gets SIGTERM or SIGINT.

use super::{Orb, OrbCore, OrbError};
use crate::exception::local;
use rtorb_os::sched::{SchedPolicy, current_affinity};
use rtorb_os::sync::Mutex;
use rtorb_os::termination::Termination;
use rtorb_os::thread::{JoinHandle, ThreadConfig, spawn};
use std::sync::{Arc, Weak};
use std::thread::ThreadId;

/// Waits for SIGTERM and SIGINT on a thread, if the application has asked for it.
#[derive(Debug)]
pub(super) struct ShutdownSignal {
    /// The CPUs of the thread.
    cpus: Vec<usize>,
    /// Set once the application has asked for the thread.
    wait: Mutex<Option<SignalWait>>,
    /// The thread, until it has been joined.
    thread: Mutex<Option<JoinHandle<Option<()>>>>,
}

/// The wait of the thread.
#[derive(Debug)]
struct SignalWait {
    /// Weak: when the thread has ended, this ORB waits for signals no more.
    termination: Weak<Termination>,
    thread: ThreadId,
}

impl Orb {
    /// Ends the ORB in good order when the process gets SIGTERM or SIGINT: `before` runs, then the ORB [shuts
    /// down](Self::shutdown), so that calls in progress get their replies and [`run`](Self::run) returns.
    ///
    /// `before` is for what a server undoes while it still serves and can still call others: it unbinds its names, for example.
    /// Pass `|| {}` if there is nothing to undo. If the ORB ends otherwise, `before` does not run. `run` and
    /// [`destroy`](Self::destroy) return after it has ended.
    ///
    /// This call starts one thread, `rtorb-signals`, under SCHED_OTHER and on the CPUs of the thread that built the ORB. It waits for
    /// the signal and runs `before`, and ends with the ORB. A signal ends every ORB of the process that waits for signals. Another
    /// signal, more than a second later, ends the process at once, with status 128 plus the signal's number; so does a signal after
    /// the end of the ORB.
    ///
    /// ```
    /// # fn main() -> Result<(), rtorb::OrbError> {
    /// let orb = rtorb::Orb::builder().build()?;
    /// orb.shutdown_on_signals(|| println!("SIGTERM: ending"))?;
    /// # orb.shutdown();
    /// orb.run()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// BAD_INV_ORDER if this ORB waits for signals already; BAD_INV_ORDER 4 once the ORB is shut down;
    /// [`OrbError::Refused`] if the host refuses the thread or the handlers.
    pub fn shutdown_on_signals(
        &self,
        before: impl FnOnce() + Send + 'static,
    ) -> Result<(), OrbError> {
        self.core.shutdown_signal.begin(&self.core, before)
    }
}

impl ShutdownSignal {
    /// Makes it for an ORB that the calling thread builds. The thread will have the same CPUs.
    pub(super) fn of_this_thread() -> Self {
        Self {
            cpus: current_affinity(),
            wait: Mutex::default(),
            thread: Mutex::default(),
        }
    }

    fn begin(
        &self,
        core: &Arc<OrbCore>,
        before: impl FnOnce() + Send + 'static,
    ) -> Result<(), OrbError> {
        let mut current = self.wait.lock();
        // Under the lock: an ORB that stops meanwhile either ends the wait, or this check fails.
        core.adapters.server.check_running()?;
        if current.is_some() {
            return Err(local::SIGNALS_TAKEN.into());
        }
        let watched = Arc::new(Termination::watch().map_err(OrbError::Refused)?);
        let termination = Arc::downgrade(&watched);
        let stop = StopOnDrop(Arc::downgrade(core));
        let wait = move || {
            if watched.wait() {
                before();
            }
            drop(stop);
        };
        let config = ThreadConfig {
            policy: Some(SchedPolicy::Other),
            affinity: self.cpus.clone(),
            ..ThreadConfig::default()
        };
        let thread = spawn("rtorb-signals", &config, wait).map_err(OrbError::Refused)?;
        *current = Some(SignalWait {
            termination,
            thread: thread.thread().id(),
        });
        *self.thread.lock() = Some(thread);
        Ok(())
    }

    /// Makes the thread end, and does not wait for it.
    pub(super) fn cancel(&self) {
        let wait = self.wait.lock();
        let termination = wait.as_ref().and_then(|wait| wait.termination.upgrade());
        if let Some(termination) = termination {
            termination.cancel();
        }
    }

    /// Waits until the thread has ended, after a signal or [`cancel`](Self::cancel). The thread itself does not wait.
    pub(super) fn join(&self) {
        let own = std::thread::current().id();
        let is_own = |wait: &SignalWait| wait.thread == own;
        if self.wait.lock().as_ref().is_some_and(is_own) {
            return;
        }
        // The lock is held meanwhile, so that another caller waits too.
        let mut thread = self.thread.lock();
        if let Some(thread) = thread.take() {
            // A panic of the application's function has been reported.
            let _ = thread.join();
        }
    }
}

impl Drop for ShutdownSignal {
    fn drop(&mut self) {
        self.cancel();
    }
}

/// Stops an ORB when it is dropped, so that a panic of the application's function stops it too.
struct StopOnDrop(Weak<OrbCore>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        if let Some(core) = self.0.upgrade() {
            core.stop();
        }
    }
}
