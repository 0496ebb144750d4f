//! Support API for generated code. Not public.
//!
//! `docs/mapping.md` shows the generated code.

pub use crate::exception::SystemException;
pub use crate::interface::{Interface, UserException, narrow};
pub use crate::poa::{OperationTable, ServedBy, unknown_operation};
pub use crate::reference::ObjectRef;
pub use crate::server::ServerCall;
pub use crate::timing::{Criticality, OperationTiming};
pub use rtorb_wire::any::{Any, Typed, Value};
pub use rtorb_wire::cdr::{
    BoundedSequence, BoundedString, BoundedWString, Fixed, LongDouble, OverBound, Reference,
    ReferenceOut, WChar, WString,
};
pub use rtorb_wire::type_code::{self, TypeCode};
pub use rtorb_wire::valuetype::{self, ValueType};
pub use rtorb_wire::{Decode, DecodeError, Encode, EncodeError, FixedLayout, Reader, Writer};
pub use rtorb_wire::{cdr_enum, fixed_layout};

/// Encloses the items of a file generated from IDL, and silences the lints of the surrounding crate for them.
///
/// `#![allow]` is not possible, because `include!` reads the file.
#[macro_export]
#[doc(hidden)]
macro_rules! generated {
    ($($item:item)*) => {$(
        #[allow(
            dead_code,
            missing_docs,
            nonstandard_style,
            unreachable_pub,
            unused_qualifications,
            unused_results,
            unused_variables,
            clippy::all,
            clippy::nursery,
            clippy::pedantic,
            clippy::restriction,
            rustdoc::all
        )]
        $item
    )*};
}
pub use crate::generated;

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

/// Lets `Option` of a reference type go over the wire.
#[macro_export]
#[doc(hidden)]
macro_rules! reference_cdr {
    ($name:ident) => {
        impl $crate::codegen::ReferenceOut for $name {
            fn encode_ior<'a>(
                &'a self,
                w: &mut $crate::codegen::Writer<'a>,
            ) -> ::core::result::Result<(), $crate::codegen::EncodeError> {
                $crate::codegen::ReferenceOut::encode_ior(
                    $crate::codegen::Interface::as_object(self),
                    w,
                )
            }
        }

        impl $crate::codegen::Reference for $name {
            fn decode_ior(
                r: &mut $crate::codegen::Reader<'_>,
            ) -> ::core::result::Result<::core::option::Option<Self>, $crate::codegen::DecodeError>
            {
                let object =
                    <$crate::codegen::ObjectRef as $crate::codegen::Reference>::decode_ior(r)?;
                ::core::result::Result::Ok(
                    object.map(<Self as $crate::codegen::Interface>::unchecked_narrow),
                )
            }
        }
    };
}
pub use crate::reference_cdr;
