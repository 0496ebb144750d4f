//! A client's connection, shared by all threads that reply on it: the stream, the unsent bytes, and the lock for sending.

use super::event_loop::EventLoop;
use crate::clock::monotonic_ns;
use crate::poller::Token;
use crate::realtime::ThreadpoolId;
use crate::server::ServerCore;
use crate::transport::Stream;
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use rtorb_os::set_once::SetOnce;
use rtorb_os::sync::{Mutex, MutexGuard};
use rtorb_wire::connection::Outbox;
use rtorb_wire::giop::contexts::CodeSets;
use rtorb_wire::giop::{self, Version};
use rtorb_wire::{EncodeError, Writer};
use rustix::io::Errno;
use std::sync::{Arc, Weak};

/// A client's connection. It is closed when the last thread is done that replies on it.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) orb: Arc<ServerCore>,
    pub(crate) stream: Stream,
    /// The pool whose endpoint the client came to.
    pub(crate) pool: ThreadpoolId,
    /// The minor version of the last message. The connection's own messages have the same version.
    minor: AtomicU8,
    /// The code sets that the client named last, for `char` in the upper half; 0 for none. A proxy passes them on.
    code_sets: AtomicU64,
    is_shared: AtomicBool,
    /// False from when a message arrives to when a request is served. If several requests are in progress, it may be true.
    is_answered: AtomicBool,
    /// It gives way to another client, and ends with CloseConnection.
    gives_way: AtomicBool,
    /// The number of connections that the server has accepted.
    accepted: Arc<AtomicU64>,
    /// This number when bytes arrived last.
    last_arrival: AtomicU64,
    /// The outbox is not empty.
    has_unsent: AtomicBool,
    /// Requests in a queue that other connections share, those being served included.
    queued: AtomicU32,
    /// The bound on them. It begins with one, because nobody knows what the requests of a new client cost.
    queued_max: AtomicU32,
    /// The last reply was larger than [`BULK_BYTES`], or no request has been served yet.
    may_be_bulk: AtomicBool,
    /// Reading has stopped until queued requests are served.
    is_held: AtomicBool,
    sending: Mutex<Sending>,
    watch: SetOnce<Watch>,
    own: Weak<Session>,
}

/// The state of the thread that sends.
#[derive(Debug)]
struct Sending {
    outbox: Outbox,
    /// The client must take the outbox by this time.
    deadline_ns: u64,
    /// Reading has ended for good.
    is_detached: bool,
}

/// The event loop that watches a connection, and the connection's token there.
#[derive(Debug)]
struct Watch {
    events: Arc<EventLoop>,
    token: Token,
}

/// A larger reply costs the other clients as much time as many small ones: one of them is a connection's whole turn.
const BULK_BYTES: usize = 64 << 10;

/// The bit of `last_arrival` that the next arrival takes away.
const LOOKED_AT: u64 = 1 << 63;

/// No message has arrived yet.
const NO_MINOR: u8 = u8::MAX;

impl Session {
    /// Makes the connection of an accepted stream. One thread replies on it, until it is [shared](Self::share).
    pub(super) fn new(
        orb: &Arc<ServerCore>,
        stream: Stream,
        pool: ThreadpoolId,
        accepted: &Arc<AtomicU64>,
    ) -> Arc<Self> {
        Arc::new_cyclic(|own| Self {
            orb: Arc::clone(orb),
            stream,
            pool,
            minor: AtomicU8::new(NO_MINOR),
            code_sets: AtomicU64::new(0),
            is_shared: AtomicBool::new(false),
            is_answered: AtomicBool::new(true),
            gives_way: AtomicBool::new(false),
            accepted: Arc::clone(accepted),
            last_arrival: AtomicU64::new(accepted.load(Ordering::Relaxed)),
            has_unsent: AtomicBool::new(false),
            queued: AtomicU32::new(0),
            queued_max: AtomicU32::new(1),
            may_be_bulk: AtomicBool::new(true),
            is_held: AtomicBool::new(false),
            sending: Mutex::new(Sending {
                outbox: Outbox::new(orb.limits.unsent_octets_max()),
                deadline_ns: 0,
                is_detached: false,
            }),
            watch: SetOnce::new(),
            own: Weak::clone(own),
        })
    }

