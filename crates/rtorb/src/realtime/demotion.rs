//! Demotions of serving threads. While a thread is demoted, what sets its policy only changes the one to which it returns.

use core::cell::RefCell;
use rtorb_os::Refused;
use rtorb_os::sched::{
    SchedPolicy, apply_policy, apply_policy_to, current_policy, current_policy_of,
};
use rtorb_os::sync::Mutex;
use std::sync::Arc;

/// The demotion of one thread, if it is demoted. The lock is held while a policy is set, so that two threads that set one agree.
#[derive(Debug, Default)]
pub(crate) struct Demotion(Mutex<Option<Demoted>>);

/// The thread has the lower one of the two policies.
#[derive(Debug)]
struct Demoted {
    to: SchedPolicy,
    returns_to: SchedPolicy,
    /// The demotion has kept the thread from the policy to which it returns, now or before.
    has_lowered: bool,
}

thread_local! {
    /// The demotion to which this thread is subject.
    static CURRENT: RefCell<Option<Arc<Demotion>>> = const { RefCell::new(None) };
}

impl Demotion {
    /// Demotes the thread with that number if `is_due`. One that is that low already stays as it is, and gets no higher. Returns without
    /// effect if the host refuses.
    ///
    /// The thread must not end during the call if `is_due` returns true.
    pub(crate) fn begin(&self, thread_id: u32, to: SchedPolicy, is_due: impl FnOnce() -> bool) {
        let mut demoted = self.0.lock();
        if !is_due() {
            return;
        }
        let returns_to = current_policy_of(thread_id);
        let has_lowered = returns_to.priority() > to.priority();
        if !has_lowered || apply_policy_to(thread_id, to).is_ok() {
            *demoted = Some(Demoted {
                to,
                returns_to,
                has_lowered,
            });
        }
    }

    /// Ends the demotion. Returns the policy to which the thread is to return, if the demotion has ever lowered it.
    pub(crate) fn end(&self) -> Option<SchedPolicy> {
        let demoted = self.0.lock().take()?;
        demoted.has_lowered.then_some(demoted.returns_to)
    }

    /// Returns the policy of the calling thread, whose demotion this is, or the one to which it returns.
    fn policy(&self) -> SchedPolicy {
        let demoted = self.0.lock();
        (demoted.as_ref()).map_or_else(current_policy, |demoted| demoted.returns_to)
    }

    /// Sets the policy of the calling thread, whose demotion this is: now if it is low enough, and otherwise when the demotion ends.
    fn apply(&self, policy: SchedPolicy) -> Result<(), Refused> {
        let mut demoted = self.0.lock();
        let Some(demoted) = demoted.as_mut() else {
            return apply_policy(policy);
        };
        let now = demoted.lower(policy);
        if now != demoted.lower(demoted.returns_to) {
            apply_policy(now)?;
        }
        demoted.returns_to = policy;
        demoted.has_lowered |= now != policy;
        Ok(())
    }
}

impl Demoted {
    /// Returns what the thread has if this is the policy to which it returns.
    fn lower(&self, policy: SchedPolicy) -> SchedPolicy {
        if policy.priority() > self.to.priority() {
            self.to
        } else {
            policy
        }
    }
}

/// Makes the calling thread subject to a demotion, or to none.
pub(crate) fn set_demotion(demotion: Option<Arc<Demotion>>) {
    // A thread that ends is not subject to any.
    let _ = CURRENT.try_with(|current| current.replace(demotion));
}

/// Returns the policy of the calling thread, by a system call; of a demoted one, that to which it returns.
pub(crate) fn undemoted_policy() -> SchedPolicy {
    let own = CURRENT.try_with(|current| current.borrow().as_deref().map(Demotion::policy));
    own.ok().flatten().unwrap_or_else(current_policy)
}

/// Sets the policy of the calling thread: at once, or when its demotion ends.
pub(super) fn apply(policy: SchedPolicy) -> Result<(), Refused> {
    let deferred = CURRENT.try_with(|current| {
        let current = current.borrow();
        current.as_ref().map(|demotion| demotion.apply(policy))
    });
    deferred
        .ok()
        .flatten()
        .unwrap_or_else(|| apply_policy(policy))
}
