//! The server's side of a request for generated code: it reads arguments and writes a reply.

use super::deferred_replies::{AwaitedReply, CallerWait};
use super::held_requests::Hold;
use super::intercepted;
use super::server_core::ServerCore;
use super::session::Session;
use crate::deadline;
use crate::exception::{ExceptionKind, SystemException};
use crate::interceptors::ServerInterception;
use crate::recorder::CallOutcome;
use crate::timing::{CallArrival, OperationTiming, ServantTiming, TimedUpcall};
use core::any::Any;
use core::mem;
use rtorb_core::{Intervention, Reply, ReplyEnding, Responder};
use rtorb_wire::Writer;
use rtorb_wire::cdr::CharCodeSet;
use rtorb_wire::giop::{ContextBuffer, Expiry, PassedReply, PassedRequest, RequestHeader, Version};
use std::sync::Arc;

/// One request being served.
pub type ServerCall<'m> = rtorb_core::ServerCall<'m, OrbResponder<'m>>;

/// The origin of a request, as far as the reply depends on it.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestOrigin<'m> {
    pub(super) orb: &'m ServerCore,
    /// The connection to reply on; `None` for a collocated call, whose reply stays in the thread's buffer.
    pub(super) session: Option<&'m Session>,
    pub(super) version: Version,
    pub(super) char_code_set: CharCodeSet,
    /// When the request arrived, if it had to wait; else 0.
    pub(super) arrived_ns: u64,
}

/// The ORB's side of a request: where its reply goes, and the memory of the serving thread.
#[derive(Debug)]
pub struct OrbResponder<'m> {
    pub(super) orb: &'m ServerCore,
    pub(super) session: Option<&'m Session>,
    pub(super) arrived_ns: u64,
    /// The thread's buffer for replies.
    out: &'m mut Vec<u8>,
    pub(super) scratch: &'m mut Scratch,
    /// Its timing, if its operation is annotated.
    pub(super) timing: Option<TimedUpcall>,
    pub(super) outcome: ReplyOutcome,
    /// How the request ends, for the recorder.
    pub(super) ending: CallOutcome,
    pub(super) recorded: RecordedAs,
    /// Whether the reply stays whole in the buffer: for a collocated caller, or for a copy of the call.
    pub(super) keeps_reply: bool,
    /// The length of a reply that stays; 0 before it is written.
    pub(super) bytes: usize,
}

/// How the recorder records a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecordedAs {
    /// With its operation.
    Named,
    /// Without it: there may be no such operation, and clients choose these names.
    Unnamed,
    /// Not: its manager holds it, and it is recorded when it is served.
    Held,
}

/// What sending the reply has led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReplyOutcome {
    /// It was sent after the servant had returned, or has not been sent yet.
    Usual,
    /// It is sent before the servant is called.
    Early,
    /// It could not be sent: the connection is broken.
    Broken,
}

impl<'m> RequestOrigin<'m> {
    /// A request that came on a connection.
    #[inline]
    pub(super) fn new(
        session: &'m Session,
        version: Version,
        char_code_set: CharCodeSet,
        arrived_ns: u64,
    ) -> Self {
        Self {
            orb: &session.orb,
            session: Some(session),
            version,
            char_code_set,
            arrived_ns,
        }
    }

    /// A reply to the request, not yet sent.
    #[inline]
    pub(super) fn reply(
        self,
        request: &RequestHeader<'_>,
        out: &'m mut Vec<u8>,
        scratch: &'m mut Scratch,
    ) -> Reply<'m, OrbResponder<'m>> {
        let responder = OrbResponder {
            orb: self.orb,
            session: self.session,
            arrived_ns: self.arrived_ns,
            out,
            scratch,
            timing: None,
            outcome: ReplyOutcome::Usual,
            ending: CallOutcome::Done,
            recorded: RecordedAs::Named,
            keeps_reply: self.session.is_none(),
            bytes: 0,
        };
        Reply::new(self.version, request, self.char_code_set, responder)
    }
}

