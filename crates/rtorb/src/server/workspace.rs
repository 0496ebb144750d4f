//! What a serving thread keeps from one request to the next.

use super::call::Scratch;
use super::thread_priority::ThreadPriority;
use crate::server::NameCache;

/// The memory of a thread that serves, for whatever connection, and its priority.
#[derive(Debug)]
pub(crate) struct Workspace {
    /// The buffer for replies.
    pub(super) out: Vec<u8>,
    pub(super) scratch: Scratch,
    pub(super) names: NameCache,
    pub(crate) priority: ThreadPriority,
}

/// What most replies need: a thread that serves its first request is to make no heap call for it.
const ROOM_BYTES: usize = 512;

impl Workspace {
    /// For the calling thread, which treats the priorities of calls so.
    pub(crate) fn new(priority: ThreadPriority) -> Self {
        Self {
            out: Vec::with_capacity(ROOM_BYTES),
            scratch: Scratch::default(),
            names: NameCache::default(),
            priority,
        }
    }
}
