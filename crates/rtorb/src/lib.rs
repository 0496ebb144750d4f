// `rtorb-tests` compiles the programs of this page: they need generated code.
#![cfg_attr(not(doctest), doc = include_str!("lib.md"))]
#![doc = concat!(
    "\n\nPages whose names begin with `docs/` are in the repository, <",
    env!("CARGO_PKG_REPOSITORY"),
    ">."
)]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]

mod clock;
#[doc(hidden)]
pub mod codegen;
mod connection;
mod deadline;
pub mod dispatch;
mod distributable;
pub mod endpoint;
pub mod exception;
pub mod interceptors;
mod limits;
mod orb;
mod outgoing;
pub mod poa;
mod poller;
mod realtime;
pub mod recorder;
mod reference;
pub mod security;
mod server;
pub mod skeleton;
mod strategies;
mod suggest;
#[cfg(test)]
mod tests;
mod thread_state;
pub mod timing;
mod trace;
mod transport;
mod wait;
mod warning;

pub use deadline::{with_deadline, without_deadline};
pub use exception::{CompletionStatus, ExceptionKind, SystemException};
pub use limits::Limits;
pub use orb::{ObjectKeyError, Orb, OrbBuilder, OrbConfig, OrbError, ReplyDriver};
pub use poa::{AdmittedServant, Poa, PoaError, PoaPolicies, ServantActivator, ServantAdmission};
pub use reference::{
    Call, ObjectRef, PolicyCurrent, PolicyOverrides, ReplyPoller, SyncScope, UntypedCall,
};
#[doc(inline)]
pub use rtorb_core::{Interface, Intervention};
#[doc(no_inline)]
pub use rtorb_wire::{any, cdr, ior, type_code, url};
pub use server::{
    ConnectionCounts, CurrentCall, DeferredReplyCounts, Deferring, Executor, Responder, TaskServant,
};
pub use strategies::{
    Collocation, ConnectionStrategy, DeadlineForm, Deadlines, DispatchStrategy, FullCallTable,
    SharedMemoryWait, Strategies, UnknownStrategy, WaitStrategy,
};
pub use warning::Warning;

/// Real-time CORBA 1.x: priorities from the client's thread to the servant's, and on into nested calls.
///
/// [`RtOrb`](rt::RtOrb) makes policies, mutexes and thread pools. [`RtCurrent`](rt::RtCurrent) is the priority of the calling thread.
/// [`SchedulingCurrent`](rt::SchedulingCurrent) is the distributable thread of the calling thread.
/// The other items are values: priorities and their mappings, policies, protocol properties.
pub mod rt {
    pub use crate::dispatch::DestroyThreadpoolError;
    pub use crate::distributable::{
        EarliestDeadlineFirst, FixedPriority, SchedulingDiscipline, SchedulingParameter,
        SegmentEffect, ThreadId,
    };
    pub use crate::orb::{
        DistributableThread, DistributableThreadState, RtCurrent, RtOrb, SchedulingCurrent,
        SegmentError, SpawnOptions, SpawnedThread,
    };
    pub use crate::realtime::{
        ContinuousMapping, InvalidThreadpool, LanedThreadpool, LinearMapping, MutexNotFound,
        NativeMapping, NativePriority, NetworkPriority, NetworkPriorityMapping,
        NetworkPriorityTable, Policy, Priority, PriorityBand, PriorityMapping, PriorityModel,
        PriorityTransform, Protocol, RequestBuffering, Reservation, RtMutex, RtMutexGuard,
        SharedMemoryProtocolProperties, TcpProtocolProperties, Threadpool, ThreadpoolId,
        ThreadpoolLane, UnixDomainProtocolProperties,
    };
    pub use crate::strategies::RequestOrder;
}

/// Scheduling of the threads of an ORB, and what the host refuses of it.
pub mod thread {
    pub use rtorb_os::sched::SchedPolicy;
    pub use rtorb_os::thread::ThreadConfig;
    pub use rtorb_os::{Refused, Resource};
    pub use rustix::io::Errno;
}

/// Versions of GIOP, and messages that a proxy passes on as they came.
pub mod giop {
    pub use rtorb_wire::giop::{PassedReply, PassedRequest, Version};
}

/// Includes the code that `rtorb_idl::compile("idl/NAME.idl")` generated in the build script.
#[macro_export]
macro_rules! include_idl {
    ($name:literal) => {
        include!(concat!(env!("OUT_DIR"), "/", $name, ".rs"));
    };
}
