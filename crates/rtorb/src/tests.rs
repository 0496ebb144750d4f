//! Whole ORBs joined in memory on virtual time.
//!
//! `network` is the simulated transport, beside TCP and UNIX sockets, and `clock` the virtual time. `world` lets a server act
//! while the client's driver waits, all on one thread. `randomly` draws everything from a seed; the other modules have the
//! cases that are worth a name.

mod admission;
pub(crate) mod clock;
mod deadlines;
mod deferred;
mod expiry;
mod faults;
mod missing_objects;
pub(crate) mod network;
mod pages;
mod random;
mod randomly;
mod resolving;
mod scripted;
pub(crate) mod servant;
mod slow_receivers;
mod strangers;
mod timings;
mod turns;
pub(crate) mod world;
