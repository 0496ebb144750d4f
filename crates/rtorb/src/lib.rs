// `rtorb-tests` compiles the programs of this page: they need generated code.
#![cfg_attr(not(doctest), doc = include_str!("lib.md"))]
#![forbid(unsafe_code)]

#[doc(hidden)]
pub mod codegen;
mod connection;
pub mod dispatch;
pub mod endpoint;
pub mod exception;
mod interface;
mod limits;
mod orb;
mod outgoing;
pub mod poa;
mod reference;
pub mod rt;
mod server;
mod strategies;
pub mod timing;
mod trace;
mod transport;
mod wait;

pub use exception::{CompletionStatus, ExceptionKind, SystemException};
pub use interface::Interface;
pub use limits::Limits;
pub use orb::{ObjectKeyError, Orb, OrbBuilder, OrbError};
pub use poa::{Poa, PoaError, PoaPolicies};
pub use reference::{ObjectRef, SyncScope};
#[doc(no_inline)]
pub use rtorb_wire::{any, cdr, ior, type_code, url};
pub use strategies::{
    ConnectionStrategy, DispatchStrategy, Strategies, UnknownStrategy, WaitStrategy,
};

/// Scheduling of the threads of an ORB.
pub mod thread {
    pub use rtorb_os::sched::SchedPolicy;
    pub use rtorb_os::thread::ThreadConfig;
}

/// Versions of GIOP.
pub mod giop {
    pub use rtorb_wire::giop::Version;
}

/// Includes the code that `rtorb_idl::compile("idl/NAME.idl")` generated in the build script.
#[macro_export]
macro_rules! include_idl {
    ($name:literal) => {
        include!(concat!(env!("OUT_DIR"), "/", $name, ".rs"));
    };
}
