//! The event loop of the connections of a server or lane. One thread or several wait in it.
//!
//! It also sends replies that a socket did not take at once, so no thread waits for a client that does not read.
//!
//! The poller reports each connection whose client is known. It reports all strangers as one: their connections are in a set of their own,
//! which is one entry of the poller, as each listener is. Such an entry is reported once and watched again with its turn, so that a flood
//! takes one turn among those of the known clients. When as many turns have begun in a period as the limit says, an entry that is reported
//! is not watched again before the next period. What waits in the set keeps its order.

use super::session::Session;
use super::stranger_turns::StrangerTurns;
use crate::Limits;
use crate::clock::{monotonic_ns, nanoseconds};
use crate::poller::{Bell, DescriptorSet, ONCE, Polled, Poller, Token};
use crate::transport::{Listener, Stream};
use core::mem::MaybeUninit;
use core::time::Duration;
use rtorb_os::sync::Mutex;
use rustix::event::epoll::{self, EventFlags};
use rustix::io::Errno;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

/// The events that the threads of a server or lane wait for.
#[derive(Debug)]
pub(crate) struct EventLoop {
    /// Reports events; [`event`](Self::event) has their meaning.
    pub(crate) poller: Poller,
    /// Reports the connections of strangers.
    strangers: DescriptorSet,
    turns: Mutex<StrangerTurns>,
    send_timeout_ns: u64,
    schedule: Mutex<Schedule>,
}

/// The next actions of the timer.
#[derive(Debug, Default)]
struct Schedule {
    /// The connections with unsent bytes, in the order of their deadlines.
    unsent: Vec<SlowClient>,
    /// When listeners and strangers are watched again.
    resume_ns: Option<u64>,
    /// When the next look for silent connections is due.
    look_ns: Option<u64>,
    /// No thread waits for events any more.
    is_closed: bool,
}

/// A connection with unsent bytes.
#[derive(Debug)]
struct SlowClient {
    session: Arc<Session>,
    /// The connection is closed at this time if bytes are still unsent.
    deadline_ns: u64,
}

/// An event of the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The server or pool stops.
    Stop,
    /// A more urgent lane needs a thread.
    Help,
    /// A client waits at the listener with that number.
    Listener(usize),
    /// Strangers wait for the next period.
    HeldBack,
    /// The look for silent connections is due.
    Look,
    /// A connection can be read, or was closed.
    Connection(Token, Readiness),
}

/// The reason why a connection is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Readiness {
    /// Bytes have arrived.
    Readable,
    /// A thread requested it, because it left bytes in the socket or whole messages in the receive buffer.
    Requested,
    /// The client has ended sending, or the connection broke.
    Ended,
}

impl EventLoop {
    /// Makes an event loop without connections.
    pub(super) fn new(limits: &Limits) -> Result<Self, Errno> {
        Ok(Self {
            poller: Poller::with_timer()?,
            strangers: DescriptorSet::new()?,
            turns: Mutex::new(StrangerTurns::new(limits)),
            send_timeout_ns: nanoseconds(limits.send_timeout),
            schedule: Mutex::default(),
        })
    }

    /// Adds the bell that causes [`Event::Stop`], and the listeners.
    pub(super) fn add_server(&self, stop: &Bell, listeners: &[Listener]) -> Result<(), Errno> {
        self.poller.add(stop, Token::number(STOP), EventFlags::IN)?;
        let strangers = Token::number(STRANGERS);
        self.poller.add(&self.strangers, strangers, ONE_TURN)?;
        for (number, listener) in listeners.iter().enumerate() {
            let token = token_of_listener(number);
            self.poller.add(&listener.socket, token, ONE_TURN)?;
        }
        Ok(())
    }

    /// Causes [`Event::Help`] in one of the threads.
    pub(crate) fn call_for_help(&self) {
        self.poller.ring();
    }

    /// Returns the meaning of an event; `None` if the loop has handled it.
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

