//! The object of a request: found by its key, and whether this thread may serve it.

use super::thread_priority::ThreadPriority;
use crate::realtime::{CallPriority, ThreadpoolId};
use crate::server::object_key::ObjectKey;
use crate::server::{ActiveObject, NameCache, ServerCore};
use rtorb_os::slab::Entered;

/// The active object of a key.
// Always: it is in the path of every call, and its other callers are rare.
#[inline(always)]
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

/// True if threads of another pool or lane serve the object: the client has its key, but not its reference.
#[inline]
pub(super) fn is_served_elsewhere(
    object: &ActiveObject,
    pool: ThreadpoolId,
    thread: &ThreadPriority,
) -> bool {
    let is_of_another_lane = match object.priority {
        CallPriority::Declared { priority, .. } => thread.is_of_lane_without(priority),
        CallPriority::AsItIs | CallPriority::Propagated { .. } => false,
    };
    object.pool != pool || is_of_another_lane
}
