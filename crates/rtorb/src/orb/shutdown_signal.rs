//! The end of an ORB by SIGTERM or SIGINT, on a thread of its own.

use super::{Orb, OrbCore, OrbError};
use crate::exception::ExceptionKind;
use rtorb_os::sched::{SchedPolicy, current_affinity};
use rtorb_os::sync::Mutex;
use rtorb_os::termination::Termination;
use rtorb_os::thread::{JoinHandle, ThreadConfig, spawn};
use std::sync::{Arc, Weak};

/// The thread that waits for the signal, once the application has asked for it.
#[derive(Debug)]
pub(super) struct ShutdownSignal {
    /// The CPUs that it may use.
    cpus: Vec<usize>,
    waiting: Mutex<Option<Waiting>>,
}

#[derive(Debug)]
struct Waiting {
    termination: Arc<Termination>,
    thread: JoinHandle<Option<()>>,
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
    /// the signal and runs `before`, and ends with the ORB. A signal is told to every ORB of the process that asked for it. Another
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
    /// For an ORB that the calling thread builds: its thread uses the same CPUs.
    pub(super) fn of_this_thread() -> Self {
        Self {
            cpus: current_affinity(),
            waiting: Mutex::default(),
        }
    }

    fn begin(
        &self,
        core: &Arc<OrbCore>,
        before: impl FnOnce() + Send + 'static,
    ) -> Result<(), OrbError> {
        let mut waiting = self.waiting.lock();
        if waiting.is_some() {
            return Err(OrbError::System(ExceptionKind::BadInvOrder.into()));
        }
        // With the lock: an ORB that stops at this moment ends the wait, or is seen here.
        core.adapters.server.check_running()?;
        let termination = Arc::new(Termination::watch().map_err(OrbError::Refused)?);
        let (watched, end) = (Arc::clone(&termination), End(Arc::downgrade(core)));
        let wait = move || {
            if watched.wait() {
                before();
            }
            drop(end);
        };
        let config = ThreadConfig {
            policy: Some(SchedPolicy::Other),
            affinity: self.cpus.clone(),
            ..ThreadConfig::default()
        };
        let thread = spawn("rtorb-signals", &config, wait).map_err(OrbError::Refused)?;
        *waiting = Some(Waiting {
            termination,
            thread,
        });
        Ok(())
    }

    /// Ends the wait; does not wait itself.
    pub(super) fn cancel(&self) {
        if let Some(waiting) = &*self.waiting.lock() {
            waiting.termination.cancel();
        }
    }

    /// Waits until the thread has ended, which [was told](Self::cancel) to end or has a signal. That thread itself does not wait: others
    /// still can.
    pub(super) fn join(&self) {
        let own = std::thread::current().id();
        let waiting = self
            .waiting
            .lock()
            .take_if(|waiting| waiting.thread.thread().id() != own);
        if let Some(waiting) = waiting {
            // A panic of the application's function has been reported.
            let _ = waiting.thread.join();
        }
    }
}

impl Drop for ShutdownSignal {
    fn drop(&mut self) {
        self.cancel();
    }
}

/// Stops an ORB when it is dropped: also when the application's function panics.
struct End(Weak<OrbCore>);

impl Drop for End {
    fn drop(&mut self) {
        if let Some(core) = self.0.upgrade() {
            core.stop();
        }
    }
}
