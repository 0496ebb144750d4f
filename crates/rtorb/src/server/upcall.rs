//! From a request's header to the servant, and from what the servant answers to the client.

use super::call::{Reply, ServerCall};
use super::reading::Next;
use super::session::Session;
use super::thread_priority::{Called, ThreadPriority};
use super::workspace::Workspace;
use crate::exception::{CompletionStatus, ExceptionKind, SystemException};
use crate::realtime::{CallPriority, NativePriority, Priority, RtCore, Running, ThreadpoolId};
use crate::server::ActiveObject;
use crate::server::ServerCore;
use crate::server::object_key::ObjectKey;
use crate::server::{LocatedId, NameCache, unknown_operation};
use core::cell::Cell;
use rtorb_os::slab::Entered;
use rtorb_wire::giop::{ReplyStatus, RequestHeader, contexts};
use rtorb_wire::{Encode, Reader};
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    /// The epoch of the ORB in whose servant this thread is, and whose threads serve it; [`OUTSIDE`] of servants.
    static IN_UPCALL: Cell<(u64, ThreadpoolId)> = const { Cell::new((OUTSIDE, ThreadpoolId::OWN)) };
}

/// No ORB's epoch.
const OUTSIDE: u64 = 0;

/// True if the calling thread is in a servant of that ORB: it must not wait there for another request of its own.
pub(crate) fn is_in_upcall(orb: &ServerCore) -> bool {
    IN_UPCALL.get().0 == orb.epoch
}

/// True if the calling thread is in a servant of whatever ORB.
pub(crate) fn is_in_servant() -> bool {
    IN_UPCALL.get().0 != OUTSIDE
}

/// True if the calling thread is in a servant of that ORB, and is one of the dispatch strategy's threads.
pub(crate) fn is_serving_own(orb: &ServerCore) -> bool {
    IN_UPCALL.get() == (orb.epoch, ThreadpoolId::OWN)
}

/// Serves one request: calls the servant and sends the reply. It came at `arrived_ns`, where it had to wait, else 0.
// Always: it is in the path of every call, and its other callers are rare.
#[inline(always)]
pub(super) fn serve<'m>(
    request: &RequestHeader<'m>,
    arguments: Reader<'m>,
    (reply, arrived_ns): (Reply<'m>, u64),
    workspace: &'m mut Workspace,
) -> Next {
    let mut call = ServerCall {
        arguments,
        reply,
        out: &mut workspace.out,
        scratch: &mut workspace.scratch,
        arrived_ns,
        timing: None,
    };
    let answered = invoke(
        request,
        &mut call,
        &mut workspace.names,
        &mut workspace.priority,
    );
    if let Err(exception) = answered {
        call.reply.send_exception(call.out, &exception);
    }
    call.reply.session.note_answered();
    if call.reply.is_broken {
        Next::Over
    } else {
        Next::Done
    }
}

// Always: it is in the path of every call, and its other callers are rare.
#[inline(always)]
fn invoke<'m>(
    request: &RequestHeader<'m>,
    call: &mut ServerCall<'m>,
    names: &mut NameCache,
    thread: &mut ThreadPriority,
) -> Result<(), SystemException> {
    let session = call.reply.session;
    let orb = &*session.orb;
    let object = find(orb, request.target.object_key()?, names);
    if request.operation.first() == Some(&b'_')
        && let Some(answer) = implicit(request, (object.as_deref(), &names.id), call)
    {
        return answer;
    }
    let object = object.ok_or(NO_SUCH_OBJECT)?;
    if is_served_elsewhere(&object, session, thread) {
        return forward(&object, request, call);
    }
    object.manager.admit()?;
    let running = begin(&orb.rt, &object, request, (call, thread))?;
    // Not before: a client that is told that its request is here must not be sent elsewhere with it.
    call.reply.send_early(call.out);
    let around = IN_UPCALL.replace((orb.epoch, session.pool));
    // The object goes in: left last after it was deactivated, it is dropped here, and its servant may panic then too.
    let (lent, id) = (&mut *call, &names.id);
    let answered = catch_unwind(AssertUnwindSafe(move || {
        object.servant.dispatch(request.operation, lent, id)
    }));
    IN_UPCALL.set(around);
    if let Err(exception) = answered.unwrap_or(Err(FAILED)) {
        // Still at the priority of the call, as its results are.
        call.reply.send_exception(call.out, &exception);
    }
    if let Some(timing) = call.timing.take() {
        timing.end(&orb.timing, &orb.rt);
    }
    thread.end(&orb.rt, &running);
    Ok(())
}

