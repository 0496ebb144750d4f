//! Calls of servants of the same ORB by their traits: nothing is marshalled.

use super::{Inner, ObjectRef};
use crate::exception::SystemException;
use crate::server::{LocalObject, servant_panicked};
use core::sync::atomic::Ordering;
use std::panic::{AssertUnwindSafe, catch_unwind};

impl ObjectRef {
    /// Support API for generated code. Not public.
    ///
    /// Calls the servant by its trait `V` if the calling thread may do so without a request; `None` if the call needs a request.
    #[doc(hidden)]
    #[inline]
    pub fn call_servant<V: ?Sized + 'static, T, E: From<SystemException>>(
        &self,
        call: impl Fn(&V) -> Result<T, E>,
    ) -> Option<Result<T, E>> {
        let object = self.inner.servant.as_ref()?;
        self.inner.call_local(object, call)
    }
}

impl Inner {
    /// Calls the servant without a request; `None` if the call needs a request.
    // Never: the stub of a call that needs a request would save more registers.
    #[inline(never)]
    fn call_local<V: ?Sized + 'static, T, E: From<SystemException>>(
        &self,
        object: &LocalObject,
        call: impl Fn(&V) -> Result<T, E>,
    ) -> Option<Result<T, E>> {
        // A request follows the object, or gets the exception of an ORB that has ended.
        if self.is_forwarded.load(Ordering::Relaxed) || self.client.core.is_closed() {
            return None;
        }
        let begun = object.begin()?;
        // Nothing outside can unwind, so that the call stays in registers.
        let called = || begun.servant().map(&call);
        match catch_unwind(AssertUnwindSafe(called)) {
            Ok(result) => {
                begun.end();
                result
            }
            Err(panic) => {
                begun.end();
                Some(Err(servant_panicked(panic).into()))
            }
        }
    }

    /// Returns the object of a new reference whose servant may be called without requests. `None` if its calls need requests: another
    /// thread serves them, interceptors see them, they have a timeout that the application chose, or policies of priority.
    pub(super) fn find_servant(&self) -> Option<LocalObject> {
        let route = self.routes.first()?;
        let binding = self.binding.as_deref();
        let is_bound = binding.is_some_and(|it| !it.as_ref().is_ok_and(|it| it.is_by_operation));
        if !self.is_direct || is_bound || self.client.core.is_intercepted() {
            return None;
        }
        let server = self.client.host.server().downcast().ok()?;
        LocalObject::find(server, &route.object_key)
    }
}
