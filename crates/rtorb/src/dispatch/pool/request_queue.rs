//! The bounded queue between the thread that reads requests and the threads that serve them.

use crate::exception::{SystemException, local};
use crate::limits::Limits;
use crate::server::{Session, TakenRequest, Workspace};
use core::mem;
use core::sync::atomic::{AtomicBool, Ordering};
use rtorb_os::admission::Admission;
use rtorb_os::ring::{PopError, PushError, Ring};
use std::sync::Arc;

/// The requests that wait while all threads are busy, with memory for all of them, so that queueing makes no heap call.
#[derive(Debug)]
pub(super) struct RequestQueue {
    jobs: Ring<Job>,
    /// A call for help is in the queue.
    is_called: AtomicBool,
    /// The memory of served requests.
    spare: Ring<TakenRequest>,
    admission: Admission,
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
    pub(crate) bytes_max: u32,
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
        let bytes_max = match buffering.bytes_max {
            0 => limits.queued_bytes_max(),
            bound => limits.queued_bytes_max().min(bound as usize),
        };
        // Room for the waiting requests, those that threads are about to take, a call for help, and one being taken.
        let jobs = requests_max.saturating_add(threads).saturating_add(2) as usize;
        let spare = Ring::new(jobs);
        while spare.push(TakenRequest::with_room()).is_ok() {}
        Self {
            jobs: Ring::new(jobs),
            is_called: AtomicBool::new(false),
            spare,
            admission: Admission::new(requests_max, bytes_max as u64),
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
    /// Without room, replies TRANSIENT 1, and counts that.
    pub(super) fn put(
        &self,
        session: &Arc<Session>,
        request: &mut TakenRequest,
        threads: u32,
        workspace: &mut Workspace,
    ) {
        if !self.admission.admit(request.octets() as u64, threads) {
            return refuse(session, request, workspace);
        }
        session.state.take();
        let next = self.spare.pop().unwrap_or_default();
        let job = Job::Request(Arc::clone(session), mem::replace(request, next));
        if let Err(refused) = self.jobs.push(job) {
            self.withdraw(refused, workspace);
        }
    }

    /// Undoes what was counted for a request that the ring did not take, and refuses the request.
    #[cold]
    fn withdraw(&self, refused: PushError<Job>, workspace: &mut Workspace) {
        let (is_closed, job) = match refused {
            PushError::Full(job) => (false, job),
            PushError::Closed(job) => (true, job),
        };
        let Job::Request(session, mut request) = job else {
            return;
        };
        self.admission.withdraw(request.octets() as u64);
        session.note_served();
        // A pool that is stopped tells its clients by CloseConnection that the request was not served.
        if !is_closed {
            refuse(&session, &request, workspace);
        }
        request.trim();
        // It cannot fail: there is room for all of them.
        let _ = self.spare.push(request);
    }

    /// The number of requests that were added and not served yet.
    pub(super) fn accepted(&self) -> u32 {
        self.admission.accepted()
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
        self.admission.note_served();
        if let Some(max) = self.of_connection_max {
            session.state.raise_bound(max);
        }
        session.note_served();
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
                self.admission.note_taken(request.octets() as u64);
            }
            // Not a plain store: a thread that finds the queue called already must see what was wanted before.
            Job::Help => {
                self.is_called.swap(false, Ordering::AcqRel);
            }
        }
    }
}

/// Replies TRANSIENT 1 to a request without room, and counts it.
#[cold]
//= RT-CORBA 1.2 §Threadpools
//# A request for which the buffer has no room is refused with TRANSIENT 1.
fn refuse(session: &Session, request: &TakenRequest, workspace: &mut Workspace) {
    session.orb.state.note_refused();
    request.refuse(session, workspace, &NO_ROOM);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Orb;
    use crate::server::{Admission as Accepting, Next, ThreadPriority};
    use crate::tests::world::World;
    use crate::transport::resolver::Resolver;
    use crate::transport::tcp;
    use rtorb_tests::raw::{REPLY, Request};

    fn queue(requests_max: u32, bytes_max: u32, limit: usize) -> RequestQueue {
        let limits = Limits::with(|limits| limits.queued_requests_max = limit);
        let bounds = Buffering {
            requests_max,
            bytes_max,
            ..Buffering::default()
        };
        RequestQueue::new(bounds, 2, &limits)
    }

    /// How many requests of so many octets have room, two threads included.
    fn room(queue: &RequestQueue, octets: usize) -> usize {
        let admitted = |_: &i32| queue.admission.admit(octets as u64, 2);
        (0..1000).take_while(admitted).count()
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
            message_bytes_max: 100,
            ..Limits::default()
        };
        for bytes_max in [0, 1_000_000] {
            let bounds = Buffering {
                bytes_max,
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
        queue.admission.note_served();
        assert_eq!(room(&queue, 50), 1);
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
                .take_next(session, &mut workspace, &mut request);
            assert_eq!(next, Next::Done);

            let queue = queue(1, 0, 100);
            while queue.jobs.push(Job::Help).is_ok() {}
            if is_closed {
                queue.close();
            }
            let refused_before = orb.requests_refused();
            queue.put(session, &mut request, 1, &mut workspace);
            assert_eq!(queue.accepted(), 0);
            assert_eq!(room(&queue, 50), 3, "nothing is counted for it");
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
