//! Objects of a fixed table, served on a link.

use crate::link::{self, Link, LinkError};
use crate::periods::{Clock, NotEnforced, Periods};
use crate::reference::ObjectRef;
use alloc::vec::Vec;
use rtorb_core::Described;
use rtorb_core::exception::{SystemException, local};
use rtorb_core::timing::OperationTiming;
use rtorb_core::upcall::{self, Upcall};
use rtorb_core::{Reply, Responder, ServedBy, Tie, unknown_operation};
use rtorb_wire::cdr::CharCodeSet;
use rtorb_wire::connection::{CodeSetState, Message, ReceiveError, Receiver, Side};
use rtorb_wire::giop::{
    self, LocateRequestHeader, LocateStatus, MessageType, RequestHeader, Version, contexts,
};
use rtorb_wire::{DecodeError, Writer};

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
pub trait Skeleton: Described + Sync {
    /// Calls the operation with that name.
    ///
    /// # Errors
    /// A system exception, which the caller is sent.
    fn dispatch(&self, operation: &[u8], call: &mut ServerCall<'_>) -> Result<(), SystemException>;

    /// The timing of each annotated operation.
    fn timings(&self) -> &'static [OperationTiming] {
        &[]
    }

    /// The place of the operation with that name in [`timings`](Self::timings); `None` if it is not annotated.
    fn timing_of(&self, _operation: &[u8]) -> Option<usize> {
        None
    }
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

/// Why [`serve_next`](Server::serve_next) served nothing, or could not send its reply. After [`LinkError::TimedOut`] the next one reads on where this one stopped. After
/// any other end it begins a new connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The link failed, or its time passed.
    Link(LinkError),
    /// The peer closed the connection, or ended the stream.
    Closed,
    /// The bytes are not GIOP, or break a limit. The server has sent MessageError, unless that is what the peer sent.
    Refused(ReceiveError),
}

/// One request being served, as generated code sees it.
pub type ServerCall<'m> = rtorb_core::ServerCall<'m, LinkResponder<'m>>;

/// The destination of the reply.
pub struct LinkResponder<'m> {
    link: &'m mut dyn Link,
    /// The server's buffer for replies.
    out: &'m mut Vec<u8>,
    message_bytes_max: usize,
    broken: Option<LinkError>,
}

