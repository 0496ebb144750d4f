//! One request and its reply on a connection that nobody else uses meanwhile.

mod failures;

use super::Failure;
use crate::exception::{CompletionStatus, ExceptionKind, Phase, SystemException};
use crate::inbox::Inbox;
use crate::orb::{OrbCore, SharedEndpoint};
use crate::outgoing;
use crate::reference::Route;
use crate::rt::Priority;
use crate::transport::Stream;
use crate::wait::read::{self, Deadline, Silence, Unread};
use crate::wait::watchdog::Wait;
use failures::Undecodable;
use rtorb_wire::cdr::CharCodeSet;
use rtorb_wire::code_sets;
use rtorb_wire::giop::{
    self, Accepted, Header, MessageType, ReplyHeader, ReplyStatus, RequestStart, Response,
    ServiceContext, SystemExceptionBody,
};
use rtorb_wire::ior::Ior;
use rtorb_wire::{Decode, DecodeError, EncodeError, Reader, Writer};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// A connection of one client thread.
#[derive(Debug)]
pub(crate) struct Connection {
    /// The stream, and until when this thread waits in it.
    wait: Arc<Wait>,
    /// Held, so that a reference made later finds this connection though no other reference is left.
    endpoint: Arc<SharedEndpoint>,
    /// The buffer of the request, reused.
    out: Vec<u8>,
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
    /// True once the watchdog has shut the stream, or the rest of a message is left in it.
    is_shut: bool,
    /// An idle connection does not keep its ORB alive, with its watchdog, adapters and servants.
    orb: Weak<OrbCore>,
}

/// What shall be called.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'x> {
    pub(crate) orb: &'x Arc<OrbCore>,
    pub(crate) route: &'x Route,
    pub(crate) operation: &'x str,
    pub(crate) response: Response,
    pub(crate) timeout: Option<Duration>,
    /// The CORBA priority that the server shall know (service context RTCorbaPriority).
    pub(crate) priority: Option<Priority>,
}

/// The reply that a thread waits for.
#[derive(Clone, Copy, Debug)]
struct Awaited<'x> {
    orb: &'x Arc<OrbCore>,
    request_id: u32,
    deadline: Deadline,
}

/// How an invocation that reached the object ended.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// With a result or a user exception, which the reply's reader has taken.
    Done,
    /// The object is elsewhere.
    Forward(Ior),
}

/// Writes the arguments; called again when the request has to be sent again.
pub(crate) type Arguments<'f, 'a> = &'f dyn Fn(&mut Writer<'a>) -> Result<(), EncodeError>;

/// Reads the body of a reply with a result or a user exception.
pub(crate) type Results<'f> =
    &'f mut dyn FnMut(ReplyStatus, &mut Reader<'_>) -> Result<(), DecodeError>;

impl Connection {
    pub(crate) fn new(orb: &Arc<OrbCore>, route: &Route, stream: Stream) -> Self {
        Self {
            wait: Wait::new(stream),
            endpoint: Arc::clone(&route.endpoint),
            out: Vec::new(),
            inbox: Inbox::new(orb.limits.message_octets_max),
            whole: Vec::new(),
            reassembly: giop::Reassembly::new(
                orb.limits.message_octets_max,
                orb.limits.fragment_chains_max,
            ),
            next_request_id: 0,
            watched: None,
            code_set_told: route.endpoint.char_code_set == CharCodeSet::Latin1,
            proved: false,
            is_shut: false,
            orb: Arc::downgrade(orb),
        }
    }

