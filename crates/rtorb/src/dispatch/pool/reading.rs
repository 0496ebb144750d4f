//! The thread that reads the connections of a lane that buffers requests.

use super::Pool;
use super::connection::Connection;
use super::lane::Lane;
use super::queue::Queue;
use crate::exception::{ExceptionKind, SystemException};
use crate::server::{Event, ServerCore, Session, TakenRequest, Workspace};
use core::mem;
use std::sync::Arc;

/// That thread at work.
pub(super) struct Reader<'p> {
    orb: &'p Arc<ServerCore>,
    pub(super) pool: &'p Pool,
    lane: &'p Lane,
    queue: &'p Queue,
    pub(super) workspace: Workspace,
    /// The request that is being taken out.
    pub(super) request: TakenRequest,
}

impl<'p> Reader<'p> {
    pub(super) fn new(
        orb: &'p Arc<ServerCore>,
        pool: &'p Pool,
        lane: &'p Lane,
        queue: &'p Queue,
    ) -> Self {
        Self {
            orb,
            pool,
            lane,
            queue,
            workspace: lane.workspace(),
            request: TakenRequest::with_room(),
        }
    }

    /// Puts requests into the queue until the pool is stopped.
    pub(super) fn run(mut self) {
        let lane = self.lane;
        while !self.pool.is_stopping() {
            match lane.next_event(None) {
                Some(Event::Connection(token, readiness)) => {
                    Connection::read(&mut self, (lane, token), readiness);
                }
                Some(Event::Listener(number)) => lane.accept(self.orb, number),
                Some(Event::Help | Event::Stop) | None => {}
            }
        }
    }

    /// Puts the request that was taken out into the queue, or answers it with TRANSIENT 1 when there is no room.
    pub(super) fn put(&mut self, session: &Arc<Session>) {
        let threads = self.lane.thread_count();
        if !self.queue.admit(self.request.octets(), threads) {
            //= RT-CORBA 1.2 §Threadpools
            //# A request for which the buffer has no room is refused with TRANSIENT 1.
            let full = SystemException::omg(ExceptionKind::Transient, 1);
            return self.request.refuse(session, &mut self.workspace, &full);
        }
        let request = mem::replace(&mut self.request, self.queue.spare.take());
        self.queue.put(session, request);
        if self.lane.lacks_thread() {
            self.pool.ask_for_help(self.lane);
        }
    }
}
