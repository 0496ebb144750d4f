//! A client's connection, shared by all threads that reply on it: its state, its stream, and the replies that wait to be sent.

use super::cancellation::{self, CancelledRequests};
use super::client_watch::ClientWatches;
use super::connection_counts::ConnectionOutcome;
use super::event_loop::EventLoop;
use crate::clock::{monotonic_ns, nanoseconds};
use crate::connection::BidirectionalConnection;
use crate::exception::{ExceptionKind, SystemException};
use crate::interceptors::RequestPeer;
use crate::poller::Token;
use crate::realtime::{NetworkPriority, ThreadpoolId};
use crate::server::ServerCore;
use crate::timing::ConnectionArrivals;
use crate::trace::trace_event;
use crate::transport::{Stream, Unsent, properties};
use crate::wait::watchdog::WatchedClient;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use rtorb_os::futex;
use rtorb_os::set_once::SetOnce;
use rtorb_os::sync::{Condvar, Mutex, MutexGuard};
use rtorb_wire::connection::{Outbox, ReplyError, ServerConnection, ServerPhase};
use rtorb_wire::giop::contexts::CodeSets;
use rtorb_wire::giop::{self, Version};
use rtorb_wire::{EncodeError, Writer};
use rustix::io::Errno;
use std::net::IpAddr;
use std::sync::{Arc, Weak};

/// A client's connection. It is closed when the last thread is done that replies on it.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) orb: Arc<ServerCore>,
    pub(crate) stream: Stream,
    /// Its number among the connections of the process.
    pub(super) number: u32,
    /// The requests that the client has cancelled.
    pub(super) cancelled: CancelledRequests,
    /// The arrivals of its calls of operations with a period, if each client has a period of its own.
    pub(super) period_arrivals: ConnectionArrivals,
    /// The address of the client, if connections of one address are bounded and it has one.
    pub(super) address: Option<IpAddr>,
    /// The client, once an interceptor has asked.
    peer: SetOnce<RequestPeer>,
    /// The code point of the operation that was served last and states one, plus 1; 0 for none.
    marked: AtomicU32,
    /// The pool whose endpoint the client came to.
    pub(crate) pool: ThreadpoolId,
    /// Whether the connection is read, who may send on it, and how it ends.
    pub(crate) state: ServerConnection,
    /// The code sets that the client named last, for `char` in the upper half; 0 for none. A proxy passes them on.
    code_sets: AtomicU64,
    /// The number of its replies that servants have deferred and that are not sent.
    deferred: AtomicU32,
    /// The number of its held requests that are due.
    pub(super) due: AtomicU32,
    /// The number of connections that the server has accepted.
    accepted: Arc<AtomicU64>,
    /// The value of `accepted` when bytes last arrived.
    last_arrival: AtomicU64,
    /// Held by threads that send at the same time as others, and while the events to watch change.
    pub(super) sending: Mutex<UnsentReplies>,
    /// Signalled when no reply waits to be sent any more.
    pub(super) drained: Condvar,
    /// The caller's half, if both ends send requests.
    pub(super) bidirectional: SetOnce<Arc<BidirectionalConnection>>,
    registration: SetOnce<Registration>,
    pub(super) client_watches: ClientWatches,
    /// A futex: 1 when the connection gives way, which ends the [wait](Self::await_going) for a turn.
    is_told_to_go: AtomicU32,
    pub(super) own: Weak<Session>,
}

/// The replies that wait to be sent.
#[derive(Debug)]
pub(super) struct UnsentReplies {
    pub(super) outbox: Outbox,
    /// The connection is closed at this time if the outbox is not empty.
    deadline_ns: u64,
}

/// The event loop that watches a connection, and the connection's token there.
#[derive(Debug)]
struct Registration {
    events: Arc<EventLoop>,
    token: Token,
}

/// A larger reply takes as much time of other clients as many small ones. It is a connection's whole turn.
const BULK_BYTES: usize = 64 << 10;

/// The bit of `last_arrival` that the next arrival clears.
const LOOKED_AT: u64 = 1 << 63;

