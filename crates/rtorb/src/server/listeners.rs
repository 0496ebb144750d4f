//! The listening sockets of an ORB or lane, and their connections. Stops both.

use super::closing::close_all;
use super::connection::ServedConnection;
use super::connection_counts::{ConnectionCounters, ConnectionOutcome};
use super::event_loop::EventLoop;
use super::looks::LookSchedule;
use super::session::{self, Session};
use super::stranger_turns::StrangerTurns;
use crate::Limits;
use crate::clock::monotonic_ns;
use crate::connection::{BidirectionalConnection, RequestCarrier};
use crate::poller::Bell;
use crate::realtime::ThreadpoolId;
use crate::server::ServerCore;
use crate::trace::trace_event;
use crate::transport::{Listener, Stream};
use crate::warning::Warning;
use core::sync::atomic::{AtomicU64, Ordering};
use rtorb_os::sync::Mutex;
use rtorb_wire::connection::ReplyError;
use rtorb_wire::giop::Version;
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::process::{Resource, getrlimit};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// The listening sockets of an ORB or lane, and its connections.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) listeners: Vec<Listener>,
    /// The pool that serves the connections.
    pool: ThreadpoolId,
    /// The bell that stops the threads.
    stop: Bell,
    connections: Connections,
    looks: LookSchedule,
    /// The turns of strangers that have a thread each.
    pub(super) turns: Mutex<StrangerTurns>,
    /// The number of accepted connections.
    accepted: Arc<AtomicU64>,
}

/// The connections being served now.
#[derive(Debug, Default)]
struct Connections {
    open: Mutex<Vec<Weak<Session>>>,
    /// Connections that give way, until they have ended. Their last replies may wait for room. At most [`GIVING_WAY_MAX`].
    leaving: Mutex<Vec<Weak<Session>>>,
    /// The last connection that gave way because file descriptors ran out.
    giving_way: Mutex<GivingWay>,
}

/// A connection that gives way, and how long others wait for that.
#[derive(Debug, Default)]
struct GivingWay {
    session: Weak<Session>,
    until_ns: u64,
}

/// The place of a new connection among those that the limits allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Admittance {
    Free,
    /// That of a connection that gave way.
    GivenUp,
    None,
}

impl Admittance {
    /// The place of the connection that gave way, if one did.
    fn of(gave_way: Option<Weak<Session>>) -> Self {
        gave_way.map_or(Self::None, |_| Self::GivenUp)
    }
}

/// The number of connections that one look examines: the thread serves clients between looks.
const LOOKS_MAX: usize = 64;

/// The number of connections for which memory is reserved.
const CONNECTIONS_KEPT: usize = 1024;

/// Connections that give way at a time, and have not ended yet. They are more than `Limits::connections_max`.
pub(crate) const GIVING_WAY_MAX: usize = 64;

/// How long a connection may take to give way, in nanoseconds. Its thread is in no servant.
const GIVING_WAY_NS: u64 = 20_000_000;

/// What a connection is looked at for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    /// For a message that does not arrive.
    pub(crate) is_for_partial: bool,
    /// The connection has been silent since the last look for silent ones.
    pub(crate) is_silent: bool,
}

/// The outcome of accepting a connection.
#[derive(Debug)]
pub(crate) enum Admission {
    Accepted(ServedConnection),
    /// The client is gone or was refused. Another may wait.
    Refused,
    /// No client waits.
    Empty,
    /// A client waits until an idle connection has ended.
    Pending,
    /// The process has no file descriptor, not even to refuse the client.
    Exhausted,
}

impl Server {
    /// Returns the pool that serves the connections.
    pub(crate) fn pool(&self) -> ThreadpoolId {
        self.pool
    }

    /// Makes the server of a pool; [`ThreadpoolId::OWN`] is that of the dispatch strategy.
    pub(crate) fn new(
        listeners: Vec<Listener>,
        pool: ThreadpoolId,
        limits: &Limits,
    ) -> Result<Self, Errno> {
        reserve(&mut RESERVE.lock());
        let stop = Bell::new()?;
        grow_descriptor_table(&stop, limits.connections_max);
        Ok(Self {
            listeners,
            pool,
            stop,
            connections: Connections::default(),
            looks: LookSchedule::new(limits),
            turns: Mutex::new(StrangerTurns::new(limits)),
            accepted: Arc::default(),
        })
    }

