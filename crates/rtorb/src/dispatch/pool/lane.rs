//! A lane: threads of one priority with listening endpoints, connections and events of their own.

use super::borrowing::Standby;
use super::config::{Intake, LaneConfig, PoolConfig};
use super::connection::{Concurrency, Connection};
use super::deadline_queue::DeadlineQueue;
use super::request_queue::RequestQueue;
use super::request_room::RequestRoom;
use super::thread_count::ThreadCount;
use crate::connection::{BidirectionalConnection, RequestCarrier};
use crate::dispatch::thread_per_request::RequestThreads;
use crate::exception::{SystemException, local};
use crate::limits::Limits;
use crate::realtime::{NativePriority, Priority, Reservation};
use crate::recorder::RecordedLane;
use crate::server::{
    Event, EventLoop, EventRoom, GIVING_WAY_MAX, ServedConnection, Server, ServerCore, Session,
    ThreadPriority, Token, Workspace, refuse,
};
use crate::strategies::RequestOrder;
use crate::thread_state;
use crate::transport::{Listener, Stream};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering, fence};
use rtorb_os::slab::{Slab, SlabGuard};
use rtorb_os::sync::Mutex;
use rtorb_os::thread::ThreadConfig;
use rustix::event::epoll;
use rustix::io::Errno;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// A running lane.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) priority: Option<Priority>,
    /// Its listening endpoints and connections.
    pub(crate) server: Server,
    pub(crate) number: usize,
    /// The beginning of the names of its threads.
    pub(crate) name: String,
    /// The static threads with which it starts.
    pub(crate) static_threads: u32,
    /// Its static threads.
    pub(crate) count: ThreadCount,
    /// The number of the next static thread that is added.
    next_place: AtomicU32,
    /// The number of events that a thread takes at a time: one if another thread could serve the next.
    events_max: AtomicUsize,
    /// Several threads serve it, or have served it.
    is_shared: AtomicBool,
    /// Its servants call it, and wait for another of its threads.
    calls_itself: AtomicBool,
    /// The scheduling of its threads; of several levels, that of the lowest.
    pub(crate) threads: ThreadConfig,
    /// The native priorities above that of the lane that its threads have.
    pub(super) priorities_above: NativePriority,
    pub(super) reservation: Option<Reservation>,
    pub(crate) order: RequestOrder,
    /// Which of the dynamic threads exist.
    pub(crate) dynamic: Box<[AtomicBool]>,
    pub(crate) events: Arc<EventLoop>,
    pub(crate) connections: Slab<Connection>,
    /// The number of connections, which is known without the slab's lock.
    connected: AtomicUsize,
    pub(crate) source: Source,
    /// For a lane that may need help or lend threads.
    pub(crate) standby: Option<Standby>,
    calls: Calls,
    /// The number of threads that may still serve its clients.
    running: AtomicU32,
    /// The place of the connection that is looked at next.
    next_look: AtomicUsize,
}

/// Where the threads of a lane get requests.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "a lane has one of them, and finds its queue without a pointer"
)]
pub(crate) enum Source {
    /// They wait for the events of its connections, all at once.
    Events,
    /// As [`Events`](Self::Events), but one at a time: the leader, which has the lock. The others wait for the lock in the order
    /// of their priorities.
    Leader(Mutex<()>),
    /// From a queue, which an I/O thread fills.
    Queue(RequestQueue),
    /// As [`Queue`](Self::Queue), but the most urgent request first, and each thread is a level; or in the order of arrival, and a more
    /// critical request takes the place of a less critical one.
    Levels(DeadlineQueue),
    /// A thread serves one request and ends. An I/O thread starts it.
    PerRequest(RequestThreads),
}

/// The priority of the calls that a lane serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Calls {
    /// That of the lane, whose endpoint the client chose.
    OfLane,
    /// That of the lane, which the server chose.
    Routed,
    /// That of each request.
    OfRequest,
}

/// The time between two looks at some of many connections.
const BETWEEN_LOOKS: Duration = Duration::from_millis(1);

/// The number of events that a thread takes at a time if no other could take the next.
pub(crate) const EVENTS_MAX: usize = 8;

