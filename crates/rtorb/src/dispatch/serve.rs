//! What a serving thread does, whichever loop it runs. Each strategy's file has its loop.

use super::pool::connection::{Connection, TURN_MAX, Turn};
use super::pool::lane::{EVENTS_MAX, Lane};
use super::pool::request_queue::{Job, RequestQueue};
use super::pool::request_room::QueuedRequest;
use super::pool::running::Pool;
use crate::server::{Event, Readiness, ServerCore, TakenRequest, Token, Workspace};
use core::mem::MaybeUninit;
use rtorb_os::bounded_queue::BoundedQueue;
use rtorb_os::clock::monotonic_ns;
use rtorb_os::ring::PopError;
use rtorb_os::slab::SlabGuard;
use std::sync::Arc;

/// A thread that serves clients, as the loop of its strategy sees it.
pub(super) trait Serve {
    /// A connection that can be read.
    type Client;

    /// A request from the queue of the lane.
    type Request;

    /// Returns true when the thread is to end.
    fn is_stopping(&self) -> bool;

    /// Waits for clients, and passes each connection that can be read to `read`. Accepts clients that connect.
    ///
    /// If no other thread serves the lane, connections whose next replies may be bulk are [deferred](Self::deferred).
    fn wait(&mut self, read: impl FnMut(&mut Self, Self::Client));

    /// Returns the connection that has been deferred for the longest time.
    fn deferred(&mut self) -> Option<Self::Client> {
        None
    }

    /// Lingers at the shared memory of the only client, if that was served last. Returns the client if it calls again at once.
    fn linger(&mut self) -> Option<Self::Client> {
        None
    }

    /// Receives from a connection and serves its requests in place, for one turn. Returns true if it took a request out instead,
    /// which the thread is to [call](Self::call) the servant for.
    fn serve(&mut self, client: &Self::Client) -> bool;

    /// Calls the servant for the request that was taken out, and sends the reply.
    fn call(&mut self, client: &Self::Client);

    /// Waits for a request in the queue of the lane. `None` when the thread is to end.
    fn next(&mut self) -> Option<Self::Request>;

    /// Calls the servant for a request from the queue, and sends the reply.
    fn answer(&mut self, request: Self::Request);
}

/// A thread that serves the clients of a lane.
pub(super) struct LaneServer<'p> {
    pub(super) orb: &'p Arc<ServerCore>,
    pub(super) pool: &'p Pool,
    pub(super) lane: &'p Lane,
    pub(super) workspace: Workspace,
    /// The request that was taken out of its connection, or memory for the next one.
    pub(super) request: TakenRequest,
    /// Connections that wait until no other can be read.
    deferred: BoundedQueue<(Token, Readiness)>,
    /// The connection that was served last, if its wait strategy lingers at shared memory.
    lingering: Option<Token>,
    /// The number of times in a row that the thread lingered and did not look at the events of its lane.
    lingered: u32,
}

/// A connection of a lane that can be read.
pub(super) struct ReadableClient<'p> {
    pub(super) lane: &'p Lane,
    pub(super) connection: SlabGuard<'p, Connection>,
    pub(super) token: Token,
    pub(super) readiness: Readiness,
}

/// Connections that wait for others at a time. A further one is served at once.
const DEFERRED_MAX: usize = 64;

/// The time between two looks of a thread that is too many, while requests are in progress.
const BETWEEN_LOOKS_NS: u64 = 10_000_000;

impl<'p> LaneServer<'p> {
    /// A thread that serves what it reads, beside the other threads of its lane.
    pub(super) fn new(orb: &'p Arc<ServerCore>, pool: &'p Pool, lane: &'p Lane) -> Self {
        let mut server = Self::reader(orb, pool, lane);
        if lane.defers() {
            server.deferred = server.deferred.with_memory();
        }
        server
    }

    /// The I/O thread of a lane. No other thread reads.
    pub(super) fn reader(orb: &'p Arc<ServerCore>, pool: &'p Pool, lane: &'p Lane) -> Self {
        Self {
            orb,
            pool,
            lane,
            workspace: lane.workspace(),
            request: TakenRequest::with_room(),
            deferred: BoundedQueue::new(DEFERRED_MAX, usize::MAX),
            lingering: None,
            lingered: 0,
        }
    }

