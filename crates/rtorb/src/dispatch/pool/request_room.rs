//! The room of a queue: how many requests wait there, the memory for them, and the end of each.

use crate::exception::{SystemException, local};
use crate::limits::Limits;
use crate::server::{Session, TakenRequest, Workspace};
use crate::thread_state;
use core::mem;
use rtorb_os::admission::Admission;
use rtorb_os::ring::Ring;
use std::sync::Arc;

/// The bounds of a queue, what counts against them, and memory for all its requests, so that queueing makes no heap call.
#[derive(Debug)]
pub(crate) struct RequestRoom {
    admission: Admission,
    /// The memory of served requests.
    spare: Ring<TakenRequest>,
    /// The bound on the requests of one connection, if it has one. At the bound, the connection is not read.
    of_connection_max: Option<u32>,
}

/// The bound on the requests of one connection in a queue, unless there are more threads. So each of many clients that
/// pipeline delays others by a few requests only.
const OF_CONNECTION_MAX: u32 = 4;

/// Threads that a queue has room for beyond those with which it is made.
pub(crate) const ADDED_THREADS_MAX: u32 = 64;

/// The bounds of requests that wait in a pool or lane; 0 leaves it to the ORB's limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Buffering {
    pub(crate) requests_max: u32,
    pub(crate) bytes_max: u32,
    /// Each connection has a small bound of its own. Beyond it, the client waits instead of getting TRANSIENT.
    pub(crate) bounds_connections: bool,
}

/// A request of a queue, and where its reply goes.
#[derive(Debug)]
pub(crate) struct QueuedRequest {
    pub(crate) session: Arc<Session>,
    pub(crate) request: TakenRequest,
}

impl RequestRoom {
    /// Makes the empty room of a queue from which `threads` threads take; its bounds are at most those of the ORB's limits.
    pub(crate) fn new(buffering: Buffering, threads: u32, limits: &Limits) -> Self {
        let limit = limits.queued_requests();
        let requests_max = match buffering.requests_max {
            0 => limit,
            bound => bound.min(limit),
        };
        let bytes_max = match buffering.bytes_max {
            0 => limits.queued_bytes_max(),
            bound => limits.queued_bytes_max().min(bound as usize),
        };
        // For the waiting requests, those that threads are about to take, a call for help, and one being taken.
        let requests = requests_max.saturating_add(threads).saturating_add(2) as usize;
        let room = Self {
            admission: Admission::new(requests_max, bytes_max as u64),
            spare: Ring::new(requests.saturating_add(ADDED_THREADS_MAX as usize)),
            of_connection_max: buffering
                .bounds_connections
                .then(|| threads.max(OF_CONNECTION_MAX)),
        };
        room.add_memory(u32::try_from(requests).unwrap_or(u32::MAX));
        room
    }

    /// Makes memory for more requests: those of threads that are added, [`ADDED_THREADS_MAX`] at most.
    #[cold]
    pub(crate) fn add_memory(&self, requests: u32) {
        // Beyond the bound, it is there already.
        let mut made = (0..requests).map(|_| self.spare.push(TakenRequest::with_room()));
        while let Some(Ok(())) = made.next() {}
    }

    /// The most requests in the queue, with what else may be there.
    pub(crate) fn capacity(&self) -> usize {
        self.spare.capacity()
    }

    /// True if a connection has reached its bound here: it must not be read until some of its requests are served.
    pub(crate) fn holds(&self, session: &Session) -> bool {
        self.of_connection_max.is_some() && session.is_held()
    }

    /// Takes a place for `request` among those of its operation, if a served operation bounds them. Otherwise refuses it, and returns false.
    pub(crate) fn take_place(
        session: &Session,
        request: &mut TakenRequest,
        workspace: &mut Workspace,
    ) -> bool {
        !session.orb.timing.bounds_queues() || request.take_place(session, workspace)
    }

    /// Takes `request` in, and replaces it by memory for the next one; `None` without room. `threads` is the current number of
    /// threads.
    // Always: a queue puts the result where it stays, and nothing is moved.
    #[inline(always)]
    pub(crate) fn admit(
        &self,
        session: &Arc<Session>,
        request: &mut TakenRequest,
        threads: u32,
    ) -> Option<QueuedRequest> {
        if !self.admission.admit(request.bytes() as u64, threads) {
            return None;
        }
        if let Some(part) = thread_state::recorder() {
            part.note_accepted(self.admission.accepted());
        }
        session.state.take();
        let next = self.spare.pop().unwrap_or_default();
        Some(QueuedRequest {
            session: Arc::clone(session),
            request: mem::replace(request, next),
        })
    }

