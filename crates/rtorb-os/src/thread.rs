//! Threads that begin with the name, policy, CPUs and stack that the configuration says.

use crate::memory;
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
    /// Octets of stack, all of them given their pages before the work begins, so that none faults in it (the host must have
    /// as much memory); `None` takes the platform's 2 MiB, whose pages come when they are touched.
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
/// A stack of the configuration's size is populated by MADV_POPULATE_WRITE (Linux 5.14, madvise(2)) while the thread still
/// runs as its creator does, then affinity and policy are set, then the work begins.
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
            let stack = config.stack_bytes.map(|_| memory::populate_stack());
            let applied = stack.unwrap_or(Ok(0)).and_then(|_| config.apply_here());
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{PageFaults, thread_page_faults};

    /// Touches about `bytes` of stack, a page a call.
    #[inline(never)]
    fn descend(bytes: usize) -> u8 {
        let page = core::hint::black_box([1u8; 4096]);
        let below = match bytes.checked_sub(page.len()) {
            Some(left) => descend(left),
            None => 0,
        };
        page[17].wrapping_add(below)
    }

    fn faults_of_work(stack_bytes: Option<usize>) -> PageFaults {
        let config = ThreadConfig {
            stack_bytes,
            ..ThreadConfig::default()
        };
        let work = || {
            // The code of what is called below is read in here, with little stack.
            core::hint::black_box(descend(0));
            let before = thread_page_faults();
            core::hint::black_box(descend(200 << 10));
            thread_page_faults().since(before)
        };
        let thread = spawn("stack", &config, work).expect("a thread");
        thread.join().expect("no panic").expect("it was begun")
    }

    #[test]
    fn work_on_a_stack_of_the_configuration_faults_no_page() {
        assert_eq!(faults_of_work(Some(1 << 20)), PageFaults::default());
        assert!(
            faults_of_work(None).minor > 0,
            "else this test shows nothing"
        );
    }

    #[test]
    fn work_is_not_begun_on_a_thread_that_may_not_run_so() {
        let config = ThreadConfig {
            affinity: vec![1023],
            ..ThreadConfig::default()
        };
        let begun = spawn("nowhere", &config, || panic!("begun"));
        assert_eq!(
            begun.map(|_| ()).expect_err("no such CPU").what,
            What::Affinity { cpu: 1023 }
        );
    }
}
