//! The engine of thread pools: lanes with their own listening endpoints, connections and threads.
//!
//! A [`PoolConfig`] says which lanes a pool has, and how requests come to their threads. `running` is the pool as all threads see
//! it, and a `lane` serves one priority. A lane's threads run one of four loops. An `event_thread` serves what it reads. A
//! `queue_thread` serves what an I/O thread (`reading`) puts into the `request_queue` of the lane. A `lane_thread` does one or the other
//! in a lane that may get help or lend threads (`borrowing`). A `level_thread` serves what the `levels` of the lane's `deadline_queue` give
//! it, by the `urgency` of requests. `request_room` is what both queues count. `lane_server` is what the loops have in common, and `connection` how
//! threads share a client's connection. `threads` starts all threads, and `endpoints` opens the listeners.

mod borrowing;
mod config;
mod connection;
mod deadline_queue;
pub(crate) mod endpoints;
mod event_thread;
mod lane;
mod lane_server;
mod lane_thread;
mod level_thread;
mod levels;
mod queue_thread;
mod reading;
mod request_queue;
mod request_room;
mod running;
mod threads;
mod urgency;

pub(crate) use config::{Intake, LaneConfig, LaneSelection, PoolConfig};
#[cfg(test)]
pub(crate) use connection::{Concurrency, Connection, Turn};
pub(crate) use lane::Lane;
pub(crate) use request_room::Buffering;
pub(crate) use running::Pool;
pub(crate) use threads::{begin, serve_here, would_wait_for_itself};
