//! Calls the interceptors of a server at the beginning and at the end of a request.

use super::call::{OrbResponder, ServerCall};
use super::names::NameCache;
use super::object_key::{self, ObjectKey};
use super::server_core::ServerCore;
use super::session::Session;
use super::upcall::in_servant;
use crate::exception::SystemException;
use crate::interceptors::{
    Ending, Intervention, OtherEnding, RequestDescription, RequestPeer, ServerInterception,
};
use rtorb_core::ReplyEnding;
use rtorb_wire::giop::{PassedReply, ReplyHeader, ReplyStatus, RequestHeader, SystemExceptionBody};
use rtorb_wire::{Decode, DecodeError, Ior};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Calls the starting points of the interceptors. Returns false if one of them forwards the client, which is done then.
///
/// # Errors
/// The exception that one of them raises; MARSHAL for an address that has no object key.
#[cold]
pub(super) fn begin<'m>(
    request: &RequestHeader<'m>,
    call: &mut ServerCall<'m>,
    names: &mut NameCache,
) -> Result<bool, SystemException> {
    let OrbResponder { orb, session, .. } = call.reply.responder;
    let upcall = session.map_or(orb.upcall, Session::upcall);
    let scratch = &mut *call.reply.responder.scratch;
    let interception = scratch.interception.get_or_insert_default();
    describe(orb, session, request, names, interception)?;
    let started = in_servant(upcall, || interception.start());
    call.reply.note_intercepted();
    match started? {
        Ok(()) => Ok(true),
        Err(intervention) => call.intervene(intervention).map(|()| false),
    }
}

/// Has the interceptors know the request and its object, as far as that is active.
fn describe(
    orb: &ServerCore,
    session: Option<&Session>,
    request: &RequestHeader<'_>,
    names: &mut NameCache,
    interception: &mut ServerInterception,
) -> Result<(), SystemException> {
    let key = request.target.object_key()?;
    let object = match ObjectKey::parse(key) {
        ObjectKey::Transient { epoch, place } if epoch == orb.epoch => orb.objects.get(place),
        ObjectKey::Transient { .. } => None,
        // No adapter activator is asked: the interceptors may refuse the request.
        ObjectKey::Named(name) => orb.objects.get_named(name, names),
    };
    let (adapter, object_id) = match object.as_deref() {
        Some(object) => (object.adapter.path(), object.id_or(&names.id)),
        None => (adapter_in(key).unwrap_or_default(), &[][..]),
    };
    let description = RequestDescription {
        header: request,
        adapter,
        object_id,
        peer: session.map_or(RequestPeer::Collocated, Session::peer),
        identity: session.and_then(|session| session.stream.peer_identity()),
    };
    let interceptors = &orb.client.core.interceptors.server;
    interception.begin(interceptors, &description)
}

/// Returns the path of the adapter that a readable key names.
fn adapter_in(key: &[u8]) -> Option<&str> {
    let ObjectKey::Named(name) = ObjectKey::parse(key) else {
        return None;
    };
    let (path, _) = object_key::split(name)?;
    core::str::from_utf8(path.strip_suffix(b"/")?).ok()
}

/// Calls the ending points that are left: those of a oneway, or of a request whose servant has not replied.
#[cold]
pub(super) fn finish(responder: &mut OrbResponder<'_>) {
    call_ending_points(responder, Ending::Other(OtherEnding::NoReply));
    if let Some(interception) = &mut responder.scratch.interception {
        interception.forget_added();
    }
}

/// Calls the ending points of a deferred reply that is not sent.
#[cold]
pub(super) fn abandon(interception: &mut ServerInterception) {
    while interception.is_begun() {
        let mut ending = Ending::Other(OtherEnding::Abandoned);
        let _ = catch_unwind(AssertUnwindSafe(|| interception.end(&mut ending)));
    }
    interception.forget_added();
}

/// Calls the ending points of the interceptors. Returns true if they replace the reply.
pub(super) fn end(responder: &mut OrbResponder<'_>, ending: ReplyEnding<'_>) -> bool {
    let interception = responder.scratch.interception.as_mut();
    let Some(interception) = interception.filter(|it| it.is_begun()) else {
        return false;
    };
    let ending = ending_of(ending, interception);
    let replacement = match call_ending_points(responder, ending) {
        Some(Ending::SystemException(exception)) => Intervention::Raise(exception),
        Some(Ending::Other(OtherEnding::Forward(ior))) => Intervention::Forward(ior),
        _ => return false,
    };
    if let Some(interception) = &mut responder.scratch.interception {
        interception.replacement = Some(replacement);
    }
    true
}

/// Returns the ending for the interceptors.
fn ending_of(ending: ReplyEnding<'_>, interception: &mut ServerInterception) -> Ending {
    match ending {
        ReplyEnding::Results => Ending::Results,
        ReplyEnding::UserException(id) => interception.with_exception(id.as_bytes()),
        ReplyEnding::SystemException(exception) => Ending::SystemException(exception.clone()),
        ReplyEnding::Forward(ior) => Ending::Other(OtherEnding::Forward(ior.clone())),
        ReplyEnding::Passed(reply) => {
            let ending = ending_of_passed(reply, interception);
            ending.unwrap_or_else(|error| Ending::SystemException(error.into()))
        }
    }
}

/// Returns the ending that the reply of another server has.
fn ending_of_passed(
    reply: &PassedReply,
    interception: &mut ServerInterception,
) -> Result<Ending, DecodeError> {
    let (header, mut body) = reply.read()?;
    Ok(match header.status {
        ReplyStatus::UserException => {
            interception.with_exception(ReplyHeader::exception_after(&body))
        }
        ReplyStatus::SystemException => {
            Ending::SystemException(SystemExceptionBody::decode(&mut body)?.into())
        }
        ReplyStatus::LocationForward | ReplyStatus::LocationForwardPerm => {
            Ending::Other(OtherEnding::Forward(Ior::decode(&mut body)?))
        }
        ReplyStatus::NoException | ReplyStatus::NeedsAddressingMode => Ending::Results,
    })
}

/// Calls the ending points that are left. Returns the ending by which they replace that of the request.
fn call_ending_points(responder: &mut OrbResponder<'_>, mut ending: Ending) -> Option<Ending> {
    let OrbResponder { orb, session, .. } = *responder;
    let upcall = session.map_or(orb.upcall, Session::upcall);
    let interception = responder.scratch.interception.as_mut()?;
    let mut is_replaced = false;
    while interception.is_begun() {
        match in_servant(upcall, || interception.end(&mut ending)) {
            Ok(replaced) => is_replaced |= replaced,
            Err(panicked) => {
                ending = Ending::SystemException(panicked);
                is_replaced = true;
            }
        }
    }
    is_replaced.then_some(ending)
}
