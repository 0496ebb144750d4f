//! The scheduling of the threads that a client's calls wait for: the watchdog, the reactor, the threads of connections.
//!
//! It does not depend on the thread that starts them, which may be any calling thread.

use super::priority::NativePriority;
use super::rt_core::RtCore;
use core::sync::atomic::{AtomicU8, Ordering};
use rtorb_os::Refused;
use rtorb_os::sched::{
    SchedPolicy, apply_policy, apply_policy_to, current_affinity, policy_for_others,
};
use rtorb_os::sync::Mutex;
use rtorb_os::thread::{JoinHandle, ThreadConfig, spawn, thread_id};
use std::sync::Arc;

/// The default scheduling of these threads: as the thread that built the ORB, but above all lanes.
#[derive(Debug)]
pub(crate) struct ClientThreads {
    /// The policy and the CPUs of the thread that built the ORB.
    own: SchedPolicy,
    cpus: Vec<usize>,
    /// The native priority of the most urgent lane, or of the most urgent thread that set its CORBA priority; 0 without one.
    most_urgent: AtomicU8,
    /// The thread ids of the running threads whose scheduling the application did not set.
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
    /// Makes the default scheduling for an ORB that the calling thread builds.
    pub(crate) fn of_this_thread() -> Self {
        Self {
            own: policy_for_others(),
            cpus: current_affinity(),
            most_urgent: AtomicU8::new(0),
            running: Mutex::default(),
        }
    }

    /// Returns the policy of the thread that built the ORB.
    pub(crate) fn own(&self) -> SchedPolicy {
        self.own
    }
}

impl RtCore {
    /// Raises the threads that calls wait for above this native priority, which a lane or a thread has.
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
        let mut refusal = None;
        for &number in running.iter() {
            match apply_policy_to(number, policy) {
                Err(refused) if self.best_effort.is_allowed() => refusal = Some(refused),
                // The next call asks the host again.
                raised => raised?,
            }
        }
        threads.most_urgent.store(native, Ordering::Relaxed);
        // The application's hook for warnings may set a more urgent priority, and come here again.
        drop(running);
        refusal.map_or(Ok(()), |refused| self.best_effort.pass(refused))
    }

    /// Returns the policy of the most urgent lane or thread, if that is more urgent than the thread that built the ORB.
    pub(crate) fn most_urgent_policy(&self) -> SchedPolicy {
        let native = self.client_threads.most_urgent.load(Ordering::Relaxed);
        match self.client_threads.own {
            own if own.priority() >= native => own,
            _ => self.policy(native),
        }
    }

    /// Returns the policy of threads whose scheduling the application did not set.
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
    /// Makes the configuration that the application set, with defaults for the rest.
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
            let _running = RunningThread::register(rt, policy);
            work();
        })
    }
}

/// Registers a running thread until it is dropped, by the thread itself.
struct RunningThread(Arc<RtCore>);

impl RunningThread {
    /// Registers the calling thread, which was started with `policy`.
    fn register(rt: Arc<RtCore>, policy: SchedPolicy) -> Self {
        let mut running = rt.client_threads.running.lock();
        running.push(thread_id());
        let current = rt.client_policy();
        let raised = if current == policy {
            Ok(())
        } else {
            // A lane was made before this thread was registered, so `keep_above` did not raise it.
            apply_policy(current)
        };
        // The application's hook for warnings may make a lane, and `keep_above` takes this lock.
        drop(running);
        let running = Self(rt);
        // Without best effort, nothing reports the refusal: the thread keeps its priority.
        let _ = raised.or_else(|refused| running.0.best_effort.pass(refused));
        running
    }
}

impl Drop for RunningThread {
    fn drop(&mut self) {
        let mut running = self.0.client_threads.running.lock();
        running.retain(|&number| number != thread_id());
    }
}

/// The most urgent native priority.
const NATIVE_MAX: NativePriority = 99;
