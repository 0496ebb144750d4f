//! Threads that start with a configured name, policy, CPUs and stack.
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "this is where threads are made; the creator waits until the thread has begun, and holds no lock"
)]

use crate::memory;
use crate::refused::{Refused, Resource};
use crate::sched::{self, SchedPolicy};
use rustix::io::Errno;
use std::sync::mpsc;

pub use std::thread::JoinHandle;

/// The configuration of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadConfig {
    /// The policy; `None` inherits the creator's.
    pub policy: Option<SchedPolicy>,
    /// The CPUs it may use; empty inherits the creator's.
    pub affinity: Vec<usize>,
    /// The size of the stack. All its pages are populated before the work begins, so that the work faults no page of it; the
    /// host must have that much memory. `None` takes the platform's 2 MiB, which are populated when they are touched.
    pub stack_bytes: Option<usize>,
}

impl ThreadConfig {
    /// Returns the configuration with the calling thread's policy and CPUs for those that it leaves open, so that it no longer matters which
    /// thread creates the new ones. See [`policy_for_others`](sched::policy_for_others).
    #[must_use]
    pub fn or_as_here(mut self) -> Self {
        self.policy.get_or_insert_with(sched::policy_for_others);
        if self.affinity.is_empty() {
            self.affinity = sched::current_affinity();
        }
        self
    }

    /// Applies policy and CPUs to the calling thread. Its stack does not change.
    ///
    /// # Errors
    /// [`Refused`] when the host does not allow them.
    pub fn apply_here(&self) -> Result<(), Refused> {
        if !self.affinity.is_empty() {
            sched::apply_affinity(&self.affinity)?;
        }
        self.policy.map_or(Ok(()), sched::apply_policy)
    }
}

/// Starts `work` on a new thread named `name` (the kernel shows 15 bytes of it), configured by `config`.
///
/// The thread populates a configured stack with MADV_POPULATE_WRITE (Linux 5.14, madvise(2)) while it still has the policy
/// of its creator. Then it sets affinity and policy, and then it begins the work.
///
/// # Errors
/// [`Refused`] when the thread cannot be created or configured; then `work` does not begin.
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
    let thread = builder
        .spawn(move || {
            let stack = config.stack_bytes.map(|_| memory::populate_stack());
            let applied = stack.unwrap_or(Ok(0)).and_then(|_| config.apply_here());
            // The creator waits for the report, so the channel is open.
            let _ = report.send(applied);
            applied.is_ok().then(work)
        })
        .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::AGAIN))
        .map_err(|errno| Resource::Thread.refused(errno))?;
    let report = reported.recv();
    report.map_err(|_| Resource::Thread.refused(Errno::AGAIN))??;
    Ok(thread)
}

/// Waits until a thread has ended. On that thread itself it returns at once: what a thread runs may drop the last user of the thread.
pub fn join_unless_own<T>(thread: JoinHandle<T>) {
    if thread.thread().id() != std::thread::current().id() {
        // A panic has been reported.
        let _ = thread.join();
    }
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
    use rtorb_instruments::usage::{PageFaults, of_thread};

    /// Touches about `bytes` of stack, one page with each call.
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
            // This call faults in the code, and needs little stack.
            core::hint::black_box(descend(0));
            let before = of_thread().page_faults;
            core::hint::black_box(descend(200 << 10));
            of_thread().page_faults.since(before)
        };
        let thread = spawn("stack", &config, work).expect("a thread");
        thread.join().expect("no panic").expect("it was begun")
    }

    #[test]
    fn work_on_a_configured_stack_faults_no_page() {
        assert_eq!(faults_of_work(Some(1 << 20)), PageFaults::default());
        assert!(
            faults_of_work(None).minor > 0,
            "else this test shows nothing"
        );
    }

    #[test]
    fn work_does_not_begin_on_a_thread_that_cannot_be_configured() {
        let config = ThreadConfig {
            affinity: vec![1023],
            ..ThreadConfig::default()
        };
        let begun = spawn("nowhere", &config, || panic!("begun"));
        assert_eq!(
            begun.map(|_| ()).expect_err("no such CPU").resource,
            Resource::Affinity { cpu: 1023 }
        );
    }
}
