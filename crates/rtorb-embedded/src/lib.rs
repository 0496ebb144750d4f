//! CORBA objects and calls without an operating system.
//!
//! The crate has no thread, no socket and no clock of its own. The application has a [`Link`]: whatever carries bytes to one peer and back, such as
//! a serial line, or a stream of a network stack. A [`Server`] serves the objects of a fixed table on it, in the task that calls it. A
//! [`Client`] calls objects at the other end. In `build.rs`, the IDL compiler generates the code of the application's interfaces for this
//! crate: `rtorb_idl::Compiler::new().runtime("rtorb_embedded")`.
//!
//! A server and a client take their memory when they are made. After that a message takes none, unless it is received and has more than 8 KiB
//! or comes in fragments, or the application's own values need some: strings, sequences that the servant returns, anys.
//!
//! What the full ORB has beyond this: more than one connection at a time, timeouts, LOCATION_FORWARD, policies, valuetypes that are
//! shared between threads, counters of timing.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod client;
#[doc(hidden)]
pub mod codegen;
mod link;
mod periods;
mod reference;
mod server;

pub use client::{Client, SharedClient};
pub use link::{Link, LinkError};
pub use periods::{Clock, NotEnforced};
pub use reference::ObjectRef;
pub use rtorb_core::Described;
pub use rtorb_core::exception::{CompletionStatus, ExceptionKind, OMG, RTORB, SystemException};
pub use rtorb_core::{Interface, ServedBy, Tie, UserException, narrow};
pub use rtorb_wire::{self as wire, Any, TypeCode, cdr};
pub use server::{CallPriority, Ended, FixedPriority, Object, Server, ServerCall, Skeleton};
