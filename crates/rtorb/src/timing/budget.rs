//! The budget of the call that a thread serves: how long its servant may execute, and what happens beyond that.
//!
//! Two threads share a budget: the serving thread, which begins and ends calls, and the enforcing thread, which finds overruns. The state
//! of the call is one word, [`call`](Budget::call): its number and its [`BudgetState`]. The enforcing thread judges a call by that word, so
//! that it never takes a call for a later one.
//!
//! The timer of the thread expires when the elapsed time reaches the worst case: no earlier than the execution time can. It is set only
//! if it would otherwise expire too late, and is never stopped. An expiry for a call that has ended sets it for the call that is being served.

use super::enforcement::Overrun;
use crate::clock::monotonic_ns;
use crate::poller::Timer;
use crate::realtime::{Demotion, NativePriority, RtCore};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use rtorb_os::clock::thread_cpu_ns_of;
use rtorb_os::sched::SchedPolicy;
use rtorb_os::thread::thread_id;
use rustix::io::Errno;
use std::sync::Arc;

/// The budget of a serving thread's call.
#[derive(Debug)]
pub(super) struct Budget {
    thread_id: u32,
    pub(super) timer: Timer,
    /// The number of the call times [`STATES`], plus its state.
    call: AtomicU64,
    worst_ns: AtomicU64,
    began_ns: AtomicU64,
    /// The thread's CPU time at the beginning, or [`ELAPSED`] if the elapsed time is the execution time.
    cpu_began_ns: AtomicU64,
    /// The priority of a demotion, or [`STOP`].
    action: AtomicU32,
    /// When the timer expires; 0 if it does not.
    armed_ns: AtomicU64,
    pub(super) demotion: Arc<Demotion>,
}

/// How long the servant of a call may execute.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowance {
    pub(super) worst_ns: u64,
    pub(super) began_ns: u64,
    /// The thread's CPU time at the beginning; `None` if the elapsed time is the execution time.
    pub(super) cpu_began_ns: Option<u64>,
    pub(super) overrun: Overrun,
}

/// What was done about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BudgetOutcome {
    /// Nothing: the servant executed no longer than it may, or its thread has the lower priority already.
    Kept,
    /// The thread was demoted, from this policy.
    Demoted(SchedPolicy),
    /// The servant was asked to stop.
    Stopped,
}

/// The state of a call with a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
enum BudgetState {
    /// No call, or none with a budget.
    Idle = 0,
    /// The servant executes.
    Running = 1,
    /// The servant executes, and has exceeded its budget.
    Overrun = 2,
}

const STATES: u64 = 4;
/// The action of a servant that is asked to stop. No native priority is so large.
const STOP: u32 = u32::MAX;
/// The value without a CPU time: no thread has had so much.
const ELAPSED: u64 = u64::MAX;

/// The enforcing thread sleeps at least this many nanoseconds between two looks at a call. Otherwise a servant that waits just before
/// the end of its budget would keep a processor busy with the most urgent thread.
const REST_NS: u64 = 200_000;

impl Budget {
    /// Makes the budget of the calling thread.
    pub(super) fn of_this_thread() -> Result<Self, Errno> {
        Ok(Self {
            thread_id: thread_id(),
            timer: Timer::new()?,
            call: AtomicU64::new(0),
            worst_ns: AtomicU64::new(0),
            began_ns: AtomicU64::new(0),
            cpu_began_ns: AtomicU64::new(0),
            action: AtomicU32::new(0),
            armed_ns: AtomicU64::new(0),
            demotion: Arc::default(),
        })
    }

    /// Begins a call of the calling thread, whose budget this is.
    pub(super) fn begin(&self, allowance: &Allowance) {
        let Allowance {
            worst_ns, began_ns, ..
        } = *allowance;
        self.worst_ns.store(worst_ns, Ordering::Relaxed);
        self.began_ns.store(began_ns, Ordering::Relaxed);
        let cpu_began_ns = allowance.cpu_began_ns.unwrap_or(ELAPSED);
        self.cpu_began_ns.store(cpu_began_ns, Ordering::Relaxed);
        let action = match allowance.overrun {
            Overrun::Demote(native) => native.into(),
            Overrun::Count | Overrun::Stop => STOP,
        };
        self.action.store(action, Ordering::Relaxed);
        let number = self.call.load(Ordering::Relaxed) / STATES + 1;
        // In this order, and `look` does the reverse: one of the two threads sees what the other has written, and sets the timer.
        let running = number * STATES + BudgetState::Running as u64;
        self.call.store(running, Ordering::SeqCst);
        #[cfg(simulation)]
        if rtorb_os::simulation::is_planted("overrun-unwatched") {
            return;
        }
        let armed_ns = self.armed_ns.load(Ordering::SeqCst);
        let due_ns = began_ns.saturating_add(worst_ns);
        if armed_ns <= began_ns || armed_ns > due_ns {
            self.arm(due_ns);
        }
    }