impl Lane {
    /// Creates lane `number` of a pool, without its threads.
    pub(crate) fn open(
        orb: &ServerCore,
        pool: &PoolConfig,
        number: usize,
        listeners: Vec<Listener>,
    ) -> Result<Self, Errno> {
        let config = &pool.lanes[number];
        let server = Server::new(listeners, pool.id, &orb.limits)?;
        let events = server.event_loop(&orb.limits)?;
        let threads_max = config.static_threads.saturating_add(config.dynamic_threads);
        let standby = Standby::of(pool, number);
        let borrows = standby.as_ref().is_some_and(Standby::borrows);
        let source = Source::of(&pool.intake, config, &orb.limits);
        let (threads, priorities_above) = config.scheduling(orb)?;
        let has_one_thread = threads_max == 1 && !borrows;
        Ok(Self {
            priority: config.priority,
            server,
            number,
            name: config.name.clone(),
            static_threads: config.static_threads,
            count: ThreadCount::new(config.static_threads),
            next_place: AtomicU32::new(config.static_threads),
            events_max: AtomicUsize::new(match source {
                Source::Queue(_) | Source::Levels(_) | Source::PerRequest(_) => EVENTS_MAX,
                _ if has_one_thread && standby.is_none() => EVENTS_MAX,
                _ => 1,
            }),
            is_shared: AtomicBool::new(!has_one_thread || matches!(source, Source::PerRequest(_))),
            calls_itself: AtomicBool::new(false),
            threads,
            priorities_above,
            reservation: config.reservation,
            order: config.order,
            dynamic: (0..config.dynamic_threads)
                .map(|_| AtomicBool::new(false))
                .collect(),
            events,
            connections: Slab::new(orb.limits.connections_max.saturating_add(GIVING_WAY_MAX)),
            connected: AtomicUsize::new(0),
            source,
            standby,
            calls: match pool.intake {
                Intake::Routed { .. } => Calls::Routed,
                _ if pool.has_lanes => Calls::OfLane,
                _ => Calls::OfRequest,
            },
            running: AtomicU32::new(0),
            next_look: AtomicUsize::new(0),
        })
    }

    /// The workspace of the calling thread, which belongs to the lane.
    pub(crate) fn workspace(&self) -> Workspace {
        if let Some(priority) = self.priority {
            thread_state::enter_recorder_of(RecordedLane {
                pool: self.server.pool().get(),
                priority: priority.get(),
            });
        }
        Workspace::new(match (self.calls, self.priority) {
            (Calls::OfLane, Some(priority)) => ThreadPriority::of_lane(priority),
            (Calls::Routed, Some(priority)) => ThreadPriority::of_routed_lane(priority),
            _ => ThreadPriority::returning(),
        })
    }

    /// True if at most one thread serves it.
    fn has_one_thread(&self) -> bool {
        self.count.get() == 1 && !self.can_get_help()
    }

    /// True if it has one thread, or levels: a nested call inherits the deadline of its caller, so it is not more urgent, and waits.
    pub(crate) fn serves_one_at_a_time(&self) -> bool {
        let has_levels = matches!(&self.source, Source::Levels(queue) if queue.has_levels());
        self.has_one_thread() || has_levels
    }

    /// The number of events that a thread takes at a time.
    #[inline(always)]
    pub(crate) fn events_max(&self) -> usize {
        self.events_max.load(Ordering::Relaxed)
    }

    /// True if connections with bulk replies wait until no other can be read: one thread serves all of them.
    pub(crate) fn defers(&self) -> bool {
        self.events_max() > 1 && self.room().is_none()
    }

    /// When several of its threads serve one connection at a time.
    fn sharing(&self) -> Concurrency {
        match &self.source {
            Source::Leader(_) => Concurrency::Always,
            _ if self.is_shared.load(Ordering::SeqCst) => Concurrency::Pipelined,
            _ => Concurrency::Never,
        }
    }

    /// Has its thread share its connections with others that are about to start. A lane that has had several threads goes on so.
    pub(crate) fn share(&self) {
        if self.is_shared.swap(true, Ordering::SeqCst) {
            return;
        }
        if self.room().is_none() {
            self.events_max.store(1, Ordering::SeqCst);
        }
        self.connections.retain(|connection| {
            connection.share();
            true
        });
        // The thread that waits takes one event at a time from now on.
        self.call();
    }

    /// The number of a static thread that is added.
    pub(crate) fn take_place(&self) -> u32 {
        self.next_place.fetch_add(1, Ordering::Relaxed)
    }

