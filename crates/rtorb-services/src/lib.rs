//! The services that CORBA users expect beside an ORB: naming, the real-time event channel, the scheduling service.
//!
//! Each is a library that works with any ORB of `rtorb` and uses only its public API.
//!
//! | purpose | module |
//! |---|---|
//! | names for references, persistent | [`naming`] |
//! | events from suppliers to consumers: filtered, correlated, by priority | [`events`] |
//! | priorities from rates and deadlines, off line and at run time | `scheduling` |
//! | references that outlive their servers, which are started on demand | `location` |
//! | the counters of a process's recorder, for other hosts | [`recorder`] |
//!
//! By default a program gets all of it. With `default-features = false` it gets the clients alone, [`naming::client`] and
//! [`events::client`] with [`events::subscribe`], and brings no database and no parser. It adds what it serves:
//!
//! | feature | adds |
//! |---|---|
//! | `event-channel` | the event channel, plain channels and gateways |
//! | `location` | the locator of servers |
//! | `naming-service` | the naming service with its store |
//! | `naming-load` | binding many names from a file: `naming::client::Load` |
//! | `scheduling` | the scheduling service, and schedules in files; with `event-channel` |
#![doc = concat!(
    "\n\nPages whose names begin with `docs/` are in the repository, <",
    env!("CARGO_PKG_REPOSITORY"),
    ">."
)]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]

pub mod events;
#[cfg(feature = "location")]
pub mod location;
pub mod naming;
pub mod recorder;
#[cfg(feature = "scheduling")]
pub mod scheduling;
pub mod stubs;

#[cfg(test)]
#[global_allocator]
static HEAP: rtorb_instruments::heap::CountingAllocator =
    rtorb_instruments::heap::CountingAllocator;
