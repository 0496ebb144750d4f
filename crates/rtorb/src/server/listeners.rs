//! The listening sockets of an ORB, the connections that came in by them, and how all of it is stopped.

use crate::rt::ThreadpoolId;
use crate::server::ServerCore;
use crate::server::{ServedConnection, Session};
use crate::transport::{Listener, Stream};
use rtorb_os::clock::{monotonic_ns, sleep_until};
use rtorb_os::sync::Mutex;
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Weak};

/// What an ORB listens with.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) listeners: Vec<Listener>,
    /// The pool that serves what comes in by them.
    pool: ThreadpoolId,
    /// Readable once the ORB shall stop.
    stop: OwnedFd,
    /// The connections being served, to wake whoever waits in them.
    sessions: Sessions,
    /// A file kept for when there are no others: with its place, a client can be taken in and told to go.
    spare: Mutex<Option<OwnedFd>>,
}

/// The connections being served now.
#[derive(Debug, Default)]
struct Sessions {
    open: Mutex<Vec<Weak<Session>>>,
}

impl Server {
    /// Serves for that pool; [`ThreadpoolId::OWN`] is the dispatch strategy.
    pub(crate) fn new(listeners: Vec<Listener>, pool: ThreadpoolId) -> Result<Self, Errno> {
        let stop = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self {
            listeners,
            pool,
            stop,
            sessions: Sessions::default(),
            spare: Mutex::new(spare_file()),
        })
    }

    /// What becomes readable when the ORB shall stop.
    pub(crate) fn stop_signal(&self) -> BorrowedFd<'_> {
        self.stop.as_fd()
    }

    /// Wakes the accepting thread and every thread that waits for a request; whoever connects from now on is refused.
    pub(crate) fn stop(&self) {
        self.listeners.iter().for_each(Listener::end);
        // The counter cannot overflow: the ORB is stopped once.
        let _ = rustix::io::write(&self.stop, &1u64.to_ne_bytes());
        self.sessions.each(|session| session.stream.end_receiving());
    }

    /// Tells all clients CloseConnection; to be called when nothing of theirs is in progress any more.
    pub(crate) fn say_closing_to_all(&self) {
        self.sessions.each(Session::say_closing);
    }

    /// Takes a waiting connection; `None` when there is none, or it could not be served.
    ///
    /// One beyond `Limits::connections_max`, or for which the host has no file left, is told CloseConnection, so that
    /// its client may try elsewhere.
    pub(crate) fn accept(
        &self,
        orb: &Arc<ServerCore>,
        listener: &Listener,
    ) -> Option<ServedConnection> {
        let stream = match listener.accept() {
            Ok(stream) => stream,
            Err(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => {
                self.turn_away(orb, listener);
                return None;
            }
            Err(_) => return None,
        };
        stream
            .limit_waits(None, Some(orb.limits.send_timeout))
            .ok()?;
        let connection = ServedConnection::new(self.session(orb, stream));
        if !self
            .sessions
            .add(&connection.session, orb.limits.connections_max)
        {
            connection.session.say_closing();
            return None;
        }
        if orb.is_stopping() {
            connection.session.stream.end_receiving();
        }
        Some(connection)
    }

    fn session(&self, orb: &Arc<ServerCore>, stream: Stream) -> Session {
        Session::new(Arc::clone(orb), stream, self.pool)
    }

    /// Takes a connection in the place of the spare file, and tells its client to go.
    ///
    /// Left in the queue, it would keep the listening socket readable, and who waits for that would turn in a circle.
    #[cold]
    fn turn_away(&self, orb: &Arc<ServerCore>, listener: &Listener) {
        let mut spare = self.spare.lock();
        drop(spare.take());
        match listener.accept() {
            Ok(stream) => self.session(orb, stream).say_closing(),
            // Somebody else took the place: it is soon enough to look again.
            Err(_) => sleep_until(monotonic_ns() + SHORTAGE_NS),
        }
        *spare = spare_file();
    }
}

/// Any file will do.
fn spare_file() -> Option<OwnedFd> {
    eventfd(0, EventfdFlags::CLOEXEC).ok()
}

/// How long to do nothing when the host has nothing to give, in nanoseconds.
const SHORTAGE_NS: u64 = 10_000_000;

impl Sessions {
    /// Notes a connection; false when there are too many.
    fn add(&self, session: &Arc<Session>, sessions_max: usize) -> bool {
        let mut open = self.open.lock();
        if open.len() >= sessions_max {
            open.retain(|session| session.strong_count() > 0);
        }
        let there_is_room = open.len() < sessions_max;
        if there_is_room {
            open.push(Arc::downgrade(session));
        }
        there_is_room
    }

    fn each(&self, act: impl Fn(&Session)) {
        for session in self.open.lock().iter().filter_map(Weak::upgrade) {
            act(&session);
        }
    }
}
