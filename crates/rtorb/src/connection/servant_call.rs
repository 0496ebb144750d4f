//! Calls of servants of the same ORB by their traits: they need no request.

use crate::exception::SystemException;
use core::marker::PhantomData;
use rtorb_core::codegen::ServantTraits;

/// A call of a servant of the same ORB, for its server.
pub(crate) trait ServantCall {
    /// Calls the servant, unless it serves another interface.
    fn call(&mut self, servant: &ServantTraits);

    /// Ends the call with an exception, unless the servant has returned and panicked only when it was dropped.
    fn fail(&mut self, exception: SystemException);
}

/// A call of a servant by its trait `V`. It stores the result in a variable of the caller.
pub(crate) struct CallByTrait<'r, V: ?Sized + 'static, T, E, F: Fn(&V) -> Result<T, E>> {
    call: F,
    result: &'r mut Option<Result<T, E>>,
    servant: PhantomData<fn(&V)>,
}

impl<'r, V: ?Sized + 'static, T, E, F: Fn(&V) -> Result<T, E>> CallByTrait<'r, V, T, E, F> {
    /// Makes a call that calls the servant by `call`. `result` stays `None` until the servant has returned.
    #[inline]
    pub(crate) fn new(call: F, result: &'r mut Option<Result<T, E>>) -> Self {
        Self {
            call,
            result,
            servant: PhantomData,
        }
    }
}

impl<V, T, E, F> ServantCall for CallByTrait<'_, V, T, E, F>
where
    V: ?Sized + 'static,
    E: From<SystemException>,
    F: Fn(&V) -> Result<T, E>,
{
    #[inline]
    fn call(&mut self, servant: &ServantTraits) {
        if let Some(servant) = servant.get::<V>() {
            *self.result = Some((self.call)(servant));
        }
    }

    #[cold]
    fn fail(&mut self, exception: SystemException) {
        self.result.get_or_insert_with(|| Err(exception.into()));
    }
}
