//! The reply to a request: its results or its exception are written and sent.

use crate::exception::{CompletionStatus, SystemException};
use alloc::vec::Vec;
use rtorb_wire::cdr::CharCodeSet;
use rtorb_wire::giop::{
    self, PassedReply, ReplyStatus, RequestHeader, Response, ServiceContext, Version, contexts,
};
use rtorb_wire::{EncodeError, Writer};

/// The reply to a request.
#[derive(Debug)]
pub struct Reply<'m, R> {
    /// The ORB's side.
    pub responder: R,
    /// The version of its message.
    pub version: Version,
    /// The id of the request.
    pub request_id: u32,
    /// The time at which the client expects the reply.
    pub response: Response,
    /// The code set of its `char` data.
    pub char_code_set: CharCodeSet,
    /// The data of the request's RTCorbaPriority, which the reply repeats.
    pub priority: Option<&'m [u8]>,
    /// True if the reply was sent.
    pub is_sent: bool,
}

/// The ORB's side of a request that is served: it sends the reply, and may keep memory for later requests.
pub trait Responder {
    /// Makes a writer of the buffer for replies.
    fn writer<'r>(&mut self, char_code_set: CharCodeSet) -> Writer<'r>;

    /// Sends a reply.
    fn send(&mut self, reply: &Writer<'_>);

    /// Takes the buffer back from the writer of a reply that was sent, or could not be written.
    fn take_back(&mut self, reply: Writer<'_>);

    /// Returns an empty vector, if possible with the memory of one that was [kept](Self::keep).
    #[inline]
    fn take<T: Send + 'static>(&mut self) -> Vec<T> {
        Vec::new()
    }

    /// Keeps the memory of a vector for later requests, if possible.
    #[inline]
    fn keep<T: Send + 'static>(&mut self, items: Vec<T>) {
        drop(items);
    }

    /// Notes that the reply, which is sent next, is sent before the servant is called.
    #[inline]
    fn reply_is_early(&mut self) {}

    /// Notes that the servant has returned; for annotated operations.
    #[inline]
    fn executed(&mut self) {}
}

impl<R: Responder> Reply<'_, R> {
    /// Makes the reply to a request in a message of that version. It is not sent yet.
    #[inline]
    pub fn new(
        version: Version,
        request: &RequestHeader<'_>,
        char_code_set: CharCodeSet,
        responder: R,
    ) -> Self {
        Self {
            responder,
            version,
            request_id: request.request_id,
            response: request.response,
            char_code_set,
            priority: None,
            is_sent: false,
        }
    }

    /// Writes and sends a reply, unless it was sent already or none is expected.
    ///
    /// # Errors
    /// When the body cannot be encoded.
    #[inline]
    pub fn respond<'r>(
        &mut self,
        status: ReplyStatus,
        body: impl FnOnce(&mut Writer<'r>) -> Result<(), EncodeError>,
    ) -> Result<(), SystemException> {
        self.send(|reply, w| {
            reply.begin(w, status)?;
            giop::encode_body(w, reply.version, body)?;
            giop::end_message(w)
        })
    }

    /// Sends a system exception, as [`respond`](Self::respond) does.
    #[cold]
    pub fn send_exception(&mut self, exception: &SystemException) {
        let body = exception.body();
        // It cannot fail: a system exception is far smaller than any limit on messages.
        let _ = self.respond(ReplyStatus::SystemException, |w| body.encode(w));
    }

    /// Sends the reply of another server, with the id of this request.
    ///
    /// # Errors
    /// When it is larger than a message may be.
    #[cold]
    pub fn pass(&mut self, passed: &PassedReply) -> Result<(), SystemException> {
        self.send(|reply, w| passed.write(w, reply.request_id))
    }

    // Always: it is in the path of every call, and its other caller is rare. The writer is not moved on the way.
    #[inline(always)]
    fn send<'r>(
        &mut self,
        write: impl FnOnce(&Self, &mut Writer<'r>) -> Result<(), EncodeError>,
    ) -> Result<(), SystemException> {
        if self.is_sent || self.response == Response::None {
            return Ok(());
        }
        let mut w = self.responder.writer(self.char_code_set);
        let written = write(self, &mut w);
        if written.is_ok() {
            self.is_sent = true;
            self.responder.send(&w);
        }
        self.responder.take_back(w);
        // The servant has run: another call would run it twice.
        written.map_err(|error| {
            SystemException::from_encode(error).with_completion(CompletionStatus::Yes)
        })
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
