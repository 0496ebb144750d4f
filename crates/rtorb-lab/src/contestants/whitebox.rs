//! What a call costs besides time: locks, heap calls, context switches and system calls, and where its CPU time goes.
//!
//! [`server`] and [`clients`] are the counted processes of our ORB; a [`contestant`] is theirs or those of the peer;
//! [`threads`], [`perf`] and [`strace`] look at either from outside.

pub mod clients;
pub mod contestant;
pub mod counts;
pub mod perf;
pub(crate) mod roles;
pub mod server;
pub mod strace;
pub mod threads;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::processes::Launcher;

use rtorb_instruments::heap;
use rtorb_os::sync;

pub use heap::CountingAllocator;

/// Stops counting heap calls and locks in this process.
pub fn stop_counting() {
    heap::stop_counting();
    sync::stop_counting();
}

/// Starts counting again. A program counts from its start.
pub fn start_counting() {
    heap::start_counting();
    sync::start_counting();
}

/// Calls that are made while something is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// Beside the high-priority client.
    pub low_clients: u32,
    /// The calls of each client.
    pub count: u32,
    /// From one call of the high-priority client to the next; 0 is as fast as it can.
    pub high_period_ns: u32,
    /// The same of each low-priority client.
    pub low_period_ns: u32,
}

impl Run {
    /// The number of all calls.
    #[must_use]
    pub fn requests(&self) -> u32 {
        (self.low_clients + 1) * self.count
    }

    /// How long the clients pause at least.
    #[must_use]
    pub fn pauses(&self) -> Duration {
        let period_ns = self.high_period_ns.max(self.low_period_ns);
        Duration::from_nanos(period_ns.into()) * self.count
    }
}

/// The CORBA priorities of the two kinds of clients, which are also their native ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priorities {
    /// That of all clients but one.
    pub low: u8,
    /// That of the one.
    pub high: u8,
}

impl Priorities {
    /// On either side of what the processes' own threads have; 0 on a host that does not grant SCHED_FIFO.
    #[must_use]
    pub fn of(launcher: &Launcher) -> Self {
        match launcher.placement.fifo {
            Some(_) => Self { low: 40, high: 60 },
            None => Self { low: 0, high: 0 },
        }
    }

    fn words(self) -> [String; 2] {
        [self.low, self.high].map(|priority| priority.to_string())
    }
}
