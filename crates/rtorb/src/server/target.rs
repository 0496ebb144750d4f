//! The object of a request: found by its key, checked for presence, and whether this thread may serve it.

use super::thread_priority::ThreadPriority;
use crate::exception::{ExceptionKind, SystemException};
use crate::realtime::{CallPriority, ThreadpoolId};
use crate::server::object_key::ObjectKey;
use crate::server::{ActiveObject, LocatedId, NameCache, ServerCore};
use rtorb_os::slab::Entered;

/// The object of a request, if the table has it, and its id for a servant locator.
#[derive(Clone, Copy)]
pub(super) struct Target<'o> {
    pub(super) object: Option<&'o ActiveObject>,
    pub(super) id: &'o LocatedId,
}

pub(super) const NO_SUCH_OBJECT: SystemException =
    SystemException::omg(ExceptionKind::ObjectNotExist, 1);

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
    let is_of_another_lane = match &object.priority {
        CallPriority::Declared(declared) => thread.is_of_lane_without(declared.priority()),
        CallPriority::AsItIs | CallPriority::Propagated { .. } => false,
    };
    object.pool != pool || is_of_another_lane
}

impl<'o> Target<'o> {
    /// The object.
    ///
    /// # Errors
    /// OBJECT_NOT_EXIST if it is not there; what a servant locator raises.
    pub(super) fn present(self) -> Result<&'o ActiveObject, SystemException> {
        let object = self.object.ok_or(NO_SUCH_OBJECT)?;
        object.servant.check_presence(self.id)?;
        Ok(object)
    }

    /// True if the object is there, and passes requests on.
    pub(super) fn is_proxy(self) -> bool {
        self.object.is_some_and(|object| object.servant.is_proxy())
    }

    /// True if the object is there.
    ///
    /// # Errors
    /// What a servant locator raises, other than OBJECT_NOT_EXIST.
    pub(super) fn exists(self) -> Result<bool, SystemException> {
        match self.present() {
            Ok(_) => Ok(true),
            Err(exception) if exception.kind == ExceptionKind::ObjectNotExist => Ok(false),
            Err(exception) => Err(exception),
        }
    }
}
