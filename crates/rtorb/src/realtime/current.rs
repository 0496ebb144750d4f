//! The calling thread's CORBA priority.

use super::priority::{NativePriority, Priority};
use super::rt_core::RtCore;
use crate::exception::{Cause, Phase, SystemException, local};
use crate::thread_state::{NO_PRIORITY, THREAD};
use core::cell::Cell;
use rtorb_os::sched::{SchedPolicy, current_policy};
use rtorb_os::{Refused, Resource};
use rustix::io::Errno;

thread_local! {
    /// The scheduling of a thread without a CORBA priority, cached. Each ORB applies its own mapping to its priority.
    static NATIVE: Cell<Option<SchedPolicy>> = const { Cell::new(None) };
}

/// Returns the calling thread's CORBA priority, or [`NO_PRIORITY`].
#[inline]
fn current() -> i16 {
    THREAD.with(|thread| thread.priority.get())
}

/// Returns the calling thread's CORBA priority: the one that was set, or that of the request that the thread serves.
pub(crate) fn thread_priority() -> Option<Priority> {
    Priority::new(current()).ok()
}

/// Sets the calling thread's CORBA priority, and the native priority to which the mapping maps it.
//= RT-CORBA 1.2 §Real-Time Current
//# A thread that sets its CORBA priority gets the native priority that the mapping has for it, too.
pub(crate) fn set_thread_priority(rt: &RtCore, priority: Priority) -> Result<(), SystemException> {
    let native = rt.to_native(priority);
    let native = native.map_err(|refused| refused.with_detail(of_mapping(rt, priority)))?;
    if current() == NO_PRIORITY {
        NATIVE.set(Some(current_policy()));
    }
    // Before the thread changes, so that a refusal leaves it unchanged.
    rt.keep_above(native).map_err(|refused| {
        refusal(refused).with_detail(format_args!(
            "the ORB's own threads run above CORBA priority {priority}: {refused}"
        ))
    })?;
    rt.apply(native)
        .map_err(|refused| with_reason(refused, rt, priority, native))?;
    THREAD.with(|thread| thread.priority.set(priority.get()));
    Ok(())
}

/// The CORBA priority that the calling thread had, or none, to be given back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThreadPriorityBefore(i16);

impl ThreadPriorityBefore {
    /// Notes the priority of the calling thread.
    pub(crate) fn of_caller() -> Self {
        Self(current())
    }

    /// Gives the calling thread the priority back, and the scheduling that it had with it.
    ///
    /// # Errors
    /// As [`set_thread_priority`].
    pub(crate) fn give_back(self, rt: &RtCore) -> Result<(), SystemException> {
        match Priority::new(self.0) {
            Ok(priority) => set_thread_priority(rt, priority),
            Err(_) => {
                rt.apply_policy(native_policy())?;
                THREAD.with(|thread| thread.priority.set(NO_PRIORITY));
                Ok(())
            }
        }
    }
}

/// Adds the host's reason to the exception for a refused priority.
#[cold]
fn with_reason(
    refused: SystemException,
    rt: &RtCore,
    priority: Priority,
    native: NativePriority,
) -> SystemException {
    let Some(errno) = refused.cause.as_ref().and_then(|cause| cause.errno) else {
        return refused;
    };
    let policy = rt.policy(native);
    let reason = Refused {
        resource: Resource::Policy(policy),
        errno: Errno::from_raw_os_error(errno.raw()),
    };
    refused.with_detail(format_args!(
        "CORBA priority {priority} is {policy} here: {reason}"
    ))
}

/// Returns the text for a CORBA priority that the mapping does not have, with those that it has.
#[cold]
pub(crate) fn of_mapping(rt: &RtCore, priority: Priority) -> String {
    let is_mapped = |number: &i16| {
        let native = Priority::new(*number)
            .ok()
            .and_then(|it| rt.mapping.to_native(it));
        native.is_some()
    };
    let mut mapped = (0..=Priority::MAX.get()).filter(is_mapped);
    match (mapped.next(), mapped.next_back()) {
        (Some(low), Some(high)) => {
            format!("priority {priority}, and the mapping has {low} to {high}")
        }
        _ => format!("priority {priority}, and the mapping has at most one"),
    }
}