    /// Makes an event loop with its listeners.
    pub(crate) fn event_loop(&self, limits: &Limits) -> Result<Arc<EventLoop>, Errno> {
        let events = EventLoop::new(limits)?;
        events.add_server(&self.stop, &self.listeners)?;
        Ok(Arc::new(events))
    }

    /// Returns the bell, which is readable once the ORB stops.
    pub(crate) fn stop_signal(&self) -> BorrowedFd<'_> {
        self.stop.as_fd()
    }

    /// Wakes the accepting thread and all threads that wait for requests. Clients that connect later are refused.
    pub(crate) fn stop(&self) {
        self.listeners.iter().for_each(Listener::end);
        self.stop.ring();
        #[cfg(simulation)]
        if rtorb_os::simulation::is_planted("stop-unheard") {
            return;
        }
        for session in self.connections.all() {
            if !session.is_watched() {
                session.stream.end_receiving();
            }
        }
    }

    /// True if none of its connections has a request in progress, or a reply that waits to be sent.
    #[cold]
    pub(crate) fn is_idle(&self) -> bool {
        self.connections.are_idle()
    }

    /// Ends all connections with CloseConnection. Call it when none of their requests is in progress.
    pub(crate) fn close_all(&self) {
        close_all(self.connections.all());
    }

    /// Ends the calls that wait for replies over its connections.
    pub(crate) fn end_calls(&self) {
        for session in self.connections.all() {
            session.end_calls(ReplyError::Ended);
        }
    }

    /// The time from one look at the connections to the next.
    pub(crate) fn look_period(&self) -> Duration {
        self.looks.period()
    }

    /// Examines some connections, from place `from` on. Calls `look` with each, and with what the look is for. Returns the place of the
    /// next look; `None` at the end.
    #[cold]
    pub(crate) fn look_at_connections(
        &self,
        from: usize,
        mut look: impl FnMut(&Session, Look),
    ) -> Option<usize> {
        if from == 0 {
            self.looks.begin();
        }
        let is_for_partial = self.looks.is_for_partial();
        let is_for_silent = self.looks.is_for_silent();
        let (sessions, next) = self.connections.some(from);
        for session in sessions {
            let is_silent = is_for_silent && session.is_silent();
            if is_for_silent && !is_silent {
                session.note_look();
            }
            let wanted = Look {
                is_for_partial,
                is_silent,
            };
            look(&session, wanted);
        }
        next
    }

    /// Accepts a client that waits at the listener with that number, for an event loop.
    ///
    /// Accepts only one: connected clients are served before the next one is accepted.
    pub(crate) fn accept_one(
        &self,
        orb: &Arc<ServerCore>,
        events: &EventLoop,
        number: usize,
        take: impl FnOnce(ServedConnection),
    ) {
        let Some(listener) = self.listeners.get(number) else {
            return;
        };
        match self.accept(orb, listener) {
            Admission::Accepted(connection) => take(connection),
            Admission::Refused | Admission::Empty | Admission::Pending => {}
            Admission::Exhausted => return events.pause(),
        }
        events.watch_listener(number, listener);
    }

    /// Accepts a waiting client.
    ///
    /// Beyond `Limits::connections_max`, and when the process has no file descriptor left, the connection that has been idle
    /// for the longest time gives way; if none is idle, the client is refused with CloseConnection.
    pub(crate) fn accept(&self, orb: &Arc<ServerCore>, listener: &Listener) -> Admission {
        let stream = match listener.accept(&orb.shared_memory) {
            Ok(stream) => stream,
            Err(Errno::AGAIN) => return Admission::Empty,
            Err(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => {
                return self.accept_exhausted(orb, listener);
            }
            // A listener that was ended has no clients; of other errors, one client is the cause.
            Err(Errno::INVAL) => return Admission::Empty,
            Err(_) => return Admission::Refused,
        };
        self.accepted.fetch_add(1, Ordering::Relaxed);
        let session = Session::new(orb, stream, self.pool, &self.accepted);
        let counts = &orb.state.connections;
        match self.connections.add(&session, &orb.limits) {
            Admittance::Free => {}
            Admittance::GivenUp => counts.note(ConnectionOutcome::GaveWay),
            Admittance::None => {
                trace_event!(WARN, endpoint = %listener.bound, "a client is refused: Limits::connections_max are open and busy");
                counts.note(ConnectionOutcome::Refused);
                session::refuse(&session.stream, Version::V1_0);
                #[cfg(simulation)]
                if rtorb_os::simulation::is_planted("refused-kept") {
                    core::mem::forget(session);
                }
                return Admission::Refused;
            }
        }
        counts.note(ConnectionOutcome::Accepted);
        if orb.is_stopping() {
            session.stream.end_receiving();
        }
        trace_event!(DEBUG, endpoint = %listener.bound, "a client is accepted");
        Admission::Accepted(ServedConnection::new(session))
    }

    /// Adds a connection that this ORB has opened, over which its server calls back. `None` if there is no place for it.
    pub(crate) fn adopt(
        &self,
        orb: &Arc<ServerCore>,
        stream: Stream,
        make: &mut dyn FnMut(Weak<dyn RequestCarrier>) -> BidirectionalConnection,
    ) -> Option<(ServedConnection, Arc<BidirectionalConnection>)> {
        self.accepted.fetch_add(1, Ordering::Relaxed);
        let session = Session::new(orb, stream, self.pool, &self.accepted);
        match self.connections.add(&session, &orb.limits) {
            Admittance::Free => {}
            Admittance::GivenUp => orb.state.connections.note(ConnectionOutcome::GaveWay),
            Admittance::None => return None,
        }
        if orb.is_stopping() {
            session.stream.end_receiving();
        }
        let connection = session.carry(make);
        let mut served = ServedConnection::new(session);
        served
            .reading
            .become_bidirectional(connection.char_code_set());
        Some((served, connection))
    }

    /// Makes room for a client, or refuses it, when no file descriptor is left.
    ///
    /// A client left in the queue would keep the listening socket readable, and the accepting thread would busy-loop.
    #[cold]
    fn accept_exhausted(&self, orb: &ServerCore, listener: &Listener) -> Admission {
        orb.warnings.warn(&Warning::NoFileDescriptor);
        if self
            .connections
            .is_giving_way_for_a_file(&orb.state.connections)
        {
            return Admission::Pending;
        }
        // The lock keeps other lanes and ORBs of this process from taking the place.
        let mut reserved = RESERVE.lock();
        drop(reserved.take());
        let accepted = listener.accept(&orb.shared_memory);
        if let Ok(stream) = &accepted {
            session::refuse(stream, Version::V1_0);
        }
        let is_refused = accepted.is_ok();
        drop(accepted);
        reserve(&mut reserved);
        if is_refused {
            orb.state.connections.note(ConnectionOutcome::Refused);
            Admission::Refused
        } else {
            Admission::Exhausted
        }
    }
}

