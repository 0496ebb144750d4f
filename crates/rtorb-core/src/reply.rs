//! The reply to a request: its results or its exception are written and sent.

use crate::exception::{CompletionStatus, SystemException};
use alloc::vec::Vec;
use rtorb_wire::cdr::CharCodeSet;
use rtorb_wire::giop::{
    self, ContextBuffer, PassedReply, ReplyStatus, RequestHeader, Response, ServiceContext,
    Version, contexts,
};
use rtorb_wire::{Encode, EncodeError, Ior, Writer};

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
    /// Whether it was sent, and whether sending it needs more than writing it.
    pub state: ReplyState,
}

/// The state of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyState {
    /// It is not sent yet.
    Unsent,
    /// It is not sent yet, and [`Responder::intercept`] is called before.
    Intercepted,
    /// It was sent.
    Sent,
}

/// How a request ends, as its reply says.
#[derive(Clone, Copy, Debug)]
pub enum ReplyEnding<'e> {
    /// With results.
    Results,
    /// With the user exception that has this repository id.
    UserException(&'e str),
    /// With a system exception.
    SystemException(&'e SystemException),
    /// Elsewhere: the client is forwarded.
    Forward(&'e Ior),
    /// With the reply of another server.
    Passed(&'e PassedReply),
}

/// What an interceptor or a servant manager does instead of letting a request go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Intervention {
    /// Raises an exception, such as NO_PERMISSION.
    Raise(SystemException),
    /// Has the client send the request to that object (the standard's ForwardRequest), and later ones of the same reference, as after a
    /// LOCATION_FORWARD.
    Forward(Ior),
}

impl<E: Into<SystemException>> From<E> for Intervention {
    fn from(exception: E) -> Self {
        Self::Raise(exception.into())
    }
}

impl ReplyEnding<'_> {
    #[inline(always)]
    const fn status(&self) -> ReplyStatus {
        match self {
            Self::Results | Self::Passed(_) => ReplyStatus::NoException,
            Self::UserException(_) => ReplyStatus::UserException,
            Self::SystemException(_) => ReplyStatus::SystemException,
            Self::Forward(_) => ReplyStatus::LocationForward,
        }
    }
}

/// The ORB's side of a request that is served: it sends the reply, and may keep memory for later requests.
pub trait Responder {
    /// Makes a writer of the buffer for replies.
    fn writer<'r>(&mut self, char_code_set: CharCodeSet) -> Writer<'r>;

    /// Sends a reply.
    fn send(&mut self, reply: &Writer<'_>);

    /// Takes the buffer back from the writer of a reply that was sent, or could not be written. The writer is not used afterwards.
    fn take_back(&mut self, reply: &mut Writer<'_>);

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

    /// Notes that the request ends with a system exception.
    #[inline]
    fn note_system_exception(&mut self, _exception: &SystemException) {}

    /// Notes that the request ends with a user exception.
    #[inline]
    fn note_user_exception(&mut self) {}

    /// Notes that the servant has returned; for annotated operations.
    #[inline]
    fn executed(&mut self) {}

    /// Has the interceptors of the ORB see how an [intercepted](ReplyState::Intercepted) request ends. Returns true if they replace the
    /// reply.
    fn intercept(&mut self, _ending: ReplyEnding<'_>) -> bool {
        false
    }

    /// Takes what replaces the reply.
    fn take_replacement(&mut self) -> Option<Intervention> {
        None
    }

    /// The service contexts that the interceptors have added to the reply.
    fn added_contexts(&self) -> Option<&ContextBuffer> {
        None
    }
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
            state: ReplyState::Unsent,
        }
    }

    /// Has the interceptors of the ORB see how the request ends. Call it again after the priority is set.
    #[cold]
    pub fn note_intercepted(&mut self) {
        self.state = ReplyState::Intercepted;
        // A reply with contexts is one to look at.
        self.priority.get_or_insert_default();
    }

    /// Sends a reply with results, as [`respond`](Self::respond) does, whose status is a constant here.
    ///
    /// # Errors
    /// As [`respond`](Self::respond).
    #[inline]
    pub fn send_results<'r>(
        &mut self,
        body: impl FnOnce(&mut Writer<'r>) -> Result<(), EncodeError>,
    ) -> Result<(), SystemException> {
        self.send(|reply, w| reply.write(w, ReplyEnding::Results, body))
    }

    /// Writes and sends a reply, unless it was sent already or none is expected.
    ///
    /// # Errors
    /// When the body cannot be encoded, or an interceptor replaces the reply by an exception.
    #[inline]
    pub fn respond<'r>(
        &mut self,
        ending: ReplyEnding<'_>,
        body: impl FnOnce(&mut Writer<'r>) -> Result<(), EncodeError>,
    ) -> Result<(), SystemException> {
        self.send(|reply, w| reply.write(w, ending, body))
    }

    /// Writes a whole reply.
    // Always: it is in the path of every call.
    #[inline(always)]
    fn write<'r>(
        &mut self,
        w: &mut Writer<'r>,
        ending: ReplyEnding<'_>,
        body: impl FnOnce(&mut Writer<'r>) -> Result<(), EncodeError>,
    ) -> Result<(), EncodeError> {
        self.begin(w, ending)?;
        giop::encode_body(w, self.version, body)?;
        giop::end_message(w)
    }

    /// Sends a system exception, as [`respond`](Self::respond) does.
    #[cold]
    pub fn send_exception(&mut self, exception: &SystemException) {
        self.responder.note_system_exception(exception);
        let mut send = |exception: &SystemException| {
            let (ending, body) = (ReplyEnding::SystemException(exception), exception.body());
            if self.response == Response::None && self.state == ReplyState::Intercepted {
                self.responder.intercept(ending);
                return Ok(());
            }
            self.respond(ending, |w| body.encode(w))
        };
        // It fails only if an interceptor replaces the exception, which none sees again: a system exception is far smaller than any limit
        // on messages.
        if let Err(other) = send(exception) {
            let _ = send(&other);
        }
    }

    /// Sends the reply of another server, with the id of this request.
    ///
    /// # Errors
    /// When it is larger than a message may be; as [`respond`](Self::respond).
    #[cold]
    pub fn pass(&mut self, passed: &PassedReply) -> Result<(), SystemException> {
        self.send(|reply, w| {
            if reply.state == ReplyState::Intercepted {
                reply.intercept(ReplyEnding::Passed(passed))?;
            }
            passed.write(w, reply.request_id)
        })
    }

    // Always: it is in the path of every call, and its other caller is rare. The writer is not moved on the way.
    #[inline(always)]
    fn send<'r>(
        &mut self,
        write: impl FnOnce(&mut Self, &mut Writer<'r>) -> Result<(), EncodeError>,
    ) -> Result<(), SystemException> {
        if self.state == ReplyState::Sent || self.response == Response::None {
            return Ok(());
        }
        let mut w = self.responder.writer(self.char_code_set);
        let written = write(self, &mut w);
        if written.is_ok() {
            self.state = ReplyState::Sent;
            self.responder.send(&w);
        }
        self.responder.take_back(&mut w);
        written.or_else(|error| self.not_written(error))
    }

    /// Ends a reply that could not be written, or that interceptors replace.
    #[cold]
    fn not_written(&mut self, error: EncodeError) -> Result<(), SystemException> {
        match self.responder.take_replacement() {
            None => {
                // The servant has run: another call would run it twice.
                let exception = SystemException::from_encode(error);
                Err(exception.with_completion(CompletionStatus::Yes))
            }
            Some(Intervention::Raise(exception)) => Err(exception),
            Some(Intervention::Forward(ior)) => {
                self.respond(ReplyEnding::Forward(&ior), |w| ior.encode(w))
            }
        }
    }

    // Always: it is in the path of every call, and its other callers are rare.
    #[inline(always)]
    fn begin(&mut self, w: &mut Writer<'_>, ending: ReplyEnding<'_>) -> Result<(), EncodeError> {
        match self.priority {
            None => giop::begin_reply(w, self.version, self.request_id, ending.status(), &[]),
            Some(data) => self.begin_with_contexts(w, ending, data),
        }
    }

    /// Not inlined: nearly every reply has no service contexts.
    #[inline(never)]
    fn begin_with_contexts(
        &mut self,
        w: &mut Writer<'_>,
        ending: ReplyEnding<'_>,
        data: &[u8],
    ) -> Result<(), EncodeError> {
        if self.state == ReplyState::Intercepted {
            self.intercept(ending)?;
            return self.begin_with_added(w, ending.status(), data);
        }
        let context = ServiceContext {
            id: contexts::RT_CORBA_PRIORITY,
            data,
        };
        giop::begin_reply(
            w,
            self.version,
            self.request_id,
            ending.status(),
            &[context],
        )
    }

    /// Begins a reply to which interceptors may have added contexts. A priority without data is none.
    #[cold]
    fn begin_with_added(
        &self,
        w: &mut Writer<'_>,
        status: ReplyStatus,
        data: &[u8],
    ) -> Result<(), EncodeError> {
        let id = contexts::RT_CORBA_PRIORITY;
        let mut list = [ServiceContext { id, data }; ContextBuffer::CONTEXTS_MAX + 1];
        let mut count = usize::from(!data.is_empty());
        let added = self.responder.added_contexts();
        for (place, context) in list[count..]
            .iter_mut()
            .zip(added.iter().flat_map(|it| it.iter()))
        {
            *place = context;
            count += 1;
        }
        giop::begin_reply(w, self.version, self.request_id, status, &list[..count])
    }

    /// Calls the interceptors.
    ///
    /// # Errors
    /// Any error if they replace the reply: [`not_written`](Self::not_written) sends what replaces it.
    #[cold]
    fn intercept(&mut self, ending: ReplyEnding<'_>) -> Result<(), EncodeError> {
        if self.responder.intercept(ending) {
            return Err(EncodeError::TooLarge { limit: 0 });
        }
        Ok(())
    }
}
