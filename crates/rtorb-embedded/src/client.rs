//! Calls of objects at the other end of a link.

use crate::exception::{CompletionStatus, ExceptionKind, SystemException};
use crate::link::{self, Link, LinkError};
use crate::timing::OperationTiming;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::hash::{Hash, Hasher};
use rtorb_wire::cdr::{CharCodeSet, Reference, ReferenceOut};
use rtorb_wire::connection::{ClientState, Receiver, Reply, ReplyError, Side};
use rtorb_wire::giop::{
    self, ReplyStatus, RequestStart, Response, ServiceContext, Version, contexts,
};
use rtorb_wire::{Decode, DecodeError, Encode, EncodeError, Ior, Reader, Writer};

/// The client's end of a link. One task at a time uses it.
pub struct Client {
    link: Box<dyn Link + Send>,
    state: ClientState,
    receiver: Receiver,
    /// The buffer of requests, reused.
    out: Vec<u8>,
    message_octets_max: usize,
}

/// A client that tasks share. The application implements it with a mutex of its kernel, one that inherits priority.
pub trait SharedClient: Sync {
    /// Runs `call` while no other task uses the client.
    fn exclusively(&self, call: &mut dyn FnMut(&mut Client));
}

/// A reference to an object.
#[derive(Clone)]
pub struct ObjectRef {
    client: Option<&'static dyn SharedClient>,
    ior: Arc<Ior>,
    key: Arc<[u8]>,
    /// The CORBA priority that calls carry.
    priority: Option<i16>,
}

/// One request.
struct Request<'x> {
    key: &'x [u8],
    operation: &'x str,
    response: Response,
    priority: Option<i16>,
}

type Arguments<'f, 'a> = &'f dyn Fn(&mut Writer<'a>) -> Result<(), EncodeError>;
type Results<'f> = &'f mut dyn FnMut(ReplyStatus, &mut Reader<'_>) -> Result<(), DecodeError>;

impl Client {
    /// A client whose messages have at most `message_octets_max` octets. It takes its memory now.
    #[must_use]
    pub fn new(link: Box<dyn Link + Send>, message_octets_max: usize) -> Self {
        Self {
            link,
            state: ClientState::new(CharCodeSet::Latin1),
            receiver: Receiver::new(Side::Client, link::limits(message_octets_max)),
            out: Vec::with_capacity(message_octets_max),
            message_octets_max,
        }
    }

    fn call<'a>(
        &mut self,
        request: &Request<'_>,
        arguments: Arguments<'_, 'a>,
        results: Results<'_>,
    ) -> Result<(), SystemException> {
        let request_id = self.send(request, arguments)?;
        if request.response == Response::None {
            return Ok(());
        }
        self.read_reply(request_id, results)
            .inspect_err(|_| self.receiver.clear())?
    }

    /// Writes a request, sends it, and returns its id.
    fn send<'a>(
        &mut self,
        request: &Request<'_>,
        arguments: Arguments<'_, 'a>,
    ) -> Result<u32, SystemException> {
        let mut w = Writer::new(core::mem::take(&mut self.out), self.message_octets_max);
        let request_id = self.state.next_request_id();
        let sent = request
            .encode(&mut w, request_id, arguments)
            .map_err(SystemException::from_encode)
            .and_then(|()| link::send(&mut *self.link, &w).map_err(unsent));
        self.out = w.into_buffer();
        sent.map(|()| request_id)
    }

    /// Reads the reply to a request. The outer error says that no reply can be used.
    fn read_reply(
        &mut self,
        request_id: u32,
        results: Results<'_>,
    ) -> Result<Result<(), SystemException>, SystemException> {
        loop {
            let next = self.receiver.next();
            let Some(message) = next.map_err(|error| no_reply(error.into()))? else {
                let received = self.link.receive(self.receiver.free());
                match received.map_err(|error| no_reply(unanswered(error)))? {
                    0 => return Err(no_reply(ReplyError::Ended)),
                    count => self.receiver.advance(count),
                }
                continue;
            };
            let kind = message.header.message_type;
            let mut r = message.reader();
            let reply = Reply::decode(kind, &mut r, request_id);
            // Another's is the late reply to a call whose time had passed.
            let Some(reply) = reply.map_err(|error| no_reply(ReplyError::Malformed(error)))? else {
                continue;
            };
            return Ok(match reply {
                Reply::Results(status) => {
                    results(status, &mut r).map_err(|error| no_reply(ReplyError::BadResults(error)))
                }
                Reply::ObjectHere => Ok(()),
                Reply::UnknownObject => Err(ExceptionKind::ObjectNotExist.into()),
                Reply::SystemException(body) => Err(body.into()),
                // There is one link, and the object is not at its other end.
                Reply::Forward(_) => Err(ExceptionKind::Rebind.into()),
                Reply::NeedsAddressingMode => Err(no_reply(ReplyError::NeedsAddressingMode)),
            });
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}

impl Request<'_> {
    fn encode<'a>(
        &self,
        w: &mut Writer<'a>,
        request_id: u32,
        arguments: Arguments<'_, 'a>,
    ) -> Result<(), EncodeError> {
        let priority = self.priority.map(contexts::priority);
        let context = priority.as_ref().map(|data| ServiceContext {
            id: contexts::RT_CORBA_PRIORITY,
            data,
        });
        let start = RequestStart {
            request_id,
            response: self.response,
            object_key: self.key,
            operation: self.operation,
            contexts: context.as_slice(),
        };
        giop::begin_request(w, Version::V1_2, &start)?;
        giop::encode_body(w, Version::V1_2, arguments)?;
        giop::end_message(w)
    }
}

