//! The calling thread's CORBA priority.

use super::demotion::undemoted_policy;
use super::priority::{NativePriority, Priority};
use super::rt_core::RtCore;
use crate::exception::{Cause, Phase, SystemException, local};
use crate::thread_state::{NO_PRIORITY, ThreadScheduling, scheduling, set_scheduling};
use core::cell::Cell;
use rtorb_os::sched::{SchedPolicy, current_policy};
use rtorb_os::{Refused, Resource};
use rustix::io::Errno;

thread_local! {
    /// The scheduling of a thread without a CORBA priority, cached. Each ORB applies its own mapping to its priority.
    static NATIVE: Cell<Option<SchedPolicy>> = const { Cell::new(None) };
    /// The scheduling of a thread before the first change of its priority that is in effect. The mapping does not have it: a thread of a lane
    /// may have a level or a reservation.
    static UNCHANGED: Cell<SchedPolicy> = const { Cell::new(SchedPolicy::Other) };
}

/// Returns the calling thread's CORBA priority, or [`NO_PRIORITY`].
#[inline]
fn current() -> i16 {
    scheduling().priority()
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
    let before = scheduling();
    if before.changes() == 0 {
        let policy = undemoted_policy();
        UNCHANGED.set(policy);
        if before.priority() == NO_PRIORITY {
            NATIVE.set(Some(policy));
        }
    }
    // Before the thread changes, so that a refusal leaves it unchanged.
    rt.keep_above(native).map_err(|refused| {
        refusal(refused).with_detail(format_args!(
            "the ORB's own threads run above CORBA priority {priority}: {refused}"
        ))
    })?;
    rt.apply(native)
        .map_err(|refused| with_reason(refused, rt, priority, native))?;
    let changes = before.changes().wrapping_add(1);
    set_scheduling(before.with_priority(priority.get()).with_changes(changes));
    Ok(())
}

/// The CORBA priority that the calling thread had, or none, and its scheduling, to be given back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThreadPriorityBefore {
    scheduling: ThreadScheduling,
    policy: SchedPolicy,
}

impl ThreadPriorityBefore {
    /// Notes the priority and the scheduling of the calling thread, by a system call.
    pub(crate) fn of_caller() -> Self {
        Self {
            scheduling: scheduling(),
            policy: undemoted_policy(),
        }
    }

    /// Gives the calling thread the priority and the scheduling back: later changes of the priority are in effect no more.
    ///
    /// # Errors
    /// NO_PERMISSION if the host refuses; nothing has changed then.
    pub(crate) fn give_back(self, rt: &RtCore) -> Result<(), SystemException> {
        rt.apply_policy(self.policy)?;
        set_scheduling(self.scheduling.with_segments(scheduling().segments()));
        Ok(())
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
    before: ThreadScheduling,
    begun: ThreadScheduling,
}

impl UpcallPriority {
    /// Gives the calling thread the priority of the request.
    #[inline]
    pub(crate) fn set(priority: Priority) -> Self {
        let before = scheduling();
        let begun = before.with_priority(priority.get());
        set_scheduling(begun);
        Self { before, begun }
    }

    /// Keeps the thread's priority.
    #[inline]
    pub(crate) fn unchanged() -> Self {
        let before = scheduling();
        Self {
            before,
            begun: before,
        }
    }

    /// Returns true if the servant has left the priority of its thread changed
    /// ([`RtCurrent::set_the_priority`](crate::rt::RtCurrent::set_the_priority)), or segments open.
    #[inline]
    pub(crate) fn has_left_changes(&self) -> bool {
        scheduling() != self.begun
    }

    /// Returns the number of segments before the upcall.
    pub(crate) fn segments(&self) -> u16 {
        self.begun.segments()
    }

    /// Ends the upcall, and the servant's changes of the priority. Returns the scheduling before them, which the thread is to get back; `None` if
    /// there are none.
    pub(crate) fn end_changes(mut self, rt: &RtCore) -> Option<SchedPolicy> {
        let left = scheduling();
        // Fewer than before, if a collocated servant has ended those of its caller.
        self.before = self.before.with_segments(left.segments());
        let in_effect = self.begun.changes();
        (left.changes() != in_effect).then(|| match in_effect {
            0 => UNCHANGED.get(),
            // The application has set what the thread had before, or a call has: both by the mapping.
            _ => policy_of(rt, self.before.priority()),
        })
    }
}

impl Drop for UpcallPriority {
    #[inline]
    fn drop(&mut self) {
        set_scheduling(self.before);
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
