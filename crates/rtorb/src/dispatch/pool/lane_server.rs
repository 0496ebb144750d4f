//! What every thread of a lane does with an event, whichever loop it runs.

use super::connection::{Connection, Turn};
use super::lane::Lane;
use super::running::Pool;
use crate::server::{Event, Readiness, ServerCore, TakenRequest, Token, Workspace};
use rtorb_os::sync::MutexGuard;
use std::sync::Arc;

/// The part of a thread that serves a lane: what its loop serves with.
pub(super) struct LaneServer<'p> {
    pub(super) orb: &'p Arc<ServerCore>,
    pub(super) pool: &'p Pool,
    pub(super) lane: &'p Lane,
    /// Held while the thread leads its lane.
    pub(super) leading: Option<MutexGuard<'p, ()>>,
    pub(super) workspace: Workspace,
    /// The request that the thread serves, if that was taken out of its connection.
    request: TakenRequest,
}

impl<'p> LaneServer<'p> {
    pub(super) fn new(orb: &'p Arc<ServerCore>, pool: &'p Pool, lane: &'p Lane) -> Self {
        Self {
            orb,
            pool,
            lane,
            leading: None,
            workspace: lane.workspace(),
            request: TakenRequest::with_room(),
        }
    }

    /// Serves an event of a lane, its own or one that it helps.
    pub(super) fn serve(&mut self, lane: &Lane, event: Event) {
        match event {
            Event::Connection(token, readiness) => {
                if let Some(connection) = lane.connection(token) {
                    self.give_turn(lane, &connection, token, readiness);
                }
            }
            Event::Listener(number) => lane.accept(self.orb, number),
            Event::Look => lane.look_at_connections(self.orb),
            Event::Help | Event::Stop => {}
        }
    }

    /// Serves a connection for one turn.
    // Called in several places, it would not be inlined otherwise: 30 instructions a request.
    #[inline(always)]
    pub(super) fn give_turn(
        &mut self,
        lane: &Lane,
        connection: &Connection,
        token: Token,
        readiness: Readiness,
    ) {
        match connection.serve(readiness, &mut self.workspace, &mut self.request) {
            Turn::Done => {}
            Turn::Taken => {
                // Another thread becomes the leader before the servant is called.
                self.leading = None;
                connection.serve_taken(&mut self.workspace, &mut self.request);
            }
            // The last thread of a pool that stops sends CloseConnection.
            Turn::Over if self.pool.is_stopping() || self.orb.is_stopping() => {}
            Turn::Over => lane.remove(token, &connection.session),
        }
    }
}
