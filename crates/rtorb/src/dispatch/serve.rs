//! What a serving thread does, whichever loop it runs. Each strategy's file has its loop.

use super::pool::connection::{Connection, TURN_MAX, Turn};
use super::pool::lane::{EVENTS_MAX, Lane};
use super::pool::running::Pool;
use crate::server::{Event, Readiness, ServerCore, TakenRequest, Token, Workspace};
use core::mem::MaybeUninit;
use rtorb_os::slab::Entered;
use rustix::event::epoll;
use std::collections::VecDeque;
use std::sync::Arc;

/// A thread that serves clients, as the loop of its strategy sees it.
pub(super) trait Serve {
    /// A connection that can be read.
    type Client;

    /// Returns true when the thread is to end.
    fn is_stopping(&self) -> bool;

    /// Waits for clients, and passes each connection that can be read to `read`. Accepts clients that connect.
    ///
    /// Connections whose next replies may be bulk come one at a time, when no other can be read.
    fn wait(&mut self, read: impl FnMut(&mut Self, Self::Client));

    /// Lingers at the shared memory of the only client, if that was served last. Returns the client if it calls again at once.
    fn linger(&mut self) -> Option<Self::Client>;

    /// Receives from a connection and serves its requests in place, for one turn. Returns true if it took a request out instead,
    /// which the thread is to [call](Self::call) the servant for.
    fn serve(&mut self, client: &Self::Client) -> bool;

    /// Calls the servant for the request that was taken out, and sends the reply.
    fn call(&mut self, client: &Self::Client);
}

/// A thread that serves the clients of a lane.
pub(super) struct LaneServer<'p> {
    pub(super) orb: &'p Arc<ServerCore>,
    pub(super) pool: &'p Pool,
    pub(super) lane: &'p Lane,
    pub(super) workspace: Workspace,
    /// The request that was taken out of its connection, or memory for the next one.
    pub(super) request: TakenRequest,
    /// The number of events that it takes at a time.
    events_max: usize,
    /// Connections that wait until no other can be read.
    deferred: VecDeque<(Token, Readiness)>,
    /// The largest number of them: none if another thread could serve the other connections.
    deferred_max: usize,
    /// The connection that was served last, if its wait strategy lingers at shared memory.
    lingering: Option<Token>,
    /// The number of times in a row that the thread lingered and did not look at the events of its lane.
    lingered: u32,
}

/// A connection of a lane that can be read.
pub(super) struct Client<'p> {
    pub(super) lane: &'p Lane,
    pub(super) connection: Entered<'p, Connection>,
    pub(super) token: Token,
    pub(super) readiness: Readiness,
}

/// Connections that wait for others at a time. A further one is served at once.
const DEFERRED_MAX: usize = 64;

impl<'p> LaneServer<'p> {
    /// A thread that serves what it reads, beside the other threads of its lane.
    pub(super) fn new(orb: &'p Arc<ServerCore>, pool: &'p Pool, lane: &'p Lane) -> Self {
        let events_max = lane.events_max();
        let deferred_max = if events_max > 1 { DEFERRED_MAX } else { 0 };
        Self {
            deferred: VecDeque::with_capacity(deferred_max),
            deferred_max,
            events_max,
            ..Self::reader(orb, pool, lane)
        }
    }

    /// The I/O thread of a lane. No other thread reads.
    pub(super) fn reader(orb: &'p Arc<ServerCore>, pool: &'p Pool, lane: &'p Lane) -> Self {
        Self {
            orb,
            pool,
            lane,
            workspace: lane.workspace(),
            request: TakenRequest::with_room(),
            events_max: EVENTS_MAX,
            deferred: VecDeque::new(),
            deferred_max: 0,
            lingering: None,
            lingered: 0,
        }
    }

    /// Returns the connection of an event of a lane, its own or one that it helps. Does what any other event asks for.
    #[inline]
    pub(super) fn client(&self, lane: &'p Lane, event: Event) -> Option<Client<'p>> {
        match event {
            Event::Connection(token, readiness) => return Client::of(lane, token, readiness),
            Event::Listener(number) => lane.accept(self.orb, number),
            Event::Look => lane.look_at_connections(self.orb),
            Event::Help | Event::Stop => {}
        }
        None
    }

    /// Ends a connection that has ended, unless the pool does: its last thread sends CloseConnection.
    #[cold]
    pub(super) fn end(&self, client: &Client<'_>) {
        if !self.pool.is_stopping() && !self.orb.is_stopping() {
            client.lane.remove(client.token, &client.connection.session);
        }
    }

    /// Returns the next client of a wait. `events` is `None` behind the last one.
    #[inline]
    fn next_client(
        &mut self,
        events: &mut Option<core::slice::Iter<'_, epoll::Event>>,
    ) -> Option<Client<'p>> {
        let lane = self.lane;
        for event in events.as_mut()? {
            let event = lane.event(event);
            if let Some(client) = event.and_then(|event| self.client(lane, event))
                && !(client.connection.session.state.may_be_bulk() && self.defer(&client))
            {
                return Some(client);
            }
        }
        *events = None;
        if self.deferred.is_empty() {
            None
        } else {
            self.next_deferred()
        }
    }

