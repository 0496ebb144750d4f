//! The event loop of a server's or a lane's connections: one epoll set, in which one thread or several wait.
//!
//! It also sends what clients did not take at once: no thread waits for a client that does not read.

use super::session::Session;
use crate::clock::monotonic_ns;
use crate::transport::{Listener, Stream};
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use rtorb_os::clock::timespec;
use rtorb_os::sync::Mutex;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// Everything that the threads of a server or lane wait for.
#[derive(Debug)]
pub(crate) struct EventLoop {
    epoll: OwnedFd,
    /// Expires when a client has left bytes unread for too long, or when listening is to be tried again.
    timer: OwnedFd,
    send_timeout_ns: u64,
    /// Expires when connections are to be looked at; it is set with the first connection.
    look_timer: OwnedFd,
    has_look_timer: AtomicBool,
    /// The connections with unsent bytes, in the order of their deadlines.
    unsent: Mutex<Vec<Unsent>>,
    /// Some listener is not watched, for want of file descriptors.
    is_paused: AtomicBool,
}

/// A connection with unsent bytes.
#[derive(Debug)]
struct Unsent {
    session: Arc<Session>,
    /// The client must take them by this time.
    deadline_ns: u64,
}

/// Wakes the threads of an event loop.
#[derive(Debug)]
pub(crate) struct Bell(OwnedFd);

impl Bell {
    pub(crate) fn new() -> Result<Self, Errno> {
        eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map(Self)
    }

