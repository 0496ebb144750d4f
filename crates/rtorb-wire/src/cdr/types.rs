//! The CDR form of Rust's types: numbers are in `primitives`, structs and enums have macros.

use super::{Decode, Encode, Fixed, LongDouble, Reader, WChar, WString, Writer};
use crate::{DecodeError, EncodeError};
use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use arrayvec::ArrayVec;

/// Implements [`Encode`]. The parameters of a generic type stand in brackets behind `where`.
macro_rules! encode {
    ($($(where [$($parameters:tt)*])? $type:ty: |$value:pat_param, $w:pat_param| $write:expr;)*) => {$(
        impl$(<$($parameters)*>)? Encode for $type {
            #[inline]
            fn encode<'a>(&'a self, $w: &mut Writer<'a>) -> Result<(), EncodeError> {
                let $value = self;
                $write
            }
        }
    )*};
}

/// Implements [`Decode`] from the fewest bytes of a value and an expression that reads one.
macro_rules! decode {
    ($($(where [$($parameters:tt)*])? $type:ty, $bytes_min:expr, |$r:pat_param| $read:expr;)*) => {$(
        impl$(<$($parameters)*>)? Decode for $type {
            const BYTES_MIN: usize = $bytes_min;

            #[inline]
            fn decode($r: &mut Reader<'_>) -> Result<Self, DecodeError> {
                $read
            }
        }
    )*};
}

encode! {
    (): |_, _| Ok(());
    char: |value, w| w.char(*value);
    str: |value, w| w.str(value);
    String: |value, w| w.str(value);
    WChar: |value, w| w.wide_char(*value);
    WString: |value, w| w.wide_str(value);
    LongDouble: |value, w| w.long_double(*value);
    where [const DIGITS: u16, const SCALE: u16] Fixed<DIGITS, SCALE>:
        |value, w| w.fixed_decimal(value.unscaled(), DIGITS);
    where [T: Encode + ?Sized] &T: |value, w| (**value).encode(w);
    where [T: Encode + ?Sized] Box<T>: |value, w| (**value).encode(w);
    //= GIOP 1.2 §15.3.2.4
    //# An array is its elements, without a count; the last index of several varies fastest.
    where [T: Encode, const N: usize] [T; N]: |value, w| T::encode_slice(value, w);
    //= GIOP 1.2 §15.3.2.5
    //# A sequence is the count of its elements, and the elements.
    where [T: Encode] [T]: |value, w| {
        w.count(value.len())?;
        T::encode_slice(value, w)
    };
    where [T: Encode] Vec<T>: |value, w| value.as_slice().encode(w);
    // GIOP has no maps. This is the form of a sequence of structs of a key and a value.
    where [K: Encode, V: Encode] BTreeMap<K, V>: |map, w| {
        w.count(map.len())?;
        map.iter().try_for_each(|(key, value)| {
            key.encode(w)?;
            value.encode(w)
        })
    };
}

decode! {
    (), 0, |_| Ok(());
    char, 1, |r| r.char();
    // A length of 0 is accepted, so a string may consist of its length alone.
    String, 4, |r| r.str().map(Cow::into_owned);
    WChar, 2, |r| r.wide_char();
    WString, 4, |r| r.wide_str();
    LongDouble, 16, |r| r.long_double();
    where [T: Decode] Box<T>, T::BYTES_MIN, |r| r.nested(|r| T::decode(r).map(Self::new));
    where [T: Decode, const N: usize] [T; N], N * T::BYTES_MIN, |r| array_of(|| T::decode(r));
    where [K: Decode + Ord, V: Decode] BTreeMap<K, V>, 4, |r| {
        let count = r.count(K::BYTES_MIN + V::BYTES_MIN)?;
        r.nested(|r| {
            let mut map = Self::new();
            for _ in 0..count {
                let key = K::decode(r)?;
                if map.insert(key, V::decode(r)?).is_some() {
                    return Err(DecodeError::KeyTwice);
                }
            }
            Ok(map)
        })
    };
    where [T: Decode] Vec<T>, 4, |r| {
        let count = r.count(T::BYTES_MIN)?;
        // Recursive types nest through sequences, so this bounds their depth.
        r.nested(|r| {
            let mut items = Self::new();
            T::decode_into(&mut items, count, r)?;
            Ok(items)
        })
    };
}

/// An array of the next `N` items.
#[inline(always)]
pub(super) fn array_of<T, const N: usize>(
    mut next: impl FnMut() -> Result<T, DecodeError>,
) -> Result<[T; N], DecodeError> {
    let mut items = ArrayVec::new();
    while !items.is_full() {
        items.push(next()?);
    }
    let Ok(items) = items.into_inner() else {
        unreachable!("the loop ends when it is full")
    };
    Ok(items)
}