    /// Returns true if `request` would have room without `shed`, which are waiting requests.
    #[cold]
    pub(crate) fn would_fit<'q>(
        &self,
        request: &TakenRequest,
        shed: impl Iterator<Item = &'q QueuedRequest>,
    ) -> bool {
        let bytes = |queued: &QueuedRequest| queued.request.bytes() as u64;
        let mut shed = shed.peekable();
        shed.peek().is_some()
            && (self.admission).would_fit(request.bytes() as u64, shed.map(bytes).sum())
    }

    /// Replies TRANSIENT to a request that waited, and counts that: a more critical one takes its place.
    #[cold]
    pub(crate) fn shed(&self, queued: QueuedRequest, workspace: &mut Workspace) {
        queued.session.orb.state.note_shed();
        self.give_up(queued, &local::SHED, workspace);
    }

    /// Replies TIMEOUT to a request that waited until its deadline had passed, and counts that.
    #[cold]
    pub(crate) fn expire(&self, queued: QueuedRequest, workspace: &mut Workspace) {
        let _ = queued.session.orb.timing.refuse_expired();
        self.give_up(queued, &local::EXPIRED, workspace);
    }

    /// Replies with that exception to a request that waited, and gives its room back.
    fn give_up(
        &self,
        queued: QueuedRequest,
        exception: &SystemException,
        workspace: &mut Workspace,
    ) {
        let QueuedRequest { session, request } = queued;
        request.refuse(&session, workspace, exception);
        self.admission.withdraw(request.bytes() as u64);
        session.note_served();
        self.take_back(request);
    }

    /// Undoes what was counted for an admitted request that the queue did not take, and refuses the request, unless the queue is
    /// closed.
    #[cold]
    pub(crate) fn withdraw(
        &self,
        queued: QueuedRequest,
        is_closed: bool,
        workspace: &mut Workspace,
    ) {
        let QueuedRequest {
            session,
            mut request,
        } = queued;
        self.admission.withdraw(request.bytes() as u64);
        session.note_served();
        // A pool that is stopped tells its clients by CloseConnection that the request was not served.
        if !is_closed {
            Self::refuse(&session, &mut request, workspace);
        }
        self.take_back(request);
    }

    /// The number of requests that were admitted and not served yet.
    pub(crate) fn accepted(&self) -> u32 {
        self.admission.accepted()
    }

    /// Counts a request that a thread has taken out.
    #[inline]
    pub(crate) fn note_taken(&self, request: &TakenRequest) {
        self.admission.note_taken(request.bytes() as u64);
    }

    /// Serves a request that was taken out, and takes its memory back.
    #[inline(always)]
    pub(crate) fn serve(&self, queued: QueuedRequest, workspace: &mut Workspace) {
        let QueuedRequest {
            session,
            mut request,
        } = queued;
        request.leave_queue();
        // A connection that breaks is shut, which the thread that reads it finds.
        let _ = request.serve(&session, workspace);
        self.admission.note_served();
        if let Some(max) = self.of_connection_max {
            session.state.raise_bound(max);
        }
        session.note_served();
        self.take_back(request);
    }

    /// Takes the memory of a request back; not more of it than a small request may keep.
    #[inline]
    fn take_back(&self, mut request: TakenRequest) {
        request.trim();
        // It cannot fail: there is room for all of them.
        let _ = self.spare.push(request);
    }

    /// Replies TRANSIENT 1 to a request without room, and counts it.
    #[cold]
    //= RT-CORBA 1.2 §Threadpools
    //# A request for which the buffer has no room is refused with TRANSIENT 1.
    pub(crate) fn refuse(session: &Session, request: &mut TakenRequest, workspace: &mut Workspace) {
        request.leave_queue();
        session.orb.state.note_refused();
        request.refuse(session, workspace, &local::NO_ROOM);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Returns how many requests of this size, in bytes, have room in a queue that two threads serve.
    pub(in super::super) fn room(room: &RequestRoom, bytes: usize) -> usize {
        let admitted = |_: &i32| room.admission.admit(bytes as u64, 2);
        (0..1000).take_while(admitted).count()
    }

    fn bounded(requests_max: u32, bytes_max: u32, limit: usize) -> RequestRoom {
        let limits = Limits::with(|limits| limits.queued_requests_max = limit);
        let bounds = Buffering {
            requests_max,
            bytes_max,
            ..Buffering::default()
        };
        RequestRoom::new(bounds, 2, &limits)
    }

    #[test]
    fn what_threads_are_there_for_needs_no_room_and_the_rest_is_bounded() {
        assert_eq!(room(&bounded(3, 0, 100), 50), 2 + 3);
        assert_eq!(
            room(&bounded(0, 0, 7), 50),
            2 + 7,
            "the limits bound what nothing else does"
        );
        assert_eq!(
            room(&bounded(30, 0, 7), 50),
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
            let bounded = RequestRoom::new(bounds, 2, &small);
            assert_eq!(room(&bounded, 50), 8, "four of the largest messages");
        }
        // A request that no thread has taken yet counts as waiting.
        assert_eq!(room(&bounded(0, 200, 100), 50), 4);
        assert_eq!(room(&bounded(0, 10, 100), 50), 2);
    }

    #[test]
    fn a_request_that_was_served_makes_room() {
        let bounded = bounded(1, 0, 100);
        assert_eq!(room(&bounded, 50), 3);
        bounded.admission.note_served();
        assert_eq!(room(&bounded, 50), 1);
    }
}
