//! The IDL types of Rust types.

use super::Any;
use crate::cdr::{
    BoundedMap, BoundedSequence, BoundedString, BoundedWString, Fixed, LongDouble, Reference,
    WChar, WString,
};
use crate::ior::Ior;
use crate::type_code::TypeCode;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

/// A Rust type with an IDL type, so that an [`Any`] can contain its values.
pub trait Typed {
    /// The IDL type.
    fn type_code() -> TypeCode;
}

/// Implements [`Typed`]. The parameters of a generic type stand in brackets behind `where`.
macro_rules! typed {
    ($($(where [$($parameters:tt)*])? $type:ty = $type_code:expr;)*) => {$(
        impl$(<$($parameters)*>)? Typed for $type {
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
    where [T: Typed] [T] = TypeCode::sequence(T::type_code(), 0);
    where [T: Typed] Vec<T> = TypeCode::sequence(T::type_code(), 0);
    where [T: Typed, const N: usize] [T; N] = TypeCode::array(T::type_code(), bound::<N>());
    where [T: Typed, const N: usize] BoundedSequence<T, N> =
        TypeCode::sequence(T::type_code(), bound::<N>());
    where [K: Typed, V: Typed] BTreeMap<K, V> = map_type_code(K::type_code(), V::type_code(), 0);
    where [K: Typed, V: Typed, const N: usize] BoundedMap<K, V, N> =
        map_type_code(K::type_code(), V::type_code(), bound::<N>());
    where [const N: usize] BoundedString<N> = TypeCode::string(bound::<N>());
    where [const N: usize] BoundedWString<N> = TypeCode::wstring(bound::<N>());
    where [const DIGITS: u16, const SCALE: u16] Fixed<DIGITS, SCALE> =
        TypeCode::fixed(DIGITS, SCALE as i16);
    where [T: Typed + ?Sized] &T = T::type_code();
    where [T: Typed + ?Sized] Box<T> = T::type_code();
    // An object reference or nil. Its type is the interface.
    where [T: Typed + Reference] Option<T> = T::type_code();
}

/// The TypeCode of a map of at most `bound` pairs; 0 for no bound. CORBA has no kind for maps: it is a sequence of pairs.
pub fn map_type_code(key: TypeCode, value: TypeCode, bound: u32) -> TypeCode {
    let pair = TypeCode::structure("", "", [("key", key), ("value", value)]);
    TypeCode::sequence(pair, bound)
}

/// IDL bounds are unsigned longs.
const fn bound<const N: usize>() -> u32 {
    assert!(N <= u32::MAX as usize, "IDL has no such bound");
    N as u32
}
