//! Calls of servants of the same ORB by their traits: nothing is marshalled.

use super::{Inner, ObjectRef};
use crate::connection::CallByTrait;
use crate::exception::SystemException;
use core::sync::atomic::Ordering;
use rtorb_os::slab::Key;

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
        let inner = &*self.inner;
        let mut result = None;
        // A request follows the object, or gets the exception of an ORB that has ended.
        if let Some(place) = inner.servant
            && !inner.is_forwarded.load(Ordering::Relaxed)
            && !inner.client.core.is_closed()
        {
            let call = &mut CallByTrait::new(call, &mut result);
            inner.client.host.call_servant(place, call);
        }
        result
    }
}

impl Inner {
    /// Returns where a new reference finds its servant. `None` if its calls need requests: not the calling thread serves them, they
    /// have a timeout that the application chose, or policies of priority.
    pub(super) fn servant_place(&self) -> Option<Key> {
        let route = self.routes.first()?;
        let binding = self.binding.as_deref();
        let is_bound = binding.is_some_and(|it| !it.as_ref().is_ok_and(|it| it.is_by_operation));
        if !self.is_direct || is_bound {
            return None;
        }
        self.client.host.place_of(&route.object_key)
    }
}
