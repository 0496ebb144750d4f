//! The measured processes: started by us, bounded in time, always ended by their process id.
//!
//! Three things end a child whatever happens: its owner's `Drop`, the end of its standard input, and the death signal
//! that it asked the kernel for. It lives in a process group of its own, so that Ctrl-C at a terminal reaches the
//! laboratory alone, which then ends its children in order. A server may run on an agent's host instead ([`crate::processes::agent`]);
//! whoever talks to it sees no difference.
//!
//! Below: the roles that a child plays, where processes run, what else runs meanwhile, and how all of it ends.

pub use launcher::{Launcher, child_command};
pub use process::Process;
pub(crate) use process::end_politely;

pub mod agent;
pub mod awake;
pub(crate) mod barrier;
pub(crate) mod begin_together;
pub mod child;
pub mod computation;
pub mod counts;
pub mod emulated;
pub mod gaps;
pub mod interrupt;
mod launcher;
pub mod load;
pub mod probe;
mod process;
pub mod questions;
pub(crate) mod readable;
pub mod tools;
pub(crate) mod veth;
