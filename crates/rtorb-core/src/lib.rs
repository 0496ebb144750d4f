//! What both ORBs share and what code generated from IDL names.
//!
//! Applications use the crate `rtorb` or `rtorb-embedded`, which re-export these items. An ORB brings its own type of untyped references
//! ([`UntypedReference`]), which send requests, and its own [`Responder`], which sends replies. Everything else that generated code needs
//! is here or in `rtorb-wire`: the traits of references and servants, [`ServerCall`], system exceptions, annotated times, and the macros.
//!
//! The crate needs no operating system. With the feature `std`, an exception has its cause and a remedy.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

#[doc(hidden)]
pub mod codegen;
mod described;
#[cfg(feature = "std")]
pub mod endpoint;
pub mod exception;
mod interface;
mod reply;
mod servant;
mod server_call;
mod tie;
pub mod timing;
pub mod upcall;

pub use described::Described;
pub use exception::SystemException;
pub use interface::{Interface, UntypedReference, UserException, narrow};
pub use reply::{Intervention, Reply, ReplyEnding, ReplyState, Responder};
pub use servant::{ServedBy, unknown_operation};
pub use server_call::ServerCall;
pub use tie::Tie;