impl Session {
    /// Makes the connection of an accepted stream.
    pub(super) fn new(
        orb: &Arc<ServerCore>,
        stream: Stream,
        pool: ThreadpoolId,
        accepted: &Arc<AtomicU64>,
    ) -> Arc<Self> {
        let address = orb.limits.bounds_addresses().then(|| stream.peer_address());
        let session = Arc::new_cyclic(|own| Self {
            orb: Arc::clone(orb),
            stream,
            address: address.flatten(),
            number: cancellation::next_number(),
            cancelled: CancelledRequests::new(orb.has_interceptors()),
            peer: SetOnce::new(),
            period_arrivals: ConnectionArrivals::new(orb.limits.client_periods_max),
            marked: AtomicU32::new(0),
            pool,
            state: ServerConnection::new(),
            code_sets: AtomicU64::new(0),
            deferred: AtomicU32::new(0),
            due: AtomicU32::new(0),
            accepted: Arc::clone(accepted),
            last_arrival: AtomicU64::new(accepted.load(Ordering::Relaxed)),
            sending: Mutex::new(UnsentReplies {
                outbox: Outbox::new(orb.limits.unsent_bytes_max()),
                deadline_ns: 0,
            }),
            drained: Condvar::new(),
            bidirectional: SetOnce::new(),
            registration: SetOnce::new(),
            client_watches: ClientWatches::default(),
            is_told_to_go: AtomicU32::new(0),
            own: Weak::clone(own),
        });
        cancellation::register(&session);
        session
    }

    /// Returns the numbers of the ORB and of the connection, for the thread of a servant.
    #[inline]
    pub(super) fn upcall(&self) -> u64 {
        self.orb.upcall | u64::from(self.number)
    }

    /// Returns the client, for interceptors.
    #[cold]
    pub(super) fn peer(&self) -> RequestPeer {
        *self.peer.get_or_make(|| self.stream.peer())
    }

    /// Marks the replies from here on as an operation states (`@network_priority`). Does nothing where packets have no marks.
    ///
    /// # Errors
    /// NO_PERMISSION if the host refuses the marks.
    #[inline]
    pub(super) fn mark(&self, dscp: u8) -> Result<(), SystemException> {
        let marked = u32::from(dscp) + 1;
        if self.marked.load(Ordering::Relaxed) == marked {
            return Ok(());
        }
        self.change_marks(dscp, marked)
    }

    #[cold]
    fn change_marks(&self, dscp: u8, marked: u32) -> Result<(), SystemException> {
        if self.stream.is_tcp() {
            let marks = NetworkPriority::of_dscp(dscp);
            properties::mark(&self.stream, marks).map_err(|_| ExceptionKind::NoPermission)?;
        }
        self.marked.store(marked, Ordering::Relaxed);
        Ok(())
    }

    /// Has an event loop watch the connection, and send bytes for which the socket has no room.
    ///
    /// A connection without an event loop has a thread of its own, which waits for its client when it sends.
    pub(crate) fn attach(&self, events: &Arc<EventLoop>, token: Token) -> Result<(), Errno> {
        self.registration.get_or_make(|| Registration {
            events: Arc::clone(events),
            token,
        });
        self.stream.register_for_polling();
        events.add(token, self)?;
        // The first request may have come with the end of the handshake.
        if self.stream.holds_opened_bytes() {
            self.request_report();
        }
        Ok(())
    }

    /// Ends reading. The connection is closed when all replies are sent.
    pub(crate) fn end_reading(&self) {
        self.end_calls(ReplyError::Ended);
        let has_ended = self.state.end();
        // Behind the end: a thread that still serves a request of the connection then finds that it is not to be held, and that a reply
        // that it defers is not awaited.
        self.orb.held.forget(self);
        if self.has_lost_client() {
            self.orb.deferred.cancel_all(self);
        }
        if has_ended {
            self.watch();
        }
    }

    /// Returns true if the client is gone, or sends nothing any more; false if this end has ended the connection.
    pub(super) fn has_lost_client(&self) -> bool {
        self.state.has_ended() && !self.state.gives_way() && !self.orb.is_stopping()
    }

    /// Has the event loop report the connection again: at once, or when its unsent bytes are sent.
    #[cold]
    pub(crate) fn request_report(&self) {
        // A bidirectional connection is also read while replies wait to be sent.
        if self.state.request() || self.is_bidirectional() {
            self.watch();
        }
    }

    /// Has the event loop report only new bytes: the [requested](Self::request_report) report has come, or is not needed.
    #[cold]
    pub(crate) fn end_request(&self) {
        if self.state.reported() {
            self.watch();
        }
        // The report may have been theirs, and the thread may have looked for them before.
        if self.has_due() {
            self.report_due();
        }
    }