impl ObjectRef {
    /// A reference to the object with that key at the other end of the client's link. `type_id` may be empty. The reference has no
    /// address, so that it cannot be sent to others (MARSHAL).
    #[must_use]
    pub fn new(client: &'static dyn SharedClient, type_id: &str, key: &[u8]) -> Self {
        Self {
            client: Some(client),
            ior: Arc::new(Ior {
                type_id: String::from(type_id),
                profiles: Vec::new(),
            }),
            key: key.into(),
            priority: None,
        }
    }

    /// The same reference, whose calls go over the client's link: a reference that came in a message goes nowhere before.
    #[must_use]
    pub fn through(mut self, client: &'static dyn SharedClient) -> Self {
        self.client = Some(client);
        self
    }

    /// The same reference, whose calls carry that CORBA priority (0 to 32,767) to a server that declares CLIENT_PROPAGATED.
    #[must_use]
    pub fn with_priority(mut self, priority: i16) -> Self {
        self.priority = Some(priority);
        self
    }

    /// The repository id that the reference states; empty if it states none.
    #[must_use]
    pub fn type_id(&self) -> &str {
        &self.ior.type_id
    }

    /// Asks the object whether it has that interface.
    ///
    /// # Errors
    /// The exception of the call.
    pub fn is_a(&self, repository_id: &str) -> Result<bool, SystemException> {
        self.invoke(
            "_is_a",
            |w| w.str(repository_id),
            |r| Ok(u8::decode(r)? != 0),
        )
    }

