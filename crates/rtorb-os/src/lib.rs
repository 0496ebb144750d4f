//! Linux for real-time programs: threads with policy, priority and affinity, locks that inherit priority, monotonic
//! time, memory that stays in memory.
//!
//! The only crate of the workspace with `unsafe`, so that all of it can be read in one place. It knows nothing of CORBA.
//! Whatever the host refuses is a [`Refused`] that says how to have it allowed; nothing falls back in silence.
//!
//! | for | take |
//! |---|---|
//! | a thread with name, policy, priority, CPUs and a stack that faults no page | [`thread::spawn`], [`sched`] |
//! | knowing beforehand whether the host allows it | [`sched::allowed`], [`memory::lock_allowed`] |
//! | one thread at a time, a wait for a change | [`sync::Mutex`], [`sync::Condvar`], [`sync::CeilingMutex`] |
//! | a queue of requests to a pool of threads | [`ring::Ring`] |
//! | a table read without a lock | [`slab::Slab`] |
//! | a value that several threads get events for, without a wait | [`recheck_lock::RecheckLock`] |
//! | a period, a deadline | [`timer`], [`clock`] |
//! | a tick that interrupts, to measure what it costs | [`signal_timer`] |
//! | a sample that an observer from outside can count | [`replay`] |
//! | memory without page faults | [`memory`] |
//! | a copy of this process that only ends, to load a host with what that costs | [`process`] |
//! | showing that a path makes no heap call, takes no lock, faults no page, is not switched | [`heap::heap_calls`], [`sync::lock_calls`], [`memory::thread_page_faults`], [`sched::thread_switches`] |
//!
//! It needs Linux 5.14 (2021) for locks with a deadline and for populated stacks; both say so on an older one.

mod atomics;
pub mod clock;
pub mod futex;
pub mod heap;
pub mod memory;
pub mod process;
pub mod recheck_lock;
mod refused;
pub mod replay;
pub mod ring;
pub mod sched;
pub mod shared_memory;
pub mod signal_timer;
pub mod slab;
pub mod socket;
pub mod sync;
pub mod thread;
pub mod timer;
mod usage;

pub use refused::{Refused, What};