impl<'o> Server<'o> {
    /// A server of those objects, whose messages have at most `message_bytes_max` bytes. It takes its memory now.
    ///
    /// Messages of up to 8 KiB are received into memory that is there from the beginning; larger ones make the receive buffer grow.
    #[must_use]
    pub fn new(objects: &'o [Object<'o>], message_bytes_max: usize) -> Self {
        Self {
            objects,
            receiver: Receiver::new(Side::Server, link::limits(message_bytes_max)),
            code_sets: CodeSetState::default(),
            out: Writer::memory(message_bytes_max),
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
    /// When nothing more can come on this connection, or nothing came in the time that the link allows.
    pub fn serve_next(
        &mut self,
        link: &mut dyn Link,
        priority: &mut dyn CallPriority,
    ) -> Result<(), Ended> {
        self.try_serve_next(link, priority).inspect_err(|ended| {
            // After a timeout the connection goes on, maybe amid a message.
            if *ended != Ended::Link(LinkError::TimedOut) {
                self.receiver.clear();
                self.code_sets = CodeSetState::default();
            }
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

/// Tells the peer that its bytes were not understood, unless it closed the connection or said that of ours.
fn refuse(link: &mut dyn Link, error: ReceiveError) -> Ended {
    match error {
        ReceiveError::Closed { .. } => return Ended::Closed,
        ReceiveError::MessageError => return Ended::Refused(error),
        _ => {}
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
    /// Serves a request. The outer error is for bytes that are no request.
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
        let responder = LinkResponder {
            link,
            out: self.out,
            message_bytes_max: self.message_bytes_max,
            broken: None,
        };
        let mut reply = Reply::new(message.header.version, &request, char_code_set, responder);
        let asked = request.contexts.find(contexts::RT_CORBA_PRIORITY);
        // Bytes behind the priority have no meaning, and are not sent back.
        reply.priority = asked.map(|data| data.get(..contexts::PRIORITY_BYTES).unwrap_or(data));
        let mut call = ServerCall::new(arguments.with_char_code_set(char_code_set), reply);
        let mut upcall = LinkUpcall {
            objects: self.objects,
            periods: self.periods,
            priority,
        };
        let served = noted
            .map_err(SystemException::from)
            .and_then(|()| upcall::serve(&mut upcall, &request, &mut call));
        if let Err(exception) = served {
            call.reply.send_exception(&exception);
        }
        Ok(call.reply.responder.broken.map_or(Ok(()), Err))
    }

    fn locate_request(
        self,
        message: Message<'_>,
        link: &mut dyn Link,
    ) -> Result<Result<(), LinkError>, DecodeError> {
        let request = LocateRequestHeader::decode(&mut message.reader())?;
        let status = match find(self.objects, request.target.object_key()?) {
            Some(_) => LocateStatus::ObjectHere,
            None => LocateStatus::UnknownObject,
        };
        let mut w = Writer::new(core::mem::take(self.out), self.message_bytes_max);
        let version = message.header.version;
        let written = giop::write_locate_reply(&mut w, version, request.request_id, status);
        let sent = match written {
            Ok(()) => link::send(link, &w),
            // A reply of a few bytes fits into every message.
            Err(_) => Ok(()),
        };
        *self.out = w.into_buffer();
        Ok(sent)
    }
}

/// Finds the object with that key, and its place.
fn find<'o>(objects: &'o [Object<'o>], key: &[u8]) -> Option<(usize, &'o Object<'o>)> {
    let mut objects = objects.iter().enumerate();
    objects.find(|(_, object)| object.key == key)
}

/// The priority in the data of a request's context.
///
/// # Errors
/// DATA_CONVERSION 2 for a negative priority, as the full ORB; MARSHAL for malformed data.
fn propagated(data: &[u8]) -> Result<i16, SystemException> {
    match contexts::decode_priority(data)? {
        ..0 => Err(local::UNMAPPED_PRIORITY),
        priority => Ok(priority),
    }
}

/// The upcall of one request.
struct LinkUpcall<'u, 'o> {
    objects: &'u [Object<'u>],
    periods: Option<&'u mut Periods<'o>>,
    priority: &'u mut dyn CallPriority,
}

impl<'m, 'u> Upcall<'m> for LinkUpcall<'u, '_> {
    type Responder = LinkResponder<'m>;
    /// With its place in the table.
    type Object = (usize, &'u Object<'u>);

    fn find(&mut self, key: &[u8]) -> Option<Self::Object> {
        find(self.objects, key)
    }

    fn servant<'o>(&self, object: &'o Self::Object) -> &'o dyn Described {
        object.1.servant
    }

    fn call(
        &mut self,
        (place, object): Self::Object,
        request: &RequestHeader<'m>,
        call: &mut ServerCall<'m>,
    ) -> Result<(), SystemException> {
        let asked = call.reply.priority.map(propagated).transpose()?;
        // Last, because a call that it admits counts as served.
        if let Some(periods) = &mut self.periods {
            object.check_period(request.operation, periods, place)?;
        }
        if let Some(asked) = asked {
            self.priority.enter(asked);
        }
        call.reply_early(object.servant);
        let served = object.servant.dispatch(request.operation, call);
        if asked.is_some() {
            self.priority.leave();
        }
        served
    }
}

impl Responder for LinkResponder<'_> {
    fn writer<'r>(&mut self, char_code_set: CharCodeSet) -> Writer<'r> {
        let out = core::mem::take(self.out);
        Writer::new(out, self.message_bytes_max).with_char_code_set(char_code_set)
    }

    fn send(&mut self, reply: &Writer<'_>) {
        self.broken = link::send(self.link, reply).err();
    }

    fn take_back(&mut self, reply: &mut Writer<'_>) {
        *self.out = reply.take_buffer();
    }
}

impl<S: Sync, I: ServedBy<S, Object = ObjectRef>> Skeleton for Tie<I, S> {
    fn dispatch(&self, operation: &[u8], call: &mut ServerCall<'_>) -> Result<(), SystemException> {
        let operation = I::find_operation(operation).ok_or_else(unknown_operation)?;
        I::dispatch(self.servant(), operation, call)
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
        f.debug_struct("LinkResponder").finish_non_exhaustive()
    }
}