    /// Does what an event of a lane asks for that is not one of a connection.
    #[cold]
    pub(super) fn handle(&self, lane: &Lane, event: Event) {
        match event {
            Event::Listener(number) => lane.accept(self.orb, number),
            Event::HeldBack => self.orb.state.note_held_back(),
            Event::Look => lane.look_at_connections(self.orb),
            Event::Help | Event::Stop | Event::Connection(..) => {}
        }
    }

    /// Ends a connection that has ended, unless the pool does: its last thread sends CloseConnection.
    // Inlined, so that the client stays in registers.
    #[inline(always)]
    pub(super) fn end(&self, client: &ReadableClient<'_>) {
        if !self.pool.is_stopping() && !self.orb.is_stopping() {
            client.lane.remove(client.token, &client.connection.session);
        }
    }

    /// True if the thread ends: because the lane is stopped, or has too many threads.
    #[cold]
    fn ends(&self) -> bool {
        let lane = self.lane;
        lane.count.is_stopped() || self.deferred.is_empty() && lane.releases_thread()
    }

    /// Waits for a request in the queue of a lane that may have too many threads. `None` when the thread is to end.
    #[cold]
    fn next_or_end(&self, queue: &RequestQueue) -> Option<QueuedRequest> {
        loop {
            let is_surplus = self.lane.count.is_surplus();
            if is_surplus && self.lane.releases_thread() {
                return None;
            }
            // If a request is in progress, it looks again.
            let look_ns = is_surplus.then(|| monotonic_ns() + BETWEEN_LOOKS_NS);
            match queue.next(look_ns) {
                Ok(Job::Request(queued)) => {
                    if is_surplus {
                        queue.call();
                    }
                    return Some(queued);
                }
                Ok(Job::Help) | Err(PopError::TimedOut) => {}
                Err(PopError::Closed) => return None,
            }
        }
    }

    /// Has a connection wait until no other can be read; returns false if it is to be served now.
    #[cold]
    fn defer(&mut self, token: Token, readiness: Readiness) -> bool {
        self.lane.defers() && self.deferred.push((token, readiness), 0).is_ok()
    }

    #[cold]
    fn next_deferred(&mut self) -> Option<ReadableClient<'p>> {
        let (token, readiness) = self.deferred.pop()?;
        ReadableClient::of(self.lane, token, readiness)
    }

    /// Lingers at a connection, but for a number of calls only, so that a client that connects, and a stop of the pool, are seen.
    #[cold]
    fn linger_at(&mut self, token: Token) -> Option<ReadableClient<'p>> {
        if self.lingered < TURN_MAX && self.lane.linger(token) {
            self.lingered += 1;
            return ReadableClient::of(self.lane, token, Readiness::Readable);
        }
        self.lingered = 0;
        self.lingering = None;
        None
    }
}

impl<'p> ReadableClient<'p> {
    /// Returns the connection with that token; `None` if it was removed.
    #[inline]
    pub(super) fn of(lane: &'p Lane, token: Token, readiness: Readiness) -> Option<Self> {
        Some(Self {
            lane,
            connection: lane.connection(token)?,
            token,
            readiness,
        })
    }
}

impl<'p> Serve for LaneServer<'p> {
    type Client = ReadableClient<'p>;
    type Request = QueuedRequest;

    #[inline(always)]
    fn is_stopping(&self) -> bool {
        self.lane.count.is_surplus() && self.ends()
    }

    #[inline(always)]
    fn wait(&mut self, mut read: impl FnMut(&mut Self, ReadableClient<'p>)) {
        let lane = self.lane;
        let mut room = [MaybeUninit::uninit(); EVENTS_MAX];
        let timeout_ns = (!self.deferred.is_empty()).then_some(0);
        for event in lane.wait(&mut room[..lane.events_max()], timeout_ns) {
            match lane.event(event) {
                Some(Event::Connection(token, readiness)) => {
                    if let Some(client) = ReadableClient::of(lane, token, readiness)
                        && !(client.connection.session.state.may_be_bulk()
                            && self.defer(token, readiness))
                    {
                        read(self, client);
                    }
                }
                Some(event) => self.handle(lane, event),
                None => {}
            }
        }
    }

    #[inline]
    fn deferred(&mut self) -> Option<ReadableClient<'p>> {
        if self.deferred.is_empty() {
            None
        } else {
            self.next_deferred()
        }
    }

