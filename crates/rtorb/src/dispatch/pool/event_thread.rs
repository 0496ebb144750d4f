//! A thread that serves what it reads: the only thread of a lane, one of several, or the one that leads.

use super::connection::{Connection, TURN_MAX};
use super::lane::EVENTS_MAX;
use super::lane_server::LaneServer;
use crate::server::{Event, EventRoom, Readiness, Token};
use core::mem::MaybeUninit;
use rtorb_os::sync::Mutex;
use std::collections::VecDeque;

/// A thread that waits for the events of its lane and serves them.
pub(super) struct EventThread<'p> {
    server: LaneServer<'p>,
    /// If only the leader of the lane waits for events, the lock that the leader has.
    leader: Option<&'p Mutex<()>>,
    /// Connections that wait until no other has an event, because their next replies may be bulk.
    deferred: VecDeque<(Token, Readiness)>,
    /// The largest number of them: none if another thread could serve the other connections.
    deferred_max: usize,
    /// The connection that was served last, if that is one through shared memory whose wait strategy lingers.
    lingering: Option<Token>,
    /// The number of times that the thread lingered and did not look at the events of its lane.
    lingered: u32,
}

/// Connections that wait for others at a time. A further one is served at once.
const DEFERRED_MAX: usize = 64;

impl<'p> EventThread<'p> {
    pub(super) fn new(server: LaneServer<'p>, leader: Option<&'p Mutex<()>>) -> Self {
        let is_alone = server.lane.events_max() > 1;
        let deferred_max = if is_alone { DEFERRED_MAX } else { 0 };
        Self {
            server,
            leader,
            deferred: VecDeque::with_capacity(deferred_max),
            deferred_max,
            lingering: None,
            lingered: 0,
        }
    }

    /// Serves until the pool is stopped.
    pub(super) fn run(mut self) {
        let mut room = [MaybeUninit::uninit(); EVENTS_MAX];
        let room = &mut room[..self.server.lane.events_max()];
        while !self.server.pool.is_stopping() {
            self.server.leading = self.leader.map(Mutex::lock);
            if !self.serve_lingering() {
                self.serve_events(room);
            }
            self.server.leading = None;
        }
    }

    fn serve_events(&mut self, room: &mut EventRoom) {
        let lane = self.server.lane;
        let timeout_ns = (!self.deferred.is_empty()).then_some(0);
        for event in lane.wait(room, timeout_ns) {
            match lane.event(event) {
                Some(Event::Connection(token, readiness)) => {
                    self.serve_connection(token, readiness);
                }
                Some(event) => self.server.serve(lane, event),
                None => {}
            }
        }
        if !self.deferred.is_empty() {
            self.serve_deferred();
        }
    }

    #[inline]
    fn serve_connection(&mut self, token: Token, readiness: Readiness) {
        let Some(connection) = self.server.lane.connection(token) else {
            return;
        };
        if connection.session.state.may_be_bulk() && self.defer(token, readiness) {
            return;
        }
        self.give_turn(&connection, token, readiness);
    }

    // Called in several places, it would not be inlined otherwise: 30 instructions a request.
    #[inline(always)]
    fn give_turn(&mut self, connection: &Connection, token: Token, readiness: Readiness) {
        let lane = self.server.lane;
        // A leader that lingered would only take the CPU from the thread that serves.
        if connection.session.stream.lingers() && self.leader.is_none() {
            self.lingering = Some(token);
        }
        self.server.give_turn(lane, connection, token, readiness);
    }

    /// Serves the lane's only client again, if it calls again at once; returns false if the thread has to wait for events.
    ///
    /// After some calls it does, so that a client that connects, and a stop of the pool, are seen.
    #[inline]
    fn serve_lingering(&mut self) -> bool {
        match self.lingering {
            Some(token) if self.deferred.is_empty() => self.linger(token),
            _ => false,
        }
    }

    #[cold]
    fn linger(&mut self, token: Token) -> bool {
        let lane = self.server.lane;
        if self.lingered < TURN_MAX
            && lane.linger(token)
            && let Some(connection) = lane.connection(token)
        {
            self.lingered += 1;
            self.give_turn(&connection, token, Readiness::Readable);
            return true;
        }
        self.lingered = 0;
        self.lingering = None;
        false
    }

    /// Has a connection wait until no other has an event; returns false if it is to be served now.
    #[cold]
    fn defer(&mut self, token: Token, readiness: Readiness) -> bool {
        let is_deferred = self.deferred.len() < self.deferred_max;
        if is_deferred {
            self.deferred.push_back((token, readiness));
        }
        is_deferred
    }

    /// Serves the connection that has been deferred for the longest time.
    #[cold]
    fn serve_deferred(&mut self) {
        let Some((token, readiness)) = self.deferred.pop_front() else {
            return;
        };
        if let Some(connection) = self.server.lane.connection(token) {
            self.give_turn(&connection, token, readiness);
        }
    }
}
