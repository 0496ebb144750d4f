//! Macros that generated code uses.

/// Encloses the items of a file generated from IDL, and silences the lints of the surrounding crate for them.
///
/// `#![allow]` is not possible, because `include!` reads the file.
#[macro_export]
#[doc(hidden)]
macro_rules! generated {
    ($($item:item)*) => {$(
        #[allow(
            dead_code,
            missing_copy_implementations,
            missing_debug_implementations,
            missing_docs,
            nonstandard_style,
            unreachable_pub,
            unused_qualifications,
            unused_results,
            unused_variables,
            variant_size_differences,
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

/// Gives a reference type the methods that all have, and lets `Option` of it go over the wire.
#[macro_export]
#[doc(hidden)]
macro_rules! reference {
    ($name:ident) => {
        $crate::reference!(@methods $name);

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
                    <<Self as $crate::codegen::Interface>::Object as $crate::codegen::Reference>::decode_ior(r)?;
                ::core::result::Result::Ok(
                    object.map(<Self as $crate::codegen::Interface>::unchecked_narrow),
                )
            }
        }
    };
    (@abstract $name:ident) => {
        $crate::reference!(@methods $name);

        impl $crate::codegen::ReferenceOut for $name {
            fn encode_ior<'a>(
                &'a self,
                w: &mut $crate::codegen::Writer<'a>,
            ) -> ::core::result::Result<(), $crate::codegen::EncodeError> {
                $crate::codegen::write_abstract_head(w, false)?;
                $crate::codegen::ReferenceOut::encode_ior(
                    $crate::codegen::Interface::as_object(self),
                    w,
                )
            }

            fn encode_nil(
                w: &mut $crate::codegen::Writer<'_>,
            ) -> ::core::result::Result<(), $crate::codegen::EncodeError> {
                $crate::codegen::write_abstract_head(w, true)
            }
        }

        impl $crate::codegen::Reference for $name {
            const BYTES_MIN: usize = 5;

            fn decode_ior(
                r: &mut $crate::codegen::Reader<'_>,
            ) -> ::core::result::Result<::core::option::Option<Self>, $crate::codegen::DecodeError>
            {
                if !$crate::codegen::read_abstract_head(r)? {
                    return ::core::result::Result::Ok(::core::option::Option::None);
                }
                let object =
                    <<Self as $crate::codegen::Interface>::Object as $crate::codegen::Reference>::decode_ior(r)?;
                ::core::result::Result::Ok(
                    object.map(<Self as $crate::codegen::Interface>::unchecked_narrow),
                )
            }
        }
    };
    (@methods $name:ident) => {
        impl $name {
            /// Returns `object` as a reference to this interface. Asks the object if the reference does not state its type.
            ///
            /// # Errors
            /// BAD_PARAM if the object has another interface; the exception of the call if the object cannot be asked.
            pub fn narrow(
                object: &<Self as $crate::codegen::Interface>::Object,
            ) -> ::core::result::Result<Self, $crate::codegen::SystemException> {
                $crate::codegen::narrow(object)
            }

            /// Returns `object` as a reference to this interface without a check. If the object has another interface, calls
            /// return BAD_OPERATION.
            pub fn unchecked_narrow(object: <Self as $crate::codegen::Interface>::Object) -> Self {
                <Self as $crate::codegen::Interface>::unchecked_narrow(object)
            }

            /// The reference without its type.
            pub fn as_object(&self) -> &<Self as $crate::codegen::Interface>::Object {
                $crate::codegen::Interface::as_object(self)
            }
        }
    };
}
pub use crate::reference;

/// Lets `Option` of an enum of valuetypes go over the wire: the form of an abstract valuetype and of `ValueBase`.
#[macro_export]
#[doc(hidden)]
macro_rules! one_of_values {
    ($name:ident: $($variant:ident($type:ty)),*) => {
        $(impl ::core::convert::From<$crate::codegen::Arc<$type>> for $name {
            fn from(value: $crate::codegen::Arc<$type>) -> Self {
                Self::$variant(value)
            }
        })*

        impl $crate::codegen::ReferenceOut for $name {
            fn encode_ior<'a>(
                &'a self,
                w: &mut $crate::codegen::Writer<'a>,
            ) -> ::core::result::Result<(), $crate::codegen::EncodeError> {
                match *self {
                    $(Self::$variant(ref value) => $crate::codegen::valuetype::write(
                        ::core::option::Option::Some(value),
                        w,
                    ),)*
                }
            }

            fn encode_nil(
                w: &mut $crate::codegen::Writer<'_>,
            ) -> ::core::result::Result<(), $crate::codegen::EncodeError> {
                w.null_value()
            }
        }

        impl $crate::codegen::Reference for $name {
            const BYTES_MIN: usize = 4;

            fn decode_ior(
                r: &mut $crate::codegen::Reader<'_>,
            ) -> ::core::result::Result<::core::option::Option<Self>, $crate::codegen::DecodeError>
            {
                $crate::codegen::valuetype::read_one_of(
                    &[$($crate::codegen::Candidate::of::<$type>()),*],
                    r,
                )
            }
        }
    };
}
pub use crate::one_of_values;

/// Converts a reference type to each of its bases.
#[macro_export]
#[doc(hidden)]
macro_rules! upcasts {
    ($name:ident: $($base:path),+) => {$(
        impl ::core::convert::From<$name> for $base {
            fn from(derived: $name) -> Self {
                <Self as $crate::codegen::Interface>::unchecked_narrow(derived.0)
            }
        }

        impl ::core::convert::From<&$name> for $base {
            fn from(derived: &$name) -> Self {
                let object = $crate::codegen::Interface::as_object(derived);
                <Self as $crate::codegen::Interface>::unchecked_narrow(::core::clone::Clone::clone(object))
            }
        }
    )+};
}
pub use crate::upcasts;

/// Makes the errors of an operation an error type with conversions.
#[macro_export]
#[doc(hidden)]
macro_rules! operation_error {
    ($name:ident: $($variant:ident($exception:ty)),+) => {
        impl ::core::convert::From<$crate::codegen::SystemException> for $name {
            fn from(exception: $crate::codegen::SystemException) -> Self {
                Self::System(exception)
            }
        }

        $(
            impl ::core::convert::From<$exception> for $name {
                fn from(exception: $exception) -> Self {
                    Self::$variant(exception)
                }
            }
        )+

        impl ::core::fmt::Display for $name {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                match self {
                    $(Self::$variant(exception) => ::core::fmt::Display::fmt(exception, f),)+
                    Self::System(exception) => ::core::fmt::Display::fmt(exception, f),
                }
            }
        }

        impl ::core::error::Error for $name {}
    };
}
pub use crate::operation_error;
