//! Objects of a fixed table, served on a link.

use crate::link::{self, Link, LinkError};
use crate::periods::{Clock, NotEnforced, Periods};
use crate::reference::ObjectRef;
use alloc::vec::Vec;
use core::marker::PhantomData;
use rtorb_core::exception::{CompletionStatus, ExceptionKind, SystemException, local};
use rtorb_core::timing::OperationTiming;
use rtorb_core::{Responder, ServedBy, unknown_operation};
use rtorb_wire::cdr::CharCodeSet;
use rtorb_wire::connection::{CodeSetState, Message, ReceiveError, Receiver, Side};
use rtorb_wire::giop::{
    self, LocateRequestHeader, LocateStatus, MessageType, ReplyStatus, RequestHeader, Response,
    ServiceContext, Version, contexts,
};
use rtorb_wire::{DecodeError, Encode, EncodeError, Writer};

/// The server's end of a link. It serves one request after the other, in the task that calls [`serve_next`](Self::serve_next).
#[derive(Debug)]
pub struct Server<'o> {
    objects: &'o [Object<'o>],
    receiver: Receiver,
    code_sets: CodeSetState,
    /// The buffer of replies, reused.
    out: Vec<u8>,
    message_bytes_max: usize,
    /// The periods of operations, if they are enforced.
    periods: Option<Periods<'o>>,
}

/// An object: its key, and what serves it.
#[derive(Clone, Copy)]
pub struct Object<'o> {
    /// The object key, as references have it: `corbaloc:iiop:HOST:PORT/KEY`.
    pub key: &'o [u8],
    /// Its servant.
    pub servant: &'o dyn Skeleton,
}

impl Object<'_> {
    /// Admits a call of the object, which is at `place` in the table, unless it comes too soon.
    fn check_period(
        &self,
        operation: &[u8],
        periods: &mut Periods<'_>,
        place: usize,
    ) -> Result<(), SystemException> {
        let number = self.servant.timing_of(operation);
        let timing = number.and_then(|number| Some((number, self.servant.timings().get(number)?)));
        timing.map_or(Ok(()), |(number, timing)| {
            periods.admit(place, number, timing)
        })
    }
}

/// A servant together with its interface. A [`Tie`] is one.
pub trait Skeleton: Sync {
    /// Calls the operation with that name.
    ///
    /// # Errors
    /// A system exception, which the caller is sent.
    fn dispatch(&self, operation: &[u8], call: &mut ServerCall<'_>) -> Result<(), SystemException>;

    /// The repository id of the interface.
    fn repository_id(&self) -> &'static str;

    /// True if the object has that interface.
    fn is_a(&self, repository_id: &str) -> bool;

    /// The timing of each annotated operation.
    fn timings(&self) -> &'static [OperationTiming] {
        &[]
    }

    /// The place of the operation with that name in [`timings`](Self::timings); `None` if it is not annotated.
    fn timing_of(&self, _operation: &[u8]) -> Option<usize> {
        None
    }
}

/// Ties a servant to the interface `I` that it implements.
#[derive(Debug)]
pub struct Tie<I, S> {
    servant: S,
    interface: PhantomData<fn() -> I>,
}

/// What a server does about the priority that a request carries (CLIENT_PROPAGATED).
pub trait CallPriority {
    /// Gives the serving task that CORBA priority, 0 to 32,767.
    fn enter(&mut self, priority: i16);

    /// Gives it back its own.
    fn leave(&mut self);
}

/// The serving task keeps its own priority (SERVER_DECLARED).
#[derive(Clone, Copy, Debug)]
pub struct FixedPriority;

/// Why nothing more came over a link. The next [`serve_next`](Server::serve_next) begins a new connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The peer ended the stream, or the link failed.
    Link(LinkError),
    /// The peer closed the connection.
    Closed,
    /// The octets are not GIOP, or break a limit. The peer was told so (MessageError).
    Refused(ReceiveError),
}

/// One request being served, as generated code sees it.
pub type ServerCall<'m> = rtorb_core::ServerCall<'m, LinkResponder<'m>>;

