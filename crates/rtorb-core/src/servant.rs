//! How a servant serves its interface.

use crate::exception::{ExceptionKind, SystemException};
use crate::interface::{Interface, UntypedReference};

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
}

/// The exception for an operation that the interface does not have.
#[doc(hidden)]
#[must_use]
pub fn unknown_operation() -> SystemException {
    SystemException::omg(ExceptionKind::BadOperation, 2)
}
