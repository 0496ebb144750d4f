//! The I/O thread of a lane: it reads requests and puts them into queues.

use super::config::Intake;
use super::connection::TURN_MAX;
use super::lane::{EVENTS_MAX, Lane, Source};
use super::request_room::RequestRoom;
use super::running::Pool;
use crate::exception::SystemException;
use crate::server::{
    Event, EventRoom, Next, Readiness, ServerCore, Session, TakenRequest, Token, Workspace,
};
use core::mem::MaybeUninit;
use std::sync::Arc;

/// The running thread.
pub(super) struct Reader<'p> {
    pub(super) orb: &'p Arc<ServerCore>,
    pub(super) pool: &'p Pool,
    pub(super) lane: &'p Lane,
    pub(super) room: &'p RequestRoom,
    pub(super) workspace: Workspace,
    /// Memory for the next request.
    pub(super) request: TakenRequest,
}

impl<'p> Reader<'p> {
    /// Puts requests into queues until the pool is stopped.
    pub(super) fn run(mut self) {
        let lane = self.lane;
        let mut room = [MaybeUninit::uninit(); EVENTS_MAX];
        let room: &mut EventRoom = &mut room;
        while !self.pool.is_stopping() {
            for event in lane.wait(room, None) {
                match lane.event(event) {
                    Some(Event::Connection(token, readiness)) => self.read(token, readiness),
                    Some(Event::Listener(number)) => lane.accept(self.orb, number),
                    Some(Event::Look) => lane.look_at_connections(self.orb),
                    _ => {}
                }
            }
        }
    }

    /// Queues the requests that a connection has received.
    fn read(&mut self, token: Token, readiness: Readiness) {
        let Some(connection) = self.lane.connection(token) else {
            return;
        };
        if readiness == Readiness::Requested {
            // Before it is read: a serving thread may request the next event at any time from then on.
            connection.session.end_request();
        }
        // No other thread reads, so it is not locked, and no event is marked.
        let Some(mut reader) = connection.enter(readiness) else {
            return;
        };
        for _ in 0..TURN_MAX {
            // It is read again when its client has taken its replies, or when it has fewer requests in the queue.
            if connection.session.state.has_unsent() || self.room.holds(&connection.session) {
                return;
            }
            match reader.take_one(&mut self.workspace, &mut self.request, &connection) {
                (Next::Done, has_more) => {
                    self.put(&connection.session);
                    if !has_more {
                        return;
                    }
                }
                (Next::Incomplete, _) => return,
                (Next::Over, _) => {
                    // The last thread of a pool that stops sends CloseConnection.
                    if !self.pool.is_stopping() && !self.orb.is_stopping() {
                        self.lane.remove(token, &connection.session);
                    }
                    return;
                }
            }
        }
        connection.session.request_report();
    }

    /// Queues the request that was taken out, or replies TRANSIENT 1 if there is no room.
    fn put(&mut self, session: &Arc<Session>) {
        match self.route(session) {
            Ok(lane) => {
                let threads = lane.thread_count();
                let (request, workspace) = (&mut self.request, &mut self.workspace);
                match &lane.source {
                    Source::Queue(queue) => queue.put(session, request, threads, workspace),
                    Source::Levels(queue) => queue.put(session, request, workspace),
                    Source::Events | Source::Leader(_) => {}
                }
                if lane.lacks_thread() {
                    self.pool.ask_for_help(lane);
                }
            }
            Err(exception) => self
                .request
                .refuse(session, &mut self.workspace, &exception),
        }
    }

    /// The lane that serves the request.
    fn route(&mut self, session: &Session) -> Result<&'p Lane, SystemException> {
        match &self.pool.config.intake {
            Intake::Routed { route, .. } => {
                let number = route.0(session, &self.request, &mut self.workspace)?;
                Ok(&self.pool.lanes[number])
            }
            _ => Ok(self.lane),
        }
    }
}
