//! The bounded queue between the thread that reads requests and the threads that serve them.

use crate::exception::{SystemException, local};
use crate::limits::Limits;
use crate::server::{Session, TakenRequest, Workspace};
use core::mem;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use rtorb_os::ring::{PopError, Ring};
use std::sync::Arc;

/// The requests that wait while all threads are busy, with memory for all of them, so that queueing makes no heap call.
#[derive(Debug)]
pub(super) struct RequestQueue {
    jobs: Ring<Job>,
    /// A call for help is in the queue.
    is_called: AtomicBool,
    /// The memory of served requests.
    spare: Ring<TakenRequest>,
    /// The number of requests that were added and not served yet.
    accepted: AtomicU32,
    /// The bytes of the requests that no thread has taken yet.
    bytes: AtomicUsize,
    requests_max: u32,
    bytes_max: usize,
    /// The bound on the requests of one connection, if it has one. At the bound, the connection is not read.
    of_connection_max: Option<u32>,
}

/// The bound on the requests of one connection in a queue, unless there are more threads. So each of many clients that
/// pipeline delays others by a few requests only.
const OF_CONNECTION_MAX: u32 = 4;

/// The bounds of requests that wait in a pool or lane; 0 leaves it to the ORB's limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Buffering {
    pub(crate) requests_max: u32,
    pub(crate) octets_max: u32,
    /// Each connection has a small bound of its own. Beyond it, the client waits instead of getting TRANSIENT.
    pub(crate) bounds_connections: bool,
}

/// The work that a thread takes out.
#[derive(Debug)]
pub(super) enum Job {
    /// A request, and where its reply goes.
    Request(Arc<Session>, TakenRequest),
    /// A more urgent lane needs a thread.
    Help,
}

/// The reply to a request without room in the queue (CORBA 3: a discarded request).
const NO_ROOM: SystemException = local::NO_ROOM;

impl RequestQueue {
    /// An empty queue for so many threads; its bounds are at most those of the ORB's limits.
    pub(super) fn new(buffering: Buffering, threads: u32, limits: &Limits) -> Self {
        let limit = limits.queued_requests();
        let requests_max = match buffering.requests_max {
            0 => limit,
            bound => bound.min(limit),
        };
        let bytes_max = match buffering.octets_max {
            0 => limits.queued_octets_max(),
            bound => limits.queued_octets_max().min(bound as usize),
        };
        // Room for the waiting requests, those that threads are about to take, a call for help, and one being taken.
        let jobs = requests_max.saturating_add(threads).saturating_add(2) as usize;
        let spare = Ring::new(jobs);
        while spare.push(TakenRequest::with_room()).is_ok() {}
        Self {
            jobs: Ring::new(jobs),
            is_called: AtomicBool::new(false),
            spare,
            accepted: AtomicU32::new(0),
            bytes: AtomicUsize::new(0),
            requests_max,
            bytes_max,
            of_connection_max: buffering
                .bounds_connections
                .then(|| threads.max(OF_CONNECTION_MAX)),
        }
    }

    /// True if a connection has reached its bound here: it must not be read until some of its requests are served.
    pub(super) fn holds(&self, session: &Session) -> bool {
        self.of_connection_max.is_some() && session.is_held()
    }

    /// Adds `request` at the end, and replaces it by memory for the next one. `threads` is the current number of threads.
    ///
    /// Without room, replies TRANSIENT 1.
    pub(super) fn put(
        &self,
        session: &Arc<Session>,
        request: &mut TakenRequest,
        threads: u32,
        workspace: &mut Workspace,
    ) {
        if !self.admit(request.octets(), threads) {
            //= RT-CORBA 1.2 §Threadpools
            //# A request for which the buffer has no room is refused with TRANSIENT 1.
            return request.refuse(session, workspace, &NO_ROOM);
        }
        if self.of_connection_max.is_some() {
            session.note_queued();
        }
        let next = self.spare.pop().unwrap_or_default();
        let job = Job::Request(Arc::clone(session), mem::replace(request, next));
        let put = self.jobs.push(job);
        // A pool that is stopped closes its connections.
        debug_assert!(
            put.is_ok() || self.jobs.is_closed(),
            "there is room for what was admitted"
        );
    }

