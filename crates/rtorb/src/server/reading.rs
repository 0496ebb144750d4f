//! Reads a client's connection: receives bytes, and serves or takes out whole messages in their order.

use super::answer::{self, TakenTimes};
use super::connection_counts::ConnectionOutcome;
use super::request::TakenRequest;
use super::session::Session;
use super::stranger_turns::await_turn_of;
use super::upcall::site;
use super::workspace::Workspace;
use rtorb_wire::cdr::CharCodeSet;
use rtorb_wire::connection::{CodeSetState, Message, ReceiveError, Receiver, Reply, Side};
use rtorb_wire::giop::{MessageType, RequestHeader};
use rustix::io::Errno;

/// The receiver and the code sets of a connection. One thread at a time uses it.
#[derive(Debug)]
pub(crate) struct Reading {
    receiver: Receiver,
    code_sets: CodeSetState,
    /// The type of the messages that are requests to be served without interceptors. No message has it if there are interceptors: so one
    /// comparison finds both.
    plain_request: u8,
}

/// The outcome of reading the next message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// The message was served or taken out.
    Done,
    /// The message is not complete yet.
    Incomplete,
    /// There is no next message: the peer closed the connection or violated GIOP, the connection broke, or the ORB stops.
    Over,
}

impl Reading {
    /// Creates the state of a new connection, which has no buffer yet.
    pub(super) fn new(session: &Session) -> Self {
        let limits = session.orb.limits.receive();
        Self {
            receiver: Receiver::without_buffer(Side::Server, limits),
            code_sets: CodeSetState::default(),
            plain_request: if session.orb.has_interceptors() {
                u8::MAX
            } else {
                MessageType::Request as u8
            },
        }
    }

    /// Takes requests and replies from now on, for a connection that this ORB has opened: the code set of `char` data is the one that it
    /// named.
    pub(super) fn become_bidirectional(&mut self, char_code_set: CharCodeSet) {
        self.code_sets = CodeSetState::beginning_with(char_code_set);
        self.receiver.become_bidirectional();
    }

    /// Gets a buffer if there is none, because receiving finds no bytes without one. Returns false if there is one.
    #[cold]
    pub(crate) fn get_buffer(&mut self, session: &Session) -> bool {
        let lacks_buffer = !self.receiver.has_buffer();
        if lacks_buffer {
            self.receiver.lend(session.orb.buffers.take());
        }
        lacks_buffer
    }

    pub(super) fn has_buffer(&self) -> bool {
        self.receiver.has_buffer()
    }

    /// True if the next message does not fit into the small buffer.
    pub(super) fn needs_larger_buffer(&self) -> bool {
        self.receiver.needs_larger_buffer()
    }

    /// Goes on with another buffer; returns its own one.
    #[cold]
    pub(super) fn exchange_buffer(&mut self, buffer: Vec<u8>) -> Vec<u8> {
        self.receiver.exchange(buffer)
    }

    /// Gives the buffer of a silent connection back, unless a part of a message is in it.
    #[cold]
    pub(crate) fn give_buffer_back(&mut self, session: &Session) {
        if !self.receiver.has_buffer() {
            return;
        }
        match self.receiver.take_buffer() {
            Some(buffer) => session.orb.buffers.give_back(buffer),
            None if self.receiver.has_buffer() => {}
            None => session.orb.buffers.note_freed(),
        }
    }

    /// Gives the buffer of a connection that has ended back, whatever is in it: the pool would lose one with each connection otherwise.
    #[cold]
    pub(crate) fn end_buffer(&mut self, session: &Session) {
        self.receiver.clear();
        self.give_buffer_back(session);
    }

    /// True if a part of a message has come.
    #[cold]
    pub(crate) fn has_partial(&self) -> bool {
        self.receiver.has_partial()
    }

    /// Notes that a part of a message has come, if one has. If the client is a stranger, waits for its next turn before more is received.
    #[cold]
    fn await_rest(&self, session: &Session) {
        if self.has_partial() {
            session.state.note_partial();
        }
        if !session.state.is_known()
            && let Some(server) = session.orb.server()
        {
            await_turn_of(session, &server.turns);
        }
    }

    /// Receives once, and waits for bytes. Returns their number, 0 when the peer has closed the connection.
    #[inline]
    pub(crate) fn receive(&mut self, session: &Session) -> Result<usize, Errno> {
        let received = session.stream.receive(self.receiver.free())?;
        session.note_arrival();
        self.receiver.advance(received);
        Ok(received)
    }

    /// Receives available bytes without waiting; `AGAIN` if there are none.
    ///
    /// If the receive buffer [is full](Self::is_full) afterwards, there may be more.
    // Always: a lane calls it for every request, and its other callers are tests.
    #[inline(always)]
    pub(crate) fn receive_now(&mut self, session: &Session) -> Result<usize, Errno> {
        let received = session.stream.receive_now(self.receiver.free())?;
        session.note_arrival();
        self.receiver.advance(received);
        Ok(received)
    }

