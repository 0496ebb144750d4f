//! The event loop of a server's or a lane's connections, in which one thread or several wait.
//!
//! It also sends what clients did not take at once: no thread waits for a client that does not read.

use super::session::Session;
use crate::clock::monotonic_ns;
use crate::poller::{Bell, ONCE, Polled, Poller, Token};
use crate::transport::{Listener, Stream};
use core::time::Duration;
use rtorb_os::sync::Mutex;
use rustix::event::epoll::{self, EventFlags};
use rustix::io::Errno;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

/// Everything that the threads of a server or lane wait for.
#[derive(Debug)]
pub(crate) struct EventLoop {
    /// Reports events; [`event`](Self::event) has their meaning.
    pub(crate) poller: Poller,
    send_timeout_ns: u64,
    schedule: Mutex<Schedule>,
}

/// What the timer is set for.
#[derive(Debug, Default)]
struct Schedule {
    /// The connections with unsent bytes, in the order of their deadlines.
    unsent: Vec<SlowClient>,
    /// When listeners are watched again, if some are not, for want of file descriptors.
    resume_ns: Option<u64>,
    /// When connections are to be looked at.
    look_ns: Option<u64>,
}

/// A connection with unsent bytes.
#[derive(Debug)]
struct SlowClient {
    session: Arc<Session>,
    /// The client must take them by this time.
    deadline_ns: u64,
}

/// What has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The server or pool shall end.
    Stop,
    /// A more urgent lane needs a thread.
    Help,
    /// A client connects to the listener of that number.
    Listener(usize),
    /// Connections are to be looked at: some may be silent.
    Look,
    /// A connection can be read, or was closed.
    Connection(Token, Readiness),
}

/// Why a connection is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Readiness {
    /// Bytes have come.
    Readable,
    /// A thread asked for it: it left bytes in the socket or whole messages in the receive buffer.
    Requested,
    /// The client sends no more than what has come, or the connection broke.
    Ended,
}

impl EventLoop {
    /// An event loop that reports nothing yet. Clients have `send_timeout` to take what was sent to them.
    pub(super) fn new(send_timeout: Duration) -> Result<Self, Errno> {
        Ok(Self {
            poller: Poller::with_timer()?,
            send_timeout_ns: nanoseconds(send_timeout),
            schedule: Mutex::default(),
        })
    }

    /// Reports [`Event::Stop`] from when `stop` is rung, and clients that connect.
    pub(super) fn add_server(&self, stop: &Bell, listeners: &[Listener]) -> Result<(), Errno> {
        self.poller.add(stop, Token::number(STOP), EventFlags::IN)?;
        for (number, listener) in listeners.iter().enumerate() {
            let token = token_of_listener(number);
            let interest = EventFlags::IN;
            #[cfg(simulation)]
            let interest = if rtorb_os::simulation::is_planted("client-unheard") {
                ONCE
            } else {
                interest
            };
            self.poller.add(&listener.socket, token, interest)?;
        }
        Ok(())
    }

    /// Reports [`Event::Help`] to one of the threads.
    pub(crate) fn call_for_help(&self) {
        self.poller.ring();
    }

    /// The meaning of an event; `None` if the loop has handled it.
    #[inline]
    pub(crate) fn event(&self, event: &epoll::Event, listeners: &[Listener]) -> Option<Event> {
        match Polled::of(event) {
            Polled::Entry(token, flags) if flags.contains(EventFlags::OUT) => {
                self.writable(token, flags)
            }
            Polled::Entry(token, flags) => Some(Event::Connection(token, readiness(flags))),
            other => self.rare_event(other, listeners),
        }
    }

    /// The meaning of an event that is not one of a connection.
    #[cold]
    fn rare_event(&self, event: Polled, listeners: &[Listener]) -> Option<Event> {
        match event {
            Polled::Timer => self.expire(listeners),
            Polled::Numbered(STOP) => Some(Event::Stop),
            Polled::Numbered(number) => Some(Event::Listener((number - FIRST_LISTENER) as usize)),
            Polled::Bell | Polled::Entry(..) => Some(Event::Help),
        }
    }

    /// Watches a connection.
    pub(crate) fn add(&self, token: Token, session: &Session) -> Result<(), Errno> {
        self.poller.add(&session.stream, token, READABLE)
    }

    /// Reports the connection again, now: bytes were left in its socket or messages in its receive buffer.
    pub(crate) fn request(&self, token: Token, stream: &Stream) {
        // Sending is nearly always possible, so that watching for it reports the connection at once. It fails for a
        // connection that is no longer watched, of which nothing is to be reported.
        let interest = READABLE | EventFlags::OUT;
        let _ = self.poller.change(stream, token, interest);
    }

    /// Reports only when bytes come.
    pub(super) fn await_readable(&self, token: Token, stream: &Stream) {
        let _ = self.poller.change(stream, token, READABLE);
    }

    /// Reports only, and once, that the connection broke.
    #[cold]
    pub(super) fn ignore(&self, token: Token, stream: &Stream) {
        let _ = self.poller.change(stream, token, EventFlags::ET);
    }

    /// Sends the outbox when the socket takes it, and keeps the session until then. Nothing is read meanwhile.
    #[cold]
    pub(super) fn await_writable(&self, token: Token, session: &Arc<Session>) {
        #[cfg(simulation)]
        if rtorb_os::simulation::is_planted("outbox-forgotten") {
            return;
        }
        let stream = &session.stream;
        // First noted, then watched: the thread that gets the event finds it. It waits for the caller's lock before it sends.
        self.reschedule(|schedule| {
            schedule.unsent.push(SlowClient {
                session: Arc::clone(session),
                deadline_ns: monotonic_ns().saturating_add(self.send_timeout_ns),
            });
        });
        let interest = stream.room_events() | EventFlags::OUT | EventFlags::ET;
        if self.poller.change(stream, token, interest) == Err(Errno::NOENT) {
            // Without it, the deadline ends the connection.
            let _ = self.poller.add(stream, token, interest);
        }
    }