    /// Notes that one of its servants calls it. What is asked next, by this thread, is true for that call.
    pub(crate) fn note_own_call(&self) {
        self.calls_itself.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    /// Returns true if its servants call objects of the same lane: with one thread, such a call would get no reply.
    pub(crate) fn calls_itself(&self) -> bool {
        self.calls_itself.load(Ordering::SeqCst)
    }

    /// Counts the calling thread off if the lane has too many, and serves no request: one in progress may wait for a call that needs
    /// this thread.
    #[cold]
    pub(crate) fn releases_thread(&self) -> bool {
        if !self.is_quiet() || !self.count.claim() {
            return false;
        }
        // A request that has begun meanwhile sees the smaller number, or is seen here.
        fence(Ordering::SeqCst);
        if self.has_one_thread() && self.calls_itself() {
            self.count.stay();
            return false;
        }
        let is_released = self.is_quiet();
        if !is_released {
            self.count.unclaim();
        }
        is_released
    }

    /// True if no request is in progress.
    fn is_quiet(&self) -> bool {
        match self.room() {
            Some(room) => room.accepted() == 0,
            None => self.server.is_idle(),
        }
    }

    /// The queue, if requests wait in the order of their arrival.
    pub(crate) fn queue(&self) -> Option<&RequestQueue> {
        match &self.source {
            Source::Queue(queue) => Some(queue),
            Source::Events | Source::Leader(_) | Source::Levels(_) | Source::PerRequest(_) => None,
        }
    }

    /// The room of its queue, if an I/O thread fills one.
    pub(crate) fn room(&self) -> Option<&RequestRoom> {
        match &self.source {
            Source::Queue(queue) => Some(&queue.room),
            Source::Levels(queue) => Some(&queue.room),
            Source::PerRequest(threads) => Some(&threads.room),
            Source::Events | Source::Leader(_) => None,
        }
    }

    /// The connection of an event.
    #[inline]
    pub(crate) fn connection(&self, token: Token) -> Option<SlabGuard<'_, Connection>> {
        self.connections.get(token.key())
    }

    /// Removes a connection that has ended. It is closed when the last thread that replies on it is done.
    #[cold]
    pub(crate) fn remove(&self, token: Token, session: &Session) {
        session.end_reading();
        if self.connections.remove(token.key()) {
            session.orb.buffers.note_freed();
            self.connected.fetch_sub(1, Ordering::Relaxed);
        }
        self.events.resume(&self.server.listeners);
    }

    /// The current number of its threads.
    pub(crate) fn thread_count(&self) -> u32 {
        let dynamic = self
            .dynamic
            .iter()
            .filter(|thread| thread.load(Ordering::Relaxed));
        self.count.get() + dynamic.count() as u32
    }

    /// Accepts a client that connects to one of the listening endpoints.
    pub(crate) fn accept(&self, orb: &Arc<ServerCore>, listener: usize) {
        self.server
            .accept_one(orb, &self.events, listener, |connection| {
                let session = Arc::clone(&connection.session);
                if !self.watch(connection) {
                    // The host can watch no more descriptors: this client is refused, the others are not affected.
                    refuse(&session);
                }
            });
    }

    /// Serves a connection that this ORB has opened. `make` makes the caller's half.
    ///
    /// # Errors
    /// NO_RESOURCES if the lane has too many connections, or the host refuses to watch another one.
    pub(crate) fn serve_opened(
        &self,
        orb: &Arc<ServerCore>,
        stream: Stream,
        make: &mut dyn FnMut(Weak<dyn RequestCarrier>) -> BidirectionalConnection,
    ) -> Result<Arc<BidirectionalConnection>, SystemException> {
        let adopted = self.server.adopt(orb, stream, make);
        let (served, connection) = adopted.ok_or(local::SERVED_FULL)?;
        let session = Arc::clone(&served.session);
        if !self.watch(served) {
            return Err(local::DESCRIPTOR_REFUSED);
        }
        // Its server is no stranger.
        session.note_answered();
        Ok(connection)
    }

