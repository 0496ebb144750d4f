//! The engine of thread pools: lanes with their own listening endpoints, connections and threads.
//!
//! A [`PoolConfig`] says which lanes a pool has, and how requests come to their threads. `running` is the pool as all threads see
//! it, and a `lane` serves one priority. `work` is what its threads do, and `connection` how they share a client's connection.
//! `reading` fills the `request_queue` of a lane. `relieving` helps a lane whose threads are all busy: `relief` finds it,
//! `standby` is its state, and `waiting` raises a thread before it is called to help. `threads` starts all threads, and
//! `endpoints` opens the listeners.

mod config;
mod connection;
pub(crate) mod endpoints;
mod lane;
mod reading;
mod relief;
mod relieving;
mod request_queue;
mod running;
mod standby;
mod threads;
mod waiting;
mod work;

pub(crate) use config::{Intake, LaneConfig, PoolConfig, Route};
#[cfg(test)]
pub(crate) use connection::{Connection, Sharing, Turn};
pub(crate) use lane::Lane;
pub(crate) use request_queue::Buffering;
pub(crate) use running::Pool;
pub(crate) use threads::{begin, serve_here, would_wait_for_itself};
