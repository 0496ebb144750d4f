//! Scheduling of the threads that the calls of a client wait for: the watchdog, the reactor, the threads of connections.
//!
//! It does not depend on the thread that happens to start them, which may be any thread that calls.

use super::core::RtCore;
use super::priority::NativePriority;
use core::sync::atomic::{AtomicU8, Ordering};
use rtorb_os::Refused;
use rtorb_os::sched::{
    SchedPolicy, apply_policy, apply_policy_to, current_affinity, current_policy,
};
use rtorb_os::sync::Mutex;
use rtorb_os::thread::{JoinHandle, ThreadConfig, spawn, thread_id};
use std::sync::Arc;

/// The default scheduling of these threads: that of the thread that built the ORB, and above all lanes.
#[derive(Debug)]
pub(crate) struct ClientThreads {
    /// The policy and the CPUs of the thread that built the ORB.
    own: SchedPolicy,
    cpus: Vec<usize>,
    /// The native priority of the most urgent lane, or of the most urgent thread that set its CORBA priority; 0 without one.
    most_urgent: AtomicU8,
    /// The kernel's numbers of the running threads whose scheduling the application did not choose.
    running: Mutex<Vec<u32>>,
}

/// The configuration of one kind of these threads.
#[derive(Clone, Debug)]
pub(crate) struct ClientThread {
    rt: Arc<RtCore>,
    config: ThreadConfig,
    is_chosen: bool,
}

impl ClientThreads {
    /// For an ORB that the calling thread builds.
    pub(crate) fn of_this_thread() -> Self {
        let own = match current_policy() {
            // Another thread cannot have the same.
            SchedPolicy::Deadline { .. } => SchedPolicy::Other,
            policy => policy,
        };
        Self {
            own,
            cpus: current_affinity(),
            most_urgent: AtomicU8::new(0),
            running: Mutex::default(),
        }
    }

    /// The policy of the thread that built the ORB.
    pub(crate) fn own(&self) -> SchedPolicy {
        self.own
    }
}

impl RtCore {
    /// Keeps the threads that calls wait for above a lane, or a thread, of this native priority.
    ///
    /// # Errors
    /// The host refuses a running thread its new priority, and best effort is not allowed.
    pub(crate) fn keep_above(&self, native: NativePriority) -> Result<(), Refused> {
        let threads = &self.client_threads;
        let is_kept = || native <= threads.most_urgent.load(Ordering::Relaxed);
        if is_kept() {
            return Ok(());
        }
        let running = threads.running.lock();
        // Another thread may have raised it meanwhile.
        if is_kept() {
            return Ok(());
        }
        let policy = self.policy_above(native);
        let mut numbers = running.iter();
        numbers.try_for_each(|&number| {
            apply_policy_to(number, policy).or_else(|refused| self.best_effort.pass(refused))
        })?;
        // After a refusal the next call asks the host again.
        threads.most_urgent.store(native, Ordering::Relaxed);
        Ok(())
    }

    /// The policy of threads whose scheduling the application did not choose.
    fn client_policy(&self) -> SchedPolicy {
        self.policy_above(self.client_threads.most_urgent.load(Ordering::Relaxed))
    }

    fn policy_above(&self, native: NativePriority) -> SchedPolicy {
        match (native, self.client_threads.own) {
            (native, own) if own.is_real_time() && native < own.priority() => own,
            (0, own) => own,
            (native, _) => self.policy(native.saturating_add(1).min(NATIVE_MAX)),
        }
    }
}

impl ClientThread {
    /// As the application chose; what it left out is the default.
    pub(crate) fn new(rt: &Arc<RtCore>, chosen: &ThreadConfig) -> Self {
        let mut config = rt.obtainable(chosen);
        if config.affinity.is_empty() {
            config.affinity.clone_from(&rt.client_threads.cpus);
        }
        Self {
            rt: Arc::clone(rt),
            config,
            is_chosen: chosen.policy.is_some(),
        }
    }

    /// Starts a thread.
    ///
    /// # Errors
    /// The host refuses it.
    pub(crate) fn spawn(
        &self,
        name: &str,
        work: impl FnOnce() + Send + 'static,
    ) -> Result<JoinHandle<Option<()>>, Refused> {
        if self.is_chosen {
            return spawn(name, &self.config, work);
        }
        let policy = self.rt.client_policy();
        let config = self.rt.obtainable(&ThreadConfig {
            policy: Some(policy),
            ..self.config.clone()
        });
        let rt = Arc::clone(&self.rt);
        spawn(name, &config, move || {
            let _running = Running::enter(rt, policy);
            work();
        })
    }
}

/// A running thread; dropped by the thread when it ends.
struct Running(Arc<RtCore>);

impl Running {
    /// Notes the calling thread, which was started with `policy`.
    fn enter(rt: Arc<RtCore>, policy: SchedPolicy) -> Self {
        {
            let mut running = rt.client_threads.running.lock();
            running.push(thread_id());
            let current = rt.client_policy();
            if current != policy {
                // A lane was made after the thread was started, and `keep_above` did not know the thread yet. If the host
                // refuses now, nobody learns of it: the thread keeps the priority with which it was started.
                let _ = apply_policy(current);
            }
        }
        Self(rt)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut running = self.0.client_threads.running.lock();
        running.retain(|&number| number != thread_id());
    }
}

/// The most urgent native priority.
const NATIVE_MAX: NativePriority = 99;