    /// Watches a new connection. Returns false if the host can watch no more descriptors.
    fn watch(&self, connection: ServedConnection) -> bool {
        let session = Arc::clone(&connection.session);
        let key = self
            .connections
            .insert(Connection::new(connection, self.sharing()));
        let is_watched = key.is_some_and(|key| {
            // The lane may have got threads since.
            if self.sharing() != Concurrency::Never
                && let Some(connection) = self.connections.get(key)
            {
                connection.share();
            }
            let token = Token::of(key);
            let is_watched = session.attach(&self.events, token).is_ok();
            is_watched || !self.connections.remove(key)
        });
        if is_watched {
            self.events.look_first_after(self.server.look_period());
            self.connected.fetch_add(1, Ordering::Relaxed);
        }
        is_watched
    }

    /// Ends connections whose messages do not arrive, and takes memory from silent ones, some at a time.
    #[cold]
    pub(crate) fn look_at_connections(&self, orb: &ServerCore) {
        let from = self.next_look.load(Ordering::Relaxed);
        let next = self.server.look_at_connections(from, |session, look| {
            if let Some(connection) = session.token().and_then(|token| self.connection(token)) {
                connection.look(look);
            }
        });
        self.next_look.store(next.unwrap_or(0), Ordering::Relaxed);
        if next.is_some() {
            return self.events.look_after(BETWEEN_LOOKS);
        }
        orb.buffers.trim();
        self.events.look_after(self.server.look_period());
    }

    /// True if the client of this connection, through shared memory, sends again within the moment for which its wait strategy
    /// lingers. False at once if the lane has other connections: they would wait meanwhile.
    pub(crate) fn linger(&self, token: Token) -> bool {
        self.connected.load(Ordering::Relaxed) == 1
            && self
                .connection(token)
                .is_some_and(|connection| connection.session.stream.linger())
    }

    /// Waits for events, at most `timeout_ns`; none after the timeout or a signal.
    #[inline]
    pub(crate) fn wait<'r>(
        &self,
        room: &'r mut EventRoom,
        timeout_ns: Option<u64>,
    ) -> &'r [epoll::Event] {
        self.events.poller.wait(room, timeout_ns)
    }

    /// The meaning of an event; `None` for one that is handled here.
    #[inline]
    pub(crate) fn event(&self, event: &epoll::Event) -> Option<Event> {
        self.events.event(event, &self.server.listeners)
    }

    /// Stops all its threads, and refuses new clients.
    pub(crate) fn stop(&self) {
        self.count.stop();
        self.server.stop();
        match &self.source {
            Source::Queue(queue) => queue.close(),
            Source::Levels(queue) => queue.close(),
            Source::Events | Source::Leader(_) | Source::PerRequest(_) => {}
        }
    }

    /// Drops the requests that will not be served any more.
    pub(crate) fn drop_requests(&self) {
        match &self.source {
            Source::Queue(queue) => queue.clear(),
            Source::Levels(queue) => queue.clear(),
            Source::Events | Source::Leader(_) | Source::PerRequest(_) => {}
        }
    }

    /// Counts threads with which it starts.
    pub(crate) fn expect(&self, threads: u32) {
        self.running.fetch_add(threads, Ordering::Release);
    }

    /// Counts one more thread that serves its clients; false if the last one has already ended.
    pub(crate) fn enter(&self) -> bool {
        let more = |running| (running > 0).then_some(running + 1);
        let entered = self
            .running
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, more);
        entered.is_ok()
    }

    /// Counts a thread that no longer serves its clients; true if it is the last one.
    pub(crate) fn leave(&self) -> bool {
        self.running.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Closes the connections with CloseConnection.
    pub(crate) fn close(&self) {
        self.server.close_all();
        self.events.close();
        self.connections.clear();
    }
}

impl Source {
    fn of(intake: &Intake, config: &LaneConfig, limits: &Limits) -> Self {
        let buffering = match intake {
            Intake::Queue(buffering) | Intake::Routed { buffering, .. } => Some(*buffering),
            Intake::Direct | Intake::Leader => None,
            Intake::PerRequest => return Self::PerRequest(RequestThreads::new(limits)),
        };
        if config.order != RequestOrder::Fifo {
            let bounds = buffering.unwrap_or_default();
            let levels = config.static_threads;
            return Self::Levels(DeadlineQueue::new(config.order, bounds, levels, limits));
        }
        let threads = config.static_threads.saturating_add(config.dynamic_threads);
        match (intake, buffering) {
            (_, Some(bounds)) => Self::Queue(RequestQueue::new(bounds, threads, limits)),
            (Intake::Leader, None) => Self::Leader(Mutex::default()),
            (_, None) => Self::Events,
        }
    }
}
