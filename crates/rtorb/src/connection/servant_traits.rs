//! Servants as the traits that generated code calls them by, and calls of them that need no request.

use crate::exception::SystemException;
use core::any::Any;
use core::fmt;
use std::sync::Arc;

/// A servant as each of its servant traits: that of its interface and those of the interfaces that this inherits from.
///
/// Generated code makes it. A reference in the same ORB calls the servant by the trait of its own interface.
pub struct ServantTraits(Box<[Box<dyn Any + Send + Sync>]>);

impl ServantTraits {
    /// Joins what [`one`](Self::one) returns for each trait.
    #[doc(hidden)]
    pub fn new<const N: usize>(traits: [Box<dyn Any + Send + Sync>; N]) -> Self {
        Self(Box::new(traits))
    }

    /// Returns a servant as one of its traits.
    #[doc(hidden)]
    pub fn one<V: ?Sized + Send + Sync + 'static>(servant: Arc<V>) -> Box<dyn Any + Send + Sync> {
        Box::new(servant)
    }

    /// Returns the servant as the trait `V`; `None` if it serves another interface.
    #[inline]
    fn get<V: ?Sized + 'static>(&self) -> Option<&V> {
        let mut traits = self.0.iter();
        traits.find_map(|one| one.downcast_ref::<Arc<V>>().map(|servant| &**servant))
    }
}

impl fmt::Debug for ServantTraits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ServantTraits").field(&self.0.len()).finish()
    }
}

/// A call of a servant of the same ORB, as its server sees it.
pub(crate) trait ServantCall {
    /// Calls the servant; returns false if it serves another interface.
    fn call(&mut self, servant: &ServantTraits) -> bool;

    /// Ends the call with an exception, whatever the servant returned.
    fn fail(&mut self, exception: SystemException);
}

/// A call of a servant by its trait `V`, and its result once it has one.
pub(crate) struct CallByTrait<V: ?Sized + 'static, T, E, F: Fn(&V) -> Result<T, E>> {
    call: F,
    result: Option<Result<T, E>>,
    servant: core::marker::PhantomData<fn(&V)>,
}

impl<V: ?Sized + 'static, T, E, F: Fn(&V) -> Result<T, E>> CallByTrait<V, T, E, F> {
    /// A call that calls the servant by `call`.
    #[inline]
    pub(crate) fn new(call: F) -> Self {
        Self {
            call,
            result: None,
            servant: core::marker::PhantomData,
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
        self.result = Some(Err(exception.into()));
    }
}
