//! A connection that one thread at a time uses. The thread sends a request and reads the reply itself.

use super::invocation::{Arguments, Invocation};
use super::reply::{CallError, Outcome, Results, read_reply};
use super::{IDLE_NS, opening};
use crate::distributable::{ActiveCall, ThreadCall};
use crate::exception::{Phase, SystemException};
use crate::outgoing;
use crate::thread_state;
use crate::transport::Unsent;
use crate::wait::read::Incoming;
use crate::wait::watchdog::Wait;
use rtorb_wire::Writer;
use rtorb_wire::connection::{ClientState, Outbox, OutboxError, ReplyError};
use rtorb_wire::giop::Response;
use rustix::io::Errno;
use std::sync::Arc;

/// A connection that one client thread at a time uses.
#[derive(Debug)]
pub(crate) struct SingleConnection {
    /// The stream, and the deadline of the thread that waits for it.
    wait: Arc<Wait>,
    state: ClientState,
    incoming: Incoming,
    /// The unsent rest of a oneway that did not wait. It is sent before any other message.
    outbox: Outbox,
    /// The buffer of the request, reused.
    out: Vec<u8>,
    /// The shortest timeout that is registered with the watchdog; [`UNWATCHED_NS`] if none is.
    watched_ns: u64,
    /// A call after this time checks whether the server has ended the idle connection.
    idle_from_ns: u64,
    /// True if the connection cannot be used again: the watchdog has shut the stream, or a call has failed.
    is_shut: bool,
}

/// The reason why a oneway that waits for nothing was not sent.
#[derive(Debug)]
pub(super) enum SendNowError {
    /// A part of another oneway is still unsent.
    BehindAnother,
    /// The connection failed, or the request could not be made.
    Failed(CallError),
}

impl SingleConnection {
    /// Opens a connection to the endpoint of the invocation's route.
    #[cold]
    pub(super) fn open(invocation: &Invocation<'_>) -> Result<Self, SystemException> {
        let stream = opening::open(invocation)?;
        let limits = &invocation.core.limits;
        let mut connection = Self {
            wait: Wait::new(stream),
            state: invocation.route.endpoint.client_state(),
            incoming: Incoming::new(limits.receive()),
            outbox: Outbox::new(limits.message_bytes_max.saturating_mul(FRAGMENTED_FACTOR)),
            out: Vec::new(),
            watched_ns: UNWATCHED_NS,
            idle_from_ns: invocation.now_ns().saturating_add(IDLE_NS),
            is_shut: false,
        };
        opening::bind_band(invocation, |bind, results| {
            connection.call(bind, &|_| Ok(()), results)
        })?;
        Ok(connection)
    }