    /// Has a connection wait until no other can be read; returns false if it is to be served now.
    #[cold]
    fn defer(&mut self, client: &Client<'_>) -> bool {
        let is_deferred = self.deferred.len() < self.deferred_max;
        if is_deferred {
            self.deferred.push_back((client.token, client.readiness));
        }
        is_deferred
    }

    /// Returns the connection that has been deferred for the longest time.
    #[cold]
    fn next_deferred(&mut self) -> Option<Client<'p>> {
        let (token, readiness) = self.deferred.pop_front()?;
        Client::of(self.lane, token, readiness)
    }

    /// Lingers at a connection, but for a number of calls only, so that a client that connects, and a stop of the pool, are seen.
    #[cold]
    fn linger_at(&mut self, token: Token) -> Option<Client<'p>> {
        if self.lingered < TURN_MAX && self.lane.linger(token) {
            self.lingered += 1;
            return Client::of(self.lane, token, Readiness::Readable);
        }
        self.lingered = 0;
        self.lingering = None;
        None
    }
}

impl<'p> Client<'p> {
    /// Returns the connection with that token; `None` if it was removed.
    #[inline]
    fn of(lane: &'p Lane, token: Token, readiness: Readiness) -> Option<Self> {
        Some(Self {
            lane,
            connection: lane.connection(token)?,
            token,
            readiness,
        })
    }
}

impl<'p> Serve for LaneServer<'p> {
    type Client = Client<'p>;

    fn is_stopping(&self) -> bool {
        self.pool.is_stopping()
    }

    #[inline(always)]
    fn wait(&mut self, mut read: impl FnMut(&mut Self, Client<'p>)) {
        let mut room = [MaybeUninit::uninit(); EVENTS_MAX];
        let timeout_ns = (!self.deferred.is_empty()).then_some(0);
        let events = self.lane.wait(&mut room[..self.events_max], timeout_ns);
        let mut events = Some(events.iter());
        while let Some(client) = self.next_client(&mut events) {
            read(self, client);
        }
    }

    #[inline]
    fn linger(&mut self) -> Option<Client<'p>> {
        match self.lingering {
            Some(token) if self.deferred.is_empty() => self.linger_at(token),
            _ => None,
        }
    }

    // Called in several places, it would not be inlined otherwise: 30 instructions a request.
    #[inline(always)]
    fn serve(&mut self, client: &Client<'p>) -> bool {
        let connection = &client.connection;
        if connection.session.stream.lingers() {
            self.lingering = Some(client.token);
        }
        match connection.serve(client.readiness, &mut self.workspace, &mut self.request) {
            Turn::Done => {}
            Turn::Taken => return true,
            Turn::Over => self.end(client),
        }
        false
    }

    #[cold]
    fn call(&mut self, client: &Client<'p>) {
        let connection = &client.connection;
        connection.serve_taken(&mut self.workspace, &mut self.request);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A thread whose clients are written down. It notes what its loop does, and stops behind the last wait.
    pub(in crate::dispatch) struct Script<L> {
        /// The connections that each wait reports.
        pub(in crate::dispatch) waits: VecDeque<Vec<Caller>>,
        /// The connections that call again while the thread lingers.
        pub(in crate::dispatch) lingering: VecDeque<Caller>,
        /// What is true at each step.
        pub(in crate::dispatch) look: L,
        pub(in crate::dispatch) steps: Vec<(Step, bool)>,
    }

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(in crate::dispatch) struct Caller {
        pub(in crate::dispatch) number: u32,
        /// Requests are taken out of the connection.
        pub(in crate::dispatch) is_taken_out: bool,
    }

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(in crate::dispatch) enum Step {
        Wait,
        Serve(u32),
        Call(u32),
    }

    /// A client whose requests are served in place.
    pub(in crate::dispatch) fn in_place(number: u32) -> Caller {
        Caller {
            number,
            is_taken_out: false,
        }
    }

    /// A client that sends several requests at once.
    pub(in crate::dispatch) fn pipelining(number: u32) -> Caller {
        Caller {
            number,
            is_taken_out: true,
        }
    }

    impl<L: FnMut() -> bool> Script<L> {
        pub(in crate::dispatch) fn new(waits: impl Into<VecDeque<Vec<Caller>>>, look: L) -> Self {
            Self {
                waits: waits.into(),
                lingering: VecDeque::new(),
                look,
                steps: Vec::new(),
            }
        }

        fn note(&mut self, step: Step) {
            let seen = (self.look)();
            self.steps.push((step, seen));
        }
    }

    impl<L: FnMut() -> bool> Serve for &mut Script<L> {
        type Client = Caller;

        fn is_stopping(&self) -> bool {
            self.waits.is_empty()
        }

        fn wait(&mut self, mut read: impl FnMut(&mut Self, Caller)) {
            self.note(Step::Wait);
            for caller in self.waits.pop_front().unwrap_or_default() {
                read(self, caller);
            }
        }

        fn linger(&mut self) -> Option<Caller> {
            self.lingering.pop_front()
        }

        fn serve(&mut self, client: &Caller) -> bool {
            self.note(Step::Serve(client.number));
            client.is_taken_out
        }

        fn call(&mut self, client: &Caller) {
            self.note(Step::Call(client.number));
        }
    }
}
