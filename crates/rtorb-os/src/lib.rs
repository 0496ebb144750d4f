//! Linux for real-time programs: threads with policy, priority and affinity, locks that inherit priority, monotonic
//! time, memory that stays in memory.
//!
//! The only crate of the workspace with `unsafe`, so that all of it can be read in one place. It knows nothing of CORBA.
//! Whatever the host refuses is a [`Refused`] that says how to have it allowed; nothing falls back in silence.

mod atomics;
pub mod clock;
pub mod futex;
pub mod heap;
pub mod memory;
mod refused;
pub mod ring;
pub mod sched;
pub mod shared_memory;
pub mod slab;
pub mod socket;
pub mod sync;
pub mod thread;
pub mod timer;

pub use refused::{Refused, What};
