//! A request as the generated code sees it: arguments to read, a reply to write.

use super::servant::Servant;
use super::server_core::ServerCore;
use super::session::Session;
use crate::exception::{CompletionStatus, SystemException};
use crate::interface::UserException;
use crate::timing::{Arrivals, OperationTiming, TimedUpcall};
use core::any::Any;
use rtorb_wire::cdr::CharCodeSet;
use rtorb_wire::giop::{
    self, PassedReply, PassedRequest, ReplyStatus, RequestHeader, Response, ServiceContext,
    SystemExceptionBody, Version, contexts,
};
use rtorb_wire::{Decode, EncodeError, Reader, Writer};

/// One request being served.
#[derive(Debug)]
pub struct ServerCall<'m> {
    pub(super) arguments: Reader<'m>,
    pub(super) reply: Reply<'m>,
    /// The thread's buffer for replies.
    pub(super) out: &'m mut Vec<u8>,
    pub(super) scratch: &'m mut Scratch,
    /// When the request arrived, if it had to wait; else 0.
    pub(super) arrived_ns: u64,
    /// Its timing, if its operation is annotated.
    pub(super) timing: Option<TimedUpcall>,
}

/// The destination and form of the reply.
#[derive(Debug)]
pub(super) struct Reply<'m> {
    pub(super) orb: &'m ServerCore,
    /// The connection to reply on; `None` for a collocated call, whose reply stays in the thread's buffer.
    pub(super) session: Option<&'m Session>,
    version: Version,
    request_id: u32,
    response: Response,
    char_code_set: CharCodeSet,
    /// The data of the request's RTCorbaPriority, which the reply repeats.
    pub(super) priority: Option<&'m [u8]>,
    /// True if the reply could not be sent: the connection is broken.
    pub(super) is_broken: bool,
    is_sent: bool,
    /// The length of the reply to a collocated call; 0 before it is written.
    pub(super) octets: usize,
}

impl<'m> ServerCall<'m> {
    /// The arguments not yet read.
    #[inline]
    pub fn arguments(&mut self) -> &mut Reader<'m> {
        &mut self.arguments
    }

    /// Reads the next argument.
    ///
    /// # Errors
    /// MARSHAL, COMPLETED_NO, when the bytes are not such a value.
    #[inline]
    pub fn argument<T: Decode>(&mut self) -> Result<T, SystemException> {
        Ok(T::decode(&mut self.arguments)?)
    }

    /// Reads a sequence into memory that the serving thread keeps; return it with [`recycle`](Self::recycle).
    ///
    /// # Errors
    /// MARSHAL, COMPLETED_NO, when the bytes are not such a sequence.
    #[inline]
    pub fn sequence<T: Decode + Send + 'static>(&mut self) -> Result<Vec<T>, SystemException> {
        let count = self.arguments.count(T::OCTETS_MIN)?;
        let mut items = self.scratch.take::<T>();
        self.arguments
            .nested(|r| T::decode_into(&mut items, count, r))?;
        Ok(items)
    }

    /// Returns a sequence's memory for the next request.
    #[inline]
    pub fn recycle<T: Send + 'static>(&mut self, items: Vec<T>) {
        self.scratch.keep(items);
    }

    /// Starts the timing of a call of the annotated operation at index `place`.
    #[inline]
    pub(crate) fn begin_timing(
        &mut self,
        timings: &'static [OperationTiming],
        place: usize,
        arrivals: &Arrivals,
    ) {
        let watch = &self.reply.orb.timing;
        let arrived_ns = self.arrived_ns;
        self.timing = Some(TimedUpcall::begin(
            watch, timings, place, arrivals, arrived_ns,
        ));
    }

    /// Notes that the servant has returned; for annotated operations.
    #[inline]
    pub fn executed(&mut self) {
        if let Some(timing) = &mut self.timing {
            timing.executed();
        }
    }

    /// True if the client waits for the end of the operation.
    pub fn expects_reply(&self) -> bool {
        self.reply.response == Response::FromTarget
    }

    /// Sends the results that `encode` writes. Sends nothing for a oneway.
    ///
    /// # Errors
    /// When a result cannot be encoded; the client gets that exception instead.
    #[inline]
    pub fn reply<'r>(
        &mut self,
        encode: impl FnOnce(&mut Writer<'r>) -> Result<(), EncodeError>,
    ) -> Result<(), SystemException> {
        self.reply.send(self.out, ReplyStatus::NoException, encode)
    }

    /// The request as it came, to be [passed](crate::ObjectRef::pass) to another object.
    ///
    /// # Errors
    /// MARSHAL, COMPLETED_NO, when it cannot be read again.
    pub fn passed(&mut self) -> Result<PassedRequest<'m>, SystemException> {
        let code_sets = self.reply.session.and_then(Session::code_sets);
        Ok(PassedRequest::parse(self.arguments.whole()?, code_sets)?)
    }

    /// Sends the reply of another object's server as it came. Sends nothing for a oneway.
    ///
    /// # Errors
    /// When it is larger than a message may be; the client gets that exception instead.
    pub fn pass_reply(&mut self, reply: &PassedReply) -> Result<(), SystemException> {
        self.reply.pass(self.out, reply)
    }

    /// Sends a user exception. Sends nothing for a oneway.
    ///
    /// # Errors
    /// When a member cannot be encoded; the client gets that exception instead.
    pub fn raise<E: UserException>(&mut self, exception: &E) -> Result<(), SystemException> {
        self.raise_with(E::REPOSITORY_ID, |w| exception.encode(w))
    }

    /// Sends a user exception with that repository id and the members that `encode` writes. Sends nothing for a oneway.
    ///
    /// # Errors
    /// When a member cannot be encoded; the client gets that exception instead.
    pub fn raise_with<'r>(
        &mut self,
        repository_id: &str,
        encode: impl FnOnce(&mut Writer<'r>) -> Result<(), EncodeError>,
    ) -> Result<(), SystemException> {
        self.reply.send(self.out, ReplyStatus::UserException, |w| {
            w.str(repository_id)?;
            encode(w)
        })
    }
}