impl Responder for OrbResponder<'_> {
    // Always, as the two below: each call uses them, and the writer is not moved on the way.
    #[inline(always)]
    fn writer<'r>(&mut self, char_code_set: CharCodeSet) -> Writer<'r> {
        let orb = self.orb;
        Writer::new(mem::take(self.out), orb.limits.message_bytes_max)
            .with_order(orb.byte_order)
            .with_char_code_set(char_code_set)
    }

    #[inline(always)]
    fn send(&mut self, reply: &Writer<'_>) {
        if let Some(session) = self.session
            && session.send(reply).is_err()
        {
            self.outcome = ReplyOutcome::Broken;
        }
    }

    #[inline(always)]
    fn take_back(&mut self, reply: &mut Writer<'_>) {
        if self.keeps_reply {
            self.bytes = reply.make_whole();
        }
        *self.out = reply.take_buffer();
    }

    #[inline]
    fn take<T: Send + 'static>(&mut self) -> Vec<T> {
        self.scratch.take()
    }

    #[inline]
    fn keep<T: Send + 'static>(&mut self, items: Vec<T>) {
        self.scratch.keep(items);
    }

    fn reply_is_early(&mut self) {
        if let Some(session) = self.session {
            session.state.note_early_reply();
            self.outcome = ReplyOutcome::Early;
        }
    }

    #[inline]
    fn note_system_exception(&mut self, exception: &SystemException) {
        self.ending = CallOutcome::of(exception.kind);
        if matches!(
            exception.kind,
            ExceptionKind::BadOperation | ExceptionKind::ObjectNotExist
        ) {
            self.recorded = RecordedAs::Unnamed;
        }
    }

    #[inline]
    fn note_user_exception(&mut self) {
        self.ending = CallOutcome::UserException;
    }

    #[inline]
    fn executed(&mut self) {
        if let Some(timing) = &mut self.timing {
            timing.executed();
        }
    }

    #[cold]
    fn intercept(&mut self, ending: ReplyEnding<'_>) -> bool {
        intercepted::end(self, ending)
    }

    #[cold]
    fn take_replacement(&mut self) -> Option<Intervention> {
        self.scratch.interception.as_mut()?.replacement.take()
    }

    #[inline]
    fn added_contexts(&self) -> Option<&ContextBuffer> {
        self.scratch.interception.as_ref()?.added()
    }
}

impl OrbResponder<'_> {
    /// Returns the reply that stays in the buffer; empty if there is none.
    pub(super) fn kept_reply(&self) -> &[u8] {
        self.out.get(..self.bytes).unwrap_or_default()
    }

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
        if let (Some(dscp), Some(session)) = (timings[place].dscp(), self.session) {
            session.mark(dscp)?;
        }
        let watch = &self.orb.timing;
        let arrival = CallArrival {
            at_ns: self.arrived_ns,
            connection: self.session.map(|session| &session.period_arrivals),
        };
        let (timing, begun) = TimedUpcall::begin(watch, timings, place, servant, arrival);
        self.timing = Some(timing);
        begun
    }
}

/// The operations of a proxy: it forwards a request and its reply unchanged.
pub trait PassThrough<'m> {
    /// Returns the unchanged request, to be [passed](crate::ObjectRef::pass) to another object. Its deadline counts from its arrival: where it
    /// states a remaining time, the other server gets what is left then.
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
        let session = self.reply.responder.session;
        let code_sets = session.and_then(Session::code_sets);
        let request = PassedRequest::parse(self.arguments().whole()?, code_sets)?;
        let expiry = Expiry::of(request.request().contexts);
        Ok(match deadline::arrival_of_served(expiry) {
            Some(arrived_ns) => request.with_arrival(arrived_ns),
            None => request,
        })
    }

    fn pass_reply(&mut self, reply: &PassedReply) -> Result<(), SystemException> {
        self.reply.pass(reply)
    }
}

/// Memory that is kept from request to request: for sequences, for interceptors, and for a caller in the same ORB whose reply is deferred.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    kept: Vec<Box<dyn Any + Send>>,
    caller: Option<Arc<CallerWait>>,
    /// The reply that the servant of a request deferred last.
    pub(super) deferred: Option<AwaitedReply>,
    /// What holds the collocated request.
    pub(super) held_by: Option<Hold>,
    /// The interception of the request, or memory of an earlier one.
    pub(super) interception: Option<Box<ServerInterception>>,
}

/// The number of sequence types for which a thread keeps memory. The memory of others is freed.
const TYPES_MAX: usize = 16;

impl Scratch {
    /// Returns where the calling thread will wait for the reply to its request.
    #[cold]
    pub(super) fn caller(&mut self) -> Arc<CallerWait> {
        // A thread that answers may still have the last one.
        match self.caller.as_mut().and_then(Arc::get_mut) {
            Some(unused) => unused.reset(),
            None => self.caller = None,
        }
        Arc::clone(self.caller.get_or_insert_default())
    }

    /// Takes the reply that the servant of a collocated request has deferred, and where the calling thread waits for it.
    #[cold]
    pub(super) fn take_deferred(&mut self) -> Option<(AwaitedReply, Arc<CallerWait>)> {
        Some((self.deferred.take()?, Arc::clone(self.caller.as_ref()?)))
    }

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
