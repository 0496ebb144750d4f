//! Finds the object of a request, and checks whether it exists and whether this thread may serve it.

use super::thread_priority::ThreadPriority;
use crate::exception::{ExceptionKind, SystemException};
use crate::realtime::{CallPriority, ThreadpoolId};
use crate::server::object_key::ObjectKey;
use crate::server::{ActiveObject, LocatedId, NameCache, ServerCore};
use rtorb_os::slab::Entered;

/// The object of a request, if it is in the table, and its id for a servant locator.
#[derive(Clone, Copy)]
pub(super) struct Target<'o> {
    pub(super) object: Option<&'o ActiveObject>,
    pub(super) id: &'o LocatedId,
}

pub(super) const NO_SUCH_OBJECT: SystemException =
    SystemException::omg(ExceptionKind::ObjectNotExist, 1);

/// Returns the active object with that key.
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

impl<'o> Target<'o> {
    /// Returns the object.
    ///
    /// # Errors
    /// OBJECT_NOT_EXIST if it does not exist; the exceptions of a servant locator.
    pub(super) fn present(self) -> Result<&'o ActiveObject, SystemException> {
        let object = self.object.ok_or(NO_SUCH_OBJECT)?;
        object.servant.check_presence(self.id)?;
        Ok(object)
    }

    /// Returns true if the object is active, and forwards requests unchanged.
    pub(super) fn is_proxy(self) -> bool {
        self.object.is_some_and(|object| object.servant.is_proxy())
    }

    /// Returns true if the object exists.
    ///
    /// # Errors
    /// The exceptions of a servant locator, other than OBJECT_NOT_EXIST.
    pub(super) fn exists(self) -> Result<bool, SystemException> {
        match self.present() {
            Ok(_) => Ok(true),
            Err(exception) if exception.kind == ExceptionKind::ObjectNotExist => Ok(false),
            Err(exception) => Err(exception),
        }
    }
}
