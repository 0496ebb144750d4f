//! The thread of one level of a lane with a [`DeadlineQueue`].

use super::deadline_queue::DeadlineQueue;
use super::lane_server::LaneServer;

/// Serves the requests of a level until the queue is closed and has none for this level.
pub(super) fn run(mut server: LaneServer<'_>, queue: &DeadlineQueue, level: usize) {
    while let Ok(first) = queue.next(level) {
        let mut next = Some(first);
        while let Some(queued) = next {
            next = queue.serve(level, queued, &mut server.workspace);
        }
    }
}
