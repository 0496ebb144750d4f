//! Thread pools, as the application describes them (RTCORBA::ThreadpoolId and the structs beside it).

use super::priority::Priority;
use core::fmt;

/// A thread pool of one ORB; the first one is 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadpoolId(pub(crate) u32);

impl ThreadpoolId {
    /// Its number (RTCORBA::ThreadpoolId).
    pub fn get(self) -> u32 {
        self.0
    }
}

impl fmt::Display for ThreadpoolId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A lane of a thread pool (RTCORBA::ThreadpoolLane): threads of one priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadpoolLane {
    /// The CORBA priority of its threads.
    pub lane_priority: Priority,
    /// Threads that are there from the beginning; at least 1.
    pub static_threads: u32,
    /// Threads that are added while all others are busy, and end when they have been idle.
    pub dynamic_threads: u32,
}