    /// Stops watching a connection.
    pub(super) fn remove(&self, stream: &Stream) {
        self.poller.remove(stream);
    }

    /// Forgets that a connection has unsent bytes.
    pub(super) fn sent(&self, session: &Session) {
        let unsent = &mut self.schedule.lock().unsent;
        unsent.retain(|other| !core::ptr::eq(&*other.session, session));
    }

    /// Stops watching a listener for a while: the process has no file descriptor for its clients.
    #[cold]
    pub(crate) fn pause(&self, number: usize, listener: &Listener) {
        let token = token_of_listener(number);
        let _ = self
            .poller
            .change(&listener.socket, token, EventFlags::empty());
        self.reschedule(|schedule| {
            schedule
                .resume_ns
                .get_or_insert_with(|| monotonic_ns() + PAUSE_NS);
        });
    }

    /// Watches all listeners again, if some were not.
    #[cold]
    pub(crate) fn resume(&self, listeners: &[Listener]) {
        if self.schedule.lock().resume_ns.take().is_none() {
            return;
        }
        for (number, listener) in listeners.iter().enumerate() {
            let token = token_of_listener(number);
            let _ = self.poller.change(&listener.socket, token, EventFlags::IN);
        }
    }

    /// The socket of a connection takes bytes: sends what is unsent.
    #[cold]
    fn writable(&self, token: Token, flags: EventFlags) -> Option<Event> {
        let has_token = |unsent: &&SlowClient| unsent.session.token() == Some(token);
        let found = {
            let unsent = &self.schedule.lock().unsent;
            let found = unsent.iter().find(has_token);
            found.map(|unsent| Arc::clone(&unsent.session))
        };
        let Some(session) = found else {
            return Some(Event::Connection(token, readiness(flags)));
        };
        session.stream.note_room_event();
        match session.flush() {
            Ok(true) => Some(Event::Connection(token, Readiness::Requested)),
            Ok(false) => None,
            Err(_) => Some(Event::Connection(token, Readiness::Ended)),
        }
    }

    /// Does what the timer was set for: ends the connections whose clients left bytes unread for too long, and watches listeners
    /// again.
    #[cold]
    fn expire(&self, listeners: &[Listener]) -> Option<Event> {
        let now_ns = monotonic_ns();
        let (late, resumes, looks) = {
            let mut schedule = self.schedule.lock();
            let unsent = schedule.unsent.iter();
            let late = unsent.take_while(|unsent| unsent.deadline_ns <= now_ns);
            let late: Vec<_> = late.map(|unsent| Arc::clone(&unsent.session)).collect();
            let resumes = schedule.resume_ns.is_some_and(|at_ns| at_ns <= now_ns);
            let looks = schedule.look_ns.take_if(|at_ns| *at_ns <= now_ns);
            (late, resumes, looks.is_some())
        };
        late.iter().for_each(|session| session.give_up());
        if resumes {
            self.resume(listeners);
        }
        self.reschedule(|_| {});
        looks.then_some(Event::Look)
    }

    /// Reports [`Event::Look`] after this time.
    #[cold]
    pub(crate) fn look_after(&self, time: Duration) {
        let look_ns = monotonic_ns().saturating_add(nanoseconds(time));
        self.reschedule(|schedule| schedule.look_ns = Some(look_ns));
    }

    /// As [`look_after`](Self::look_after), unless a look is scheduled already.
    #[cold]
    pub(crate) fn look_first_after(&self, time: Duration) {
        if self.schedule.lock().look_ns.is_none() {
            self.look_after(time);
        }
    }

    /// Changes the schedule, and sets the timer for what is next.
    fn reschedule(&self, change: impl FnOnce(&mut Schedule)) {
        let mut schedule = self.schedule.lock();
        change(&mut schedule);
        let unsent_ns = schedule.unsent.first().map(|unsent| unsent.deadline_ns);
        #[cfg(simulation)]
        if rtorb_os::simulation::is_planted("slow-client-kept") {
            return;
        }
        let next_ns = [unsent_ns, schedule.resume_ns, schedule.look_ns];
        self.poller.set_timer(next_ns.into_iter().flatten().min());
    }
}

impl AsFd for EventLoop {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.poller.as_fd()
    }
}

/// The number of the signal to stop; those of listeners follow.
const STOP: u32 = 0;
const FIRST_LISTENER: u32 = STOP + 1;

const READABLE: EventFlags = ONCE.union(EventFlags::RDHUP);

/// How long a listener is not watched when the process has no file descriptor left, in nanoseconds; a connection that ends
/// shortens it.
const PAUSE_NS: u64 = 100_000_000;

const ENDED: EventFlags = EventFlags::RDHUP
    .union(EventFlags::HUP)
    .union(EventFlags::ERR);

fn readiness(flags: EventFlags) -> Readiness {
    if flags.intersects(ENDED) {
        Readiness::Ended
    } else if flags.contains(EventFlags::OUT) {
        Readiness::Requested
    } else {
        Readiness::Readable
    }
}

fn token_of_listener(number: usize) -> Token {
    Token::number(FIRST_LISTENER + number as u32)
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
