//! Linux for real-time programs: threads with policy, priority and affinity, locks that inherit priority, monotonic
//! time, locked memory.
//!
//! Beside `rtorb-instruments`, which no ORB needs, this is the only crate of the workspace with `unsafe`. It knows nothing of CORBA. A refusal of the host is a [`Refused`], which says what would allow it; nothing falls back silently.
//!
//! | for | use |
//! |---|---|
//! | a thread with name, policy, priority, CPUs and a populated stack | [`thread::spawn`], [`sched`] |
//! | asking in advance whether the host allows it | [`sched::allowed`] |
//! | mutual exclusion, waiting for a condition | [`sync::Mutex`], [`sync::Condvar`], [`sync::CeilingMutex`] |
//! | a queue with bounds for items and bytes | [`bounded_queue::BoundedQueue`] |
//! | a lock-free queue of requests for a pool of threads | [`ring::Ring`] |
//! | the bounds of that | [`admission::Admission`] |
//! | the state of groups of threads that lend threads to each other | [`loan_state::LoanState`] |
//! | a table with lock-free lookup | [`slab::Slab`] |
//! | two streams of bytes between two processes, in memory that they share | [`byte_rings::Duplex`] |
//! | a value that several threads get events for, without a wait | [`recheck_lock::RecheckLock`] |
//! | a value that is made at its first use, without a wait | [`set_once::SetOnce`] |
//! | words that one process writes and others read | [`shared_words::SharedWords`] |
//! | a period, a time | [`timer`], [`clock`] |
//! | listening sockets that a service manager passed | [`inherited::take_sockets`] |
//! | SIGTERM and SIGINT as an event, SIGHUP as one | [`termination::Termination`], [`hangup::Hangup`] |
//! | SIGUSR1 as an event | [`user_signal::UserSignal`] |
//! | memory without page faults | [`memory`] |
//! | counting the locks of a path | `sync::lock_calls` (feature `count-locks`) |
//!
//! It is the only part of the ORB that depends on the operating system, sockets aside: `docs/reference/portability.md` lists what each module needs
//! of one. The build refuses other systems than Linux.
//!
//! Locks with a deadline and populated stacks need Linux 5.14 (2021); on an older kernel they fail with that reason.
#![doc = concat!(
    "\n\nPages whose names begin with `docs/` are in the repository, <",
    env!("CARGO_PKG_REPOSITORY"),
    ">."
)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]

pub mod admission;
mod atomics;
pub mod bounded_queue;
#[cfg(not(loom))]
pub mod byte_rings;
pub mod clock;
pub mod futex;
pub mod hangup;
mod indices;
#[cfg(not(loom))]
pub mod inherited;
pub mod loan_state;
pub mod memory;
mod policy;
pub mod recheck_lock;
mod refused;
pub mod ring;
pub mod sched;
pub mod set_once;
#[cfg(not(loom))]
mod shared_copy;
pub mod shared_memory;
#[cfg(not(loom))]
pub mod shared_words;
mod signal_handler;
#[cfg(simulation)]
pub mod simulation;
pub mod slab;
pub mod socket;
pub mod sync;
pub mod termination;
pub mod thread;
pub mod timer;
pub mod user_signal;
pub mod waiting_word;

pub use refused::cpu_group::CpuGroup;
pub use refused::user_namespace::is_in_inner_user_namespace;
pub use refused::{Refused, Resource};