    /// Returns the meaning of an event that is not of a connection.
    #[cold]
    fn rare_event(&self, event: Polled, listeners: &[Listener]) -> Option<Event> {
        match event {
            Polled::Timer => self.expire(listeners),
            Polled::Numbered(STOP) => Some(Event::Stop),
            Polled::Numbered(number) => self.begin_turn(number, listeners),
            Polled::Bell | Polled::Entry(..) => Some(Event::Help),
        }
    }

    /// Begins a turn of the next stranger, or has strangers wait for the next period. `number` is that of their set or of a listener.
    fn begin_turn(&self, number: u32, listeners: &[Listener]) -> Option<Event> {
        let taken = self.turns.lock().take(monotonic_ns());
        if let Err(next_ns) = taken {
            self.resume_at(next_ns);
            return Some(Event::HeldBack);
        }
        if number != STRANGERS {
            return Some(Event::Listener((number - FIRST_LISTENER) as usize));
        }
        let mut room = [MaybeUninit::uninit()];
        let next = self.strangers.wait(&mut room, Some(0));
        // Before the turn, so that other threads serve other strangers meanwhile.
        self.watch_strangers();
        self.event(next.first()?, listeners)
    }

    /// Watches a connection. Its client is a stranger.
    pub(crate) fn add(&self, token: Token, session: &Session) -> Result<(), Errno> {
        self.strangers.add(&session.stream, token, READABLE)
    }

    /// Watches the connection of a client that is known from now on, but reports nothing until its events are chosen. If the host
    /// refuses, the client stays among the strangers.
    #[cold]
    pub(super) fn note_known(&self, token: Token, stream: &Stream) {
        if self.poller.add(stream, token, EventFlags::ET).is_ok() {
            self.strangers.remove(stream);
        }
    }

    /// Reports those events of a connection instead, at once if it is ready.
    fn change(&self, token: Token, stream: &Stream, interest: EventFlags) -> Result<(), Errno> {
        match self.poller.change(stream, token, interest) {
            Err(Errno::NOENT) => self.strangers.change(stream, token, interest),
            changed => changed,
        }
    }

    /// Reports the connection at once, because bytes are left in its socket or messages in its receive buffer.
    pub(crate) fn request(&self, token: Token, stream: &Stream) {
        // Sending is nearly always possible, so that watching for it reports the connection at once. It fails for a
        // connection that is no longer watched, of which nothing is to be reported.
        let _ = self.change(token, stream, READABLE | EventFlags::OUT);
    }

    /// Reports the connection when bytes arrive.
    pub(super) fn await_readable(&self, token: Token, stream: &Stream) {
        let _ = self.change(token, stream, READABLE);
    }

    /// Reports the connection only when it breaks.
    #[cold]
    pub(super) fn ignore(&self, token: Token, stream: &Stream) {
        let _ = self.change(token, stream, EventFlags::ET);
    }

    /// Sends the outbox when the socket has room. Keeps the session until then, and reads nothing from it unless it is bidirectional.
    /// Returns false, and keeps nothing, if the loop is [closed](Self::close).
    #[cold]
    pub(super) fn await_writable(&self, token: Token, session: &Arc<Session>) -> bool {
        #[cfg(simulation)]
        if rtorb_os::simulation::is_planted("outbox-forgotten") {
            return true;
        }
        let stream = &session.stream;
        let mut is_noted = false;
        // First noted, then watched: the thread that gets the event finds it. It waits for the caller's lock before it sends.
        self.reschedule(|schedule| {
            is_noted = !schedule.is_closed;
            if is_noted {
                schedule.unsent.push(SlowClient {
                    session: Arc::clone(session),
                    deadline_ns: monotonic_ns().saturating_add(self.send_timeout_ns),
                });
            }
        });
        if !is_noted {
            return false;
        }
        let interest = if session.is_bidirectional() {
            // Reading goes on while replies wait: two ends that both only sent would wait for each other.
            READABLE | EventFlags::OUT
        } else {
            stream.room_events() | EventFlags::OUT | EventFlags::ET
        };
        if self.change(token, stream, interest) == Err(Errno::NOENT) {
            // Without it, the deadline ends the connection.
            let _ = self.poller.add(stream, token, interest);
        }
        true
    }

