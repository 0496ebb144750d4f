//! The thread that reads the connections of a lane that buffers requests.

use super::super::request_queue::RequestQueue;
use super::Pool;
use super::connection::Connection;
use super::lane::Lane;
use crate::server::{Event, ServerCore, Session, TakenRequest, Workspace};
use std::sync::Arc;

/// The running thread.
pub(super) struct Reader<'p> {
    orb: &'p Arc<ServerCore>,
    pub(super) pool: &'p Pool,
    lane: &'p Lane,
    queue: &'p RequestQueue,
    pub(super) workspace: Workspace,
    /// Memory for the next request.
    pub(super) request: TakenRequest,
}

impl<'p> Reader<'p> {
    pub(super) fn new(
        orb: &'p Arc<ServerCore>,
        pool: &'p Pool,
        lane: &'p Lane,
        queue: &'p RequestQueue,
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
                    Connection::read(&mut self, lane, token, readiness);
                }
                Some(Event::Listener(number)) => lane.accept(self.orb, number),
                Some(Event::Help | Event::Stop) | None => {}
            }
        }
    }

    /// Queues the request that was taken out, or replies TRANSIENT 1 if there is no room.
    pub(super) fn put(&mut self, session: &Arc<Session>) {
        let threads = self.lane.thread_count();
        let (request, workspace) = (&mut self.request, &mut self.workspace);
        self.queue.put(session, request, threads, workspace);
        if self.lane.lacks_thread() {
            self.pool.ask_for_help(self.lane);
        }
    }
}
