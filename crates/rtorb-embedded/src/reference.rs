//! References to objects, and the calls that generated code makes by them.

use crate::client::{Arguments, Request, Results, SharedClient};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::hash::{Hash, Hasher};
use rtorb_core::exception::{CompletionStatus, ExceptionKind, SystemException};
use rtorb_core::timing::OperationTiming;
use rtorb_wire::cdr::{Reference, ReferenceOut};
use rtorb_wire::giop::{ReplyStatus, Response};
use rtorb_wire::{Decode, DecodeError, Encode, EncodeError, Ior, Reader, Writer};

/// A reference to an object.
#[derive(Clone)]
pub struct ObjectRef {
    client: Option<&'static dyn SharedClient>,
    ior: Arc<Ior>,
    key: Arc<[u8]>,
    /// The CORBA priority that calls carry.
    priority: Option<i16>,
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

    /// Support API for generated code. Not public. Each call of this ORB has a request.
    #[doc(hidden)]
    #[inline]
    pub fn call_servant<V: ?Sized, T>(&self, _call: impl Fn(&V) -> T) -> Option<T> {
        None
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