    /// Calls an operation that raises no user exception. Generated code calls this.
    ///
    /// # Errors
    /// A system exception, from the object, its server or this crate.
    pub fn invoke<'a, T>(
        &self,
        operation: &str,
        arguments: impl Fn(&mut Writer<'a>) -> Result<(), EncodeError>,
        result: impl FnOnce(&mut Reader<'_>) -> Result<T, DecodeError>,
    ) -> Result<T, SystemException> {
        self.invoke_raising(operation, arguments, result, |_, _| Ok(None))
    }

    /// Calls an operation that may raise user exceptions; `raised` decodes one by its repository id, or returns `None` if the operation
    /// does not declare it; the caller then gets UNKNOWN (CORBA 3, 4.12.4, minor 1).
    ///
    /// # Errors
    /// A user exception, or a system exception as [`invoke`](Self::invoke).
    pub fn invoke_raising<'a, T, E: From<SystemException>>(
        &self,
        operation: &str,
        arguments: impl Fn(&mut Writer<'a>) -> Result<(), EncodeError>,
        result: impl FnOnce(&mut Reader<'_>) -> Result<T, DecodeError>,
        raised: impl FnOnce(&str, &mut Reader<'_>) -> Result<Option<E>, DecodeError>,
    ) -> Result<T, E> {
        let (mut result, mut raised) = (Some(result), Some(raised));
        let mut answer = None;
        self.call(
            operation,
            Response::FromTarget,
            &arguments,
            &mut |status, r| {
                answer = match (status, result.take(), raised.take()) {
                    (ReplyStatus::NoException, Some(result), _) => Some(Ok(result(r)?)),
                    (_, _, Some(raised)) => {
                        let id = r.str()?;
                        let unknown = || {
                            let unknown = SystemException::omg(ExceptionKind::Unknown, 1);
                            unknown.with_completion(CompletionStatus::Yes).into()
                        };
                        Some(Err(raised(&id, r)?.unwrap_or_else(unknown)))
                    }
                    _ => None,
                };
                Ok(())
            },
        )?;
        answer.unwrap_or_else(|| Err(SystemException::from(ExceptionKind::Internal).into()))
    }

    /// Sends a oneway. `Ok` means that the link has taken it.
    ///
    /// # Errors
    /// A system exception if it could not be sent.
    pub fn invoke_oneway<'a>(
        &self,
        operation: &str,
        arguments: impl Fn(&mut Writer<'a>) -> Result<(), EncodeError>,
    ) -> Result<(), SystemException> {
        self.call(operation, Response::None, &arguments, &mut |_, _| Ok(()))
    }

    /// Support API for generated code: calls an annotated operation.
    #[doc(hidden)]
    pub fn timed<T>(&self, _operation: &'static OperationTiming, call: impl FnOnce() -> T) -> T {
        call()
    }

    /// Support API for generated code: the reference to an object with annotated operations.
    #[doc(hidden)]
    #[must_use]
    pub fn with_timings(self, _operations: &'static [OperationTiming]) -> Self {
        self
    }

    fn call<'a>(
        &self,
        operation: &str,
        response: Response,
        arguments: Arguments<'_, 'a>,
        results: Results<'_>,
    ) -> Result<(), SystemException> {
        let client = self.client.ok_or(ExceptionKind::InvObjref)?;
        let request = Request {
            key: &self.key,
            operation,
            response,
            priority: self.priority,
        };
        let mut ended = Err(ExceptionKind::Internal.into());
        client.exclusively(&mut |client| ended = client.call(&request, arguments, results));
        ended
    }
}

/// Two references are equal if they name the same object in the same way.
impl PartialEq for ObjectRef {
    fn eq(&self, other: &Self) -> bool {
        self.ior == other.ior && self.key == other.key
    }
}

impl Eq for ObjectRef {}

impl Hash for ObjectRef {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.ior.hash(state);
        self.key.hash(state);
    }
}

impl fmt::Debug for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectRef")
            .field("type_id", &self.ior.type_id)
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

impl ReferenceOut for ObjectRef {
    fn encode_ior<'a>(&'a self, w: &mut Writer<'a>) -> Result<(), EncodeError> {
        // Nobody else could find an object that has no address.
        if self.ior.is_nil() {
            return Err(EncodeError::Local);
        }
        self.ior.encode(w)
    }
}

impl Reference for ObjectRef {
    fn decode_ior(r: &mut Reader<'_>) -> Result<Option<Self>, DecodeError> {
        let ior = Ior::decode(r)?;
        if ior.is_nil() {
            return Ok(None);
        }
        let key = ior.iiop_profiles().next();
        Ok(Some(Self {
            client: None,
            key: key
                .map(|profile| profile.object_key.into())
                .unwrap_or_default(),
            ior: Arc::new(ior),
            priority: None,
        }))
    }
}

/// The exception of a request that the link did not take.
fn unsent(error: LinkError) -> SystemException {
    no_reply(match error {
        LinkError::TimedOut => ReplyError::SendTimedOut,
        LinkError::Broken => ReplyError::Ended,
    })
}

/// Why no reply came.
fn unanswered(error: LinkError) -> ReplyError {
    match error {
        LinkError::TimedOut => ReplyError::TimedOut,
        LinkError::Broken => ReplyError::Ended,
    }
}

fn no_reply(error: ReplyError) -> SystemException {
    let (kind, minor) = error.exception();
    SystemException::new(kind, minor, error.completion())
}