/// The destination and form of the reply.
pub struct LinkResponder<'m> {
    link: &'m mut dyn Link,
    /// The server's buffer for replies.
    out: &'m mut Vec<u8>,
    message_bytes_max: usize,
    version: Version,
    request_id: u32,
    response: Response,
    char_code_set: CharCodeSet,
    /// The data of the request's RTCorbaPriority, which the reply repeats.
    priority: Option<&'m [u8]>,
    is_sent: bool,
    broken: Option<LinkError>,
}

impl<'o> Server<'o> {
    /// A server of those objects, whose messages have at most `message_bytes_max` octets. It takes its memory now.
    ///
    /// Messages of up to 8 KiB are received into memory that is there from the beginning; larger ones make the buffer grow, once.
    #[must_use]
    pub fn new(objects: &'o [Object<'o>], message_bytes_max: usize) -> Self {
        Self {
            objects,
            receiver: Receiver::new(Side::Server, link::limits(message_bytes_max)),
            code_sets: CodeSetState::default(),
            out: Vec::with_capacity(message_bytes_max),
            message_bytes_max,
            periods: None,
        }
    }

    /// Refuses calls that arrive sooner than the `@period` of their operation allows, with TRANSIENT. The period counts from the last call
    /// that was served. It takes the memory for that now.
    ///
    /// `@deadline`, `@criticality` and `@queue` have nothing to decide here: requests are served one after the other, as they arrive.
    ///
    /// # Errors
    /// If an operation of an object has `@worst_case_time`, `@network_priority` or `@statistical`, which need an operating system.
    pub fn enforce_periods(mut self, clock: &'o dyn Clock) -> Result<Self, NotEnforced> {
        let timings = self.objects.iter().map(|object| object.servant.timings());
        self.periods = Some(Periods::new(timings, clock)?);
        Ok(self)
    }

    /// Waits for the next message, and serves it.
    ///
    /// # Errors
    /// When nothing more can come on this connection.
    pub fn serve_next(
        &mut self,
        link: &mut dyn Link,
        priority: &mut dyn CallPriority,
    ) -> Result<(), Ended> {
        self.try_serve_next(link, priority).inspect_err(|_| {
            self.receiver.clear();
            self.code_sets = CodeSetState::default();
        })
    }

    fn try_serve_next(
        &mut self,
        link: &mut dyn Link,
        priority: &mut dyn CallPriority,
    ) -> Result<(), Ended> {
        loop {
            let Some(message) = self.receiver.next().map_err(|error| refuse(link, error))? else {
                match link.receive(self.receiver.free()).map_err(Ended::Link)? {
                    0 => return Err(Ended::Closed),
                    count => self.receiver.advance(count),
                }
                continue;
            };
            let answer = Answer {
                objects: self.objects,
                periods: self.periods.as_mut(),
                out: &mut self.out,
                message_bytes_max: self.message_bytes_max,
            };
            let served = match message.header.message_type {
                MessageType::Request => {
                    answer.request(&mut self.code_sets, message, link, priority)
                }
                MessageType::LocateRequest => answer.locate_request(message, link),
                // The receiver refuses what no client sends; a cancelled request is served already.
                _ => Ok(Ok(())),
            };
            let sent = served.map_err(|error| refuse(link, error.into()))?;
            return sent.map_err(Ended::Link);
        }
    }
}

/// Tells the peer that its octets were not understood, unless it closed the connection.
fn refuse(link: &mut dyn Link, error: ReceiveError) -> Ended {
    if matches!(error, ReceiveError::Closed { .. }) {
        return Ended::Closed;
    }
    let mut w = Writer::new(Vec::new(), giop::HEADER_BYTES);
    if giop::write_message_error(&mut w, Version::V1_0).is_ok() {
        // If the link is broken, nothing remains to be done.
        let _ = link::send(link, &w);
    }
    Ended::Refused(error)
}

