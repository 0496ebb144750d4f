//! What a call costs besides time: locks, heap calls, context switches and system calls, and where its CPU time goes.
//!
//! [`server`] and [`clients`] are the counted processes of our ORB, [`omniorb`] those of the peer; [`threads`] and [`perf`]
//! look at either from outside.

pub mod clients;
pub mod counts;
pub mod omniorb;
pub mod perf;
pub(crate) mod roles;
pub mod server;
pub mod strace;
pub mod threads;

pub use rtorb_os::heap::{CountingAllocator, start_counting, stop_counting};

/// The CORBA priorities of the two kinds of clients, which are also their native ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priorities {
    /// That of all clients but one.
    pub low: u8,
    /// That of the one.
    pub high: u8,
}

impl Priorities {
    /// For a host that grants SCHED_FIFO: on either side of what the processes' own threads have.
    pub const REAL_TIME: Self = Self { low: 40, high: 60 };
    /// For one that does not.
    pub const NONE: Self = Self { low: 0, high: 0 };

    /// Whether threads shall be scheduled in real time.
    #[must_use]
    pub fn are_real_time(self) -> bool {
        self.low > 0
    }
}
