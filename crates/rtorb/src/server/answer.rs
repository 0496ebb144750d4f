//! Handles received messages: requests, locate requests and all others.

use super::call::RequestOrigin;
use super::reading::Next;
use super::session::Session;
use super::target;
use super::upcall::{self, site};
use super::workspace::Workspace;
use crate::clock::monotonic_ns;
use crate::deadline::{self, RequestDeadline};
use crate::exception::SystemException;
use core::mem;
use rtorb_core::upcall::{NO_SUCH_OBJECT, exists};
use rtorb_core::{Intervention, ReplyState};
use rtorb_wire::cdr::CharCodeSet;
use rtorb_wire::code_sets::CodeSetError;
use rtorb_wire::connection::{CodeSetState, Message, ReceiveError};
use rtorb_wire::giop::{
    self, DISTRIBUTABLE_THREAD, Expiry, LocateRequestHeader, LocateStatus, MessageType,
    RequestHeader, Response, Version, contexts,
};
use rtorb_wire::{DecodeError, Writer};

/// Serves a request in the thread that reads the connection.
// Always: it is in the path of every call, and its other callers are rare.
#[inline(always)]
pub(super) fn request<const SITE: u8>(
    session: &Session,
    workspace: &mut Workspace,
    code_sets: &mut CodeSetState,
    message: Message<'_>,
) -> Result<Next, DecodeError> {
    let mut reader = message.reader().with_context(&session.orb.client);
    let mut request = RequestHeader::EMPTY;
    request.read(&mut reader, deadline::enter_end_time)?;
    if session.cancelled.is_any() {
        session.note_reused_id(&request);
    }
    let version = message.header.version;
    if !request.contexts.is_empty()
        && !begin_in_place(session, workspace, code_sets, version, &request)
    {
        return Ok(Next::Done);
    }
    let char_code_set = code_sets.char_code_set();
    let arguments = reader.with_char_code_set(char_code_set);
    let origin = RequestOrigin::new(session, version, char_code_set, 0);
    let next = upcall::serve::<SITE>(&request, arguments, origin, workspace);
    if request.contexts.are_taken() || !request.contexts.is_empty() {
        deadline::leave();
    }
    Ok(next)
}

/// Reads the service contexts of a request. Calls of its servant inherit its deadline until [`deadline::leave`]. Returns false if
/// the request is refused.
#[inline(never)]
fn begin_in_place(
    session: &Session,
    workspace: &mut Workspace,
    code_sets: &mut CodeSetState,
    version: Version,
    request: &RequestHeader<'_>,
) -> bool {
    let begun = begin(session, workspace, code_sets, request).and_then(|deadline| {
        if deadline.has_passed() {
            session.orb.timing.refuse_expired()?;
        }
        Ok(deadline.at_ns)
    });
    match begun {
        Ok(deadline_ns) => {
            deadline::enter(deadline_ns);
            true
        }
        Err(exception) => {
            refuse(session, workspace, version, request, &exception);
            false
        }
    }
}

/// Notes the code sets that a request names, and returns its deadline, which may have passed.
///
/// # Errors
/// CODESET_INCOMPATIBLE or MARSHAL if the code sets cannot be used; the connection keeps its own.
#[inline]
pub(super) fn begin(
    session: &Session,
    workspace: &mut Workspace,
    code_sets: &mut CodeSetState,
    request: &RequestHeader<'_>,
) -> Result<RequestDeadline, SystemException> {
    if request.contexts.is_empty() {
        return Ok(RequestDeadline::NONE);
    }
    begin_with_contexts(session, workspace, code_sets, request)
}

#[inline(never)]
fn begin_with_contexts(
    session: &Session,
    workspace: &mut Workspace,
    code_sets: &mut CodeSetState,
    request: &RequestHeader<'_>,
) -> Result<RequestDeadline, SystemException> {
    note_named(session, workspace, code_sets, request)?;
    Ok(deadline::of_request(Expiry::of(request.contexts)))
}

fn note_named(
    session: &Session,
    workspace: &mut Workspace,
    code_sets: &mut CodeSetState,
    request: &RequestHeader<'_>,
) -> Result<(), CodeSetError> {
    let Some(data) = request.contexts.find(contexts::CODE_SETS) else {
        return Ok(());
    };
    let named = contexts::CodeSets::from_data(data)?;
    let noted = code_sets.note_named(named);
    if matches!(noted, Err(CodeSetError::Unsupported(_))) {
        let key = request.target.object_key()?;
        let object = target::find(&session.orb, key, &mut workspace.names);
        if !object.is_some_and(|object| object.servant.is_proxy()) {
            return noted;
        }
    } else {
        noted?;
    }
    session.note_code_sets(named);
    Ok(())
}

/// The arrival and the deadline of a request that was taken out of its connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TakenTimes {
    /// 0 if nothing needs it.
    pub(super) arrived_ns: u64,
    /// [`NONE_NS`](deadline::NONE_NS) for no deadline.
    pub(super) deadline_ns: u64,
}

