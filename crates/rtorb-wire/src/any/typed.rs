//! The IDL types of Rust types.

use super::Any;
use crate::cdr::{
    BoundedSequence, BoundedString, BoundedWString, Fixed, LongDouble, Reference, WChar, WString,
};
use crate::ior::Ior;
use crate::type_code::TypeCode;

/// A Rust type with an IDL type, so that an [`Any`] can contain its values.
pub trait Typed {
    /// The IDL type.
    fn type_code() -> TypeCode;
}

macro_rules! typed {
    ($($type:ty = $type_code:expr;)*) => {$(
        impl Typed for $type {
            fn type_code() -> TypeCode {
                $type_code
            }
        }
    )*};
}

typed! {
    () = TypeCode::VOID;
    u8 = TypeCode::OCTET;
    // GIOP has no kind for int8 of IDL 4; its values have the form of an octet.
    i8 = TypeCode::OCTET;
    i16 = TypeCode::SHORT;
    u16 = TypeCode::USHORT;
    i32 = TypeCode::LONG;
    u32 = TypeCode::ULONG;
    i64 = TypeCode::LONG_LONG;
    u64 = TypeCode::ULONG_LONG;
    f32 = TypeCode::FLOAT;
    f64 = TypeCode::DOUBLE;
    bool = TypeCode::BOOLEAN;
    char = TypeCode::CHAR;
    LongDouble = TypeCode::LONG_DOUBLE;
    WChar = TypeCode::WCHAR;
    str = TypeCode::STRING;
    String = TypeCode::STRING;
    WString = TypeCode::WSTRING;
    Any = TypeCode::ANY;
    TypeCode = TypeCode::TYPE_CODE;
    Ior = TypeCode::object_reference("IDL:omg.org/CORBA/Object:1.0", "Object");
}

impl<T: Typed> Typed for [T] {
    fn type_code() -> TypeCode {
        TypeCode::sequence(T::type_code(), 0)
    }
}

impl<T: Typed> Typed for Vec<T> {
    fn type_code() -> TypeCode {
        TypeCode::sequence(T::type_code(), 0)
    }
}

impl<T: Typed, const N: usize> Typed for [T; N] {
    fn type_code() -> TypeCode {
        TypeCode::array(T::type_code(), bound::<N>())
    }
}

impl<T: Typed, const N: usize> Typed for BoundedSequence<T, N> {
    fn type_code() -> TypeCode {
        TypeCode::sequence(T::type_code(), bound::<N>())
    }
}

impl<const N: usize> Typed for BoundedString<N> {
    fn type_code() -> TypeCode {
        TypeCode::string(bound::<N>())
    }
}

impl<const N: usize> Typed for BoundedWString<N> {
    fn type_code() -> TypeCode {
        TypeCode::wstring(bound::<N>())
    }
}

impl<const DIGITS: u16, const SCALE: u16> Typed for Fixed<DIGITS, SCALE> {
    fn type_code() -> TypeCode {
        TypeCode::fixed(DIGITS, SCALE as i16)
    }
}

impl<T: Typed + ?Sized> Typed for &T {
    fn type_code() -> TypeCode {
        T::type_code()
    }
}

impl<T: Typed + ?Sized> Typed for Box<T> {
    fn type_code() -> TypeCode {
        T::type_code()
    }
}

/// An object reference or nil. Its type is the interface.
impl<T: Typed + Reference> Typed for Option<T> {
    fn type_code() -> TypeCode {
        T::type_code()
    }
}

/// IDL bounds are unsigned longs.
const fn bound<const N: usize>() -> u32 {
    assert!(N <= u32::MAX as usize, "IDL has no such bound");
    N as u32
}
