//! Which CORBA priority a thread has (RTCORBA::Current).

use super::core::RtCore;
use super::priority::{NativePriority, Priority};
use crate::exception::{Cause, ExceptionKind, Phase, SystemException};
use crate::orb::Orb;
use core::cell::Cell;
use rtorb_os::sched::current_policy;
use rtorb_os::{Refused, Resource};
use rustix::io::Errno;
use std::time::Duration;

thread_local! {
    /// The thread's CORBA priority; [`UNSET`] until it is set.
    static CURRENT: Cell<i16> = const { Cell::new(UNSET) };
    /// What a thread without one has of the host, once that was asked for: each ORB has its own mapping from there.
    static NATIVE: Cell<Option<NativePriority>> = const { Cell::new(None) };
}

const UNSET: i16 = -1;

/// The priority of the calling thread (RTCORBA::Current), by the mapping of one ORB.
///
/// Set it on every thread that calls with a priority; a servant's thread has that of the request. A priority set by other
/// means than this is not noticed.
#[derive(Clone, Debug)]
pub struct RtCurrent {
    orb: Orb,
}

impl RtCurrent {
    pub(crate) fn new(orb: Orb) -> Self {
        Self { orb }
    }

    /// The CORBA priority that was set, or that the request being served has.
    ///
    /// # Errors
    /// INITIALIZE when none was set.
    pub fn the_priority(&self) -> Result<Priority, SystemException> {
        known().ok_or_else(|| ExceptionKind::Initialize.into())
    }

    /// Gives the calling thread a CORBA priority, and by the ORB's mapping the native one.
    ///
    /// # Errors
    /// DATA_CONVERSION 2 when the mapping has no native priority for it; NO_PERMISSION when the host refuses, with what it
    /// said, unless the ORB was built for best effort.
    pub fn set_the_priority(&self, priority: Priority) -> Result<(), SystemException> {
        let rt = &self.orb.core.rt;
        let native = rt.to_native(priority)?;
        rt.apply(native)?;
        CURRENT.set(priority.get());
        Ok(())
    }
}

/// The CORBA priority that was set, or that the request being served has.
fn known() -> Option<Priority> {
    Priority::new(CURRENT.get()).ok()
}

/// The CORBA priority that the calling thread's calls have: the one that was set, else what the mapping makes of the
/// native one, which is looked at once; the least urgent for a thread of time sharing.
#[inline]
pub(crate) fn caller_priority(rt: &RtCore) -> Result<Priority, SystemException> {
    match known() {
        Some(priority) => Ok(priority),
        None => derived(rt),
    }
}

#[cold]
fn derived(rt: &RtCore) -> Result<Priority, SystemException> {
    let native = match NATIVE.get() {
        Some(native) => native,
        None => current_policy().priority(),
    };
    NATIVE.set(Some(native));
    match (native, rt.mapping.to_corba(native)) {
        (_, Some(priority)) => Ok(priority),
        (0, None) => Ok(Priority::MIN),
        _ => Err(SystemException::omg(ExceptionKind::DataConversion, 2)),
    }
}

/// The calling thread's CORBA priority while it serves a request; what it was before comes back when this is dropped.
#[derive(Debug)]
pub(crate) struct Running {
    before: i16,
    begun: i16,
}

impl Running {
    /// With the priority of the request.
    #[inline]
    pub(crate) fn at(priority: Priority) -> Self {
        Self {
            before: CURRENT.replace(priority.get()),
            begun: priority.get(),
        }
    }

    /// With the priority that the thread has.
    #[inline]
    pub(crate) fn as_it_is() -> Self {
        let before = CURRENT.get();
        Self {
            before,
            begun: before,
        }
    }

    /// True if the servant has given its thread another priority ([`RtCurrent::set_the_priority`]).
    #[inline]
    pub(crate) fn was_changed(&self) -> bool {
        CURRENT.get() != self.begun
    }
}

impl Drop for Running {
    #[inline]
    fn drop(&mut self) {
        CURRENT.set(self.before);
    }
}

/// The host's refusal of a priority as an exception.
#[cold]
pub(super) fn refused(errno: Errno) -> SystemException {
    SystemException::from(ExceptionKind::NoPermission).with_cause(Cause {
        phase: Phase::Schedule,
        endpoint: None,
        elapsed: Duration::ZERO,
        errno: Some(errno),
    })
}

/// The host's refusal of a thread as an exception: NO_PERMISSION for its scheduling, else NO_RESOURCES.
#[cold]
pub(super) fn refusal(Refused { resource, errno }: Refused) -> SystemException {
    match resource {
        Resource::Policy(_) | Resource::Affinity { .. } => refused(errno),
        _ => ExceptionKind::NoResources.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rt::PriorityMapping;

    #[derive(Debug)]
    struct AllSevens;

    impl PriorityMapping for AllSevens {
        fn to_native(&self, _: Priority) -> Option<NativePriority> {
            Some(0)
        }

        fn to_corba(&self, _: NativePriority) -> Option<Priority> {
            Priority::new(7).ok()
        }
    }

    #[test]
    fn a_thread_without_a_priority_has_one_by_the_mapping_of_each_orb() {
        let plain = Orb::builder().build().expect("an ORB");
        let sevens = Orb::builder().priority_mapping(AllSevens).build();
        let sevens = sevens.expect("an ORB");
        for _ in 0..2 {
            assert_eq!(caller_priority(&plain.core.rt), Ok(Priority::MIN));
            assert_eq!(caller_priority(&sevens.core.rt).map(Priority::get), Ok(7));
        }
    }
}