    /// Has an event loop watch the connection, and send bytes that the client does not take at once.
    ///
    /// A connection without an event loop has a thread of its own, which waits for its client when it sends.
    pub(crate) fn attach(&self, events: &Arc<EventLoop>, token: Token) -> Result<(), Errno> {
        self.watch.get_or_make(|| Watch {
            events: Arc::clone(events),
            token,
        });
        self.stream.be_polled();
        events.add(token, self)
    }

    /// Ends reading. The connection is closed when all replies are sent.
    pub(crate) fn detach(&self) {
        let mut sending = self.sending.lock();
        sending.is_detached = true;
        if let Some(watch) = self.watch.get().filter(|_| sending.outbox.is_empty()) {
            watch.events.remove(&self.stream);
        }
    }

    /// Has the event loop report the connection again: at once, or when its unsent bytes are sent.
    #[cold]
    pub(crate) fn request_event(&self) {
        self.watch_if_sent(|watch| watch.events.request(watch.token, &self.stream));
    }

    /// Has the event loop report only new bytes: the report that [`request_event`](Self::request_event) asked for has come.
    #[cold]
    pub(crate) fn await_bytes(&self) {
        self.watch_if_sent(|watch| self.watch_reading(watch));
    }

    /// Counts a request that was put into a queue.
    pub(crate) fn note_queued(&self) {
        self.queued.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts off a queued request that was served. A held connection is read again when half of its requests are served.
    ///
    /// Small replies raise the bound of the connection up to `queued_max`.
    pub(crate) fn note_served(&self, queued_max: u32) {
        let bound = if self.may_be_bulk() {
            1
        } else {
            queued_max.min(self.queued_max.load(Ordering::Relaxed) + 1)
        };
        self.queued_max.store(bound, Ordering::Relaxed);
        let queued = self.queued.fetch_sub(1, Ordering::SeqCst) - 1;
        if queued <= bound / 2 {
            self.release();
        }
    }

    /// Stops reading while the connection has its largest number of requests in a queue; true if it has.
    ///
    /// Called by the one thread that reads.
    pub(crate) fn is_held(&self) -> bool {
        if self.is_held.load(Ordering::Relaxed) {
            return true;
        }
        let queued_max = self.queued_max.load(Ordering::Relaxed);
        if self.queued.load(Ordering::Relaxed) < queued_max {
            return false;
        }
        {
            let sending = self.sending.lock();
            self.is_held.store(true, Ordering::SeqCst);
            if let Some(watch) = self.watch.get().filter(|_| sending.outbox.is_empty()) {
                self.watch_reading(watch);
            }
        }
        // Another thread may have served the last of them just before.
        if self.queued.load(Ordering::SeqCst) <= queued_max / 2 {
            self.release();
        }
        true
    }

    /// Has a held connection reported again, because its receive buffer may hold whole messages.
    fn release(&self) {
        if self.is_held.load(Ordering::SeqCst) && self.is_held.swap(false, Ordering::SeqCst) {
            self.request_event();
        }
    }

    /// Has bytes reported, unless the connection is held.
    fn watch_reading(&self, watch: &Watch) {
        if self.is_held.load(Ordering::SeqCst) {
            watch.events.ignore(watch.token, &self.stream);
        } else {
            watch.events.await_readable(watch.token, &self.stream);
        }
    }

    /// Changes what the event loop watches, unless it waits for room for unsent bytes.
    fn watch_if_sent(&self, change: impl FnOnce(&Watch)) {
        let sending = self.sending.lock();
        if let Some(watch) = self.watch.get().filter(|_| sending.outbox.is_empty()) {
            change(watch);
        }
    }

    pub(crate) fn token(&self) -> Option<Token> {
        self.watch.get().map(|watch| watch.token)
    }

    /// True if an event loop watches the connection.
    pub(super) fn is_watched(&self) -> bool {
        self.watch.get().is_some()
    }

    /// True if the next reply may cost the other clients as much time as many small ones: it is their turn first.
    #[inline]
    pub(crate) fn may_be_bulk(&self) -> bool {
        self.may_be_bulk.load(Ordering::Relaxed)
    }

    /// True while the outbox is not empty. Reading stops meanwhile.
    #[inline]
    pub(crate) fn has_unsent(&self) -> bool {
        self.has_unsent.load(Ordering::Relaxed)
    }

    /// Lets several threads reply from now on. A thread waits until the message of another is sent.
    ///
    /// The reading thread calls this when no thread is replying.
    #[inline]
    pub(crate) fn share(&self) {
        self.is_shared.store(true, Ordering::Relaxed);
    }

    /// Lets only one thread reply again. The reading thread calls this when no thread is replying.
    #[inline]
    pub(crate) fn answer_alone(&self) {
        self.is_shared.store(false, Ordering::Relaxed);
    }

    /// True from when a request is served to when the next message arrives.
    #[inline]
    pub(crate) fn is_answered(&self) -> bool {
        self.is_answered.load(Ordering::Relaxed)
    }

    /// Notes that a request was served, with a reply or without one.
    #[inline]
    pub(super) fn note_answered(&self) {
        self.is_answered.store(true, Ordering::Relaxed);
        self.may_be_bulk.store(false, Ordering::Relaxed);
    }

    /// Keeps the code sets that the client has named.
    #[cold]
    pub(super) fn note_code_sets(&self, named: CodeSets) {
        let both = u64::from(named.char_data) << 32 | u64::from(named.wchar_data);
        self.code_sets.store(both, Ordering::Relaxed);
    }

    /// The code sets that the client named last.
    pub(super) fn code_sets(&self) -> Option<CodeSets> {
        let both = self.code_sets.load(Ordering::Relaxed);
        (both != 0).then_some(CodeSets {
            char_data: (both >> 32) as u32,
            wchar_data: both as u32,
        })
    }

    /// Notes that bytes arrived. The number of accepted connections serves as the clock, because it costs no system call.
    #[inline]
    pub(super) fn note_arrival(&self) {
        let accepted = self.accepted.load(Ordering::Relaxed);
        self.last_arrival.store(accepted, Ordering::Relaxed);
    }

    /// Notes that the connection is looked at. It [is silent](Self::is_silent) until bytes arrive.
    pub(super) fn note_look(&self) {
        self.last_arrival.fetch_or(LOOKED_AT, Ordering::Relaxed);
    }

    /// True if no bytes have arrived since the connection was looked at, and no request is in progress.
    pub(crate) fn is_silent(&self) -> bool {
        let looked_at = self.last_arrival.load(Ordering::Relaxed) & LOOKED_AT != 0;
        looked_at && self.is_answered() && !self.has_unsent()
    }

    /// Frees the memory of replies that the client once did not take at once.
    pub(crate) fn trim(&self) {
        self.sending.lock().outbox.trim(0);
    }

    /// The number of accepted connections when bytes arrived last; `None` while a request is in progress or a reply is unsent.
    pub(super) fn idle_since(session: &Arc<Self>) -> Option<u64> {
        // The caller and the reading thread hold it. Each request that was taken out holds it too.
        let is_idle =
            session.is_answered() && !session.has_unsent() && Arc::strong_count(session) <= 2;
        is_idle.then(|| session.last_arrival.load(Ordering::Relaxed) & !LOOKED_AT)
    }

    /// Ends the connection with CloseConnection, in favour of another client.
    ///
    /// A request that has arrived meanwhile is served first, because the end is read after it.
    pub(super) fn give_way(&self) {
        self.gives_way.store(true, Ordering::Release);
        self.stream.end_receiving();
    }

    /// Sends CloseConnection: no further request will be served.
    ///
    /// Call it when all requests in progress have replies. A client may take a request without a reply as not carried out.
    pub(crate) fn say_closing(&self) {
        let version = self.version().unwrap_or(Version::V1_0);
        //= GIOP 1.2 §15.5.1.1
        //# A server that closes a connection sends CloseConnection first.
        self.say(|w| giop::write_close_connection(w, version));
    }

    /// Sends MessageError for bytes that are not GIOP or exceed a limit, before the connection is closed.
    #[cold]
    pub(super) fn say_error(&self) {
        let version = self.version().unwrap_or(Version::V1_2);
        //= GIOP 1.2 §15.4.8
        //# A peer that receives a message that it does not understand sends MessageError.
        self.say(|w| giop::write_message_error(w, version));
    }

    #[inline]
    pub(super) fn note_message(&self, version: Version) {
        self.minor.store(version.minor, Ordering::Relaxed);
        self.is_answered.store(false, Ordering::Relaxed);
    }

    /// Sends a message without waiting for the client. Messages of several threads do not mix.
    #[inline]
    pub(super) fn send(&self, message: &Writer<'_>) -> Result<(), Errno> {
        self.note_answered();
        if message.len() > BULK_BYTES {
            self.may_be_bulk.store(true, Ordering::Relaxed);
        }
        let fits = self
            .fragment_octets()
            .is_none_or(|max| message.len() <= max);
        if self.is_shared.load(Ordering::Relaxed) || self.has_unsent() || !fits {
            return self.send_in_turn(message);
        }
        let (own, lent) = message.parts();
        let sent = self.stream.send_message_now(own, lent)?;
        if sent == message.len() {
            return Ok(());
        }
        self.keep(self.sending.lock(), message, sent)
    }

    /// Sends as much of the outbox as the socket takes now; true if the outbox is empty then.
    #[cold]
    pub(super) fn flush(&self) -> Result<bool, Errno> {
        let mut sending = self.sending.lock();
        let flushed = sending.flush(&self.stream);
        match flushed {
            Ok(false) => {}
            Ok(true) => {
                // As much as the largest message needs, so that the next one makes no heap call.
                sending.outbox.trim(self.orb.limits.message_octets_max);
                self.end_unsent(&mut sending);
            }
            Err(_) => self.abandon(&mut sending),
        }
        flushed
    }

    /// Closes the connection if its client has not taken the outbox in time.
    #[cold]
    pub(super) fn give_up(&self) {
        let mut sending = self.sending.lock();
        if !sending.outbox.is_empty() && sending.deadline_ns <= monotonic_ns() {
            self.abandon(&mut sending);
        }
    }

    #[cold]
    fn send_in_turn(&self, message: &Writer<'_>) -> Result<(), Errno> {
        let sending = self.sending.lock();
        if !sending.outbox.is_empty() {
            return self.keep(sending, message, 0);
        }
        let fragment_octets = self.fragment_octets();
        if fragment_octets.is_some_and(|max| message.len() > max) {
            return self.keep(sending, message, 0);
        }
        let (own, lent) = message.parts();
        match self.stream.send_message_now(own, lent) {
            Ok(sent) if sent == message.len() => Ok(()),
            Ok(sent) => self.keep(sending, message, sent),
            Err(errno) => {
                // The next message must not follow half of this one. The reading thread then finds the end.
                self.stream.shut();
                Err(errno)
            }
        }
    }

    /// Puts a message, without its first `sent` bytes, into the outbox.
    #[cold]
    fn keep(
        &self,
        mut sending: MutexGuard<'_, Sending>,
        message: &Writer<'_>,
        sent: usize,
    ) -> Result<(), Errno> {
        let was_empty = sending.outbox.is_empty();
        if sent > 0 && !self.is_watched() {
            return self.send_waiting(message, sent);
        }
        let kept = match self.fragment_octets() {
            Some(max) if message.len() > max => sending.outbox.keep_fragments(message, max),
            _ => sending.outbox.keep(message, sent),
        };
        let flushed = match kept {
            Err(_) => Err(Errno::NOBUFS),
            // Fragments, of which none has been sent yet.
            Ok(()) if was_empty && sent == 0 => sending.flush(&self.stream),
            Ok(()) => Ok(false),
        };
        match flushed {
            Ok(true) => return Ok(()),
            Ok(false) => {}
            Err(errno) => {
                self.abandon(&mut sending);
                return Err(errno);
            }
        }
        if was_empty {
            self.await_room(&mut sending)
        } else {
            Ok(())
        }
    }

    /// Has the event loop send the outbox. Without an event loop, the calling thread serves only this client, and waits for it.
    fn await_room(&self, sending: &mut Sending) -> Result<(), Errno> {
        sending.deadline_ns = self.deadline_ns();
        let (Some(watch), Some(own)) = (self.watch.get(), self.own.upgrade()) else {
            return self.flush_waiting(sending);
        };
        self.has_unsent.store(true, Ordering::Relaxed);
        watch.events.await_writable(watch.token, &own);
        Ok(())
    }

    /// Sends the rest of a message on the thread that serves only this client.
    fn send_waiting(&self, message: &Writer<'_>, sent: usize) -> Result<(), Errno> {
        let (own, lent) = message.parts();
        let deadline_ns = Some(self.deadline_ns());
        let sent = self.stream.send_rest_by(own, lent, sent, deadline_ns);
        sent.map_err(|unsent| {
            self.stream.shut();
            unsent.errno
        })
    }

    /// Sends the outbox on the thread that serves only this client.
    fn flush_waiting(&self, sending: &mut Sending) -> Result<(), Errno> {
        let unsent = sending.outbox.len();
        let deadline_ns = Some(sending.deadline_ns);
        let sent = self
            .stream
            .send_message_by(sending.outbox.unsent(), &[], deadline_ns);
        sending.outbox.advance(unsent);
        sent.map_err(|unsent| {
            self.stream.shut();
            unsent.errno
        })
    }

    /// The time by which a client must take what is sent now.
    fn deadline_ns(&self) -> u64 {
        let timeout_ns = u64::try_from(self.orb.limits.send_timeout.as_nanos()).unwrap_or(u64::MAX);
        monotonic_ns().saturating_add(timeout_ns)
    }

    /// Drops the outbox and shuts the connection.
    fn abandon(&self, sending: &mut Sending) {
        let unsent = sending.outbox.len();
        sending.outbox.advance(unsent);
        // The reading thread then finds the end.
        self.stream.shut();
        self.end_unsent(sending);
    }

    /// Notes that the outbox is empty, and continues reading.
    fn end_unsent(&self, sending: &mut Sending) {
        self.has_unsent.store(false, Ordering::Relaxed);
        if let Some(watch) = self.watch.get() {
            if sending.is_detached {
                watch.events.remove(&self.stream);
            } else {
                self.watch_reading(watch);
            }
            watch.events.sent(self);
        }
    }

    fn fragment_octets(&self) -> Option<usize> {
        self.orb.fragment_octets
    }

    fn version(&self) -> Option<Version> {
        match self.minor.load(Ordering::Relaxed) {
            NO_MINOR => None,
            minor => Some(Version { major: 1, minor }),
        }
    }

    fn say(&self, write: impl FnOnce(&mut Writer<'_>) -> Result<(), EncodeError>) {
        let mut w = Writer::new(Vec::new(), giop::HEADER_OCTETS);
        if write(&mut w).is_ok() {
            // If the client is gone, nothing remains to be done.
            let _ = self.send(&w);
        }
    }
}

impl Sending {
    /// Sends as much as the socket takes now; true if nothing is left.
    fn flush(&mut self, stream: &Stream) -> Result<bool, Errno> {
        while !self.outbox.is_empty() {
            match stream.send_message_now(self.outbox.unsent(), &[])? {
                0 => return Ok(false),
                sent => self.outbox.advance(sent),
            }
        }
        Ok(true)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // All its requests have replies now.
        if *self.gives_way.get_mut() && !self.has_unsent() {
            refuse(&self.stream, self.version().unwrap_or(Version::V1_0));
        }
    }
}

/// Ends a connection with CloseConnection, without waiting.
#[cold]
pub(super) fn refuse(stream: &Stream, version: Version) {
    let mut w = Writer::new(Vec::new(), giop::HEADER_OCTETS);
    if giop::write_close_connection(&mut w, version).is_ok() {
        let _ = stream.send_message_now(&w.to_octets(), &[]);
    }
    stream.end_sending();
    // With unread bytes, closing would reset the connection, and the client might lose the message.
    stream.drain();
}
