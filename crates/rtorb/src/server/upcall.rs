//! From a request's header to the servant, and from what the servant answers to the client.

use super::call::{Reply, Scratch, ServerCall};
use crate::exception::{CompletionStatus, ExceptionKind, SystemException};
use crate::orb::OrbCore;
use crate::poa::object_key::ObjectKey;
use crate::poa::object_table::{ActiveObject, NameCache};
use core::cell::Cell;
use rtorb_os::slab::Entered;
use rtorb_wire::giop::{ReplyStatus, RequestHeader, Response};
use rtorb_wire::{Encode, Reader};
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    /// The epoch of the ORB in whose servant this thread is; 0 outside of servants.
    static IN_UPCALL: Cell<u64> = const { Cell::new(0) };
}

/// True if the calling thread is in a servant of that ORB: it must not wait there for another request of its own.
pub(crate) fn is_in_upcall(orb: &OrbCore) -> bool {
    IN_UPCALL.get() == orb.epoch
}

/// Serves one request: calls the servant and sends the reply.
#[inline]
pub(super) fn serve<'m>(
    request: &RequestHeader<'m>,
    arguments: Reader<'m>,
    reply: Reply<'m>,
    scratch: &'m mut Scratch,
    names: &mut NameCache,
) -> Option<rustix::io::Errno> {
    let mut call = ServerCall {
        arguments,
        reply,
        scratch,
    };
    if call.reply.response == Response::BeforeInvocation {
        // SYNC_WITH_SERVER: the client waits no longer than until the request is here.
        let _ = call.reply.send(ReplyStatus::NoException, |_| Ok(()));
    }
    if let Err(exception) = invoke(call.reply.orb, request, &mut call, names) {
        call.reply.send_exception(&exception);
    }
    call.reply.broken
}

#[inline]
fn invoke(
    orb: &OrbCore,
    request: &RequestHeader<'_>,
    call: &mut ServerCall<'_>,
    names: &mut NameCache,
) -> Result<(), SystemException> {
    let object = find(orb, request.target.object_key()?, names);
    if request.operation.first() == Some(&b'_')
        && let Some(answer) = implicit(request.operation, object.as_deref(), call)
    {
        return answer;
    }
    let object = object.ok_or(NO_SUCH_OBJECT)?;
    object.adapter.manager.admit()?;
    IN_UPCALL.set(orb.epoch);
    // The object goes in: left last after it was deactivated, it is dropped here, and its servant may panic then too.
    let answered = catch_unwind(AssertUnwindSafe(move || {
        object.servant.dispatch(request.operation, call)
    }));
    IN_UPCALL.set(0);
    answered.unwrap_or_else(|_| {
        // A servant that panics is a servant that failed in an unknown way; the others go on.
        Err(SystemException::new(
            ExceptionKind::Unknown,
            0,
            CompletionStatus::Maybe,
        ))
    })
}

/// The object that a key stands for.
#[inline]
pub(super) fn find<'o>(
    orb: &'o OrbCore,
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
    operation: &[u8],
    object: Option<&ActiveObject>,
    call: &mut ServerCall<'_>,
) -> Option<Result<(), SystemException>> {
    match operation {
        b"_is_a" => Some(is_a(object, call)),
        b"_non_existent" | b"_not_existent" => {
            let is_gone = object.is_none();
            Some(call.reply(|w| w.primitive(u8::from(is_gone))))
        }
        b"_repository_id" => Some(object.ok_or(NO_SUCH_OBJECT).and_then(|object| {
            let id = object.servant.repository_id();
            call.reply(|w| id.encode(w))
        })),
        b"_interface" => Some(Err(SystemException::omg(ExceptionKind::IntfRepos, 1))),
        b"_component" | b"_domain_managers" => Some(Err(crate::poa::unknown_operation())),
        _ => None,
    }
}

fn is_a(object: Option<&ActiveObject>, call: &mut ServerCall<'_>) -> Result<(), SystemException> {
    let object = object.ok_or(NO_SUCH_OBJECT)?;
    let is_a = {
        let id = call.arguments().str()?;
        object.servant.is_a(&id)
    };
    call.reply(|w| w.primitive(u8::from(is_a)))
}
