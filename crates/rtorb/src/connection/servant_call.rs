//! Calls of servants of the same ORB by their traits: they need no request.

use crate::exception::SystemException;
use core::marker::PhantomData;
use rtorb_core::codegen::ServantTraits;

/// A call of a servant of the same ORB, as its server sees it.
pub(crate) trait ServantCall {
    /// Calls the servant; returns false if it serves another interface.
    fn call(&mut self, servant: &ServantTraits) -> bool;

    /// Ends the call with an exception, unless the servant has returned: then it panicked when it was dropped.
    fn fail(&mut self, exception: SystemException);
}

/// A call of a servant by its trait `V`, and its result once it has one.
pub(crate) struct CallByTrait<V: ?Sized + 'static, T, E, F: Fn(&V) -> Result<T, E>> {
    call: F,
    result: Option<Result<T, E>>,
    servant: PhantomData<fn(&V)>,
}

impl<V: ?Sized + 'static, T, E, F: Fn(&V) -> Result<T, E>> CallByTrait<V, T, E, F> {
    /// A call that calls the servant by `call`.
    #[inline]
    pub(crate) fn new(call: F) -> Self {
        Self {
            call,
            result: None,
            servant: PhantomData,
        }
    }

    /// Returns the result; `None` if the call has not been made.
    #[inline]
    pub(crate) fn into_result(self) -> Option<Result<T, E>> {
        self.result
    }
}

impl<V, T, E, F> ServantCall for CallByTrait<V, T, E, F>
where
    V: ?Sized + 'static,
    E: From<SystemException>,
    F: Fn(&V) -> Result<T, E>,
{
    #[inline]
    fn call(&mut self, servant: &ServantTraits) -> bool {
        let Some(servant) = servant.get::<V>() else {
            return false;
        };
        self.result = Some((self.call)(servant));
        true
    }

    #[cold]
    fn fail(&mut self, exception: SystemException) {
        self.result.get_or_insert_with(|| Err(exception.into()));
    }
}
