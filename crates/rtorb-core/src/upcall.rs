//! The server's engine: it finds the object of a decoded request, serves the operations that every object has, and has the ORB call
//! the servant for any other.
//!
//! Each ORB implements [`Upcall`]: its table of objects, the priorities of its threads, and the call of its servants.

use crate::described::Described;
use crate::exception::{ExceptionKind, SystemException, local};
use crate::reply::{Intervention, Responder};
use crate::servant::unknown_operation;
use crate::server_call::ServerCall;
use rtorb_wire::Encode;
use rtorb_wire::giop::{RequestHeader, contexts};

/// The ORB's part in serving one request.
pub trait Upcall<'m> {
    /// The ORB's side of a reply.
    type Responder: Responder;
    /// An object that was found.
    type Object;

    /// Finds the object with this key.
    fn find(&mut self, key: &[u8]) -> Option<Self::Object>;

    /// Returns the exception for a request whose key leads to no object.
    ///
    /// Inline it, and do not lend `self` to another function: that would keep it in memory in each call.
    #[inline(always)]
    fn missing(&self, _request: &RequestHeader<'m>) -> SystemException {
        NO_SUCH_OBJECT
    }

    /// Returns the servant of an object.
    fn servant<'o>(&self, object: &'o Self::Object) -> &'o dyn Described;

    /// Asks a servant that serves many objects whether it serves this one.
    ///
    /// # Errors
    /// OBJECT_NOT_EXIST if it does not; what a servant manager raises, or where it forwards clients.
    fn check_presence(&self, _object: &Self::Object) -> Result<(), Intervention> {
        Ok(())
    }

    /// Admits the request, gives the thread the priority of the call, and calls the servant, which replies.
    ///
    /// # Errors
    /// The exception of a request that is not admitted, or of the servant.
    fn call(
        &mut self,
        object: Self::Object,
        request: &RequestHeader<'m>,
        call: &mut ServerCall<'m, Self::Responder>,
    ) -> Result<(), SystemException>;
}

/// The exception for a key that leads to no object, although its adapter may exist.
pub const NO_SUCH_OBJECT: SystemException = SystemException::omg(ExceptionKind::ObjectNotExist, 1);

/// Serves a request: calls the operation of its object, which replies.
///
/// # Errors
/// The exception of a request that is not carried out. The caller [sends](crate::Reply::send_exception) it.
// Always: it is in the path of every call, and its other callers are rare.
#[inline(always)]
pub fn serve<'m, U: Upcall<'m>>(
    upcall: &mut U,
    request: &RequestHeader<'m>,
    call: &mut ServerCall<'m, U::Responder>,
) -> Result<(), SystemException> {
    let object = upcall.find(request.target.object_key()?);
    if request.operation.first() == Some(&b'_')
        && let Some(served) = serve_implicit(upcall, object.as_ref(), request, call)
    {
        return served;
    }
    let Some(object) = object else {
        return Err(upcall.missing(request));
    };
    upcall.call(object, request, call)
}

/// Returns true for an operation that every object has: [`serve`] serves it.
pub fn is_implicit(operation: &[u8]) -> bool {
    matches!(
        operation,
        b"_bind_priority_band"
            | b"_is_a"
            | b"_non_existent"
            | b"_not_existent"
            | b"_repository_id"
            | b"_interface"
            | b"_component"
            | b"_domain_managers"
    )
}

/// Serves an operation that every object has (CORBA 3, 15.4.2.2); returns `None` for one that the interface defines.
fn serve_implicit<'m, U: Upcall<'m>>(
    upcall: &U,
    object: Option<&U::Object>,
    request: &RequestHeader<'m>,
    call: &mut ServerCall<'m, U::Responder>,
) -> Option<Result<(), SystemException>> {
    let servant = object.map(|object| upcall.servant(object));
    match request.operation {
        b"_bind_priority_band" => Some(bind_band(request, call)),
        // The other object answers.
        _ if servant.is_some_and(Described::is_proxy) => None,
        operation if is_implicit(operation) => {
            let present = match object {
                Some(object) => upcall
                    .check_presence(object)
                    .map(|()| upcall.servant(object)),
                None => Err(upcall.missing(request).into()),
            };
            let answered = answer_implicit(present, operation, call);
            Some(answered.or_else(|intervention| call.intervene(intervention)))
        }
        _ => None,
    }
}

/// Answers an operation that every object has, for the servant of the object if that is present.
fn answer_implicit<R: Responder>(
    present: Result<&dyn Described, Intervention>,
    operation: &[u8],
    call: &mut ServerCall<'_, R>,
) -> Result<(), Intervention> {
    match operation {
        b"_is_a" => {
            let is_a = present?.is_a(&call.arguments().str()?);
            call.reply(|w| w.primitive(u8::from(is_a)))?;
        }
        b"_non_existent" | b"_not_existent" => {
            let exists = exists(present.map(|_| ()))?;
            call.reply(|w| w.primitive(u8::from(!exists)))?;
        }
        b"_repository_id" => {
            let id = present?.repository_id();
            call.reply(|w| id.encode(w))?;
        }
        b"_interface" => {
            let definition = present?.interface_definition();
            let definition = definition.ok_or(local::NO_REPOSITORY)?;
            call.reply(|w| definition.encode(w))?;
        }
        _ => return Err(unknown_operation().into()),
    }
    Ok(())
}

/// Returns true if an object exists, from the result of the check for its presence.
///
/// # Errors
/// What the check returned, other than OBJECT_NOT_EXIST.
pub fn exists(presence: Result<(), Intervention>) -> Result<bool, Intervention> {
    match presence {
        Ok(()) => Ok(true),
        Err(Intervention::Raise(exception)) if exception.kind == ExceptionKind::ObjectNotExist => {
            Ok(false)
        }
        Err(other) => Err(other),
    }
}

/// Confirms a connection for a band of priorities (RT-CORBA 1.x, 4.12.3). The server does not depend on the band.
//= RT-CORBA 1.2 §Priority Banded Connections
//# The request _bind_priority_band binds a connection to a band; the server confirms it by a reply.
fn bind_band<'m, R: Responder>(
    request: &RequestHeader<'m>,
    call: &mut ServerCall<'m, R>,
) -> Result<(), SystemException> {
    if let Some(data) = request.contexts.find(contexts::RT_CORBA_PRIORITY_RANGE) {
        let (min, max) = contexts::decode_priority_range(data)?;
        if min < 0 || min > max {
            return Err(local::WRONG_BAND_OF_CLIENT);
        }
    }
    call.reply(|_| Ok(()))
}