    #[inline]
    fn linger(&mut self) -> Option<ReadableClient<'p>> {
        match self.lingering {
            Some(token) if self.deferred.is_empty() => self.linger_at(token),
            _ => None,
        }
    }

    // Called in several places, it would not be inlined otherwise: 30 instructions a request.
    #[inline(always)]
    fn serve(&mut self, client: &ReadableClient<'p>) -> bool {
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

    #[inline(always)]
    fn call(&mut self, client: &ReadableClient<'p>) {
        let connection = &client.connection;
        connection.serve_taken(&mut self.workspace, &mut self.request);
    }

    #[inline]
    fn next(&mut self) -> Option<QueuedRequest> {
        let queue = self.lane.queue()?;
        match queue.next(None).ok()? {
            Job::Request(queued) => Some(queued),
            // It lends no threads, so the number of its threads has changed.
            Job::Help => self.next_or_end(queue),
        }
    }

    #[inline]
    fn answer(&mut self, queued: QueuedRequest) {
        if let Some(queue) = self.lane.queue() {
            queue.room.serve(queued, &mut self.workspace);
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::collections::VecDeque;

    /// A thread whose clients are written down. It notes what its loop does, and stops behind the last wait.
    pub(in crate::dispatch) struct Script<L> {
        /// The connections that each wait reports.
        pub(in crate::dispatch) waits: VecDeque<Vec<ScriptedClient>>,
        /// The connections that are deferred: one for each wait.
        pub(in crate::dispatch) deferred: VecDeque<ScriptedClient>,
        /// The connections that call again while the thread lingers.
        pub(in crate::dispatch) lingering: VecDeque<ScriptedClient>,
        /// The requests in the queue of its lane, until that is closed.
        pub(in crate::dispatch) queued: VecDeque<u32>,
        /// What is true at each step.
        pub(in crate::dispatch) look: L,
        pub(in crate::dispatch) steps: Vec<(Step, bool)>,
    }

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(in crate::dispatch) struct ScriptedClient {
        pub(in crate::dispatch) number: u32,
        /// Requests are taken out of the connection.
        pub(in crate::dispatch) is_taken_out: bool,
    }

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(in crate::dispatch) enum Step {
        Wait,
        Serve(u32),
        Call(u32),
        Answer(u32),
    }

    /// A client whose requests are served in place.
    pub(in crate::dispatch) fn in_place(number: u32) -> ScriptedClient {
        ScriptedClient {
            number,
            is_taken_out: false,
        }
    }

    /// A client that sends several requests at once.
    pub(in crate::dispatch) fn pipelining(number: u32) -> ScriptedClient {
        ScriptedClient {
            number,
            is_taken_out: true,
        }
    }

    impl<L: FnMut() -> bool> Script<L> {
        pub(in crate::dispatch) fn new(
            waits: impl Into<VecDeque<Vec<ScriptedClient>>>,
            look: L,
        ) -> Self {
            Self {
                waits: waits.into(),
                deferred: VecDeque::new(),
                lingering: VecDeque::new(),
                queued: VecDeque::new(),
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
        type Client = ScriptedClient;
        type Request = u32;

        fn is_stopping(&self) -> bool {
            self.waits.is_empty()
        }

        fn wait(&mut self, mut read: impl FnMut(&mut Self, ScriptedClient)) {
            self.note(Step::Wait);
            for caller in self.waits.pop_front().unwrap_or_default() {
                read(self, caller);
            }
        }

        fn deferred(&mut self) -> Option<ScriptedClient> {
            self.deferred.pop_front()
        }

        fn linger(&mut self) -> Option<ScriptedClient> {
            self.lingering.pop_front()
        }

        fn serve(&mut self, client: &ScriptedClient) -> bool {
            self.note(Step::Serve(client.number));
            client.is_taken_out
        }

        fn call(&mut self, client: &ScriptedClient) {
            self.note(Step::Call(client.number));
        }

        fn next(&mut self) -> Option<u32> {
            self.note(Step::Wait);
            self.queued.pop_front()
        }

        fn answer(&mut self, request: u32) {
            self.note(Step::Answer(request));
        }
    }
}
