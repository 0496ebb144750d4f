//! Support API for generated code. Not public.
//!
//! `docs/reference/mapping.md` shows the generated code.

pub use crate::connection::ServantTraits;
pub use crate::exception::SystemException;
pub use crate::interface::{Base, Content, Interface, UserException, narrow};
pub use crate::poa::{ServedBy, unknown_operation};
pub use crate::reference::ObjectRef;
pub use crate::server::ServerCall;
pub use crate::timing::{Criticality, OperationTiming};
pub use rtorb_os::set_once::SetOnce;
pub use rtorb_wire::codegen::*;

mod macros;
pub use macros::{base, generated, inherits, one_of_values, operation_error, reference, upcasts};

/// Gives a type a TypeCode, which is made once: the TypeCode of a type that contains another one twice shares the other's.
#[macro_export]
#[doc(hidden)]
macro_rules! typed {
    ($name:ident = $type_code:expr) => {
        impl $crate::codegen::Typed for $name {
            fn type_code() -> $crate::codegen::TypeCode {
                static TYPE_CODE: $crate::codegen::SetOnce<$crate::codegen::TypeCode> =
                    $crate::codegen::SetOnce::new();
                ::core::clone::Clone::clone(TYPE_CODE.get_or_make(|| $type_code))
            }
        }
    };
}
pub use crate::typed;