    pub(crate) fn ring(&self) {
        // It fails only if the counter is full, and then the bell is readable already.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Identifies a connection in its event loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Token(u64);

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
    /// The event loop with that number has an event.
    Loop(usize),
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

/// Room for the events of one system call.
pub(crate) type EventRoom = [MaybeUninit<epoll::Event>];

impl EventLoop {
    /// An event loop that reports nothing yet. Clients have `send_timeout` to take what was sent to them.
    pub(crate) fn new(send_timeout: Duration) -> Result<Self, Errno> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let timer = || {
            let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
            timerfd_create(TimerfdClockId::Monotonic, flags)
        };
        let (timer, look_timer) = (timer()?, timer()?);
        epoll::add(&epoll, &timer, EventData::new_u64(TIMER), ONCE)?;
        epoll::add(&epoll, &look_timer, EventData::new_u64(LOOK), ONCE)?;
        Ok(Self {
            epoll,
            timer,
            look_timer,
            has_look_timer: AtomicBool::new(false),
            send_timeout_ns: u64::try_from(send_timeout.as_nanos()).unwrap_or(u64::MAX),
            unsent: Mutex::default(),
            is_paused: AtomicBool::new(false),
        })
    }

    /// Reports [`Event::Stop`] from when `stop` is rung, and clients that connect.
    pub(super) fn add_server(&self, stop: &Bell, listeners: &[Listener]) -> Result<(), Errno> {
        epoll::add(&self.epoll, stop, EventData::new_u64(STOP), EventFlags::IN)?;
        for (number, listener) in (FIRST_LISTENER..).zip(listeners) {
            let data = EventData::new_u64(number);
            epoll::add(&self.epoll, &listener.socket, data, EventFlags::IN)?;
        }
        Ok(())
    }

    /// Prepares to report events of another loop, once it is [awaited](Self::await_loop).
    pub(crate) fn add_loop(&self, number: usize, other: &Self) -> Result<(), Errno> {
        epoll::add(&self.epoll, other, loop_data(number), EventFlags::empty())
    }

    /// Reports the next event of another loop, once; or none any more.
    pub(crate) fn await_loop(&self, number: usize, other: &Self, is_awaited: bool) {
        let flags = if is_awaited {
            EventFlags::IN | EventFlags::ONESHOT
        } else {
            EventFlags::empty()
        };
        // It cannot fail: the loop was added.
        let _ = epoll::modify(&self.epoll, other, loop_data(number), flags);
    }

    /// Reports [`Event::Help`] when `bell` is rung.
    pub(crate) fn add_help(&self, bell: &Bell) -> Result<(), Errno> {
        epoll::add(&self.epoll, bell, EventData::new_u64(HELP), ONCE)
    }

    /// Waits for events, at most `timeout_ns`; none when none came by then, or a signal did.
    #[inline]
    pub(crate) fn wait<'r>(
        &self,
        room: &'r mut EventRoom,
        timeout_ns: Option<u64>,
    ) -> Result<&'r [epoll::Event], Errno> {
        let timeout = timeout_ns.map(timespec);
        match epoll::wait(&self.epoll, room, timeout.as_ref()) {
            Ok((events, _)) => Ok(events),
            Err(Errno::INTR) => Ok(&[]),
            Err(errno) => Err(errno),
        }
    }

    /// Translates an event; `None` if the loop has handled it.
    #[inline]
    pub(crate) fn event(&self, event: &epoll::Event, listeners: &[Listener]) -> Option<Event> {
        let number = { event.data }.u64();
        let flags = event.flags;
        Some(match number {
            STOP => Event::Stop,
            HELP => Event::Help,
            LOOK => Event::Look,
            TIMER => {
                self.expire(listeners);
                return None;
            }
            _ if number & FIRST_LOOP == FIRST_LOOP => Event::Loop((number - FIRST_LOOP) as usize),
            _ if number & SPECIAL != 0 => Event::Listener((number - FIRST_LISTENER) as usize),
            _ if flags.contains(EventFlags::OUT) => return self.writable(Token(number), flags),
            _ => Event::Connection(Token(number), readiness(flags)),
        })
    }

    /// Watches a connection.
    pub(crate) fn add(&self, token: Token, session: &Session) -> Result<(), Errno> {
        epoll::add(&self.epoll, &session.stream, data(token), READABLE)
    }

    /// Reports the connection again, now: bytes were left in its socket or messages in its receive buffer.
    pub(crate) fn request(&self, token: Token, stream: &Stream) {
        // Sending is nearly always possible, so that watching for it reports the connection at once. It fails for a
        // connection that is no longer watched, of which nothing is to be reported.
        let _ = epoll::modify(&self.epoll, stream, data(token), READABLE | EventFlags::OUT);
    }

    /// Reports only when bytes come.
    pub(super) fn await_readable(&self, token: Token, stream: &Stream) {
        let _ = epoll::modify(&self.epoll, stream, data(token), READABLE);
    }

    /// Reports only, and once, that the connection broke.
    #[cold]
    pub(super) fn ignore(&self, token: Token, stream: &Stream) {
        let _ = epoll::modify(&self.epoll, stream, data(token), EventFlags::ET);
    }

    /// Sends the outbox when the socket takes it, and keeps the session until then. Nothing is read meanwhile.
    #[cold]
    pub(super) fn await_writable(&self, token: Token, session: &Arc<Session>) {
        let stream = session.stream.as_fd();
        let deadline_ns = monotonic_ns().saturating_add(self.send_timeout_ns);
        // First noted, then watched: the thread that gets the event finds it. It waits for the caller's lock before it sends.
        {
            let mut unsent = self.unsent.lock();
            unsent.push(Unsent {
                session: Arc::clone(session),
                deadline_ns,
            });
            if unsent.len() == 1 && !self.is_paused.load(Ordering::Relaxed) {
                set_timer(&self.timer, deadline_ns);
            }
        }
        let interest = session.stream.room_events() | EventFlags::OUT | EventFlags::ET;
        if epoll::modify(&self.epoll, stream, data(token), interest) == Err(Errno::NOENT) {
            // Without it, the deadline ends the connection.
            let _ = epoll::add(&self.epoll, stream, data(token), interest);
        }
    }

    /// Stops watching a connection.
    pub(super) fn remove(&self, stream: &Stream) {
        // It fails only for what is not watched, which is what is wanted.
        let _ = epoll::delete(&self.epoll, stream);
    }

    /// Forgets that a connection has unsent bytes.
    pub(super) fn sent(&self, session: &Session) {
        self.unsent
            .lock()
            .retain(|other| !core::ptr::eq(&*other.session, session));
    }

    /// Stops watching a listener for a while: the process has no file descriptor for its clients.
    #[cold]
    pub(crate) fn pause(&self, number: usize, listener: &Listener) {
        let data = EventData::new_u64(FIRST_LISTENER + number as u64);
        let _ = epoll::modify(&self.epoll, &listener.socket, data, EventFlags::empty());
        if !self.is_paused.swap(true, Ordering::SeqCst) {
            set_timer(&self.timer, monotonic_ns() + PAUSE_NS);
        }
    }

    /// Watches all listeners again, if some were not.
    #[cold]
    pub(crate) fn resume(&self, listeners: &[Listener]) {
        if self.is_paused.swap(false, Ordering::SeqCst) {
            for (number, listener) in (FIRST_LISTENER..).zip(listeners) {
                let data = EventData::new_u64(number);
                let _ = epoll::modify(&self.epoll, &listener.socket, data, EventFlags::IN);
            }
        }
    }

    /// The socket of a connection takes bytes: sends what is unsent.
    #[cold]
    fn writable(&self, token: Token, flags: EventFlags) -> Option<Event> {
        let has_token = |unsent: &&Unsent| unsent.session.token() == Some(token);
        let found = {
            let unsent = self.unsent.lock();
            unsent
                .iter()
                .find(has_token)
                .map(|unsent| Arc::clone(&unsent.session))
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

    /// Ends the connections whose clients left bytes unread for too long.
    #[cold]
    fn expire(&self, listeners: &[Listener]) {
        self.resume(listeners);
        let now_ns = monotonic_ns();
        let late: Vec<_> = {
            let unsent = self.unsent.lock();
            let late = unsent
                .iter()
                .take_while(|unsent| unsent.deadline_ns <= now_ns);
            late.map(|unsent| Arc::clone(&unsent.session)).collect()
        };
        late.iter().for_each(|session| session.give_up());
        if let Some(next) = self.unsent.lock().first() {
            set_timer(&self.timer, next.deadline_ns);
        }
    }

    /// Reports [`Event::Look`] after this time.
    #[cold]
    pub(crate) fn look_after(&self, time: Duration) {
        let time_ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        set_timer(&self.look_timer, monotonic_ns().saturating_add(time_ns));
    }

    /// As [`look_after`](Self::look_after), for the first connection only.
    #[cold]
    pub(crate) fn look_first_after(&self, time: Duration) {
        if !self.has_look_timer.swap(true, Ordering::Relaxed) {
            self.look_after(time);
        }
    }
}

fn set_timer(timer: &OwnedFd, deadline_ns: u64) {
    let expiry = Itimerspec {
        it_interval: timespec(0),
        it_value: timespec(deadline_ns),
    };
    // All that can fail is the number, and that is one of the clock's.
    let _ = timerfd_settime(timer, TimerfdTimerFlags::ABSTIME, &expiry);
}

impl AsFd for EventLoop {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

impl Token {
    /// The token of the connection at a place of a table. `generation` distinguishes it from earlier ones at this place, and
    /// `index` is below 2^31.
    pub(crate) fn new(index: u32, generation: u32) -> Self {
        debug_assert!(u64::from(index) & SPECIAL == 0, "{index} is no place");
        Self(u64::from(generation) << 32 | u64::from(index))
    }

    pub(crate) fn index(self) -> u32 {
        self.0 as u32
    }

    pub(crate) fn generation(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

/// Everything but connections has this bit.
const SPECIAL: u64 = 1 << 31;
const STOP: u64 = SPECIAL;
const HELP: u64 = SPECIAL + 1;
const TIMER: u64 = SPECIAL + 2;
const LOOK: u64 = SPECIAL + 3;
const FIRST_LISTENER: u64 = SPECIAL + 4;
const FIRST_LOOP: u64 = SPECIAL + (1 << 30);

/// An event is reported once, to one of the threads that wait.
const ONCE: EventFlags = EventFlags::IN.union(EventFlags::ET);

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

fn data(token: Token) -> EventData {
    EventData::new_u64(token.0)
}

fn loop_data(number: usize) -> EventData {
    EventData::new_u64(FIRST_LOOP + number as u64)
}
