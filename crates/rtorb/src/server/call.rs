//! The server's side of a request for generated code: it reads arguments and writes a reply.

use super::servant::Servant;
use super::server_core::ServerCore;
use super::session::Session;
use crate::exception::{CompletionStatus, SystemException};
use crate::timing::{CallArrival, OperationTiming, ServantTiming, TimedUpcall};
use core::any::Any;
use rtorb_core::Responder;
use rtorb_wire::cdr::CharCodeSet;
use rtorb_wire::giop::{
    self, PassedReply, PassedRequest, ReplyStatus, RequestHeader, Response, ServiceContext,
    Version, contexts,
};
use rtorb_wire::{EncodeError, Writer};

/// One request being served.
pub type ServerCall<'m> = rtorb_core::ServerCall<'m, OrbResponder<'m>>;

/// The reply of a request, and the memory of the serving thread.
#[derive(Debug)]
pub struct OrbResponder<'m> {
    pub(super) reply: Reply<'m>,
    /// The thread's buffer for replies.
    pub(super) out: &'m mut Vec<u8>,
    pub(super) scratch: &'m mut Scratch,
    /// When the request arrived, if it waited in a queue; else 0.
    pub(super) arrived_ns: u64,
    /// The timing of the call, if its operation is annotated.
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
    pub(super) is_sent: bool,
    /// The length of the reply to a collocated call; 0 before it is written.
    pub(super) octets: usize,
}

impl Responder for OrbResponder<'_> {
    #[inline]
    fn respond<'r>(
        &mut self,
        status: ReplyStatus,
        body: impl FnOnce(&mut Writer<'r>) -> Result<(), EncodeError>,
    ) -> Result<(), SystemException> {
        self.reply.send(self.out, status, body)
    }

    fn expects_reply(&self) -> bool {
        self.reply.response == Response::FromTarget
    }

    #[inline]
    fn take<T: Send + 'static>(&mut self) -> Vec<T> {
        self.scratch.take()
    }

    #[inline]
    fn keep<T: Send + 'static>(&mut self, items: Vec<T>) {
        self.scratch.keep(items);
    }

    #[inline]
    fn executed(&mut self) {
        if let Some(timing) = &mut self.timing {
            timing.executed();
        }
    }
}

impl OrbResponder<'_> {
    /// Starts the timing of a call of the annotated operation at index `place`, and marks its reply.
    ///
    /// # Errors
    /// The exception of [`TimedUpcall::begin`] if the call is refused.
    #[inline]
    pub(crate) fn begin_timing(
        &mut self,
        timings: &'static [OperationTiming],
        place: usize,
        servant: &ServantTiming,
    ) -> Result<(), SystemException> {
        if let (Some(dscp), Some(session)) = (timings[place].dscp(), self.reply.session) {
            session.mark(dscp)?;
        }
        let watch = &self.reply.orb.timing;
        let arrival = CallArrival {
            at_ns: self.arrived_ns,
            connection: self.reply.session.map(|session| &session.period_arrivals),
        };
        let (timing, begun) = TimedUpcall::begin(watch, timings, place, servant, arrival);
        self.timing = Some(timing);
        begun
    }

    /// Sends a system exception.
    #[inline]
    pub(super) fn send_exception(&mut self, exception: &SystemException) {
        self.reply.send_exception(self.out, exception);
    }
}

/// The operations of a proxy: it forwards a request and its reply unchanged.
pub trait PassThrough<'m> {
    /// Returns the unchanged request, to be [passed](crate::ObjectRef::pass) to another object.
    ///
    /// # Errors
    /// MARSHAL, COMPLETED_NO, if it cannot be read again.
    fn passed(&mut self) -> Result<PassedRequest<'m>, SystemException>;

    /// Sends the reply of another object's server unchanged. Sends nothing for a oneway.
    ///
    /// # Errors
    /// IMP_LIMIT if the reply is larger than a message may be. The client gets the exception instead.
    fn pass_reply(&mut self, reply: &PassedReply) -> Result<(), SystemException>;
}

impl<'m> PassThrough<'m> for ServerCall<'m> {
    fn passed(&mut self) -> Result<PassedRequest<'m>, SystemException> {
        let session = self.responder.reply.session;
        let code_sets = session.and_then(Session::code_sets);
        Ok(PassedRequest::parse(self.arguments().whole()?, code_sets)?)
    }

    fn pass_reply(&mut self, reply: &PassedReply) -> Result<(), SystemException> {
        let responder = &mut self.responder;
        responder.reply.pass(responder.out, reply)
    }
}

impl<'m> Reply<'m> {
    /// Makes the reply to a request, not yet sent.
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

    /// Makes a reply that stays in the thread's buffer.
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

    /// Sends the reply before the upcall if the client waits only for the arrival of its request (SYNC_WITH_SERVER). For a proxy,
    /// another server sends it.
    // Always: it is in the path of every call.
    #[inline(always)]
    pub(super) fn send_early(&mut self, out: &mut Vec<u8>, servant: &dyn Servant) {
        if self.response == Response::BeforeInvocation {
            self.send_unless_proxy(out, servant);
        }
    }

    #[cold]
    fn send_unless_proxy(&mut self, out: &mut Vec<u8>, servant: &dyn Servant) {
        if !servant.is_proxy() {
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
        let mut w = Writer::new(core::mem::take(out), orb.limits.message_bytes_max)
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
        let body = exception.body();
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
