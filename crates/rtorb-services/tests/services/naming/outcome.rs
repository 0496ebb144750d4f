//! What an operation came to, in one form for all of them.

use rtorb::SystemException;
use rtorb_services::stubs::naming::cos_naming::naming_context::{NotFound, NotFoundReason};
use rtorb_services::stubs::naming::cos_naming::{
    NameComponent, NamingContext, NamingContextBindContextError, NamingContextBindError,
    NamingContextBindNewContextError, NamingContextDestroyError, NamingContextRebindContextError,
    NamingContextRebindError, NamingContextResolveError, NamingContextUnbindError,
};

/// `done`; the name of an exception, with the rest of the name for CannotProceed; the reason and the rest for NotFound.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) text: String,
    /// What CannotProceed names.
    pub(crate) context: Option<NamingContext>,
}

pub(crate) fn of<E: Into<Outcome>>(result: Result<(), E>) -> Outcome {
    match result {
        Ok(()) => text("done"),
        Err(error) => error.into(),
    }
}

impl From<SystemException> for Outcome {
    fn from(exception: SystemException) -> Self {
        text(exception.kind.name())
    }
}

macro_rules! outcomes {
    ($($error:ident { $($exception:ident),* })*) => {$(
        impl From<$error> for Outcome {
            fn from(error: $error) -> Self {
                match error {
                    $($error::$exception(exception) => outcomes!(@ $exception exception),)*
                    $error::System(exception) => exception.into(),
                }
            }
        }
    )*};
    (@ NotFound $exception:ident) => { not_found(&$exception) };
    (@ CannotProceed $exception:ident) => {
        Self {
            text: format!("CannotProceed {}", path(&$exception.rest_of_name)),
            context: $exception.cxt,
        }
    };
    (@ $name:ident $exception:ident) => {{
        let _ = $exception;
        text(stringify!($name))
    }};
}

outcomes! {
    NamingContextBindError { NotFound, CannotProceed, InvalidName, AlreadyBound }
    NamingContextRebindError { NotFound, CannotProceed, InvalidName }
    NamingContextBindContextError { NotFound, CannotProceed, InvalidName, AlreadyBound }
    NamingContextRebindContextError { NotFound, CannotProceed, InvalidName }
    NamingContextResolveError { NotFound, CannotProceed, InvalidName }
    NamingContextUnbindError { NotFound, CannotProceed, InvalidName }
    NamingContextBindNewContextError { NotFound, CannotProceed, InvalidName, AlreadyBound }
    NamingContextDestroyError { NotEmpty }
}

fn not_found(exception: &NotFound) -> Outcome {
    let why = match exception.why {
        NotFoundReason::MissingNode => "missing_node",
        NotFoundReason::NotContext => "not_context",
        NotFoundReason::NotObject => "not_object",
    };
    Outcome {
        text: format!("{why} {}", path(&exception.rest_of_name)),
        context: None,
    }
}

fn path(name: &[NameComponent]) -> String {
    rtorb_services::naming::client::format_name(name)
}

fn text(text: &str) -> Outcome {
    Outcome {
        text: text.to_owned(),
        context: None,
    }
}