    /// Returns true if a [held request](crate::server::HeldRequests) of the connection is due.
    #[inline]
    pub(crate) fn has_due(&self) -> bool {
        self.due.load(Ordering::Acquire) != 0
    }

    /// Has the event loop report the connection, because [held requests](crate::server::HeldRequests) of it can be served. They are taken out.
    #[cold]
    pub(super) fn report_due(&self) {
        self.state.take_out();
        self.request_report();
    }

    /// Notes the reply to a request that was taken out. If that ends the phase `Held`, the event loop reports the connection,
    /// because its receive buffer may have whole messages.
    #[inline]
    pub(crate) fn note_served(&self) {
        if self.state.served() {
            self.watch();
        }
    }

    /// Stops reading if the bound on requests taken out is reached. Returns true if the connection is not to be read now.
    pub(crate) fn is_held(&self) -> bool {
        if self.state.hold() {
            self.watch();
        }
        !self.state.is_read()
    }

    /// Counts a reply that a servant defers. Returns false, and counts nothing, if `deferred_max` are deferred.
    #[cold]
    pub(super) fn note_deferred(&self, deferred_max: usize) -> bool {
        let one_more = |deferred: u32| ((deferred as usize) < deferred_max).then(|| deferred + 1);
        let counted = self
            .deferred
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, one_more);
        if counted.is_ok() {
            self.state.note_deferred();
        }
        counted.is_ok()
    }

    /// Counts off a [deferred](Self::note_deferred) reply that was sent or cannot be sent.
    #[cold]
    pub(super) fn note_settled(&self) {
        self.deferred.fetch_sub(1, Ordering::AcqRel);
        self.state.note_settled();
    }

    pub(crate) fn token(&self) -> Option<Token> {
        self.registration.get().map(|watch| watch.token)
    }

    /// Returns the connection, to be kept open.
    #[cold]
    pub(super) fn shared(&self) -> Option<Arc<Self>> {
        self.own.upgrade()
    }

    /// Returns the connection for the watchdog.
    pub(super) fn as_watched(&self) -> Weak<dyn WatchedClient> {
        Weak::<Self>::clone(&self.own)
    }

    /// Returns true if an event loop watches the connection.
    pub(super) fn is_watched(&self) -> bool {
        self.registration.get().is_some()
    }

    /// Stores the code sets that the client has named.
    #[cold]
    pub(super) fn note_code_sets(&self, named: CodeSets) {
        let both = u64::from(named.char_data) << 32 | u64::from(named.wchar_data);
        self.code_sets.store(both, Ordering::Relaxed);
    }

    /// Returns the code sets that the client named last.
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

    /// Notes a look at the connection. It [is silent](Self::is_silent) until bytes arrive.
    pub(super) fn note_look(&self) {
        self.last_arrival.fetch_or(LOOKED_AT, Ordering::Relaxed);
    }

    /// Returns true if no bytes have arrived since the last look, and no request is in progress.
    pub(crate) fn is_silent(&self) -> bool {
        let looked_at = self.last_arrival.load(Ordering::Relaxed) & LOOKED_AT != 0;
        looked_at && self.state.is_idle()
    }

    /// Frees the memory of the outbox, unless a thread is sending: it may wait for the client.
    pub(crate) fn trim(&self) {
        if let Some(mut sending) = self.sending.try_lock() {
            sending.outbox.trim(0);
        }
    }

    /// Returns the number of accepted connections when bytes last arrived; `None` while a request is in progress or a reply is
    /// unsent.
    pub(super) fn idle_since(&self) -> Option<u64> {
        let last_arrival = self.last_arrival.load(Ordering::Relaxed);
        let awaits_replies = self.bidirectional.get().is_some_and(|it| !it.is_unused());
        let is_idle = self.state.is_idle() && !awaits_replies;
        is_idle.then_some(last_arrival & !LOOKED_AT)
    }

    /// Ends the connection with CloseConnection, in favour of another client.
    ///
    /// A request that has already arrived is served first, because the end is read after it.
    pub(super) fn give_way(&self) {
        self.state.give_way();
        self.stream.end_receiving();
        self.is_told_to_go.store(1, Ordering::Release);
        futex::wake(&self.is_told_to_go, 1);
    }

    /// Returns true if the connection gives way, or if its client is gone and no bytes of it are unread. Then its end is what is read next,
    /// behind what has arrived.
    #[cold]
    pub(super) fn goes(&self) -> bool {
        self.state.gives_way() || self.stream.is_over()
    }

    /// Waits until the connection [goes](Self::goes), for a thread that reads nothing meanwhile. Returns at `until_ns` at the latest, and
    /// sometimes without a reason.
    #[cold]
    pub(super) fn await_going(&self, until_ns: u64) {
        let hangs_up = self.stream.await_hangup(until_ns);
        if hangs_up != Ok(false) && !self.goes() {
            // The client has ended sending, and bytes are unread: its socket has nothing more to report.
            futex::wait(&self.is_told_to_go, 0, Some(until_ns));
        }
    }

    /// Counts what happened to the connection.
    pub(super) fn count(&self, outcome: ConnectionOutcome) {
        self.orb.state.connections.note(outcome);
    }

    /// Ends the connection with CloseConnection if a part of a message was looked at before, and the rest has not come since.
    #[cold]
    pub(crate) fn look_at_partial(&self) {
        if self.state.look_at_partial() && !self.state.gives_way() {
            trace_event!(
                WARN,
                "a connection is closed: a message did not arrive within Limits::receive_timeout"
            );
            self.count(ConnectionOutcome::SlowSender);
            self.give_way();
        }
    }

    /// Sends CloseConnection: no further request will be served.
    ///
    /// Call it when all requests have replies: a client may assume that a request without a reply was not executed.
    pub(crate) fn say_closing(&self) {
        let version = self.state.version().unwrap_or(Version::V1_0);
        //= GIOP 1.2 §15.5.1.1
        //# A server that closes a connection sends CloseConnection first.
        self.say(|w| giop::write_close_connection(w, version));
    }

    /// Sends MessageError for bytes that are not GIOP or exceed a limit, before the connection is closed.
    #[cold]
    pub(super) fn say_error(&self) {
        let version = self.state.version().unwrap_or(Version::V1_2);
        //= GIOP 1.2 §15.4.8
        //# A peer that receives a message that it does not understand sends MessageError.
        self.say(|w| giop::write_message_error(w, version));
    }

    /// Notes that the last message is served: a small reply will be sent, or none is expected.
    #[inline]
    pub(crate) fn note_answered(&self) {
        if self.state.note_answered() {
            self.become_known();
        }
    }

    #[cold]
    fn note_bulk_reply(&self) {
        if self.state.note_bulk_reply() {
            self.become_known();
        }
    }

    /// Has the event loop watch the connection beside those of other known clients.
    #[cold]
    fn become_known(&self) {
        let _sending = self.sending.lock();
        // Otherwise a goodbye waits to be sent.
        if let Some(watch) = self.registration.get()
            && !self.state.has_unsent()
        {
            watch.events.note_known(watch.token, &self.stream);
            self.watch_for_phase();
        }
    }

    /// Sends a message without waiting for the client. Several threads may call it at once.
    #[inline]
    pub(super) fn send(&self, message: &Writer<'_>) -> Result<(), Errno> {
        if message.len() > BULK_BYTES {
            self.note_bulk_reply();
        } else {
            self.note_answered();
        }
        let fits = self.fragment_bytes().is_none_or(|max| message.len() <= max);
        if !fits || !self.state.sends_alone() {
            return self.send_in_turn(message);
        }
        let (own, lent) = message.parts();
        let sent = self.stream.send_message_now(own, lent)?;
        if sent == message.len() {
            return Ok(());
        }
        self.keep(self.sending.lock(), message, sent)
    }

    /// Sends as much of the outbox as the socket has room for. Returns true if the outbox is empty then.
    #[cold]
    pub(super) fn flush(&self) -> Result<bool, Errno> {
        let mut sending = self.sending.lock();
        let flushed = sending.flush(&self.stream);
        match flushed {
            Ok(false) => {}
            Ok(true) => {
                // As much as the largest message needs, so that the next one makes no heap call.
                sending.outbox.trim(self.orb.limits.message_bytes_max);
                self.end_draining();
            }
            Err(_) => self.abandon(&mut sending),
        }
        flushed
    }

    /// Closes the connection if the client has not received the outbox in time.
    #[cold]
    pub(super) fn give_up(&self) {
        let mut sending = self.sending.lock();
        if !sending.outbox.is_empty() && sending.deadline_ns <= monotonic_ns() {
            self.count(ConnectionOutcome::SlowReceiver);
            self.abandon(&mut sending);
        }
    }

    /// Closes the connection, because nobody sends its outbox any more.
    #[cold]
    pub(super) fn give_up_at_once(&self) {
        self.abandon(&mut self.sending.lock());
    }

    /// Sends a message behind those of other threads. Unlike [`send`](Self::send), it says nothing of the message that is being served.
    #[cold]
    pub(super) fn send_in_turn(&self, message: &Writer<'_>) -> Result<(), Errno> {
        self.send_holding(self.sending.lock(), message)
    }

    /// As [`send_in_turn`](Self::send_in_turn), for a thread whose turn it is.
    pub(super) fn send_holding(
        &self,
        sending: MutexGuard<'_, UnsentReplies>,
        message: &Writer<'_>,
    ) -> Result<(), Errno> {
        if !sending.outbox.is_empty() {
            return self.keep(sending, message, 0);
        }
        let fragment_bytes = self.fragment_bytes();
        if fragment_bytes.is_some_and(|max| message.len() > max) {
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

    /// Sends a message behind those of other threads, for a thread that must not wait. Returns false if the client takes nothing of it now.
    ///
    /// An event loop sends what the client does not take. A connection without one ends if the client takes a part: nobody would send the
    /// rest.
    #[cold]
    pub(super) fn send_if_room(&self, message: &Writer<'_>) -> Result<bool, Errno> {
        if self.is_watched() {
            return self.send_in_turn(message).map(|()| true);
        }
        // The thread that sends may wait for its client.
        let Some(mut sending) = self.sending.try_lock() else {
            return Ok(false);
        };
        if !sending.outbox.is_empty() {
            return Ok(false);
        }
        let kept = match self.fragment_bytes() {
            Some(max) if message.len() > max => sending.outbox.keep_fragments(message, max),
            _ => sending.outbox.keep(message, 0),
        };
        let bytes = sending.outbox.len();
        let flushed = match kept {
            Ok(()) => sending.flush(&self.stream),
            Err(_) => Err(Errno::NOBUFS),
        };
        match flushed {
            Ok(true) => return Ok(true),
            Ok(false) if sending.outbox.len() == bytes => {
                sending.outbox.advance(bytes);
                return Ok(false);
            }
            Ok(false) => self.count(ConnectionOutcome::SlowReceiver),
            Err(_) => {}
        }
        self.abandon(&mut sending);
        Err(Errno::PIPE)
    }

    /// Ends the connection of a client that has not taken a reply in time, for a thread that must not wait.
    #[cold]
    pub(super) fn end_slow_receiver(&self) {
        self.count(ConnectionOutcome::SlowReceiver);
        // The reading thread then finds the end.
        self.stream.shut();
    }

    /// Adds a message, without its first `sent` bytes, to the outbox.
    #[cold]
    fn keep(
        &self,
        mut sending: MutexGuard<'_, UnsentReplies>,
        message: &Writer<'_>,
        sent: usize,
    ) -> Result<(), Errno> {
        let was_empty = sending.outbox.is_empty();
        if sent > 0 && !self.is_watched() {
            return self.send_waiting(message, sent);
        }
        let kept = match self.fragment_bytes() {
            Some(max) if message.len() > max => sending.outbox.keep_fragments(message, max),
            _ => sending.outbox.keep(message, sent),
        };
        let flushed = match kept {
            Err(_) => {
                self.count(ConnectionOutcome::SlowReceiver);
                Err(Errno::NOBUFS)
            }
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

    /// Has the event loop send the outbox. Without an event loop, the calling thread serves only this client, and waits.
    ///
    /// # Errors
    /// PIPE if the event loop has ended; the connection ends then.
    fn await_room(&self, sending: &mut UnsentReplies) -> Result<(), Errno> {
        sending.deadline_ns = self.deadline_ns();
        let (Some(watch), Some(own)) = (self.registration.get(), self.own.upgrade()) else {
            return self.flush_waiting(sending);
        };
        self.state.drain();
        if !watch.events.await_writable(watch.token, &own) {
            self.abandon(sending);
            return Err(Errno::PIPE);
        }
        Ok(())
    }

    /// Sends the rest of a message, and waits for room. The calling thread serves only this client.
    fn send_waiting(&self, message: &Writer<'_>, sent: usize) -> Result<(), Errno> {
        let (own, lent) = message.parts();
        let deadline_ns = Some(self.deadline_ns());
        self.wait_to_send(|stream| stream.send_rest_by(own, lent, sent, deadline_ns))
    }

    /// Sends the outbox, and waits for room. The calling thread serves only this client.
    fn flush_waiting(&self, sending: &mut UnsentReplies) -> Result<(), Errno> {
        let deadline_ns = Some(sending.deadline_ns);
        let sent = self.wait_to_send(|stream| {
            stream.send_message_by(sending.outbox.unsent(), &[], deadline_ns)
        });
        sending.outbox.advance(sending.outbox.len());
        sent
    }

    /// Has `send` send and wait. The connection is not idle meanwhile.
    fn wait_to_send(&self, send: impl FnOnce(&Stream) -> Result<(), Unsent>) -> Result<(), Errno> {
        self.state.drain();
        let sent = send(&self.stream);
        self.state.drained();
        sent.map_err(|unsent| {
            if unsent.errno == Errno::AGAIN {
                self.count(ConnectionOutcome::SlowReceiver);
            }
            self.stream.shut();
            unsent.errno
        })
    }

    /// Returns the time by which a client must receive what is sent now.
    fn deadline_ns(&self) -> u64 {
        let timeout_ns = nanoseconds(self.orb.limits.send_timeout);
        monotonic_ns().saturating_add(timeout_ns)
    }

    /// Drops the outbox and shuts the connection.
    fn abandon(&self, sending: &mut UnsentReplies) {
        let unsent = sending.outbox.len();
        sending.outbox.advance(unsent);
        // The reading thread then finds the end.
        self.stream.shut();
        self.end_draining();
    }

    /// Notes that the outbox is empty, and continues reading. The caller holds the lock.
    fn end_draining(&self) {
        self.drained.notify_all(&self.sending);
        if self.state.drained() {
            self.watch_for_phase();
            if let Some(watch) = self.registration.get() {
                watch.events.sent(self);
            }
        }
    }

    /// Has the event loop watch for the events of the current phase.
    ///
    /// If two threads change the phase, the second holder of the lock sees the last phase.
    #[cold]
    fn watch(&self) {
        // A thread that serves one connection does not wait here for another one that sends on it.
        if self.is_watched() {
            let _sending = self.sending.lock();
            self.watch_for_phase();
        }
    }

    fn watch_for_phase(&self) {
        let Some(Registration { events, token }) = self.registration.get() else {
            return;
        };
        match self.state.phase() {
            ServerPhase::Reading => events.await_readable(*token, &self.stream),
            ServerPhase::Requested => events.request(*token, &self.stream),
            ServerPhase::Held => events.ignore(*token, &self.stream),
            ServerPhase::Ended => events.remove(&self.stream),
            // It watches for room since the outbox has had bytes.
            ServerPhase::Draining if self.is_bidirectional() => {
                events.read_while_draining(*token, &self.stream);
            }
            ServerPhase::Draining | ServerPhase::Finishing => {}
        }
    }

    fn fragment_bytes(&self) -> Option<usize> {
        self.orb.fragment_bytes
    }

    fn say(&self, write: impl FnOnce(&mut Writer<'_>) -> Result<(), EncodeError>) {
        let mut w = Writer::new(Vec::new(), giop::HEADER_BYTES);
        if write(&mut w).is_ok() {
            // Such a message makes no client known. If the client is gone, nothing remains to be done.
            let _ = self.send_in_turn(&w);
        }
    }
}

impl UnsentReplies {
    /// Sends as much as the socket has room for. Returns true if nothing is left.
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
        cancellation::unregister(self.number);
        // All its requests have replies now.
        if self.state.gives_way() && !self.state.has_unsent() {
            let version = self.state.version().unwrap_or(Version::V1_0);
            refuse(&self.stream, version);
        }
    }
}

/// Sends CloseConnection and ends the stream, without waiting.
#[cold]
pub(super) fn refuse(stream: &Stream, version: Version) {
    let mut w = Writer::new(Vec::new(), giop::HEADER_BYTES);
    if giop::write_close_connection(&mut w, version).is_ok() {
        let _ = stream.send_message_now(&w.to_bytes(), &[]);
    }
    stream.end_sending();
    // With unread bytes, closing would reset the connection, and the client might lose the message.
    stream.drain();
}