    /// Ends the connections with unsent bytes, and keeps none from now on: no thread waits for events any more.
    ///
    /// A thread may still send a request over a bidirectional connection. The loop would keep the connection, and the connection the loop.
    #[cold]
    pub(crate) fn close(&self) {
        #[cfg(simulation)]
        if ["unsent-kept", "leaving-forgotten"]
            .into_iter()
            .any(rtorb_os::simulation::is_planted)
        {
            // Also a forgotten connection was kept here.
            return;
        }
        let unsent = {
            let mut schedule = self.schedule.lock();
            schedule.is_closed = true;
            core::mem::take(&mut schedule.unsent)
        };
        unsent
            .iter()
            .for_each(|unsent| unsent.session.give_up_at_once());
    }

    /// Reports a bidirectional connection with an outbox again: at once if it can be read.
    #[cold]
    pub(super) fn read_while_draining(&self, token: Token, stream: &Stream) {
        let _ = self.change(token, stream, READABLE | EventFlags::OUT);
    }

    /// Stops watching a connection.
    pub(super) fn remove(&self, stream: &Stream) {
        self.poller.remove(stream);
        self.strangers.remove(stream);
    }

    /// Removes a connection from those with unsent bytes.
    pub(super) fn sent(&self, session: &Session) {
        let unsent = &mut self.schedule.lock().unsent;
        unsent.retain(|other| !core::ptr::eq(&*other.session, session));
    }

    /// Watches a listener again, after its turn.
    pub(super) fn watch_listener(&self, number: usize, listener: &Listener) {
        #[cfg(simulation)]
        if rtorb_os::simulation::is_planted("client-unheard") {
            return;
        }
        let token = token_of_listener(number);
        let _ = self.poller.change(&listener.socket, token, ONE_TURN);
    }

    fn watch_strangers(&self) {
        let token = Token::number(STRANGERS);
        let _ = self.poller.change(&self.strangers, token, ONE_TURN);
    }

    /// Watches a listener again only after [`PAUSE_NS`], because the process has no file descriptor for its clients.
    #[cold]
    pub(super) fn pause(&self) {
        self.resume_at(monotonic_ns() + PAUSE_NS);
    }

    /// Watches listeners and strangers again at that time, or before.
    fn resume_at(&self, at_ns: u64) {
        self.reschedule(|schedule| {
            let before_ns = schedule.resume_ns.unwrap_or(u64::MAX);
            schedule.resume_ns = Some(at_ns.min(before_ns));
        });
    }

    /// Watches listeners and strangers again. Their budget stays used up until its period is over.
    #[cold]
    pub(crate) fn resume(&self, listeners: &[Listener]) {
        if self.schedule.lock().resume_ns.take().is_none() {
            return;
        }
        #[cfg(simulation)]
        if rtorb_os::simulation::is_planted("strangers-kept-out") {
            return;
        }
        self.watch_strangers();
        for (number, listener) in listeners.iter().enumerate() {
            self.watch_listener(number, listener);
        }
    }

    /// Sends the unsent bytes of a connection whose socket has room.
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
            Ok(false) => (session.is_bidirectional() && flags.contains(EventFlags::IN))
                .then(|| Event::Connection(token, readiness(flags - EventFlags::OUT))),
            Err(_) => Some(Event::Connection(token, Readiness::Ended)),
        }
    }

    /// Handles the timer: closes connections whose clients have not received their bytes in time, watches listeners and strangers
    /// again, and reports the look for silent connections.
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

/// The number of the bell that stops the loop.
const STOP: u32 = 0;
/// The number of the set of strangers. The numbers of listeners follow.
const STRANGERS: u32 = STOP + 1;
const FIRST_LISTENER: u32 = STRANGERS + 1;

const READABLE: EventFlags = ONCE.union(EventFlags::RDHUP);

/// An entry is reported once, and watched again with its turn or after it.
const ONE_TURN: EventFlags = EventFlags::IN.union(EventFlags::ONESHOT);

/// How long a listener is paused, in nanoseconds. The end of a connection, which frees a file descriptor, ends all pauses.
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
