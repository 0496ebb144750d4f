//! The exceptions of CosNaming, which each operation converts to its own error.

use crate::stubs::naming::cos_naming::naming_context::{
    AlreadyBound, CannotProceed, InvalidName, NotEmpty, NotFound,
};
use crate::stubs::naming::cos_naming::{
    NamingContextBindContextError, NamingContextBindError, NamingContextBindNewContextError,
    NamingContextDestroyError, NamingContextExtResolveStrError, NamingContextRebindContextError,
    NamingContextRebindError, NamingContextResolveError, NamingContextUnbindError,
};
use rtorb::SystemException;
use rtorb::exception::local;

/// Any exception of CosNaming or a system exception.
#[derive(Debug)]
pub(super) enum NamingException {
    NotFound(NotFound),
    CannotProceed(CannotProceed),
    InvalidName(InvalidName),
    AlreadyBound(AlreadyBound),
    NotEmpty(NotEmpty),
    System(SystemException),
}

impl From<SystemException> for NamingException {
    fn from(exception: SystemException) -> Self {
        Self::System(exception)
    }
}

/// Conversions to and from the error of an operation.
macro_rules! errors {
    ($($error:ident { $($exception:ident),* })*) => {$(
        impl From<NamingException> for $error {
            fn from(raised: NamingException) -> Self {
                match raised {
                    $(NamingException::$exception(exception) => Self::$exception(exception),)*
                    NamingException::System(exception) => Self::System(exception),
                    // No operation raises an exception that it does not declare.
                    #[allow(unreachable_patterns, reason = "an operation may declare all")]
                    _ => Self::System(local::CONTRADICTION),
                }
            }
        }

        impl From<$error> for NamingException {
            fn from(error: $error) -> Self {
                match error {
                    $($error::$exception(exception) => Self::$exception(exception),)*
                    $error::System(exception) => Self::System(exception),
                }
            }
        }
    )*};
}

errors! {
    NamingContextBindError { NotFound, CannotProceed, InvalidName, AlreadyBound }
    NamingContextRebindError { NotFound, CannotProceed, InvalidName }
    NamingContextBindContextError { NotFound, CannotProceed, InvalidName, AlreadyBound }
    NamingContextRebindContextError { NotFound, CannotProceed, InvalidName }
    NamingContextResolveError { NotFound, CannotProceed, InvalidName }
    NamingContextUnbindError { NotFound, CannotProceed, InvalidName }
    NamingContextBindNewContextError { NotFound, CannotProceed, InvalidName, AlreadyBound }
    NamingContextDestroyError { NotEmpty }
    NamingContextExtResolveStrError { NotFound, CannotProceed, InvalidName }
}
