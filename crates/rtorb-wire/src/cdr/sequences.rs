//! Sequences, arrays and pointers.

use super::{Decode, Encode, Reader, Writer};
use crate::{DecodeError, EncodeError};
use arrayvec::ArrayVec;

//= GIOP 1.2 §15.3.2.5
//# A sequence is the count of its elements, and the elements.
impl<T: Encode> Encode for [T] {
    #[inline]
    fn encode<'a>(&'a self, w: &mut Writer<'a>) -> Result<(), EncodeError> {
        w.count(self.len())?;
        T::encode_slice(self, w)
    }
}

impl<T: Encode> Encode for Vec<T> {
    #[inline]
    fn encode<'a>(&'a self, w: &mut Writer<'a>) -> Result<(), EncodeError> {
        self.as_slice().encode(w)
    }
}

impl<T: Decode> Decode for Vec<T> {
    const OCTETS_MIN: usize = 4;

    #[inline]
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let count = r.count(T::OCTETS_MIN)?;
        // Recursive types nest through sequences, so this bounds their depth.
        r.nested(|r| {
            let mut items = Self::new();
            T::decode_into(&mut items, count, r)?;
            Ok(items)
        })
    }
}

//= GIOP 1.2 §15.3.2.4
//# An array is its elements, without a count; the last index of several varies fastest.
impl<T: Encode, const N: usize> Encode for [T; N] {
    #[inline]
    fn encode<'a>(&'a self, w: &mut Writer<'a>) -> Result<(), EncodeError> {
        T::encode_slice(self, w)
    }
}

impl<T: Decode, const N: usize> Decode for [T; N] {
    const OCTETS_MIN: usize = N * T::OCTETS_MIN;

    #[inline]
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut items = ArrayVec::<T, N>::new();
        while !items.is_full() {
            items.push(T::decode(r)?);
        }
        let Ok(items) = items.into_inner() else {
            unreachable!("the loop ends when it is full")
        };
        Ok(items)
    }
}

impl<T: Encode + ?Sized> Encode for &T {
    #[inline]
    fn encode<'a>(&'a self, w: &mut Writer<'a>) -> Result<(), EncodeError> {
        (**self).encode(w)
    }
}

impl<T: Encode + ?Sized> Encode for Box<T> {
    #[inline]
    fn encode<'a>(&'a self, w: &mut Writer<'a>) -> Result<(), EncodeError> {
        (**self).encode(w)
    }
}

impl<T: Decode> Decode for Box<T> {
    const OCTETS_MIN: usize = T::OCTETS_MIN;

    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        r.nested(|r| T::decode(r).map(Self::new))
    }
}

impl Encode for () {
    fn encode<'a>(&'a self, _: &mut Writer<'a>) -> Result<(), EncodeError> {
        Ok(())
    }
}

impl Decode for () {
    const OCTETS_MIN: usize = 0;

    fn decode(_: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(())
    }
}