/// A servant that panics is a servant that failed in an unknown way; the others go on.
const FAILED: SystemException =
    SystemException::new(ExceptionKind::Unknown, 0, CompletionStatus::Maybe);

/// True if threads of another pool or lane serve the object: who asks here has a key, and no reference.
#[inline]
pub(super) fn is_served_elsewhere(
    object: &ActiveObject,
    session: &Session,
    thread: &ThreadPriority,
) -> bool {
    let is_of_another_lane = match object.priority {
        CallPriority::Declared { priority, .. } => thread.is_of_lane_without(priority),
        CallPriority::AsItIs | CallPriority::Propagated { .. } => false,
    };
    object.pool != session.pool || is_of_another_lane
}

/// Gives the thread the priority of the call, as the object's priority model says.
#[inline]
fn begin<'m>(
    rt: &RtCore,
    object: &ActiveObject,
    request: &RequestHeader<'m>,
    (call, thread): (&mut ServerCall<'m>, &mut ThreadPriority),
) -> Result<Running, SystemException> {
    if thread.has_priority() {
        return thread.begin_as_it_is(rt);
    }
    let called = match object.priority {
        CallPriority::AsItIs => return thread.begin_as_it_is(rt),
        CallPriority::Declared { priority, native } => {
            let inbound = rt.inbound(priority, &object.id)?;
            Called {
                priority: inbound,
                native: native_of(rt, inbound, Some((priority, native)))?,
            }
        }
        CallPriority::Propagated { otherwise } => {
            let told = propagated(request)?;
            let priority =
                rt.inbound(told.map_or(otherwise, |(priority, _)| priority), &object.id)?;
            let native = native_of(rt, priority, None)?;
            call.reply.priority = told.map(|(_, data)| data);
            Called { priority, native }
        }
    };
    thread.begin(rt, called)
}

/// What a request says of its priority, with the data that say it; `None` when it says nothing.
///
/// # Errors
/// DATA_CONVERSION 2 for a negative one (as TAO 2.2.1 answers); MARSHAL for what is no priority at all.
#[inline]
//= RT-CORBA 1.2 §Real-Time CORBA Priority Models
//# With CLIENT_PROPAGATED a request carries the priority of the client, at which the server executes it.
pub(crate) fn propagated<'m>(
    request: &RequestHeader<'m>,
) -> Result<Option<(Priority, &'m [u8])>, SystemException> {
    if request.contexts.is_empty() {
        return Ok(None);
    }
    let Some(data) = request.contexts.find(contexts::RT_CORBA_PRIORITY) else {
        return Ok(None);
    };
    let priority = Priority::new(contexts::decode_priority(data)?)
        .map_err(|_| SystemException::omg(ExceptionKind::DataConversion, 2))?;
    // What follows is nobody's, and need not go back.
    let data = data.get(..contexts::PRIORITY_OCTETS).unwrap_or(data);
    Ok(Some((priority, data)))
}

/// The native priority of a call, where it is not `known` already.
#[inline]
fn native_of(
    rt: &RtCore,
    priority: Priority,
    known: Option<(Priority, NativePriority)>,
) -> Result<NativePriority, SystemException> {
    match known {
        Some((same, native)) if same == priority => Ok(native),
        _ => rt.to_native(priority),
    }
}

