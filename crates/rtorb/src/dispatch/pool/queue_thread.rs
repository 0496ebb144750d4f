//! A thread that serves the requests of a queue, which an I/O thread fills.

use super::lane_server::LaneServer;
use super::request_queue::{Job, RequestQueue};

/// Serves requests until the queue is closed and empty.
pub(super) fn run(mut server: LaneServer<'_>, queue: &RequestQueue) {
    while let Ok(job) = queue.next(None) {
        // A thread is called to help only in a lane that lends threads.
        if let Job::Request(queued) = job {
            queue.room.serve(queued, &mut server.workspace);
        }
    }
}
