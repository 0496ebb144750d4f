//! Real-time CORBA 1.x: priorities from the client's thread to the servant's, and on into nested calls.
//!
//! `priority` and `mapping` say what a priority is, `current` which one a thread has; `policy` has the policies of clients
//! and adapters, `rt_orb` makes them, mutexes and thread pools.

mod call_priority;
pub(crate) mod core;
mod current;
mod mapping;
pub(crate) mod policy;
mod priority;
pub(crate) mod threadpool;

pub(crate) use call_priority::CallPriority;
pub(crate) use core::RtCore;
pub use current::RtCurrent;
pub(crate) use current::{Running, caller_priority};
pub use mapping::{ContinuousMapping, LinearMapping, NativeMapping, PriorityMapping};
pub use policy::{Policy, Protocol, TcpProtocolProperties, UnixDomainProtocolProperties};
pub use priority::{NativePriority, Priority};
pub use rtorb_wire::ior::{PriorityBand, PriorityModel};
pub use threadpool::{ThreadpoolId, ThreadpoolLane};
