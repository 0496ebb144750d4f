//! How a servant serves its interface.

use crate::exception::{ExceptionKind, SystemException};
use crate::interface::{Interface, UntypedReference};
use alloc::boxed::Box;
use alloc::sync::Arc;
use core::any::Any;
use core::fmt;

/// How a servant of type `S` serves the interface whose reference type is `Self`.
///
/// The compiler generates it for every `S` that implements the interface's servant trait.
pub trait ServedBy<S>: Interface {
    /// Returns the number of the operation with this name on the wire.
    fn find_operation(name: &[u8]) -> Option<usize>;

    /// Returns the place of an operation in [`timings`](Interface::timings); `None` if it is not annotated.
    #[inline]
    fn timing_of(_operation: usize) -> Option<usize> {
        None
    }

    /// Decodes the arguments, calls the servant and sends the reply.
    ///
    /// # Errors
    /// A system exception, which is sent to the caller.
    fn dispatch(
        servant: &S,
        operation: usize,
        call: &mut <Self::Object as UntypedReference>::ServerCall<'_>,
    ) -> Result<(), SystemException>;

    /// Returns the servant as its servant traits; `None` if each call needs a request, as of a servant that decodes requests by hand.
    #[doc(hidden)]
    fn traits(_servant: &Arc<S>) -> Option<ServantTraits> {
        None
    }
}

/// A servant as each of its servant traits: that of its interface and those of the interfaces that this inherits from.
///
/// Generated code makes it. A reference in the same ORB calls the servant by the trait of its own interface.
pub struct ServantTraits(Box<[Box<dyn Any + Send + Sync>]>);

impl ServantTraits {
    /// Joins what [`one`](Self::one) returns for each trait.
    #[doc(hidden)]
    #[must_use]
    pub fn new<const N: usize>(traits: [Box<dyn Any + Send + Sync>; N]) -> Self {
        Self(Box::new(traits))
    }

    /// Returns a servant as one of its traits.
    #[doc(hidden)]
    #[must_use]
    pub fn one<V: ?Sized + Send + Sync + 'static>(servant: Arc<V>) -> Box<dyn Any + Send + Sync> {
        Box::new(servant)
    }

    /// Returns the servant as the trait `V`; `None` if it serves another interface.
    #[doc(hidden)]
    #[inline]
    #[must_use]
    pub fn get<V: ?Sized + 'static>(&self) -> Option<&V> {
        let [own, inherited @ ..] = &*self.0 else {
            return None;
        };
        let servant = own.downcast_ref().or_else(|| Self::find(inherited));
        servant.map(|servant: &Arc<V>| &**servant)
    }

    /// Finds the trait of an interface that the servant's own inherits from.
    #[cold]
    #[inline(never)]
    fn find<V: ?Sized + 'static>(traits: &[Box<dyn Any + Send + Sync>]) -> Option<&Arc<V>> {
        traits.iter().find_map(|one| one.downcast_ref())
    }
}

impl fmt::Debug for ServantTraits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ServantTraits").field(&self.0.len()).finish()
    }
}

/// The exception for an operation that the interface does not have.
#[doc(hidden)]
#[must_use]
pub fn unknown_operation() -> SystemException {
    SystemException::omg(ExceptionKind::BadOperation, 2)
}