    /// True once no call can want the connection any more: its ORB is gone or shut down.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.orb.upgrade().is_none_or(|orb| orb.is_stopping())
    }

    /// True if the connection leads to the route's endpoint.
    #[inline]
    pub(crate) fn serves(&self, route: &Route) -> bool {
        Arc::ptr_eq(&self.endpoint, &route.endpoint)
    }

    /// Sends a request and, if one is due, reads its reply.
    ///
    /// After a failure the connection is of no use any more.
    pub(crate) fn call<'a>(
        &mut self,
        request: Request<'_>,
        arguments: Arguments<'_, 'a>,
        results: Results<'_>,
    ) -> Result<Outcome, Failure> {
        let deadline = Deadline::after(request.timeout);
        let Some(deadline_ns) = deadline.at_ns() else {
            return self.exchange(request, arguments, results, deadline);
        };
        self.be_watched(request)?;
        self.wait.begin(deadline_ns);
        let answer = self.exchange(request, arguments, results, deadline);
        // Whatever came at the last moment is good, but the stream is shut.
        let is_late = !self.wait.end();
        self.is_shut |= is_late;
        match answer {
            Err(failure) if is_late => Err(self.late(failure, deadline)),
            answer => answer,
        }
    }

    /// True if the connection cannot be used again although its last call ended well.
    #[inline]
    pub(crate) fn is_shut(&self) -> bool {
        self.is_shut
    }

    #[inline]
    fn exchange<'a>(
        &mut self,
        request: Request<'_>,
        arguments: Arguments<'_, 'a>,
        results: Results<'_>,
        deadline: Deadline,
    ) -> Result<Outcome, Failure> {
        let request_id = self.next_request_id;
        self.next_request_id = request_id.wrapping_add(2);
        self.send_request(request_id, request, arguments, deadline)?;
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
    fn be_watched(&mut self, request: Request<'_>) -> Result<(), Failure> {
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
                        self.failure(exception, Phase::Send, Duration::ZERO, Some(refused.errno))
                    })?;
                self.watched = Some(timeout);
                Ok(())
            }
        }
    }

    fn send_request<'a>(
        &mut self,
        request_id: u32,
        request: Request<'_>,
        arguments: Arguments<'_, 'a>,
        deadline: Deadline,
    ) -> Result<(), Failure> {
        let mut w = Writer::new(
            core::mem::take(&mut self.out),
            request.orb.limits.message_octets_max,
        )
        .with_order(request.orb.byte_order)
        .with_char_code_set(self.endpoint.char_code_set);
        let encoded = self.encode_request(&mut w, request_id, request, arguments);
        let sent = match encoded {
            Ok(()) => outgoing::send(request.orb, &self.wait.stream, &w)
                .map_err(|errno| self.send_failure(errno, deadline)),
            // The connection is as good as before, only this request is not.
            Err(error) => Err(SystemException::from_encode(error).into()),
        };
        self.out = w.into_buffer();
        sent
    }

    #[inline]
    fn encode_request<'a>(
        &mut self,
        w: &mut Writer<'a>,
        request_id: u32,
        request: Request<'_>,
        arguments: Arguments<'_, 'a>,
    ) -> Result<(), EncodeError> {
        let version = request.route.version;
        match &request.route.prefix {
            Some(prefix) if self.code_set_told => {
                prefix.begin_request(w, request_id, request.response, request.operation)?;
            }
            _ => self.begin_request(w, request_id, request)?,
        }
        giop::encode_body(w, version, arguments)?;
        giop::end_message(w)
    }

    /// Begins a request of an old version, or the first one, which tells the server the code sets.
    #[cold]
    fn begin_request(
        &self,
        w: &mut Writer<'_>,
        request_id: u32,
        request: Request<'_>,
    ) -> Result<(), EncodeError> {
        let code_sets = giop::contexts::CodeSets {
            char_data: self.endpoint.char_code_set.registry(),
            wchar_data: code_sets::UTF_16,
        };
        let data = code_sets.to_data();
        let told = [ServiceContext {
            id: giop::contexts::CODE_SETS,
            data: &data,
        }];
        let contexts: &[ServiceContext<'_>] = if self.code_set_told { &[] } else { &told };
        let start = RequestStart {
            request_id,
            response: request.response,
            object_key: &request.route.object_key,
            operation: request.operation,
            contexts,
        };
        giop::begin_request(w, request.route.version, &start)
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
                .map_err(|error| self.header_failure(error, deadline))?;
            let Some(header) = header else {
                let received = match heard {
                    false => read::first(&self.wait.stream, &mut self.inbox),
                    true => read::more(&self.wait.stream, &mut self.inbox, deadline),
                };
                received.map_err(|silence| self.silence_failure(silence, deadline))?;
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
                    .map_err(|silence| self.silence_failure(silence, deadline))?;
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
            MessageType::Reply if !header.more_fragments => {
                self.take_reply(header, awaited, results)
            }
            MessageType::Reply | MessageType::Fragment => {
                let octets = header.message_octets();
                let accepted = self.reassembly.accept(&header, self.inbox.octets(octets));
                self.inbox.consume(octets);
                match accepted.map_err(|error| self.header_failure(error, deadline))? {
                    Accepted::Message(message) => self.take_reassembled(&message, awaited, results),
                    _ => Ok(None),
                }
            }
            // A server that has begun to reply has carried the request out: it must not do so again.
            MessageType::CloseConnection if self.reassembly.octets() > 0 => {
                Err(self.silence_failure(Silence::Ended, deadline))
            }
            MessageType::CloseConnection => Err(Failure {
                // GIOP 1.2 15.4.7: what was not replied to was not processed.
                exception: self.exception(
                    SystemException::omg(ExceptionKind::Transient, 2),
                    Phase::AwaitReply,
                    deadline.elapsed(),
                    None,
                ),
                stale: true,
            }),
            _ => Err(self.failure(
                SystemException::new(ExceptionKind::CommFailure, 0, CompletionStatus::Maybe),
                Phase::AwaitReply,
                deadline.elapsed(),
                None,
            )),
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
            .with_char_code_set(self.endpoint.char_code_set)
            .with_context(awaited.orb);
        if unread.left > 0 {
            reader = reader.with_remainder(&mut unread);
        }
        let read = interpret(&mut reader, awaited.request_id, results);
        let (left, silence) = (unread.left, unread.silence);
        self.inbox.consume(used);
        self.is_shut = left > 0;
        self.proved = true;
        self.code_set_told = true;
        match read {
            // What was left unread would be taken for the next message.
            Ok(Read::Other) if left > 0 => Err(self.header_failure(
                DecodeError::BadTag {
                    what: "the size of a reply to another request",
                    value: left as u32,
                },
                deadline,
            )),
            Ok(read) => self.conclude(read, deadline),
            Err(undecodable) => Err(self.decode_failure(undecodable, silence, deadline)),
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
            return Err(self.header_failure(DecodeError::BadMagic, deadline));
        };
        let mut reader = header
            .reader(message)
            .with_char_code_set(self.endpoint.char_code_set)
            .with_context(awaited.orb);
        let read = interpret(&mut reader, awaited.request_id, results);
        self.proved = true;
        self.code_set_told = true;
        match read {
            Ok(read) => self.conclude(read, deadline),
            Err(undecodable) => Err(self.decode_failure(undecodable, None, deadline)),
        }
    }

    fn conclude(&self, read: Read, deadline: Deadline) -> Result<Option<Outcome>, Failure> {
        match read {
            Read::Done => Ok(Some(Outcome::Done)),
            Read::Other => Ok(None),
            Read::Forward(ior) => Ok(Some(Outcome::Forward(ior))),
            Read::Exception(exception) => Err(exception.into()),
            Read::NeedsAddressingMode => Err(self.failure(
                SystemException::new(ExceptionKind::NoImplement, 0, CompletionStatus::No),
                Phase::AwaitReply,
                deadline.elapsed(),
                None,
            )),
        }
    }
}

/// What a message turned out to be.
enum Read {
    Done,
    /// A reply to a request that nobody waits for any more.
    Other,
    Forward(Ior),
    Exception(SystemException),
    NeedsAddressingMode,
}

#[inline]
fn interpret(
    reader: &mut Reader<'_>,
    request_id: u32,
    results: Results<'_>,
) -> Result<Read, Undecodable> {
    let reply = ReplyHeader::decode(reader)?;
    if reply.request_id != request_id {
        return Ok(Read::Other);
    }
    match reply.status {
        ReplyStatus::NoException | ReplyStatus::UserException => {
            let completed = CompletionStatus::Yes;
            results(reply.status, reader).map_err(|error| Undecodable { error, completed })?;
            Ok(Read::Done)
        }
        ReplyStatus::SystemException => {
            let body = SystemExceptionBody::decode(reader)?;
            Ok(Read::Exception(SystemException::new(
                ExceptionKind::from_repository_id(body.repository_id),
                body.minor,
                CompletionStatus::from_number(body.completed),
            )))
        }
        ReplyStatus::LocationForward | ReplyStatus::LocationForwardPerm => {
            Ok(Read::Forward(Ior::decode(reader)?))
        }
        ReplyStatus::NeedsAddressingMode => Ok(Read::NeedsAddressingMode),
    }
}