/// Refuses an accepted client that cannot be served, and counts it so.
pub(crate) fn refuse(session: &Session) {
    session.orb.state.connections.note_refused_after_all();
    session::refuse(&session.stream, Version::V1_0);
}

/// Opens the reserve file descriptor. It is closed to accept and refuse a client when no other is left.
static RESERVE: Mutex<Option<OwnedFd>> = Mutex::new(None);

fn reserve(reserved: &mut Option<OwnedFd>) {
    if reserved.is_none() {
        // Any file will do.
        *reserved = eventfd(0, EventfdFlags::CLOEXEC).ok();
    }
}

/// Grows the process's table of file descriptors for that many connections.
///
/// When the table of a process with threads grows, the kernel waits for an RCU grace period: an accepting thread would wait some 30
/// ms.
fn grow_descriptor_table(any: &Bell, connections_max: usize) {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let highest = limit.saturating_sub(1).min(connections_max as u64);
    // A table that stays small only costs time later.
    drop(fcntl_dupfd_cloexec(any, highest as RawFd));
}

impl Connections {
    /// Adds a connection. If there are too many, of all or of its address, an idle one gives way.
    fn add(&self, session: &Arc<Session>, limits: &Limits) -> Admittance {
        let mut open = self.open.lock();
        let of_address = |other: &Session| other.address == session.address;
        let mut place = Admittance::Free;
        if session.address.is_some() {
            let others = open.iter().filter_map(Weak::upgrade);
            let count = others.filter(|other| of_address(other)).count();
            if count >= limits.connections_per_address_max {
                place = Admittance::of(self.longest_idle(&mut open, of_address));
            }
        }
        if open.len() >= limits.connections_max {
            open.retain(|session| session.strong_count() > 0);
        }
        if place == Admittance::Free && open.len() >= limits.connections_max {
            place = Admittance::of(self.longest_idle(&mut open, |_| true));
        }
        if place != Admittance::None {
            open.push(Arc::downgrade(session));
        }
        place
    }

