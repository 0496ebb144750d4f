//! A thread that keeps a CPU from sleeping while it is measured.
//!
//! A virtual CPU that goes idle is given away by the host and comes back after hundreds of microseconds: more than any call
//! takes. The thread is of the idle class, so that whatever is measured runs before it.
//!
//! In an emulated machine there is none: its CPU wakes as soon as there is work, and idle time is what costs no time there.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rtorb_os::clock::monotonic_ns;
use rtorb_os::sched::{SchedPolicy, apply_policy};
use rtorb_os::thread::{JoinHandle, ThreadConfig, spawn};

use crate::processes::emulated::is_emulated;
use crate::processes::readable::nanoseconds;

/// Keeps a CPU awake until it is dropped, or its time is over.
#[derive(Debug)]
pub struct Awake {
    over: Arc<AtomicBool>,
    /// The host has refused the idle class.
    refused: Arc<AtomicBool>,
    thread: Option<JoinHandle<Option<()>>>,
}

impl Awake {
    /// Keeps `cpu` awake for so long at most; does nothing for no CPU, in an emulated machine, or where the host refuses.
    #[must_use]
    pub fn keep(cpu: Option<usize>, at_most: Duration) -> Self {
        let [over, refused] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
        let end_ns = monotonic_ns() + nanoseconds(at_most);
        let config = ThreadConfig {
            affinity: cpu.into_iter().collect(),
            ..ThreadConfig::default()
        };
        let (is_over, is_refused) = (Arc::clone(&over), Arc::clone(&refused));
        // The thread itself becomes idle: it may then wait for its CPU for long, and those who start it must not.
        let stay = move || {
            if apply_policy(SchedPolicy::Idle).is_err() {
                is_refused.store(true, Ordering::Relaxed);
                return;
            }
            // No pause instruction: a hypervisor may take the CPU from who executes many of them.
            while !is_over.load(Ordering::Relaxed) && monotonic_ns() < end_ns {}
        };
        let sleeps = cpu.filter(|_| !is_emulated());
        let thread = sleeps.and_then(|_| spawn("awake", &config, stay).ok());
        Self {
            over,
            refused,
            thread,
        }
    }

    /// Whether there is such a thread. Ask after the measurement: the host may refuse the idle class as the thread begins.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        self.thread.is_some() && !self.refused.load(Ordering::Relaxed)
    }
}

impl Drop for Awake {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It has nothing that could panic.
            let _ = thread.join();
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
        short.thread.take().map(JoinHandle::join).unwrap().unwrap();
        assert!(!Awake::keep(None, Duration::ZERO).is_kept());
    }
}
