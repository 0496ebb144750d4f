//! The memory that a serving thread reuses for its requests.

use super::call::Scratch;
use super::thread_priority::ThreadPriority;
use crate::server::NameCache;
use crate::thread_state;

/// The memory and the priority of a serving thread. It may serve any connection.
#[derive(Debug)]
pub(crate) struct Workspace {
    /// The buffer for replies.
    pub(super) out: Vec<u8>,
    pub(super) scratch: Scratch,
    pub(super) names: NameCache,
    pub(crate) priority: ThreadPriority,
}

/// The size of most replies, so that a thread makes no heap call for its first request.
const ROOM_BYTES: usize = 512;

impl Workspace {
    /// Makes the workspace of the calling thread, which has that priority rule.
    pub(crate) fn new(priority: ThreadPriority) -> Self {
        thread_state::enter_recorder_to_serve();
        Self {
            out: Vec::with_capacity(ROOM_BYTES),
            scratch: Scratch::default(),
            names: NameCache::default(),
            priority,
        }
    }
}
