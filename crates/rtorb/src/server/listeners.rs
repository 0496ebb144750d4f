//! The listening sockets of an ORB, the connections that came in by them, and how all of it is stopped.

use crate::orb::OrbCore;
use crate::server::{Served, ServedConnection};
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
    /// Readable once the ORB shall stop.
    stop: OwnedFd,
    /// The connections being served, to wake whoever waits in them.
    streams: ServedStreams,
    /// A file kept for when there are no others: with its place, a client can be taken in and told to go.
    spare: Mutex<Option<OwnedFd>>,
}

/// The streams being served now.
#[derive(Debug, Default)]
pub(crate) struct ServedStreams {
    streams: Mutex<Vec<Weak<Stream>>>,
}

impl Server {
    pub(crate) fn new(listeners: Vec<Listener>) -> Result<Self, Errno> {
        let stop = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self {
            listeners,
            stop,
            streams: ServedStreams::default(),
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
        self.streams.end_all();
    }

    /// Takes a waiting connection; `None` when there is none, or it could not be served.
    ///
    /// One beyond `Limits::connections_max`, or for which the host has no file left, is told CloseConnection, so that
    /// its client may try elsewhere.
    pub(crate) fn accept(
        &self,
        orb: &Arc<OrbCore>,
        listener: &Listener,
    ) -> Option<(ServedConnection, Arc<Stream>)> {
        let stream = match listener.accept() {
            Ok(stream) => Arc::new(stream),
            Err(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => {
                self.turn_away(orb, listener);
                return None;
            }
            Err(_) => return None,
        };
        stream
            .limit_waits(None, Some(orb.limits.send_timeout))
            .ok()?;
        let mut connection = ServedConnection::new(Arc::clone(orb), Arc::clone(&stream));
        if !self.streams.add(&stream, orb.limits.connections_max) {
            connection.say_closing();
            return None;
        }
        if orb.is_stopping() {
            stream.end_receiving();
        }
        Some((connection, stream))
    }

    /// Takes a connection in the place of the spare file, and tells its client to go.
    ///
    /// Left in the queue, it would keep the listening socket readable, and who waits for that would turn in a circle.
    #[cold]
    fn turn_away(&self, orb: &Arc<OrbCore>, listener: &Listener) {
        let mut spare = self.spare.lock();
        drop(spare.take());
        match listener.accept() {
            Ok(stream) => ServedConnection::new(Arc::clone(orb), Arc::new(stream)).say_closing(),
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

impl ServedStreams {
    /// Notes a stream; false when there are too many.
    fn add(&self, stream: &Arc<Stream>, streams_max: usize) -> bool {
        let mut streams = self.streams.lock();
        if streams.len() >= streams_max {
            streams.retain(|stream| stream.strong_count() > 0);
        }
        let there_is_room = streams.len() < streams_max;
        if there_is_room {
            streams.push(Arc::downgrade(stream));
        }
        there_is_room
    }

    fn end_all(&self) {
        for stream in self.streams.lock().iter().filter_map(Weak::upgrade) {
            stream.end_receiving();
        }
    }
}

/// Serves a connection until it is over, and says CloseConnection if the ORB is what ends it.
pub(crate) fn serve_to_the_end(orb: &OrbCore, connection: &mut ServedConnection) {
    while connection.serve_waiting() == Served::Open {}
    if orb.is_stopping() {
        connection.say_closing();
    }
}