    /// Counts a request of so many bytes; false if there is no room.
    ///
    /// Only the reading thread calls this, so that no other can take the room meanwhile. If a thread is free for the request, it
    /// needs no room.
    fn admit(&self, bytes: usize, threads: u32) -> bool {
        let accepted = self.accepted();
        let waiting = self.bytes.load(Ordering::Relaxed);
        let fits = accepted < threads
            || accepted - threads < self.requests_max
                && bytes <= self.bytes_max.saturating_sub(waiting);
        if fits {
            self.bytes.fetch_add(bytes, Ordering::Relaxed);
            self.accepted.fetch_add(1, Ordering::Relaxed);
        }
        fits
    }

    /// The number of requests that were added and not served yet.
    pub(super) fn accepted(&self) -> u32 {
        self.accepted.load(Ordering::Acquire)
    }

    /// Asks one of the threads for help elsewhere.
    pub(super) fn call(&self) {
        if !self.is_called.swap(true, Ordering::AcqRel) {
            // It is refused only when the pool is stopped.
            let _ = self.jobs.push(Job::Help);
        }
    }

    /// Takes out the oldest request, waiting until `deadline_ns`.
    pub(super) fn next(&self, deadline_ns: Option<u64>) -> Result<Job, PopError> {
        self.jobs
            .pop_until(deadline_ns)
            .inspect(|job| self.taken(job))
    }

    /// Takes out the oldest request if there is one.
    pub(super) fn next_now(&self) -> Option<Job> {
        self.jobs.pop().inspect(|job| self.taken(job))
    }

    /// True if nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    /// Serves a request that was taken out, and takes its memory back; not more of it than a small request may keep.
    pub(super) fn serve(
        &self,
        session: &Session,
        mut request: TakenRequest,
        workspace: &mut Workspace,
    ) {
        // A connection that breaks is shut, which the thread that reads it finds.
        let _ = request.serve(session, workspace);
        self.accepted.fetch_sub(1, Ordering::Release);
        if let Some(max) = self.of_connection_max {
            session.note_served(max);
        }
        request.trim();
        // It cannot fail: there is room for all of them.
        let _ = self.spare.push(request);
    }

    /// Accepts no more requests, and wakes all threads.
    pub(super) fn close(&self) {
        self.jobs.close();
    }

    /// Drops the requests that will not be served any more.
    pub(super) fn clear(&self) {
        while self.jobs.pop().is_some() {}
    }

    fn taken(&self, job: &Job) {
        match job {
            Job::Request(_, request) => {
                self.bytes.fetch_sub(request.octets(), Ordering::Relaxed);
            }
            // Not a plain store: a thread that finds the queue called already must see what was wanted before.
            Job::Help => {
                self.is_called.swap(false, Ordering::AcqRel);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(requests_max: u32, octets_max: u32, limit: usize) -> RequestQueue {
        let limits = Limits::with(|limits| limits.queued_requests_max = limit);
        let bounds = Buffering {
            requests_max,
            octets_max,
            ..Buffering::default()
        };
        RequestQueue::new(bounds, 2, &limits)
    }

    /// How many requests of so many octets have room, two threads included.
    fn room(queue: &RequestQueue, octets: usize) -> usize {
        (0..1000).take_while(|_| queue.admit(octets, 2)).count()
    }

    #[test]
    fn what_threads_are_there_for_needs_no_room_and_the_rest_is_bounded() {
        assert_eq!(room(&queue(3, 0, 100), 50), 2 + 3);
        assert_eq!(
            room(&queue(0, 0, 7), 50),
            2 + 7,
            "the limits bound what nothing else does"
        );
        assert_eq!(
            room(&queue(30, 0, 7), 50),
            2 + 7,
            "and what is more than they allow"
        );
        let small = Limits {
            message_octets_max: 100,
            ..Limits::default()
        };
        for octets_max in [0, 1_000_000] {
            let bounds = Buffering {
                octets_max,
                ..Buffering::default()
            };
            let queue = RequestQueue::new(bounds, 2, &small);
            assert_eq!(room(&queue, 50), 8, "four of the largest messages");
        }
        for (limit, waiting) in [(0, 1), (usize::MAX, 998)] {
            assert_eq!(room(&queue(0, 0, limit), 50), 2 + waiting, "{limit}");
        }
        // A request that no thread has taken yet counts as waiting.
        assert_eq!(room(&queue(0, 200, 100), 50), 4);
        assert_eq!(room(&queue(0, 10, 100), 50), 2);
    }

    #[test]
    fn a_request_that_was_served_makes_room() {
        let queue = queue(1, 0, 100);
        assert_eq!(room(&queue, 50), 3);
        queue.accepted.fetch_sub(1, Ordering::Release);
        assert_eq!(room(&queue, 50), 1);
    }
}
