//! A real-time object request broker (CORBA) for Linux.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let orb = rtorb::Orb::builder().args(std::env::args())?.build()?;
//! let object = orb.string_to_object("corbaloc:iiop:127.0.0.1:2809/NameService")?;
//! println!("{}", object.is_a("IDL:omg.org/CosNaming/NamingContext:1.0")?);
//! # Ok(())
//! # }
//! ```
//!
//! A client thread has its own connection to each server, writes a request and reads the reply: two system calls, no
//! lock, no heap call. A server thread reads a request, finds servant and operation by index, and writes the reply.
//! Interfaces are written in IDL; `rtorb-idl` makes Rust of them (see `docs/mapping.md`).
#![forbid(unsafe_code)]

pub mod codegen;
mod connection;
mod dispatch;
mod endpoint;
mod exception;
mod interface;
mod limits;
mod orb;
mod outgoing;
mod poa;
mod reference;
pub mod rt;
mod server;
mod strategies;
mod timing;
mod transport;
mod wait;

pub use dispatch::{FilteredRequest, RequestFilter};
pub use endpoint::{Endpoint, EndpointError, ListenEndpoint};
pub use exception::{Cause, CompletionStatus, ExceptionKind, OMG, Phase, RTORB, SystemException};
pub use interface::Interface;
pub use limits::Limits;
pub use orb::{ObjectKeyError, Orb, OrbBuilder, OrbError};
pub use poa::{IdAssignment, Lifespan, Poa, PoaError, PoaManager, PoaManagerState, PoaPolicies};
pub use reference::{ObjectRef, SyncScope};
pub use rtorb_os::sched::SchedPolicy;
pub use rtorb_os::thread::ThreadConfig;
pub use rtorb_wire::giop::Version;
pub use rtorb_wire::{any, cdr, ior, type_code, url};
pub use strategies::{
    ConnectionStrategy, DispatchStrategy, Strategies, UnknownStrategy, WaitStrategy,
};
pub use timing::{
    Criticality, ExecutionClock, OperationCounts, OperationTiming, TimingLimit, TimingSide,
    TimingViolation,
};

/// Takes in what `rtorb_idl::compile("idl/NAME.idl")` made in the build script.
#[macro_export]
macro_rules! include_idl {
    ($name:literal) => {
        include!(concat!(env!("OUT_DIR"), "/", $name, ".rs"));
    };
}