impl<'m> Reply<'m> {
    /// A reply to a request, not yet sent.
    #[inline]
    pub(super) fn new(
        session: &'m Session,
        version: Version,
        request: &RequestHeader<'_>,
        char_code_set: CharCodeSet,
    ) -> Self {
        Self {
            session: Some(session),
            ..Self::collocated(&session.orb, version, request, char_code_set)
        }
    }

    /// A reply that stays in the thread's buffer.
    #[inline]
    pub(super) fn collocated(
        orb: &'m ServerCore,
        version: Version,
        request: &RequestHeader<'_>,
        char_code_set: CharCodeSet,
    ) -> Self {
        Self {
            orb,
            session: None,
            version,
            request_id: request.request_id,
            response: request.response,
            char_code_set,
            priority: None,
            is_broken: false,
            is_sent: false,
            octets: 0,
        }
    }

    /// Sends the reply before the upcall to a client that waits only for the arrival of its request (SYNC_WITH_SERVER). A proxy has
    /// the reply of another server.
    #[inline]
    pub(super) fn send_early(&mut self, out: &mut Vec<u8>, servant: &dyn Servant) {
        if self.response == Response::BeforeInvocation && !servant.is_proxy() {
            let _ = self.send(out, ReplyStatus::NoException, |_| Ok(()));
        }
    }

    /// Writes and sends a reply, unless it was sent already or none is expected.
    #[inline]
    pub(super) fn send<'r>(
        &mut self,
        out: &mut Vec<u8>,
        status: ReplyStatus,
        body: impl FnOnce(&mut Writer<'r>) -> Result<(), EncodeError>,
    ) -> Result<(), SystemException> {
        self.send_message(out, |reply, w| {
            reply.begin(w, status)?;
            giop::encode_body(w, reply.version, body)?;
            giop::end_message(w)
        })
    }

    /// Sends the reply of another server, with the id of this request.
    #[cold]
    fn pass(&mut self, out: &mut Vec<u8>, reply: &PassedReply) -> Result<(), SystemException> {
        self.send_message(out, |own, w| reply.write(w, own.request_id))
    }

    // Always: it is in the path of every call, and its other caller is rare. The writer is not moved on the way.
    #[inline(always)]
    fn send_message<'r>(
        &mut self,
        out: &mut Vec<u8>,
        write: impl FnOnce(&Self, &mut Writer<'r>) -> Result<(), EncodeError>,
    ) -> Result<(), SystemException> {
        if self.is_sent || self.response == Response::None {
            return Ok(());
        }
        let orb = self.orb;
        let mut w = Writer::new(core::mem::take(out), orb.limits.message_octets_max)
            .with_order(orb.byte_order)
            .with_char_code_set(self.char_code_set);
        let encoded = write(self, &mut w);
        if encoded.is_ok() {
            self.is_sent = true;
            if let Some(session) = self.session {
                self.is_broken = session.send(&w).is_err();
            } else {
                (*out, self.octets) = w.finish_whole();
                return Ok(());
            }
        }
        *out = w.into_buffer();
        // The servant has run: another call would run it twice.
        encoded.map_err(|error| {
            SystemException::from_encode(error).with_completion(CompletionStatus::Yes)
        })
    }

    /// Sends a system exception.
    #[cold]
    pub(super) fn send_exception(&mut self, out: &mut Vec<u8>, exception: &SystemException) {
        let body = SystemExceptionBody {
            repository_id: exception.kind.repository_id().as_bytes(),
            minor: exception.minor,
            completed: exception.completed as u32,
        };
        // It cannot fail: a system exception is far smaller than any limit on messages.
        let _ = self.send(out, ReplyStatus::SystemException, |w| body.encode(w));
    }

    #[inline]
    fn begin(&self, w: &mut Writer<'_>, status: ReplyStatus) -> Result<(), EncodeError> {
        match self.priority {
            None => giop::begin_reply(w, self.version, self.request_id, status, &[]),
            Some(data) => self.begin_with_priority(w, status, data),
        }
    }

    /// Not inlined: nearly every reply has no service contexts.
    #[inline(never)]
    fn begin_with_priority(
        &self,
        w: &mut Writer<'_>,
        status: ReplyStatus,
        data: &[u8],
    ) -> Result<(), EncodeError> {
        let context = ServiceContext {
            id: contexts::RT_CORBA_PRIORITY,
            data,
        };
        giop::begin_reply(w, self.version, self.request_id, status, &[context])
    }
}

/// Memory for sequences that is kept from request to request.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    kept: Vec<Box<dyn Any + Send>>,
}

/// The number of sequence types for which a thread keeps memory. The memory of others is freed.
const TYPES_MAX: usize = 16;

impl Scratch {
    fn take<T: Send + 'static>(&mut self) -> Vec<T> {
        self.find::<T>().map(core::mem::take).unwrap_or_default()
    }

    fn keep<T: Send + 'static>(&mut self, mut items: Vec<T>) {
        items.clear();
        if let Some(place) = self.find::<T>() {
            *place = items;
        } else if self.kept.len() < TYPES_MAX {
            self.kept.push(Box::new(items));
        }
    }

    fn find<T: Send + 'static>(&mut self) -> Option<&mut Vec<T>> {
        self.kept.iter_mut().find_map(|kept| kept.downcast_mut())
    }
}