    /// Has one idle connection give way, because file descriptors ran out. Returns false if none is idle.
    fn is_giving_way_for_a_file(&self, counts: &ConnectionCounters) -> bool {
        let mut giving_way = self.giving_way.lock();
        if giving_way.session.strong_count() > 0 {
            return monotonic_ns() < giving_way.until_ns;
        }
        let session = self.longest_idle(&mut self.open.lock(), |_| true);
        let is_found = session.is_some();
        if is_found {
            counts.note(ConnectionOutcome::GaveWay);
        }
        *giving_way = GivingWay {
            session: session.unwrap_or_default(),
            until_ns: monotonic_ns() + GIVING_WAY_NS,
        };
        is_found
    }

    /// Returns some connections from a place on, and the place of the next one. Removes those that have ended.
    fn some(&self, from: usize) -> (Vec<Arc<Session>>, Option<usize>) {
        let mut open = self.open.lock();
        if from == 0 {
            open.retain(|session| session.strong_count() > 0);
            open.shrink_to(CONNECTIONS_KEPT);
        }
        let sessions = open.iter().skip(from).take(LOOKS_MAX);
        let sessions = sessions.filter_map(Weak::upgrade).collect();
        let next = from + LOOKS_MAX;
        (sessions, (next < open.len()).then_some(next))
    }

    fn all(&self) -> Vec<Arc<Session>> {
        let open = self.open.lock();
        let leaving = self.leaving.lock();
        #[cfg(simulation)]
        let leaving = if rtorb_os::simulation::is_planted("leaving-forgotten") {
            &[]
        } else {
            &leaving[..]
        };
        let all = open.iter().chain(leaving.iter());
        all.filter_map(Weak::upgrade).collect()
    }

    /// True if no connection has a request in progress. Makes no heap call.
    fn are_idle(&self) -> bool {
        let is_idle = |session: &Weak<Session>| {
            let session = session.upgrade();
            session.is_none_or(|session| session.state.is_idle())
        };
        let open = self.open.lock();
        open.iter().all(is_idle) && self.leaving.lock().iter().all(is_idle)
    }

    /// Has the connection give way that has been idle for the longest time; of several, the oldest. Returns `None` if none of those that
    /// may give way is idle, or if too many give way already.
    fn longest_idle(
        &self,
        open: &mut Vec<Weak<Session>>,
        may_give_way: impl Fn(&Session) -> bool,
    ) -> Option<Weak<Session>> {
        let mut leaving = self.leaving.lock();
        leaving.retain(|session| session.strong_count() > 0);
        if leaving.len() >= GIVING_WAY_MAX {
            return None;
        }
        let idle = open.iter().enumerate().filter_map(|(place, session)| {
            let session = session.upgrade().filter(|it| may_give_way(it))?;
            Some((session.idle_since()?, place))
        });
        let (_, place) = idle.min()?;
        let session = open.remove(place);
        leaving.push(Weak::clone(&session));
        drop(leaving);
        session.upgrade()?.give_way();
        Some(session)
    }
}
