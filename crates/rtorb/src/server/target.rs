//! Finds the object of a request, and checks whether this thread may serve it.

use super::thread_priority::ThreadPriority;
use crate::exception::{SystemException, local};
use crate::realtime::{CallPriority, ThreadpoolId};
use crate::server::object_key::{self, ObjectKey};
use crate::server::{ActiveObject, NameCache, ServerCore};
use rtorb_core::upcall::NO_SUCH_OBJECT;
use rtorb_os::slab::SlabGuard;
use rtorb_wire::giop::RequestHeader;
use std::sync::Weak;

/// Returns the active object with that key.
// Always: it is in the path of every call, and its other callers are rare.
#[inline(always)]
pub(super) fn find<'o>(
    orb: &'o ServerCore,
    key: &[u8],
    names: &mut NameCache,
) -> Option<SlabGuard<'o, ActiveObject>> {
    match ObjectKey::parse(key) {
        ObjectKey::Transient { epoch, place } if epoch == orb.epoch => orb.objects.get(place),
        ObjectKey::Transient { .. } => None,
        ObjectKey::Named(name) => orb
            .objects
            .get_named(name, names)
            .or_else(|| find_activated(orb, name, names)),
    }
}

/// Returns the active object with that key, if it exists already.
pub(super) fn find_existing<'o>(
    orb: &'o ServerCore,
    key: &[u8],
    names: &mut NameCache,
) -> Option<SlabGuard<'o, ActiveObject>> {
    match ObjectKey::parse(key) {
        ObjectKey::Transient { epoch, place } if epoch == orb.epoch => orb.objects.get(place),
        ObjectKey::Transient { .. } => None,
        ObjectKey::Named(name) => orb.objects.get_named(name, names),
    }
}

/// Returns the object with that key if an adapter activator makes its adapter now, or has made it since the object was looked up.
#[cold]
fn find_activated<'o>(
    orb: &'o ServerCore,
    key: &[u8],
    names: &mut NameCache,
) -> Option<SlabGuard<'o, ActiveObject>> {
    let activation = orb.activation.get()?;
    let (path, _) = object_key::split(key)?;
    if !activation.activate(path.strip_suffix(b"/")?) {
        return None;
    }
    orb.objects.get_named(key, names)
}

/// Returns the exception for a request whose key leads to no object.
//= CORBA 3 §Exception Codes
//# A request whose POA can neither be found nor created gets OBJECT_NOT_EXIST with standard minor code 2.
#[cold]
#[inline(never)]
pub(super) fn missing(orb: &ServerCore, request: &RequestHeader<'_>) -> SystemException {
    let key = match request.target.object_key() {
        Ok(key) => key,
        Err(error) => return error.into(),
    };
    let other = orb.objects.bound_to(key);
    match ObjectKey::parse(other.as_deref().unwrap_or(key)) {
        ObjectKey::Named(name) if is_of_no_adapter(orb, name) => local::NO_ADAPTER,
        ObjectKey::Named(_) | ObjectKey::Transient { .. } => NO_SUCH_OBJECT,
    }
}

/// Returns true if the adapter that a readable key names does not exist. A key without a `/` names none.
fn is_of_no_adapter(orb: &ServerCore, key: &[u8]) -> bool {
    let path = object_key::split(key).and_then(|(path, _)| path.strip_suffix(b"/"));
    let root = orb.root.get().and_then(Weak::upgrade);
    match (path, root) {
        (Some(path), Some(root)) => !root.leads_to(path),
        _ => false,
    }
}

/// Returns true if threads of another pool or lane serve the object: the client called a wrong endpoint.
#[inline]
pub(super) fn is_served_elsewhere(
    object: &ActiveObject,
    pool: ThreadpoolId,
    thread: &ThreadPriority,
) -> bool {
    let is_of_another_lane = match &object.priority {
        CallPriority::Declared(declared) => thread.is_of_lane_without(declared.priority()),
        CallPriority::AsItIs | CallPriority::Propagated { .. } => false,
    };
    object.pool != pool || is_of_another_lane
}