/// Sends a client to the endpoints of the pool that serves the object: it has come to another one's.
#[cold]
fn forward(
    object: &ActiveObject,
    request: &RequestHeader<'_>,
    call: &mut ServerCall<'_>,
) -> Result<(), SystemException> {
    let ior = object.adapter.forward(object, request.target.object_key()?);
    call.reply
        .send(call.out, ReplyStatus::LocationForward, |w| ior.encode(w))
}

/// The object that a key stands for.
#[inline]
pub(super) fn find<'o>(
    orb: &'o ServerCore,
    key: &[u8],
    names: &mut NameCache,
) -> Option<Entered<'o, ActiveObject>> {
    match ObjectKey::parse(key) {
        ObjectKey::Transient { epoch, place } if epoch == orb.epoch => orb.objects.enter(place),
        ObjectKey::Transient { .. } => None,
        ObjectKey::Named(name) => orb.objects.enter_named(name, names),
    }
}

const NO_SUCH_OBJECT: SystemException = SystemException::omg(ExceptionKind::ObjectNotExist, 1);

/// The operations that every object has (CORBA 3, 15.4.2.2); `None` for one that the interface defines.
fn implicit(
    request: &RequestHeader<'_>,
    object: (Option<&ActiveObject>, &LocatedId),
    call: &mut ServerCall<'_>,
) -> Option<Result<(), SystemException>> {
    match request.operation {
        b"_is_a" => Some(is_a(object, call)),
        b"_non_existent" | b"_not_existent" => Some(non_existent(object, call)),
        b"_repository_id" => Some(present(object).and_then(|object| {
            let id = object.servant.repository_id();
            call.reply(|w| id.encode(w))
        })),
        b"_bind_priority_band" => Some(bind_band(request, call)),
        b"_interface" => Some(Err(SystemException::omg(ExceptionKind::IntfRepos, 1))),
        b"_component" | b"_domain_managers" => Some(Err(unknown_operation())),
        _ => None,
    }
}

/// The object, if it is there.
pub(super) fn present<'o>(
    (object, id): (Option<&'o ActiveObject>, &LocatedId),
) -> Result<&'o ActiveObject, SystemException> {
    let object = object.ok_or(NO_SUCH_OBJECT)?;
    object.servant.check_presence(id)?;
    Ok(object)
}

fn non_existent(
    object: (Option<&ActiveObject>, &LocatedId),
    call: &mut ServerCall<'_>,
) -> Result<(), SystemException> {
    let is_gone = match present(object) {
        Ok(_) => false,
        Err(exception) if exception.kind == ExceptionKind::ObjectNotExist => true,
        Err(exception) => return Err(exception),
    };
    call.reply(|w| w.primitive(u8::from(is_gone)))
}

fn is_a(
    object: (Option<&ActiveObject>, &LocatedId),
    call: &mut ServerCall<'_>,
) -> Result<(), SystemException> {
    let object = present(object)?;
    let is_a = {
        let id = call.arguments().str()?;
        object.servant.is_a(&id)
    };
    call.reply(|w| w.primitive(u8::from(is_a)))
}

/// Confirms a connection for a band of priorities (RT-CORBA 1.x, 4.12.3); nothing here depends on what it is.
//= RT-CORBA 1.2 §Priority Banded Connections
//# The request _bind_priority_band binds a connection to a band; the server confirms it by a reply.
fn bind_band(
    request: &RequestHeader<'_>,
    call: &mut ServerCall<'_>,
) -> Result<(), SystemException> {
    if let Some(data) = request.contexts.find(contexts::RT_CORBA_PRIORITY_RANGE) {
        let (min, max) = contexts::decode_priority_range(data)?;
        if min < 0 || min > max {
            return Err(ExceptionKind::InvPolicy.into());
        }
    }
    call.reply(|_| Ok(()))
}