/// Serves a request that was taken out of its connection.
#[inline]
pub(super) fn taken_request(
    session: &Session,
    workspace: &mut Workspace,
    char_code_set: CharCodeSet,
    times: TakenTimes,
    message: Message<'_>,
) -> Result<Next, DecodeError> {
    let mut reader = message.reader().with_context(&session.orb.client);
    let request = RequestHeader::decode(&mut reader)?;
    let has_deadline = times.deadline_ns != deadline::NONE_NS;
    if has_deadline {
        if times.deadline_ns <= monotonic_ns()
            && let Err(exception) = session.orb.timing.refuse_expired()
        {
            let version = message.header.version;
            refuse(session, workspace, version, &request, &exception);
            return Ok(Next::Done);
        }
        deadline::enter(times.deadline_ns);
    }
    let needs_look = session.cancelled.is_any();
    if needs_look && is_cancelled(session, &request) {
        deadline::leave();
        session.orb.state.note_cancelled();
        session.note_answered();
        return Ok(Next::Done);
    }
    let arguments = reader.with_char_code_set(char_code_set);
    let origin = RequestOrigin::new(
        session,
        message.header.version,
        char_code_set,
        times.arrived_ns,
    );
    let next = if needs_look && session.orb.has_interceptors() {
        upcall::serve::<{ site::RARE }>(&request, arguments, origin, workspace)
    } else {
        upcall::serve::<{ site::TAKEN }>(&request, arguments, origin, workspace)
    };
    if has_deadline {
        deadline::leave();
    }
    Ok(next)
}

/// Returns true if the client has cancelled the request.
#[cold]
fn is_cancelled(session: &Session, request: &RequestHeader<'_>) -> bool {
    // The client of a distributable thread waits for THREAD_CANCELLED.
    request.response == Response::FromTarget
        && request.contexts.find(DISTRIBUTABLE_THREAD).is_none()
        && session.cancelled.forget(request.request_id)
}

/// Replies to a request with a system exception; sends nothing for a oneway.
#[cold]
pub(super) fn refuse(
    session: &Session,
    workspace: &mut Workspace,
    version: Version,
    request: &RequestHeader<'_>,
    exception: &SystemException,
) {
    // The reply does not depend on the code set.
    let origin = RequestOrigin::new(session, version, CharCodeSet::default(), 0);
    let mut reply = origin.reply(request, &mut workspace.out, &mut workspace.scratch);
    reply.send_exception(exception);
    if reply.state != ReplyState::Sent {
        session.note_answered();
    }
}

/// Handles a message that is not a plain request: one for interceptors, or of another type.
#[cold]
pub(super) fn other(
    session: &Session,
    workspace: &mut Workspace,
    code_sets: &mut CodeSetState,
    message: Message<'_>,
) -> Result<Next, ReceiveError> {
    match message.header.message_type {
        MessageType::Request => Ok(request::<{ site::RARE }>(
            session, workspace, code_sets, message,
        )?),
        MessageType::LocateRequest => Ok(locate_request(session, workspace, message)?),
        MessageType::CancelRequest => {
            let request_id = message.reader().primitive()?;
            // Otherwise it has its reply already.
            if session.state.has_taken() {
                session.cancel(request_id);
            }
            session.orb.held.cancel(session, request_id);
            session.orb.deferred.cancel(session, request_id);
            session.note_answered();
            Ok(Next::Done)
        }
        // The receiver refused all others.
        kind => Err(ReceiveError::OutOfPlace(kind)),
    }
}

fn locate_request(
    session: &Session,
    workspace: &mut Workspace,
    message: Message<'_>,
) -> Result<Next, DecodeError> {
    let orb = &session.orb;
    let request = LocateRequestHeader::decode(&mut message.reader())?;
    let key = request.target.object_key()?;
    let object = target::find(orb, key, &mut workspace.names);
    let out = mem::take(&mut workspace.out);
    let mut w = Writer::new(out, orb.limits.message_bytes_max);
    let (version, id) = (message.header.version, request.request_id);
    let written = match object.as_deref() {
        Some(object) if target::is_served_elsewhere(object, session.pool, &workspace.priority) => {
            let elsewhere = object.adapter.forward(object, key);
            giop::write_locate_forward(&mut w, version, id, &elsewhere)
        }
        object => {
            let presence = object.ok_or(NO_SUCH_OBJECT.into()).and_then(|object| {
                let id = &workspace.names.id;
                object.servant.check_presence(id)
            });
            let mut write = |status| giop::write_locate_reply(&mut w, version, id, status);
            match exists(presence) {
                Ok(false) => write(LocateStatus::UnknownObject),
                // If the object cannot be looked up now, the call itself gets the exception.
                Ok(true) | Err(Intervention::Raise(_)) => write(LocateStatus::ObjectHere),
                Err(Intervention::Forward(elsewhere)) => {
                    giop::write_locate_forward(&mut w, version, id, &elsewhere)
                }
            }
        }
    };
    let is_sent = written.is_ok() && session.send(&w).is_ok();
    workspace.out = w.into_buffer();
    Ok(if is_sent { Next::Done } else { Next::Over })
}
