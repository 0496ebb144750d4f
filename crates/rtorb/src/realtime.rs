//! The parts of RT-CORBA: priorities and their mappings, policies, protocol properties, mutexes, the calling thread's priority.

mod best_effort;
mod call_priority;
mod client_threads;
mod current;
mod demotion;
mod mapping;
mod mutex;
mod network_priority;
pub(crate) mod policy;
mod priority;
mod rt_core;
pub(crate) mod threadpool;
mod transform;

pub(crate) use best_effort::BestEffort;
pub(crate) use call_priority::{CallPriority, DeclaredPriority, ServerPriority};
pub(crate) use client_threads::{ClientThread, ClientThreads};
pub(crate) use current::{
    ThreadPriorityBefore, UpcallPriority, caller_policy, caller_priority, is_without_priority,
    of_mapping, refusal, set_thread_priority, thread_priority,
};
pub(crate) use demotion::{Demotion, set_demotion, undemoted_policy};
pub use mapping::{ContinuousMapping, LinearMapping, NativeMapping, PriorityMapping};
pub(crate) use mutex::NamedMutexes;
pub use mutex::{MutexNotFound, RtMutex, RtMutexGuard};
pub use network_priority::{NetworkPriority, NetworkPriorityMapping, NetworkPriorityTable};
pub use policy::{
    Policy, Protocol, SharedMemoryProtocolProperties, TcpProtocolProperties,
    UnixDomainProtocolProperties,
};
pub(crate) use policy::{is_band, is_in_band};
pub use priority::{NativePriority, Priority};
pub(crate) use rt_core::RtCore;
pub use rtorb_wire::ior::{PriorityBand, PriorityModel};
pub use threadpool::{
    InvalidThreadpool, LanedThreadpool, RequestBuffering, Reservation, Threadpool, ThreadpoolId,
    ThreadpoolLane,
};
pub use transform::PriorityTransform;
pub(crate) use transform::Transforms;

use std::sync::Arc;

/// Returns the default network priorities of an ORB, spread over the CORBA priorities that its mapping uses.
pub(crate) fn default_network_mapping(
    mapping: &dyn PriorityMapping,
) -> Arc<dyn NetworkPriorityMapping> {
    let most_urgent = mapping
        .to_corba(mapping::NATIVE_MAX)
        .unwrap_or(Priority::MAX);
    Arc::new(NetworkPriorityTable::even(most_urgent))
}
