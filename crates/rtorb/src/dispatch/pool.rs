//! The engine of thread pools: lanes with their own listening endpoints, connections and threads.
//!
//! A [`PoolConfig`] says which lanes a pool has, and how requests come to their threads. `running` is the pool as all threads see
//! it, and a `lane` serves one priority with threads that its `thread_count` counts. `threads` starts the threads, and each runs the loop of a strategy, which is in the strategy's
//! file: it reads a `connection`, or takes requests from the `request_queue` of its lane, or from the `deadline_queue`. There `levels`
//! choose the next request by its `urgency`. `request_room` has the bounds of both queues. `borrowing` is what lanes do for each other, and
//! `endpoints` opens the listeners.

pub(super) mod borrowing;
mod config;
pub(super) mod connection;
pub(super) mod deadline_queue;
pub(crate) mod endpoints;
pub(super) mod lane;
mod levels;
pub(super) mod request_queue;
pub(super) mod request_room;
pub(super) mod running;
mod thread_count;
mod threads;
mod urgency;

pub(crate) use config::{Intake, LaneConfig, LaneSelection, PoolConfig};
#[cfg(test)]
pub(crate) use connection::{Concurrency, Connection, Turn};
pub(crate) use lane::Lane;
pub(crate) use request_room::{ADDED_THREADS_MAX, Buffering};
pub(crate) use running::Pool;
pub(crate) use threads::{begin, change_threads, serve_here, would_wait_for_itself};
