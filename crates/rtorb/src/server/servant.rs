//! The interfaces by which requests use servants and adapters.

use super::call::ServerCall;
use super::names::LocatedId;
use super::object_table::ActiveObject;
use crate::exception::SystemException;
use crate::timing::OperationTiming;
use core::ops::Deref;
use rtorb_core::codegen::ServantTraits;
use rtorb_core::{Described, Intervention};
use rtorb_wire::ior::Ior;
use std::sync::Arc;

/// A type-erased servant.
pub(crate) trait Servant: Described + Send + Sync {
    /// Serves a request. `id` is the id of the object if this servant serves many objects.
    fn dispatch(
        &self,
        operation: &[u8],
        call: &mut ServerCall<'_>,
        id: &LocatedId,
    ) -> Result<(), SystemException>;

    /// Returns true if this servant serves many objects. Then it sends an early reply itself, once it knows that it serves the object.
    fn is_locator(&self) -> bool {
        false
    }

    /// Makes its servant traits; `None` if each call needs a request.
    fn traits(&self) -> Option<ServantTraits> {
        None
    }

    /// Notes that its object ends with its adapter, or with the manager of that.
    fn note_cleanup(&self) {}

    /// Returns the annotations of an operation; `None` if it has none.
    fn timing(&self, _operation: &[u8]) -> Option<&'static OperationTiming> {
        None
    }

    /// Returns OBJECT_NOT_EXIST if this servant serves many objects, but none with that id; or where clients of that one are forwarded.
    fn check_presence(&self, _id: &LocatedId) -> Result<(), Intervention> {
        Ok(())
    }
}

/// The adapter of an object.
pub(crate) trait ObjectAdapter: Send + Sync {
    /// Returns the path from the root, separated by `/`.
    fn path(&self) -> &str;

    /// Counts an object that begins.
    fn note_object(&self);

    /// Counts an object whose servant has ended.
    fn note_object_ended(&self);

    /// Returns true if the adapter with that path from the root exists. This one is the root.
    fn leads_to(&self, path: &[u8]) -> bool;

    /// Returns the reference for a client that called an object at a wrong endpoint; nil once the ORB has ended.
    fn forward(&self, object: &ActiveObject, object_key: &[u8]) -> Ior;
}

/// The adapter of an object, which learns when the object has ended.
pub(crate) struct EnclosingAdapter(Arc<dyn ObjectAdapter>);

impl EnclosingAdapter {
    /// The adapter of an object that begins.
    pub(crate) fn new(adapter: Arc<dyn ObjectAdapter>) -> Self {
        adapter.note_object();
        Self(adapter)
    }
}

impl Deref for EnclosingAdapter {
    type Target = dyn ObjectAdapter;

    #[inline]
    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl Drop for EnclosingAdapter {
    fn drop(&mut self) {
        self.0.note_object_ended();
    }
}

/// Makes the adapters of requests whose adapter does not exist.
pub(crate) trait AdapterActivation: Send + Sync {
    /// Returns true if the adapter with that path from the root exists. Asks the adapter activators for those on the path that do not.
    fn activate(&self, path: &[u8]) -> bool;
}
