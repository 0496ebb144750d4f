//! Finds the object of a request, and checks whether this thread may serve it.

use super::thread_priority::ThreadPriority;
use crate::realtime::{CallPriority, ThreadpoolId};
use crate::server::object_key::{self, ObjectKey};
use crate::server::{ActiveObject, NameCache, ServerCore};
use rtorb_os::slab::SlabGuard;

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
