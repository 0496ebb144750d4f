//! How a servant serves its interface.

use crate::exception::{ExceptionKind, SystemException};
use crate::interface::{Interface, UntypedReference};

/// How a servant of type `S` serves the interface whose reference type is `Self`.
///
/// The compiler generates it for every `S` that implements the interface's servant trait.
pub trait ServedBy<S>: Interface {
    /// The number of the operation with that name on the wire.
    fn find_operation(name: &[u8]) -> Option<usize>;

    /// Where in [`timings`](Interface::timings) the operation with that number is; `None` for one that is not annotated.
    #[inline]
    fn timing_of(_operation: usize) -> Option<usize> {
        None
    }

    /// Decodes the arguments, calls the servant and sends the reply.
    ///
    /// # Errors
    /// A system exception, which the caller is sent.
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