    /// Sends a request and, if a reply is expected, reads it. If the server ended the connection while it was idle, the call fails
    /// as if the connection had been closed before.
    ///
    /// After [`CallError::NoReply`] the connection [is not sound](Self::is_sound).
    pub(super) fn call<'a>(
        &mut self,
        invocation: &Invocation<'_>,
        arguments: Arguments<'_, 'a>,
        results: Results<'_>,
    ) -> Result<Outcome, CallError> {
        if self.has_ended_idle(invocation.now_ns()) {
            self.is_shut = true;
            return Err(ReplyError::ClosedBefore.into());
        }
        let deadline = invocation.deadline;
        let deadline_ns = deadline.at_ns();
        if let Some(deadline_ns) = deadline_ns {
            // The watchdog looks in time at a wait that is as long as those that it knows.
            if invocation.is_delayed || self.watched_ns > deadline.timeout_ns() {
                self.begin_checked(invocation, deadline_ns)?;
            } else {
                self.wait.begin(deadline_ns);
            }
        }
        let ended = self.exchange(invocation, arguments, results);
        // A reply that arrived just before the deadline is valid, but the stream is shut.
        let is_late = deadline_ns.is_some() && !self.wait.end();
        self.is_shut |= is_late;
        match ended {
            Ok(outcome) => Ok(outcome),
            Err(CallError::NoReply(error)) => Err(self.without_reply(invocation, error, is_late)),
            Err(error) => Err(error),
        }
    }

    /// Returns true if the server ended the connection while it was idle. Otherwise the call that begins at `now_ns` uses it.
    #[inline(always)]
    pub(super) fn has_ended_idle(&mut self, now_ns: u64) -> bool {
        let is_idle = now_ns > self.idle_from_ns;
        self.idle_from_ns = now_ns.saturating_add(IDLE_NS);
        is_idle && self.wait.stream.has_ended()
    }

    /// Sends as much of a oneway as the socket takes without waiting. The rest is kept, and sent before any other message.
    ///
    /// Returns true if nothing is kept.
    #[inline]
    pub(super) fn send_now<'a>(
        &mut self,
        invocation: &Invocation<'_>,
        arguments: Arguments<'_, 'a>,
    ) -> Result<bool, SendNowError> {
        if !self.flush().map_err(SendNowError::Failed)? {
            return Err(SendNowError::BehindAnother);
        }
        self.send(invocation, arguments, |own, message| {
            own.offer(message, invocation.core.fragment_bytes)
                .map_err(Unsent::whole)
        })
        .map_err(SendNowError::Failed)?;
        Ok(self.is_flushed())
    }

    /// Sends as much of the outbox as the socket takes without waiting. Returns true if nothing is left.
    #[inline]
    pub(super) fn flush(&mut self) -> Result<bool, CallError> {
        if !self.outbox.is_empty() {
            self.send_outbox()
                .map_err(|errno| self.broken_by(Unsent::whole(errno)))?;
        }
        Ok(self.is_flushed())
    }

    /// Returns true if no part of a oneway is kept.
    #[inline]
    pub(super) fn is_flushed(&self) -> bool {
        self.outbox.is_empty()
    }

    /// Returns true if the connection can be used again.
    #[inline]
    pub(super) fn is_sound(&self) -> bool {
        !self.is_shut && self.incoming.is_sound()
    }

    #[inline]
    fn exchange<'a>(
        &mut self,
        invocation: &Invocation<'_>,
        arguments: Arguments<'_, 'a>,
        results: Results<'_>,
    ) -> Result<Outcome, CallError> {
        if !self.outbox.is_empty() {
            self.finish_outbox()?;
        }
        let request_id = self.send(invocation, arguments, |own, message| {
            outgoing::send(&own.wait.stream, message, invocation.core.fragment_bytes)
        })?;
        if let Some(part) = thread_state::recorder() {
            part.note_sent(request_id, self.wait.stream.identity());
        }
        if invocation.response == Response::None {
            return Ok(Outcome::Done);
        }
        if let Some(call) = invocation.kind.thread() {
            return self.receive_cancellable(invocation, call, request_id, results);
        }
        self.receive::<false>(invocation, request_id, results)
    }

    /// Receives the reply to a request. Each of the two callers has a copy of the code, which is inlined in the path of every call.
    #[inline(always)]
    fn receive<const IS_CANCELLABLE: bool>(
        &mut self,
        invocation: &Invocation<'_>,
        request_id: u32,
        results: Results<'_>,
    ) -> Result<Outcome, CallError> {
        let (stream, state) = (&self.wait.stream, &self.state);
        self.incoming
            .reply(stream, invocation.deadline, |message, rest| {
                state.note_reply(message.header.message_type);
                read_reply(invocation, request_id, message, rest, results)
            })
    }

    /// Receives the reply to a request of a distributable thread, whose cancellation ends the wait.
    #[cold]
    fn receive_cancellable(
        &mut self,
        invocation: &Invocation<'_>,
        call: &ThreadCall,
        request_id: u32,
        results: Results<'_>,
    ) -> Result<Outcome, CallError> {
        let bell = invocation.core.watchdog.bell();
        let cancel = invocation.cancel_request(request_id);
        call.begin_wait(ActiveCall::single(&self.wait, bell, cancel));
        let ended = self.receive::<true>(invocation, request_id, results);
        call.end_wait();
        ended
    }

    /// Writes a request, sends it by `send`, and returns its id.
    #[inline(always)]
    fn send<'a>(
        &mut self,
        invocation: &Invocation<'_>,
        arguments: Arguments<'_, 'a>,
        send: impl FnOnce(&mut Self, &Writer<'a>) -> Result<(), Unsent>,
    ) -> Result<u32, CallError> {
        let request_id = self.state.next_request_id();
        let needs_code_sets = self.state.needs_code_sets();
        let mut w = invocation.writer(core::mem::take(&mut self.out));
        let sent = match invocation.encode(&mut w, request_id, needs_code_sets, arguments) {
            Ok(()) => send(self, &w).map_err(|unsent| self.broken_by(unsent)),
            Err(error) => Err(SystemException::from_encode(error).into()),
        };
        self.out = w.into_buffer();
        sent.map(|()| request_id)
    }

    /// Begins a wait, and makes the watchdog check it at once: the connection is not registered, or only with a longer timeout, or the
    /// deadline may be near.
    #[cold]
    fn begin_checked(
        &mut self,
        invocation: &Invocation<'_>,
        deadline_ns: u64,
    ) -> Result<(), SystemException> {
        invocation.check_time(Phase::Send)?;
        let timeout_ns = invocation.deadline.timeout_ns();
        let watchdog = &invocation.core.watchdog;
        let is_shorter = self.watched_ns > timeout_ns && !invocation.is_delayed;
        if is_shorter || self.watched_ns == UNWATCHED_NS {
            // Less, because what is left of an inherited deadline is a little shorter from call to call.
            let mut timeout_ns = timeout_ns - timeout_ns / 8;
            if invocation.is_delayed {
                // It may have little time left. That is no reason to check so often later: each delayed call asks for it.
                timeout_ns = timeout_ns.max(DELAYED_NS_MIN);
            }
            let watched = watchdog.watch(&self.wait, timeout_ns);
            let endpoint = &invocation.route.endpoint.endpoint;
            watched.map_err(|unwatched| unwatched.at(endpoint))?;
            self.watched_ns = timeout_ns;
        }
        self.wait.begin(deadline_ns);
        watchdog.check_waits();
        Ok(())
    }

    /// Sends as much of a message as the socket takes without waiting, and keeps the rest. The outbox must be empty.
    #[inline]
    fn offer(&mut self, message: &Writer<'_>, fragment_bytes: Option<usize>) -> Result<(), Errno> {
        debug_assert!(self.outbox.is_empty(), "a message would overtake another");
        if let Some(max) = fragment_bytes.filter(|max| message.len() > *max) {
            let kept = self.outbox.keep_fragments(message, max);
            kept.map_err(no_memory)?;
            return self.send_outbox();
        }
        let (own, lent) = message.parts();
        let sent = self.wait.stream.send_message_now(own, lent)?;
        if sent < message.len() {
            self.outbox.keep(message, sent).map_err(no_memory)?;
        }
        Ok(())
    }

    fn send_outbox(&mut self) -> Result<(), Errno> {
        let sent = self
            .wait
            .stream
            .send_message_now(self.outbox.unsent(), &[])?;
        self.outbox.advance(sent);
        Ok(())
    }

    /// Sends the rest of a oneway. The next call waits until it is sent.
    #[cold]
    fn finish_outbox(&mut self) -> Result<(), ReplyError> {
        let finished = self.wait.stream.send(self.outbox.unsent());
        // Nothing of this request went.
        finished.map_err(|unsent| self.send_error(Unsent::whole(unsent.errno)))?;
        self.outbox.advance(self.outbox.len());
        Ok(())
    }

    /// Returns the error of a call without a reply. The connection is not used again.
    #[cold]
    fn without_reply(
        &mut self,
        invocation: &Invocation<'_>,
        error: ReplyError,
        is_late: bool,
    ) -> CallError {
        self.is_shut = true;
        if !is_late {
            return error.into();
        }
        let error = error.when_late();
        if error == ReplyError::TimedOut {
            // The request is sent whole, and the watchdog has only ended receiving.
            let cancel = invocation.cancel_request(self.state.last_request_id());
            cancel.send(&self.wait.stream);
        }
        error.into()
    }

    #[cold]
    fn broken_by(&mut self, unsent: Unsent) -> CallError {
        self.is_shut = true;
        self.send_error(unsent).into()
    }

    #[cold]
    fn send_error(&self, unsent: Unsent) -> ReplyError {
        let is_late = unsent.errno == Errno::AGAIN || self.wait.has_ended();
        match (is_late, unsent.has_begun) {
            (true, true) => ReplyError::SendTimedOut,
            (true, false) => ReplyError::NotSent,
            (false, _) => self.state.send_failed(unsent.errno.raw_os_error()),
        }
    }
}

/// The shortest timeout that a delayed call registers with the watchdog.
const DELAYED_NS_MIN: u64 = 1_000_000;

/// The value for a connection that is not registered. No timeout is as long.
const UNWATCHED_NS: u64 = u64::MAX;

/// A fragment of 24 bytes carries 8 bytes of its message: a message in fragments is at most this many times as large.
const FRAGMENTED_FACTOR: usize = 3;

#[cold]
fn no_memory(_: OutboxError) -> Errno {
    Errno::NOMEM
}