/// Returns the CORBA priority of the calling thread's calls: the one that was set, or the one that the mapping has for its native
/// priority, which is read once. A time-sharing thread has the least urgent priority.
#[inline]
pub(crate) fn caller_priority(rt: &RtCore) -> Result<Priority, SystemException> {
    match thread_priority() {
        Some(priority) => Ok(priority),
        None => derived(rt),
    }
}

#[cold]
//= RT-CORBA 1.2 §Real-Time Current
//# A thread that set no CORBA priority has the one that the mapping has for its native priority.
fn derived(rt: &RtCore) -> Result<Priority, SystemException> {
    let native = native_policy().priority();
    match (native, rt.mapping.to_corba(native)) {
        (_, Some(priority)) => Ok(priority),
        (0, None) => Ok(Priority::MIN),
        _ => Err(local::UNMAPPED_PRIORITY),
    }
}

/// Returns true if the calling thread has set no CORBA priority and its scheduling is not real-time.
pub(crate) fn is_without_priority() -> bool {
    thread_priority().is_none() && !native_policy().is_real_time()
}

/// Returns the scheduling of a thread without a CORBA priority. It is read once, and again when the thread gets a CORBA priority.
fn native_policy() -> SchedPolicy {
    let native = NATIVE.get().unwrap_or_else(current_policy);
    NATIVE.set(Some(native));
    native
}

/// Returns the scheduling that the mapping has for the calling thread's CORBA priority.
#[inline]
pub(crate) fn caller_policy(rt: &RtCore) -> SchedPolicy {
    policy_of(rt, current())
}

#[inline]
fn policy_of(rt: &RtCore, current: i16) -> SchedPolicy {
    let priority = Priority::new(current).ok();
    let native = priority.and_then(|priority| rt.mapping.to_native(priority));
    native.map_or_else(native_policy, |native| rt.policy(native))
}

/// The calling thread's CORBA priority during an upcall. Dropping it restores the previous one.
#[derive(Debug)]
pub(crate) struct UpcallPriority {
    before: i16,
    begun: i16,
}

impl UpcallPriority {
    /// Gives the calling thread the priority of the request.
    #[inline]
    pub(crate) fn set(priority: Priority) -> Self {
        Self {
            before: THREAD.with(|thread| thread.priority.replace(priority.get())),
            begun: priority.get(),
        }
    }

    /// Keeps the thread's priority.
    #[inline]
    pub(crate) fn unchanged() -> Self {
        let before = current();
        Self {
            before,
            begun: before,
        }
    }

    /// Returns the scheduling of the thread before the upcall, if only `RtCurrent` has changed it.
    pub(crate) fn policy_before(&self, rt: &RtCore) -> SchedPolicy {
        policy_of(rt, self.before)
    }

    /// Returns true if the servant has changed the priority of its thread ([`RtCurrent::set_the_priority`](crate::rt::RtCurrent::set_the_priority)).
    #[inline]
    pub(crate) fn was_changed(&self) -> bool {
        current() != self.begun
    }
}

impl Drop for UpcallPriority {
    #[inline]
    fn drop(&mut self) {
        THREAD.with(|thread| thread.priority.set(self.before));
    }
}

/// Returns the exception for a refused priority.
#[cold]
pub(super) fn refused(errno: Errno) -> SystemException {
    local::PRIORITY_REFUSED.with_cause(Cause::host(Phase::Schedule, errno))
}

/// Returns the exception for a refused thread: NO_PERMISSION for its scheduling, NO_RESOURCES otherwise.
#[cold]
pub(crate) fn refusal(refusal: Refused) -> SystemException {
    match refusal.resource {
        Resource::Policy(_) | Resource::Affinity { .. } => {
            refused(refusal.errno).with_detail(refusal)
        }
        _ => local::THREAD_REFUSED.with_detail(refusal),
    }
}
