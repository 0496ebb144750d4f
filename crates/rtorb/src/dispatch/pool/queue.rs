//! The requests that wait in a lane while all its threads are busy, and how many may.

use super::super::spare_requests::SpareRequests;
use super::{Buffering, LaneConfig};
use crate::limits::Limits;
use crate::server::{Session, TakenRequest};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use rtorb_os::ring::{PopError, Ring};
use std::sync::Arc;

/// The queue between the thread that reads a lane's connections and those that serve.
#[derive(Debug)]
pub(super) struct Queue {
    jobs: Ring<Job>,
    /// A call for help is in the queue.
    is_called: AtomicBool,
    pub(super) spare: SpareRequests,
    /// Requests that were put in and not served yet.
    accepted: AtomicU32,
    /// Octets of those that no thread has taken out yet.
    octets: AtomicUsize,
    requests_max: u32,
    octets_max: usize,
}

/// What a thread takes out.
#[derive(Debug)]
pub(super) enum Job {
    /// A request, and where its answer goes.
    Request(Arc<Session>, TakenRequest),
    /// A more urgent lane needs a thread.
    Help,
}

impl Queue {
    /// The queue of a lane, whose bounds are at most those of the ORB's limits.
    pub(super) fn new(buffering: Buffering, lane: &LaneConfig, limits: &Limits) -> Self {
        let limit = limits.queued_requests();
        let requests_max = match buffering.requests_max {
            0 => limit,
            bound => bound.min(limit),
        };
        let octets_max = match buffering.octets_max {
            0 => limits.queued_octets_max(),
            bound => limits.queued_octets_max().min(bound as usize),
        };
        // Beside those that wait are those that threads are about to take, a call for help, and one being taken.
        let threads = lane.static_threads.saturating_add(lane.dynamic_threads);
        let jobs = requests_max.saturating_add(threads).saturating_add(2) as usize;
        Self {
            jobs: Ring::new(jobs),
            is_called: AtomicBool::new(false),
            spare: SpareRequests::new(jobs),
            accepted: AtomicU32::new(0),
            octets: AtomicUsize::new(0),
            requests_max,
            octets_max,
        }
    }

    /// Counts in a request of so many octets, for a lane with so many threads; false if there is no room.
    ///
    /// Called by the one thread that reads, so nobody else takes the place meanwhile. One for which there is a thread
    /// need not fit.
    pub(super) fn admit(&self, octets: usize, threads: u32) -> bool {
        let accepted = self.accepted();
        let waiting = self.octets.load(Ordering::Relaxed);
        let fits = accepted < threads
            || accepted - threads < self.requests_max
                && octets <= self.octets_max.saturating_sub(waiting);
        if fits {
            self.octets.fetch_add(octets, Ordering::Relaxed);
            self.accepted.fetch_add(1, Ordering::Relaxed);
        }
        fits
    }

    /// Requests that were put in and not served yet.
    pub(super) fn accepted(&self) -> u32 {
        self.accepted.load(Ordering::Acquire)
    }

    /// Puts in a request that was admitted.
    pub(super) fn put(&self, session: &Arc<Session>, request: TakenRequest) {
        let put = self.jobs.push(Job::Request(Arc::clone(session), request));
        // A pool that is stopped tells its clients so.
        debug_assert!(
            put.is_ok() || self.jobs.is_closed(),
            "there is room for what was admitted"
        );
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

    /// Counts out a request that was served, and takes its memory back.
    pub(super) fn served(&self, request: TakenRequest) {
        self.accepted.fetch_sub(1, Ordering::Release);
        self.spare.keep(request);
    }

    /// Takes nothing more in; wakes all threads.
    pub(super) fn close(&self) {
        self.jobs.close();
    }

    /// Drops what nobody will serve any more.
    pub(super) fn clear(&self) {
        while self.jobs.pop().is_some() {}
    }

    fn taken(&self, job: &Job) {
        match job {
            Job::Request(_, request) => {
                self.octets.fetch_sub(request.octets(), Ordering::Relaxed);
            }
            // Not just stored: who finds that it is called already is to be seen with what it wishes.
            Job::Help => {
                self.is_called.swap(false, Ordering::AcqRel);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rtorb_os::thread::ThreadConfig;

    fn lane() -> LaneConfig {
        LaneConfig {
            priority: None,
            static_threads: 2,
            dynamic_threads: 0,
            threads: ThreadConfig::default(),
        }
    }

    fn queue(requests_max: u32, octets_max: u32, limit: usize) -> Queue {
        let limits = Limits {
            queued_requests_max: limit,
            ..Limits::default()
        };
        let bounds = Buffering {
            requests_max,
            octets_max,
        };
        Queue::new(bounds, &lane(), &limits)
    }

    /// How many requests of so many octets have room, two threads included.
    fn room(queue: &Queue, octets: usize) -> usize {
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
                requests_max: 0,
                octets_max,
            };
            let queue = Queue::new(bounds, &lane(), &small);
            assert_eq!(room(&queue, 50), 8, "four of the largest messages");
        }
        for (limit, waiting) in [(0, 1), (usize::MAX, 998)] {
            assert_eq!(room(&queue(0, 0, limit), 50), 2 + waiting, "{limit}");
        }
        // Those that no thread has taken yet count as waiting.
        assert_eq!(room(&queue(0, 200, 100), 50), 4);
        assert_eq!(room(&queue(0, 10, 100), 50), 2);
    }

    #[test]
    fn a_request_that_was_served_makes_room() {
        let queue = queue(1, 0, 100);
        assert_eq!(room(&queue, 50), 3);
        queue.served(TakenRequest::default());
        assert_eq!(room(&queue, 50), 1);
    }
}
