//! The services that people expect beside an ORB: naming, the real-time event channel, the scheduling service.
//!
//! Each is a library that serves with any ORB of `rtorb`, and uses nothing of it that an application could not.
//!
//! | for | take |
//! |---|---|
//! | names to references, kept across every end of the process | [`naming`] |
//! | events from suppliers to consumers, filtered, correlated, by priority | [`events`] |
//! | priorities from rates and deadlines, off line and at run time | [`scheduling`] |
#![forbid(unsafe_code)]

pub mod events;
pub mod naming;
pub mod scheduling;
pub mod stubs;

#[cfg(test)]
#[global_allocator]
static HEAP: rtorb_os::heap::CountingAllocator = rtorb_os::heap::CountingAllocator;
