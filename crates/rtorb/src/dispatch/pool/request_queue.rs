//! The bounded queue between the thread that reads requests and the threads that serve them, in the order of arrival.

use super::request_room::{Buffering, QueuedRequest, RequestRoom};
use crate::limits::Limits;
use crate::server::{Session, TakenRequest, Workspace};
use core::sync::atomic::{AtomicBool, Ordering};
use rtorb_os::ring::{PopError, PushError, Ring};
use std::sync::Arc;

/// The requests that wait while all threads are busy.
#[derive(Debug)]
pub(crate) struct RequestQueue {
    pub(crate) room: RequestRoom,
    jobs: Ring<Job>,
    /// A call for help is in the queue.
    is_called: AtomicBool,
}

/// The work that a thread takes out.
#[derive(Debug)]
pub(crate) enum Job {
    Request(QueuedRequest),
    /// A more urgent lane needs a thread.
    Help,
}

impl RequestQueue {
    /// Makes an empty queue from which `threads` threads take; its bounds are at most those of the ORB's limits.
    pub(crate) fn new(buffering: Buffering, threads: u32, limits: &Limits) -> Self {
        let room = RequestRoom::new(buffering, threads, limits);
        Self {
            jobs: Ring::new(room.capacity()),
            room,
            is_called: AtomicBool::new(false),
        }
    }

    /// Adds `request` at the end, and replaces it by memory for the next one. `threads` is the current number of threads.
    ///
    /// Without room, replies TRANSIENT 1, and counts that.
    pub(crate) fn put(
        &self,
        session: &Arc<Session>,
        request: &mut TakenRequest,
        threads: u32,
        workspace: &mut Workspace,
    ) {
        if !RequestRoom::take_place(session, request, workspace) {
            return;
        }
        let Some(queued) = self.room.admit(session, request, threads) else {
            return RequestRoom::refuse(session, request, workspace);
        };
        if let Err(refused) = self.jobs.push(Job::Request(queued)) {
            self.withdraw(refused, workspace);
        }
    }

    /// Refuses a request that the ring did not take.
    #[cold]
    fn withdraw(&self, refused: PushError<Job>, workspace: &mut Workspace) {
        let (is_closed, job) = match refused {
            PushError::Full(job) => (false, job),
            PushError::Closed(job) => (true, job),
        };
        if let Job::Request(queued) = job {
            self.room.withdraw(queued, is_closed, workspace);
        }
    }

    /// Asks one of the threads for help elsewhere.
    pub(crate) fn call(&self) {
        if !self.is_called.swap(true, Ordering::AcqRel) && self.jobs.push(Job::Help).is_err() {
            // It has a place of its own, so only a stopped pool refuses it. Otherwise the next caller asks again.
            self.end_call();
        }
    }

    /// Notes that no call for help is in the queue.
    fn end_call(&self) {
        // Not a plain store: whoever takes the next call must see what callers wanted before that found the queue called already.
        self.is_called.swap(false, Ordering::AcqRel);
    }

    /// Takes out the oldest request, waiting until `deadline_ns`.
    pub(crate) fn next(&self, deadline_ns: Option<u64>) -> Result<Job, PopError> {
        self.jobs
            .pop_until(deadline_ns)
            .inspect(|job| self.taken(job))
    }

    /// True if nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    /// Accepts no more requests, and wakes all threads.
    pub(crate) fn close(&self) {
        self.jobs.close();
    }

    /// Drops the requests that will not be served any more.
    pub(crate) fn clear(&self) {
        while self.jobs.pop().is_some() {}
    }

    fn taken(&self, job: &Job) {
        match job {
            Job::Request(queued) => self.room.note_taken(&queued.request),
            Job::Help => self.end_call(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::request_room::tests::room;
    use super::*;
    use crate::Orb;
    use crate::server::{Admission as Accepting, Next, ThreadPriority};
    use crate::tests::world::World;
    use crate::transport::resolver::Resolver;
    use crate::transport::tcp;
    use rtorb_tests::raw::{REPLY, Request};

    fn queue() -> RequestQueue {
        let bounds = Buffering {
            requests_max: 1,
            ..Buffering::default()
        };
        RequestQueue::new(bounds, 2, &Limits::default())
    }

    #[test]
    fn a_call_for_help_that_the_ring_does_not_take_is_made_again_later() {
        let queue = queue();
        while queue.jobs.push(Job::Help).is_ok() {}
        queue.call();
        queue.clear();
        queue.call();
        assert!(matches!(queue.next(Some(0)), Ok(Job::Help)), "it is asked");
    }

    /// A request that the ring does not take, which the bounds exclude as long as threads take their jobs out completely.
    #[test]
    fn a_request_that_cannot_be_queued_is_refused_and_takes_no_room() {
        let _world = World::perfect();
        let orb = Orb::builder().build().expect("an ORB");
        orb.root_poa().expect("it listens");
        let core = &orb.core.adapters.server;
        let server = core.server().expect("it is open");
        let address = server.listeners[0].bound.clone();
        let crate::endpoint::Endpoint::Tcp { host, port } = address else {
            panic!("the default endpoint is TCP");
        };
        for is_closed in [false, true] {
            let client = tcp::connect(&Resolver::default(), &host, port, u64::MAX);
            let client = client.expect("it listens");
            let sent = client.send_message_now(&Request::two_way(b"key", "op").empty(), &[]);
            sent.expect("there is room");
            let Accepting::Accepted(mut connection) = server.accept(core, &server.listeners[0])
            else {
                panic!("a client waits");
            };
            let mut workspace = Workspace::new(ThreadPriority::keeping());
            let mut request = TakenRequest::with_room();
            let session = &connection.session;
            assert!(connection.reading.get_buffer(session));
            connection.reading.receive_now(session).expect("a request");
            let next = connection
                .reading
                .take_next::<false>(session, &mut workspace, &mut request);
            assert_eq!(next, Next::Done);

            let queue = queue();
            while queue.jobs.push(Job::Help).is_ok() {}
            if is_closed {
                queue.close();
            }
            let refused_before = orb.requests_refused();
            queue.put(session, &mut request, 1, &mut workspace);
            assert_eq!(queue.room.accepted(), 0);
            assert_eq!(room(&queue.room, 50), 3, "nothing is counted for it");
            let mut reply = [0; 256];
            let received = client.receive_now(&mut reply);
            let refused = orb.requests_refused() - refused_before;
            if is_closed {
                assert_eq!((received.is_ok(), refused), (false, 0));
            } else {
                let length = received.expect("an exception");
                let words = String::from_utf8_lossy(&reply[..length]).into_owned();
                assert!(reply[7] == REPLY && words.contains("TRANSIENT"), "{words}");
                assert_eq!(refused, 1);
            }
        }
    }
}
