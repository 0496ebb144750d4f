//! Support API for generated code. Not public.
//!
//! It has the names that `rtorb::codegen` has, so that the IDL compiler's output serves both crates.

mod macros;
pub use macros::{generated, one_of_values, operation_error, reference, upcasts};

pub use crate::exception::SystemException;
pub use crate::interface::{Interface, UserException, narrow};
pub use crate::reference::ObjectRef;
pub use crate::server::{ServedBy, ServerCall, unknown_operation};
pub use crate::timing::{Criticality, OperationTiming};
pub use rtorb_wire::codegen::*;

/// Gives a reference type the policy of an untyped reference.
#[macro_export]
#[doc(hidden)]
macro_rules! policies {
    ($name:ident) => {
        impl $name {
            /// The same reference, whose calls carry that CORBA priority (0 to 32,767) to a server that declares
            /// CLIENT_PROPAGATED.
            #[must_use]
            pub fn with_priority(self, priority: i16) -> Self {
                Self(self.0.with_priority(priority))
            }
        }
    };
}
pub use crate::policies;

/// Gives a type a TypeCode, which is made each time that it is asked for: only an any needs it.
#[macro_export]
#[doc(hidden)]
macro_rules! typed {
    ($name:ident = $type_code:expr) => {
        impl $crate::codegen::Typed for $name {
            fn type_code() -> $crate::codegen::TypeCode {
                $type_code
            }
        }
    };
}
pub use crate::typed;