    /// True if [`receive_now`](Self::receive_now) received as much as it does at a time.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.receiver.is_full()
    }

    /// True if all received bytes were served or taken.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.receiver.is_empty()
    }

    /// Serves the next message in place, if it is complete. Each `SITE` has code of its own.
    #[inline(always)]
    pub(crate) fn serve_next<const SITE: u8>(
        &mut self,
        session: &Session,
        workspace: &mut Workspace,
    ) -> Next {
        let next = match self.try_serve_next::<SITE>(session, workspace) {
            Ok(next) => next,
            Err(error) => return ended(session, error),
        };
        if next == Next::Done && session.orb.is_stopping() {
            return Next::Over;
        }
        next
    }

    /// Takes out the next request, for another thread or for later. Handles other messages at once; `BIDIRECTIONAL` for an ORB whose
    /// connections may be so.
    ///
    /// The caller [counts](rtorb_wire::connection::ServerConnection::take) the request before it leaves the connection to others.
    pub(crate) fn take_next<const BIDIRECTIONAL: bool>(
        &mut self,
        session: &Session,
        workspace: &mut Workspace,
        into: &mut TakenRequest,
    ) -> Next {
        loop {
            match self.try_take_next::<BIDIRECTIONAL>(session, workspace, into) {
                Ok(Some(next)) => return next,
                Ok(None) if session.orb.is_stopping() => return Next::Over,
                Ok(None) => {}
                Err(error) => return ended(session, error),
            }
        }
    }

    #[inline(always)]
    fn try_serve_next<const SITE: u8>(
        &mut self,
        session: &Session,
        workspace: &mut Workspace,
    ) -> Result<Next, ReceiveError> {
        let Some(message) = self.receiver.next_of(&session.state)? else {
            // The lock of a lane's connection lets the look itself find the part.
            if SITE == site::CONNECTION {
                self.await_rest(session);
            }
            return Ok(Next::Incomplete);
        };
        session.state.note_message(message.header.version);
        let code_sets = &mut self.code_sets;
        if message.header.message_type as u8 == self.plain_request {
            return Ok(answer::request::<SITE>(
                session, workspace, code_sets, message,
            )?);
        }
        answer::other(session, workspace, code_sets, message)
    }

    /// Takes out the next message if it is a request. Handles another message, and returns `None`.
    fn try_take_next<const BIDIRECTIONAL: bool>(
        &mut self,
        session: &Session,
        workspace: &mut Workspace,
        into: &mut TakenRequest,
    ) -> Result<Option<Next>, ReceiveError> {
        let Some(message) = self.receiver.next_of(&session.state)? else {
            return Ok(Some(Next::Incomplete));
        };
        if BIDIRECTIONAL && is_reply(&message) {
            let kind = message.header.message_type;
            let request_id = Reply::request_id(kind, &mut message.reader())?;
            session.deliver(kind, request_id, |into| self.receiver.take(into));
            return Ok(None);
        }
        session.state.note_message(message.header.version);
        if message.header.message_type != MessageType::Request {
            let code_sets = &mut self.code_sets;
            return Ok(
                match answer::other(session, workspace, code_sets, message)? {
                    Next::Over => Some(Next::Over),
                    _ => None,
                },
            );
        }
        let request = RequestHeader::decode(&mut message.reader())?;
        if session.cancelled.is_any() {
            session.note_reused_id(&request);
        }
        let code_sets = &mut self.code_sets;
        let version = message.header.version;
        let timing = &session.orb.timing;
        let begun = answer::begin(session, workspace, code_sets, &request).and_then(|deadline| {
            // One that is only counted is counted when it is dispatched.
            if deadline.has_passed() && timing.settings.enforces_deadlines {
                timing.refuse_expired()?;
            }
            Ok(deadline.at_ns)
        });
        let char_code_set = self.code_sets.char_code_set();
        let is_offered = BIDIRECTIONAL && session.note_offer(version, &request, char_code_set);
        let next = match begun {
            Ok(deadline_ns) => {
                let times = TakenTimes {
                    arrived_ns: timing.arrival_ns(),
                    deadline_ns,
                };
                into.fill(message.bytes, char_code_set, times);
                Some(Next::Done)
            }
            Err(exception) => {
                answer::refuse(session, workspace, version, &request, &exception);
                None
            }
        };
        if is_offered {
            self.receiver.become_bidirectional();
        }
        Ok(next)
    }
}

/// True for a reply of the other end of a bidirectional connection.
fn is_reply(message: &Message<'_>) -> bool {
    let kind = message.header.message_type;
    matches!(kind, MessageType::Reply | MessageType::LocateReply)
}

/// Ends reading after an error. Sends MessageError if the client violated GIOP.
#[cold]
fn ended(session: &Session, error: ReceiveError) -> Next {
    session.end_calls(error.into());
    if matches!(
        error,
        ReceiveError::Malformed(_) | ReceiveError::OutOfPlace(_)
    ) {
        session.count(ConnectionOutcome::Malformed);
        session.say_error();
    }
    Next::Over
}
