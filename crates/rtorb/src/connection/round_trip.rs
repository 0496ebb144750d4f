//! One request and its reply on a connection that nobody else uses meanwhile.

mod rest;

use super::failures::Attempt;
use super::reply::{Outcome, Read, Results, interpret};
use super::request::{Arguments, Numbered, Request};
use super::{Failure, opening};
use crate::endpoint::Endpoint;
use crate::exception::{ExceptionKind, Phase, SystemException};
use crate::inbox::Inbox;
use crate::orb::OrbCore;
use crate::outgoing;
use crate::transport::Stream;
use crate::wait::read::{self, Deadline, Silence, Unread};
use crate::wait::watchdog::Wait;
use rest::Rest;
use rtorb_wire::cdr::CharCodeSet;
use rtorb_wire::giop::{self, Accepted, Header, MessageType, Response};
use rtorb_wire::{DecodeError, Writer};
use rustix::io::Errno;
use std::sync::Arc;
use std::time::Duration;

/// A connection that one client thread at a time calls on.
#[derive(Debug)]
pub(crate) struct Connection {
    /// The stream, and until when this thread waits in it.
    wait: Arc<Wait>,
    endpoint: Arc<Endpoint>,
    char_code_set: CharCodeSet,
    /// The buffer of the request, reused.
    out: Vec<u8>,
    /// What is left of a oneway that did not wait; it goes before anything else.
    rest: Rest,
    inbox: Inbox,
    /// Where a reply larger than the inbox is put together, reused.
    whole: Vec<u8>,
    reassembly: giop::Reassembly,
    next_request_id: u32,
    /// The shortest timeout that the watchdog knows of.
    watched: Option<Duration>,
    /// True once the peer knows the code set, or need not.
    code_set_told: bool,
    /// True once a reply came: only then can the connection have been closed for having been idle.
    proved: bool,
    /// True once the watchdog has shut the stream, what stands in it is the rest of a message, or a oneway that did not wait
    /// found it broken.
    is_shut: bool,
}

/// The reply that a thread waits for.
#[derive(Clone, Copy, Debug)]
struct Awaited<'x> {
    orb: &'x Arc<OrbCore>,
    request_id: u32,
    deadline: Deadline,
}

impl Connection {
    /// A new connection to the endpoint of the request's route.
    pub(super) fn open(request: &Request<'_>) -> Result<Self, Failure> {
        let stream = opening::open(request)?;
        let mut connection = Self::new(request, stream);
        opening::bind_band(request, |bind, results| {
            let deadline = Deadline::after(bind.timeout);
            connection.call(bind, deadline, &|_| Ok(()), results)
        })?;
        Ok(connection)
    }

    fn new(request: &Request<'_>, stream: Stream) -> Self {
        let limits = &request.orb.limits;
        let endpoint = &request.route.endpoint;
        Self {
            wait: Wait::new(stream),
            endpoint: Arc::clone(&endpoint.endpoint),
            char_code_set: endpoint.char_code_set,
            out: Vec::new(),
            rest: Rest::default(),
            inbox: Inbox::new(limits.message_octets_max),
            whole: Vec::new(),
            reassembly: giop::Reassembly::new(
                limits.message_octets_max,
                limits.fragment_chains_max,
            ),
            next_request_id: 0,
            watched: None,
            code_set_told: endpoint.char_code_set == CharCodeSet::Latin1,
            proved: false,
            is_shut: false,
        }
    }

