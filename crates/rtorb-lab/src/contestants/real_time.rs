//! Priorities of the ORBs under measurement: of lanes, of objects, and of the threads that an ORB starts for itself.

use rtorb::PoaPolicies;
use rtorb::rt::{Policy, Priority, PriorityModel, ThreadpoolLane};
use rtorb::thread::ThreadConfig;
use rtorb_os::sched::current_policy;

/// The CORBA priority of this number, which is the native one too.
///
/// # Errors
/// That CORBA has no such priority.
pub(crate) fn corba(priority: u8) -> Result<Priority, String> {
    Priority::new(priority.into()).map_err(|exception| exception.to_string())
}

/// A lane of one thread.
///
/// # Errors
/// As [`corba`].
pub(super) fn lane(priority: u8) -> Result<ThreadpoolLane, String> {
    Ok(ThreadpoolLane {
        lane_priority: corba(priority)?,
        static_threads: 1,
        ..ThreadpoolLane::default()
    })
}

/// An adapter whose objects declare this priority (SERVER_DECLARED); 0 declares none.
///
/// # Errors
/// As [`corba`].
pub(super) fn declared(priority: u8) -> Result<PoaPolicies, String> {
    let policies = PoaPolicies::default();
    if priority == 0 {
        return Ok(policies);
    }
    Ok(policies.with(Policy::PriorityModel {
        model: PriorityModel::ServerDeclared,
        server_priority: corba(priority)?,
    }))
}

/// The scheduling of this thread, for the threads that an ORB starts for itself: without it, they take that of the client whose
/// call happens to start them.
pub(super) fn as_this_thread() -> ThreadConfig {
    ThreadConfig {
        policy: Some(current_policy()),
        ..ThreadConfig::default()
    }
}
