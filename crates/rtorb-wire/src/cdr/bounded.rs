//! Strings and sequences with an IDL bound.

use super::{Decode, Encode, Reader, WString, Writer};
use crate::{DecodeError, EncodeError};
use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Deref;

/// There are more elements or characters than the bound of the type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{count} elements or characters are more than the bound {bound}")]
pub struct OverBound {
    /// The number given.
    pub count: usize,
    /// The bound.
    pub bound: usize,
}

impl From<OverBound> for DecodeError {
    fn from(over: OverBound) -> Self {
        Self::OverBound {
            count: over.count,
            bound: over.bound,
        }
    }
}

macro_rules! bounded {
    ($(#[$doc:meta])* $name:ident<$($T:ident),*>($inner:ty), $target:ty, $length:expr) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name<$($T,)* const N: usize>($inner);

        impl<$($T,)* const N: usize> $name<$($T,)* N> {
            /// The bound.
            pub const BOUND: usize = N;

            /// The value, without the bound.
            pub fn into_inner(self) -> $inner {
                self.0
            }
        }

        impl<$($T,)* const N: usize> TryFrom<$inner> for $name<$($T,)* N> {
            type Error = OverBound;
            fn try_from(value: $inner) -> Result<Self, OverBound> {
                let length: fn(&$inner) -> usize = $length;
                let count = length(&value);
                if count > N { Err(OverBound { count, bound: N }) } else { Ok(Self(value)) }
            }
        }

        impl<$($T,)* const N: usize> Deref for $name<$($T,)* N> {
            type Target = $target;
            fn deref(&self) -> &$target {
                &self.0
            }
        }

        impl<$($T,)* const N: usize> Encode for $name<$($T,)* N>
        where
            $inner: Encode,
        {
            fn encode<'a>(&'a self, w: &mut Writer<'a>) -> Result<(), EncodeError> {
                self.0.encode(w)
            }
        }

        impl<$($T,)* const N: usize> Decode for $name<$($T,)* N>
        where
            $inner: Decode,
        {
            const BYTES_MIN: usize = 4;

            fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
                Ok(Self::try_from(<$inner>::decode(r)?)?)
            }
        }
    };
}

bounded! {
    /// `string<N>`: at most `N` characters.
    BoundedString<>(String), str, |text| text.chars().count()
}
bounded! {
    /// `wstring<N>`: at most `N` characters.
    BoundedWString<>(WString), WString, |text| text.chars().count()
}
bounded! {
    /// `sequence<T, N>`: at most `N` elements.
    BoundedSequence<T>(Vec<T>), [T], Vec::len
}
bounded! {
    /// `map<K, V, N>`: at most `N` pairs.
    BoundedMap<K, V>(BTreeMap<K, V>), BTreeMap<K, V>, BTreeMap::len
}

impl<const N: usize> TryFrom<&str> for BoundedString<N> {
    type Error = OverBound;
    fn try_from(text: &str) -> Result<Self, OverBound> {
        text.to_owned().try_into()
    }
}
