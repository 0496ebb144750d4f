//! Servants and adapters as requests see them.

use super::call::ServerCall;
use super::names::LocatedId;
use super::object_table::ActiveObject;
use crate::exception::SystemException;
use crate::timing::OperationTiming;
use rtorb_core::codegen::ServantTraits;
use rtorb_core::upcall::Described;
use rtorb_wire::ior::Ior;

/// A type-erased servant.
pub(crate) trait Servant: Described + Send + Sync {
    /// Serves a request. `id` is the id of the object if this servant serves many objects.
    fn dispatch(
        &self,
        operation: &[u8],
        call: &mut ServerCall<'_>,
        id: &LocatedId,
    ) -> Result<(), SystemException>;
    /// Its servant traits; `None` if each call needs a request.
    fn traits(&self) -> Option<&ServantTraits> {
        None
    }

    /// The annotations of an operation; `None` if it has none.
    fn timing(&self, _operation: &[u8]) -> Option<&'static OperationTiming> {
        None
    }

    /// OBJECT_NOT_EXIST if this servant serves many objects, but none with that id.
    fn check_presence(&self, _id: &LocatedId) -> Result<(), SystemException> {
        Ok(())
    }
}

/// The adapter of an object.
pub(crate) trait ObjectAdapter: Send + Sync {
    /// Path from the root, separated by `/`.
    fn path(&self) -> &str;

    /// The reference for a client that called an object at an endpoint where it is not served; nil once the ORB has ended.
    fn forward(&self, object: &ActiveObject, object_key: &[u8]) -> Ior;
}