    /// Sends a request and, if one is due, reads its reply.
    ///
    /// After a failure the connection is of no use any more.
    pub(super) fn call<'a>(
        &mut self,
        request: &Request<'_>,
        deadline: Deadline,
        arguments: Arguments<'_, 'a>,
        results: Results<'_>,
    ) -> Result<Outcome, Failure> {
        let Some(deadline_ns) = deadline.at_ns() else {
            return self.exchange(request, deadline, arguments, results);
        };
        self.be_watched(request, deadline)?;
        self.wait.begin(deadline_ns);
        let answer = self.exchange(request, deadline, arguments, results);
        // Whatever came at the last moment is good, but the stream is shut.
        let is_late = !self.wait.end();
        self.is_shut |= is_late;
        match answer {
            Err(failure) if is_late => Err(self.attempt(deadline).late(failure)),
            answer => answer,
        }
    }

    /// Sends what the transport takes of a oneway at once. What it does not take is kept, and goes before anything else.
    ///
    /// True when nothing of it is kept. While something is kept of another, the answer is TRANSIENT, and nothing of this one
    /// goes.
    #[inline]
    pub(super) fn send_now<'a>(
        &mut self,
        request: &Request<'_>,
        arguments: Arguments<'_, 'a>,
    ) -> Result<bool, Failure> {
        if !self.flush()? {
            return Err(self.attempt(Deadline::after(None)).behind_another());
        }
        let request_id = self.next_request_id;
        self.next_request_id = request_id.wrapping_add(2);
        self.with_message(request_id, request, arguments, |own, message| {
            own.rest
                .send(request.orb, &own.wait.stream, message)
                .map_err(|errno| own.broken_by(errno))
        })?;
        Ok(self.is_flushed())
    }

    /// Sends what the transport takes of what is kept; true when nothing is left.
    #[inline]
    pub(super) fn flush(&mut self) -> Result<bool, Failure> {
        self.rest
            .flush(&self.wait.stream)
            .map_err(|errno| self.broken_by(errno))
    }

    /// True if nothing of a oneway is kept.
    #[inline]
    pub(super) fn is_flushed(&self) -> bool {
        self.rest.is_empty()
    }

    /// True if the connection is of use after something was sent without waiting.
    #[inline]
    pub(super) fn is_sound(&self) -> bool {
        !self.is_shut
    }

    /// True if the connection is of use after a call that ended so.
    #[inline]
    pub(super) fn is_sound_after(&self, answer: &Result<Outcome, Failure>) -> bool {
        // An exception without a cause here came in a reply or before anything was sent: the connection is sound.
        !self.is_shut
            && answer
                .as_ref()
                .map_or_else(|failure| failure.exception.cause.is_none(), |_| true)
    }

    #[inline]
    fn exchange<'a>(
        &mut self,
        request: &Request<'_>,
        deadline: Deadline,
        arguments: Arguments<'_, 'a>,
        results: Results<'_>,
    ) -> Result<Outcome, Failure> {
        let request_id = self.next_request_id;
        self.next_request_id = request_id.wrapping_add(2);
        self.send_request(request_id, request, deadline, arguments)?;
        match request.response {
            Response::None => Ok(Outcome::Done),
            _ => self.read_reply(
                Awaited {
                    orb: request.orb,
                    request_id,
                    deadline,
                },
                results,
            ),
        }
    }

    /// Tells the watchdog of this connection, and of a timeout shorter than it knows.
    #[inline]
    fn be_watched(&mut self, request: &Request<'_>, deadline: Deadline) -> Result<(), Failure> {
        let timeout = request.timeout;
        match (self.watched, timeout) {
            (Some(known), Some(timeout)) if known <= timeout => Ok(()),
            (_, None) => Ok(()),
            (_, Some(timeout)) => {
                let config = &request.orb.watchdog_thread;
                request
                    .orb
                    .watchdog
                    .watch(&self.wait, timeout, config)
                    .map_err(|refused| {
                        let exception = ExceptionKind::NoResources.into();
                        let errno = Some(refused.errno);
                        self.attempt(deadline)
                            .failure(exception, Phase::Send, errno)
                    })?;
                self.watched = Some(timeout);
                Ok(())
            }
        }
    }

    fn send_request<'a>(
        &mut self,
        request_id: u32,
        request: &Request<'_>,
        deadline: Deadline,
        arguments: Arguments<'_, 'a>,
    ) -> Result<(), Failure> {
        if !self.rest.is_empty() {
            self.finish_rest(deadline)?;
        }
        self.with_message(request_id, request, arguments, |own, message| {
            outgoing::send(request.orb, &own.wait.stream, message)
                .map_err(|errno| own.attempt(deadline).send_failure(errno))
        })
    }

    /// Sends what is kept of a oneway, as long as the call may take that it stands before.
    #[cold]
    fn finish_rest(&mut self, deadline: Deadline) -> Result<(), Failure> {
        let finished = self.rest.finish(&self.wait.stream);
        finished.map_err(|errno| self.attempt(deadline).send_failure(errno))
    }

    /// Writes a message into the connection's buffer, and sends it as `send` does.
    #[inline]
    fn with_message<'a>(
        &mut self,
        request_id: u32,
        request: &Request<'_>,
        arguments: Arguments<'_, 'a>,
        send: impl FnOnce(&mut Self, &Writer<'a>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let numbered = Numbered {
            request_id,
            code_set_told: self.code_set_told,
        };
        let mut w = request.writer(core::mem::take(&mut self.out));
        let sent = match request.encode(&mut w, numbered, arguments) {
            Ok(()) => send(self, &w),
            // The connection is as good as before, only this request is not.
            Err(error) => Err(SystemException::from_encode(error).into()),
        };
        self.out = w.into_buffer();
        sent
    }

    #[cold]
    fn broken_by(&mut self, errno: Errno) -> Failure {
        self.is_shut = true;
        self.attempt(Deadline::after(None)).send_failure(errno)
    }

    fn read_reply(
        &mut self,
        awaited: Awaited<'_>,
        results: Results<'_>,
    ) -> Result<Outcome, Failure> {
        let deadline = awaited.deadline;
        let mut heard = self.inbox.len() > 0;
        loop {
            let header = self
                .inbox
                .header()
                .map_err(|error| self.attempt(deadline).header_failure(error))?;
            let Some(header) = header else {
                let received = match heard {
                    false => read::first(&self.wait.stream, &mut self.inbox),
                    true => read::more(&self.wait.stream, &mut self.inbox, deadline),
                };
                received.map_err(|silence| self.attempt(deadline).silence_failure(silence))?;
                heard = true;
                continue;
            };
            let octets = header.message_octets();
            // Headers of everything but a final reply are looked at whole: they are short.
            let is_plain_reply =
                header.message_type == MessageType::Reply && !header.more_fragments;
            if self.inbox.len() < octets && (self.inbox.holds(octets) || !is_plain_reply) {
                self.inbox.make_room_for_all(octets);
                read::more(&self.wait.stream, &mut self.inbox, deadline)
                    .map_err(|silence| self.attempt(deadline).silence_failure(silence))?;
                continue;
            }
            if let Some(outcome) = self.take_message(header, awaited, results)? {
                return Ok(outcome);
            }
        }
    }

    /// Looks at the message at the head of the inbox; `None` if it was not the reply.
    fn take_message(
        &mut self,
        header: Header,
        awaited: Awaited<'_>,
        results: Results<'_>,
    ) -> Result<Option<Outcome>, Failure> {
        let deadline = awaited.deadline;
        match header.message_type {
            MessageType::Reply | MessageType::LocateReply if !header.more_fragments => {
                self.take_reply(header, awaited, results)
            }
            MessageType::Reply | MessageType::LocateReply | MessageType::Fragment => {
                let octets = header.message_octets();
                let accepted = self.reassembly.accept(&header, self.inbox.octets(octets));
                self.inbox.consume(octets);
                match accepted.map_err(|error| self.attempt(deadline).header_failure(error))? {
                    Accepted::Message(message) => self.take_reassembled(&message, awaited, results),
                    _ => Ok(None),
                }
            }
            // A server that has begun to reply has carried the request out: it must not do so again.
            MessageType::CloseConnection if self.reassembly.octets() > 0 => {
                Err(self.attempt(deadline).silence_failure(Silence::Ended))
            }
            MessageType::CloseConnection => {
                Err(self.attempt(deadline).closed_before(Phase::AwaitReply))
            }
            _ => Err(self.attempt(deadline).out_of_place()),
        }
    }

    fn take_reply(
        &mut self,
        header: Header,
        awaited: Awaited<'_>,
        results: Results<'_>,
    ) -> Result<Option<Outcome>, Failure> {
        let deadline = awaited.deadline;
        let octets = header.message_octets();
        let present = self.inbox.octets(octets);
        let used = present.len();
        let mut unread = Unread {
            stream: &self.wait.stream,
            whole: &mut self.whole,
            left: octets - used,
            deadline,
            silence: None,
        };
        let mut reader = header
            .reader(present)
            .with_char_code_set(self.char_code_set)
            .with_context(awaited.orb);
        if unread.left > 0 {
            reader = reader.with_remainder(&mut unread);
        }
        let kind = header.message_type;
        let read = interpret(kind, &mut reader, awaited.request_id, results);
        let (left, silence) = (unread.left, unread.silence);
        self.inbox.consume(used);
        self.is_shut = left > 0;
        self.proved = true;
        self.code_set_told |= kind == MessageType::Reply;
        let attempt = self.attempt(deadline);
        match read {
            // What was left unread would be taken for the next message.
            Ok(Read::Other) if left > 0 => Err(attempt.header_failure(DecodeError::BadTag {
                what: "the size of a reply to another request",
                value: left as u32,
            })),
            Ok(read) => attempt.conclude(read),
            Err(undecodable) => Err(attempt.decode_failure(undecodable, silence)),
        }
    }

    #[cold]
    fn take_reassembled(
        &mut self,
        message: &[u8],
        awaited: Awaited<'_>,
        results: Results<'_>,
    ) -> Result<Option<Outcome>, Failure> {
        let deadline = awaited.deadline;
        let header = Header::parse(message, awaited.orb.limits.message_octets_max)
            .ok()
            .flatten();
        let Some(header) = header else {
            return Err(self.attempt(deadline).header_failure(DecodeError::BadMagic));
        };
        let mut reader = header
            .reader(message)
            .with_char_code_set(self.char_code_set)
            .with_context(awaited.orb);
        let kind = header.message_type;
        let read = interpret(kind, &mut reader, awaited.request_id, results);
        self.proved = true;
        self.code_set_told |= kind == MessageType::Reply;
        match read {
            Ok(read) => self.attempt(deadline).conclude(read),
            Err(undecodable) => Err(self.attempt(deadline).decode_failure(undecodable, None)),
        }
    }

    #[inline]
    fn attempt(&self, deadline: Deadline) -> Attempt<'_> {
        Attempt {
            endpoint: &self.endpoint,
            deadline,
            proved: self.proved,
        }
    }
}
