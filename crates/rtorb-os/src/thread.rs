//! Threads that begin with the name, policy, CPUs and stack that the configuration says.

use crate::refused::{Refused, What};
use crate::sched::{self, SchedPolicy};
use rustix::io::Errno;
use std::sync::mpsc;

pub use std::thread::JoinHandle;

/// How a thread shall run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadConfig {
    /// The policy; `None` inherits the creator's.
    pub policy: Option<SchedPolicy>,
    /// The CPUs it may use; empty inherits the creator's.
    pub affinity: Vec<usize>,
    /// Octets of stack; `None` takes the platform's 2 MiB.
    pub stack_bytes: Option<usize>,
}

impl ThreadConfig {
    /// Makes the calling thread run so (its stack stays what it is).
    ///
    /// # Errors
    /// [`Refused`] when the host does not allow it.
    pub fn apply_here(&self) -> Result<(), Refused> {
        if !self.affinity.is_empty() {
            sched::apply_affinity(&self.affinity)?;
        }
        self.policy.map_or(Ok(()), sched::apply_policy)
    }
}

/// Starts `work` on a new thread named `name` (15 octets are shown by the kernel), once it runs as `config` says.
///
/// # Errors
/// [`Refused`] when the thread cannot be made or may not run so; `work` is not begun then.
pub fn spawn<T: Send + 'static>(
    name: &str,
    config: &ThreadConfig,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<Option<T>>, Refused> {
    let (report, reported) = mpsc::sync_channel(1);
    let mut builder = std::thread::Builder::new().name(name.to_owned());
    if let Some(bytes) = config.stack_bytes {
        builder = builder.stack_size(bytes);
    }
    let config = config.clone();
    let refused = |errno| Refused {
        what: What::Thread,
        errno,
    };
    let thread = builder
        .spawn(move || {
            let applied = config.apply_here();
            // The creator waits for this, so it is there to hear it.
            let _ = report.send(applied);
            applied.is_ok().then(work)
        })
        .map_err(|error| {
            refused(
                error
                    .raw_os_error()
                    .map_or(Errno::AGAIN, Errno::from_raw_os_error),
            )
        })?;
    reported.recv().map_err(|_| refused(Errno::AGAIN))??;
    Ok(thread)
}

/// The kernel's number for the calling thread.
pub fn thread_id() -> u32 {
    thread_local! {
        static ID: u32 = rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned();
    }
    ID.with(|id| *id)
}
