//! The services that CORBA users expect beside an ORB: naming, the real-time event channel, the scheduling service.
//!
//! Each is a library that works with any ORB of `rtorb` and uses only its public API.
//!
//! | purpose | module |
//! |---|---|
//! | names for references, persistent | [`naming`] |
//! | events from suppliers to consumers: filtered, correlated, by priority | [`events`] |
//! | priorities from rates and deadlines, off line and at run time | [`scheduling`] |
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

pub mod events;
pub mod naming;
pub mod scheduling;
pub mod stubs;

#[cfg(test)]
#[global_allocator]
static HEAP: rtorb_os::heap::CountingAllocator = rtorb_os::heap::CountingAllocator;
