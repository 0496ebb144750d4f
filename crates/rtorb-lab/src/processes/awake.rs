//! A thread that keeps a CPU from sleeping while it is measured.
//!
//! A virtual CPU that goes idle is given away by the host and comes back after hundreds of microseconds: more than any call
//! takes. The thread is of the idle class, so that whatever is measured runs before it.
//!
//! In an emulated machine there is none: its CPU wakes as soon as there is work, and idle time is what costs no time there.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use rtorb_os::clock::monotonic_ns;
use rtorb_os::sched::{SchedPolicy, apply_policy_to};
use rtorb_os::thread::{JoinHandle, ThreadConfig, spawn, thread_id};

use crate::processes::emulated::is_emulated;
use crate::processes::readable::nanoseconds;

/// Keeps a CPU awake until it is dropped, or its time is over.
#[derive(Debug)]
pub struct Awake {
    over: Arc<AtomicBool>,
    thread: Option<IdleThread>,
}

#[derive(Debug)]
struct IdleThread {
    id: u32,
    handle: JoinHandle<Option<()>>,
}

impl Awake {
    /// Keeps `cpu` awake for so long at most; does nothing for no CPU, in an emulated machine, or where the host refuses.
    #[must_use]
    pub fn keep(cpu: Option<usize>, at_most: Duration) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let cpu = cpu.filter(|_| !is_emulated());
        let thread = cpu.and_then(|cpu| start(cpu, at_most, Arc::clone(&over)));
        Self { over, thread }
    }

    /// Whether there is such a thread.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        self.thread.is_some()
    }
}

/// Starts the thread, which waits until it is of the idle class. From then on it may wait for its CPU for long, and its creator must not.
fn start(cpu: usize, at_most: Duration, over: Arc<AtomicBool>) -> Option<IdleThread> {
    let end_ns = monotonic_ns() + nanoseconds(at_most);
    let config = ThreadConfig {
        affinity: vec![cpu],
        ..ThreadConfig::default()
    };
    let (tell_id, id) = sync_channel(1);
    let (begin, may_begin) = sync_channel(1);
    let stay = move || {
        // Its creator waits for the number, and closes the other channel if the idle class is refused.
        let _ = tell_id.send(thread_id());
        if may_begin.recv().is_ok() {
            // No pause instruction: a hypervisor may take the CPU from who executes many of them.
            while !over.load(Ordering::Relaxed) && monotonic_ns() < end_ns {}
        }
    };
    let handle = spawn("awake", &config, stay).ok()?;
    let id = id.recv().ok()?;
    apply_policy_to(id, SchedPolicy::Idle).ok()?;
    begin.send(()).ok()?;
    Some(IdleThread { id, handle })
}

impl Drop for Awake {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // Where others are busy, an idle thread gets the CPU, and ends, after seconds. Without the privilege it stays idle.
            let _ = apply_policy_to(thread.id, SchedPolicy::Other);
            // It has nothing that could panic.
            let _ = thread.handle.join();
        }
    }
}

/// No experiment takes longer, however thorough.
pub(crate) const AWAKE_AT_MOST: Duration = Duration::from_secs(4 * 3_600);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_ends_when_it_is_dropped_and_when_its_time_is_over() {
        let cpu = rtorb_os::sched::current_affinity().last().copied();
        drop(Awake::keep(cpu, Duration::from_secs(60)));
        let mut short = Awake::keep(cpu, Duration::from_millis(1));
        assert!(short.is_kept());
        short.thread.take().unwrap().handle.join().unwrap();
        assert!(!Awake::keep(None, Duration::ZERO).is_kept());
    }
}