/// The answer to one message.
struct Answer<'m, 'o> {
    objects: &'m [Object<'m>],
    periods: Option<&'m mut Periods<'o>>,
    out: &'m mut Vec<u8>,
    message_bytes_max: usize,
}

impl<'m> Answer<'m, '_> {
    /// Serves a request. The outer error is for octets that are no request.
    fn request(
        self,
        code_sets: &mut CodeSetState,
        message: Message<'m>,
        link: &'m mut dyn Link,
        priority: &mut dyn CallPriority,
    ) -> Result<Result<(), LinkError>, DecodeError> {
        let mut arguments = message.reader();
        let request = RequestHeader::decode(&mut arguments)?;
        let noted = code_sets.note(&request);
        let char_code_set = code_sets.char_code_set();
        let place = place_of(self.objects, request.target.object_key()?);
        let object = place.and_then(|place| self.objects.get(place));
        let admitted = match (self.periods, place, object) {
            (Some(periods), Some(place), Some(object)) => {
                object.check_period(request.operation, periods, place)
            }
            _ => Ok(()),
        };
        let responder = LinkResponder {
            link,
            out: self.out,
            message_bytes_max: self.message_bytes_max,
            version: message.header.version,
            request_id: request.request_id,
            response: request.response,
            char_code_set,
            priority: request.contexts.find(contexts::RT_CORBA_PRIORITY),
            is_sent: false,
            broken: None,
        };
        let arguments = arguments.with_char_code_set(char_code_set);
        let mut call = ServerCall::new(arguments, responder);
        let served = match noted {
            Ok(()) => admitted.and_then(|()| serve(&mut call, object, request.operation, priority)),
            Err(_) => Err(ExceptionKind::CodesetIncompatible.into()),
        };
        if let Err(exception) = served {
            call.responder.send_exception(&exception);
        }
        Ok(call.responder.broken.map_or(Ok(()), Err))
    }

    fn locate_request(
        self,
        message: Message<'_>,
        link: &mut dyn Link,
    ) -> Result<Result<(), LinkError>, DecodeError> {
        let request = LocateRequestHeader::decode(&mut message.reader())?;
        let status = match place_of(self.objects, request.target.object_key()?) {
            Some(_) => LocateStatus::ObjectHere,
            None => LocateStatus::UnknownObject,
        };
        let mut w = Writer::new(core::mem::take(self.out), self.message_bytes_max);
        let version = message.header.version;
        let written = giop::write_locate_reply(&mut w, version, request.request_id, status);
        let sent = match written {
            Ok(()) => link::send(link, &w),
            // A reply of a few octets fits into every message.
            Err(_) => Ok(()),
        };
        *self.out = w.into_buffer();
        Ok(sent)
    }
}