    /// Ends the call, and returns what was done about it. A demoted thread has the lower priority until it takes its own again.
    pub(super) fn end(&self) -> BudgetOutcome {
        // Only the enforcing thread changes the word beside, and keeps the number.
        let idle = self.call.load(Ordering::Relaxed) / STATES * STATES + BudgetState::Idle as u64;
        let call = self.call.swap(idle, Ordering::AcqRel);
        if call % STATES != BudgetState::Overrun as u64 {
            return BudgetOutcome::Kept;
        }
        if self.action.load(Ordering::Relaxed) == STOP {
            return BudgetOutcome::Stopped;
        }
        // If the enforcing thread is demoting this one now, waits until it has done so.
        self.demotion
            .end()
            .map_or(BudgetOutcome::Kept, BudgetOutcome::Demoted)
    }

    /// Returns true if the servant is asked to stop.
    pub(super) fn asks_to_stop(&self) -> bool {
        self.call.load(Ordering::Acquire) % STATES == BudgetState::Overrun as u64
            && self.action.load(Ordering::Relaxed) == STOP
    }

    /// Acts if the call has exceeded its budget, and otherwise sets the timer. The enforcing thread calls this when the timer has expired.
    pub(super) fn look(&self, rt: &RtCore) {
        self.armed_ns.store(0, Ordering::SeqCst);
        loop {
            let call = self.call.load(Ordering::SeqCst);
            if call % STATES != BudgetState::Running as u64 {
                return;
            }
            let now_ns = monotonic_ns();
            let left_ns = self.left_ns(now_ns);
            if left_ns == 0 {
                return self.act(call, rt);
            }
            self.arm(now_ns.saturating_add(left_ns.max(REST_NS)));
            // A call that began meanwhile may have relied on a timer that expires too late for it.
            if self.call.load(Ordering::SeqCst) == call {
                return;
            }
        }
    }

    /// Returns how long the servant may still execute.
    fn left_ns(&self, now_ns: u64) -> u64 {
        let worst_ns = self.worst_ns.load(Ordering::Acquire);
        let elapsed_ns = now_ns.saturating_sub(self.began_ns.load(Ordering::Acquire));
        let executed_ns = match self.cpu_began_ns.load(Ordering::Acquire) {
            // It has executed for at most so long.
            _ if elapsed_ns < worst_ns => elapsed_ns,
            ELAPSED => elapsed_ns,
            cpu_began_ns => {
                let cpu_ns = thread_cpu_ns_of(self.thread_id).unwrap_or(cpu_began_ns);
                cpu_ns.saturating_sub(cpu_began_ns)
            }
        };
        worst_ns.saturating_sub(executed_ns)
    }

    /// Demotes the thread, or asks the servant to stop, unless the call has ended.
    fn act(&self, call: u64, rt: &RtCore) {
        // Of this call if it has not ended, and unused otherwise.
        let action = self.action.load(Ordering::Acquire);
        let overrun = call / STATES * STATES + BudgetState::Overrun as u64;
        let is_still_running = || {
            let changed =
                self.call
                    .compare_exchange(call, overrun, Ordering::AcqRel, Ordering::Relaxed);
            changed.is_ok()
        };
        match NativePriority::try_from(action) {
            // The thread cannot end meanwhile: when its call ends, it waits for the lock of the demotion.
            Ok(native) => {
                let lower = rt.policy(native);
                self.demotion.begin(self.thread_id, lower, is_still_running);
            }
            Err(_) => {
                is_still_running();
            }
        }
    }

    fn arm(&self, at_ns: u64) {
        self.armed_ns.store(at_ns, Ordering::SeqCst);
        self.timer.set(Some(at_ns));
    }
}
