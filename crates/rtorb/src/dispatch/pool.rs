//! A thread pool at work: lanes with their own listening endpoints, connections and threads.

pub(crate) mod endpoints;

use crate::rt::{Priority, ThreadpoolId};
use crate::server::Server;
use rtorb_os::thread::ThreadConfig;

/// What a pool is made with.
#[derive(Clone, Debug)]
pub(crate) struct PoolConfig {
    pub(crate) id: ThreadpoolId,
    pub(crate) lanes: Vec<LaneConfig>,
    /// False for a pool whose one lane stands for a pool without lanes: its threads take the priority of what they serve.
    pub(crate) has_lanes: bool,
    /// A lane without an idle thread takes one of a less urgent lane.
    pub(crate) allow_borrowing: bool,
    /// Requests wait in the pool while all threads are busy; without it they wait in their connections.
    pub(crate) buffering: Option<Buffering>,
}

/// What a lane is made with.
#[derive(Clone, Debug)]
pub(crate) struct LaneConfig {
    /// The CORBA priority of its threads, or that of idle ones of a pool without lanes; `None` leaves it to `threads`.
    pub(crate) priority: Option<Priority>,
    pub(crate) static_threads: u32,
    pub(crate) dynamic_threads: u32,
    /// How its threads run; the policy is that of `priority` where there is one.
    pub(crate) threads: ThreadConfig,
}

/// The bounds of requests that wait in a pool or lane; 0 is no bound of this kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Buffering {
    pub(crate) requests_max: u32,
    pub(crate) octets_max: u32,
}

/// A running pool.
#[derive(Debug)]
pub(crate) struct Pool {
    pub(crate) config: PoolConfig,
    pub(crate) lanes: Vec<Lane>,
}

/// A running lane.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) priority: Option<Priority>,
    /// Its listening endpoints and connections.
    pub(crate) server: Server,
}