/// The place of the object with that key.
fn place_of(objects: &[Object<'_>], key: &[u8]) -> Option<usize> {
    objects.iter().position(|object| object.key == key)
}

/// Serves a request for that object, if there is one.
fn serve(
    call: &mut ServerCall<'_>,
    object: Option<&Object<'_>>,
    operation: &[u8],
    priority: &mut dyn CallPriority,
) -> Result<(), SystemException> {
    if matches!(operation, b"_non_existent" | b"_not_existent") {
        return call.reply(|w| w.primitive(u8::from(object.is_none())));
    }
    let object = object.ok_or(NO_SUCH_OBJECT)?;
    if operation.first() == Some(&b'_')
        && let Some(answer) = serve_implicit(call, object, operation)
    {
        return answer;
    }
    let asked = call.responder.priority.map(contexts::decode_priority);
    let asked = asked.transpose()?;
    if let Some(asked) = asked {
        priority.enter(asked);
    }
    if call.responder.response == Response::BeforeInvocation {
        call.reply(|_| Ok(()))?;
    }
    let served = object.servant.dispatch(operation, call);
    if asked.is_some() {
        priority.leave();
    }
    served
}

/// Serves an operation that every object has; `None` for one that the interface defines.
fn serve_implicit(
    call: &mut ServerCall<'_>,
    object: &Object<'_>,
    operation: &[u8],
) -> Option<Result<(), SystemException>> {
    Some(match operation {
        b"_is_a" => is_a(call, object),
        b"_repository_id" => {
            let id = object.servant.repository_id();
            call.reply(|w| id.encode(w))
        }
        b"_bind_priority_band" => call.reply(|_| Ok(())),
        b"_interface" => Err(local::NO_REPOSITORY),
        b"_component" | b"_domain_managers" => Err(unknown_operation()),
        _ => return None,
    })
}

fn is_a(call: &mut ServerCall<'_>, object: &Object<'_>) -> Result<(), SystemException> {
    let is_a = object.servant.is_a(&call.arguments().str()?);
    call.reply(|w| w.primitive(u8::from(is_a)))
}

impl Responder for LinkResponder<'_> {
    fn respond<'r>(
        &mut self,
        status: ReplyStatus,
        body: impl FnOnce(&mut Writer<'r>) -> Result<(), EncodeError>,
    ) -> Result<(), SystemException> {
        if self.is_sent || self.response == Response::None {
            return Ok(());
        }
        let mut w = Writer::new(core::mem::take(self.out), self.message_bytes_max)
            .with_char_code_set(self.char_code_set);
        let context = self.priority.map(|data| ServiceContext {
            id: contexts::RT_CORBA_PRIORITY,
            data,
        });
        let (version, id) = (self.version, self.request_id);
        let encoded = giop::begin_reply(&mut w, version, id, status, context.as_slice())
            .and_then(|()| giop::encode_body(&mut w, version, body))
            .and_then(|()| giop::end_message(&mut w));
        if encoded.is_ok() {
            self.broken = link::send(self.link, &w).err();
            self.is_sent = true;
        }
        *self.out = w.into_buffer();
        // The servant has run: another call would run it twice.
        encoded.map_err(|error| {
            SystemException::from_encode(error).with_completion(CompletionStatus::Yes)
        })
    }

    fn expects_reply(&self) -> bool {
        self.response == Response::FromTarget
    }
}

impl LinkResponder<'_> {
    fn send_exception(&mut self, exception: &SystemException) {
        let body = exception.body();
        // It cannot fail: a system exception is far smaller than any limit on messages.
        let _ = self.respond(ReplyStatus::SystemException, |w| body.encode(w));
    }
}

impl<I, S> Tie<I, S> {
    /// The servant as an object of the interface `I`.
    pub const fn new(servant: S) -> Self {
        Self {
            servant,
            interface: PhantomData,
        }
    }

    /// The servant.
    pub const fn servant(&self) -> &S {
        &self.servant
    }
}

impl<S: Sync, I: ServedBy<S, Object = ObjectRef>> Skeleton for Tie<I, S> {
    fn dispatch(&self, operation: &[u8], call: &mut ServerCall<'_>) -> Result<(), SystemException> {
        let operation = I::find_operation(operation).ok_or_else(unknown_operation)?;
        I::dispatch(&self.servant, operation, call)
    }

    fn repository_id(&self) -> &'static str {
        I::REPOSITORY_ID
    }

    fn is_a(&self, repository_id: &str) -> bool {
        I::derives_from(repository_id)
    }

    fn timings(&self) -> &'static [OperationTiming] {
        I::timings()
    }

    fn timing_of(&self, operation: &[u8]) -> Option<usize> {
        I::timing_of(I::find_operation(operation)?)
    }
}

impl CallPriority for FixedPriority {
    fn enter(&mut self, _priority: i16) {}

    fn leave(&mut self) {}
}

impl core::fmt::Debug for Object<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Object")
            .field("key", &self.key)
            .field("interface", &self.servant.repository_id())
            .finish()
    }
}

impl core::fmt::Debug for LinkResponder<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("LinkResponder")
            .field("request_id", &self.request_id)
            .finish_non_exhaustive()
    }
}

/// The exception for a key that is not in the table.
const NO_SUCH_OBJECT: SystemException = SystemException::omg(ExceptionKind::ObjectNotExist, 1);
