//! Support API for generated code. Not public.
//!
//! `docs/mapping.md` shows the generated code.

pub use crate::exception::SystemException;
pub use crate::interface::{Base, Content, Interface, UserException, narrow};
pub use crate::poa::{ServedBy, unknown_operation};
pub use crate::reference::ObjectRef;
pub use crate::server::ServerCall;
pub use crate::timing::{Criticality, OperationTiming};
pub use rtorb_wire::any::{Any, Typed, Value, map_type_code};
pub use rtorb_wire::cdr::{
    BoundedMap, BoundedSequence, BoundedString, BoundedWString, ContextValues, Fixed, LongDouble,
    OverBound, OverWidth, Reference, ReferenceOut, WChar, WString, optional,
};
pub use rtorb_wire::operation_table::{OperationTable, joined};
pub use rtorb_wire::type_code::{self, TypeCode};
pub use rtorb_wire::valuetype::{
    self, Candidate, ValueType, read_abstract_head, write_abstract_head,
};
pub use rtorb_wire::{Decode, DecodeError, Encode, EncodeError, FixedLayout, Reader, Writer};
pub use rtorb_wire::{bitmask, bitset, cdr_enum, fixed_layout};

mod macros;
pub use macros::{base, generated, inherits, one_of_values, operation_error, reference, upcasts};

/// Gives a type a TypeCode, which is made once: the TypeCode of a type that contains another one twice shares the other's.
#[macro_export]
#[doc(hidden)]
macro_rules! typed {
    ($name:ident = $type_code:expr) => {
        impl $crate::codegen::Typed for $name {
            fn type_code() -> $crate::codegen::TypeCode {
                static TYPE_CODE: ::std::sync::LazyLock<$crate::codegen::TypeCode> =
                    ::std::sync::LazyLock::new(|| $type_code);
                ::core::clone::Clone::clone(&*TYPE_CODE)
            }
        }
    };
}
pub use crate::typed;
