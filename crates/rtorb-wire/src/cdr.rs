//! Common Data Representation: values as bytes (GIOP 1.2 §15.3).
//!
//! [`Writer`] and [`Reader`] keep the position and the byte order. [`Encode`] and [`Decode`] are implemented by types that
//! use them; [`FixedLayout`] is faster, for types whose values always have the same layout.

/// Implements what readers and writers have in common: the form of the stream.
macro_rules! stream_form {
    ($stream:ident) => {
        impl $stream<'_> {
            /// Sets the minor GIOP version, which determines the form of wide characters.
            #[must_use]
            pub fn with_giop_minor(mut self, minor: u8) -> Self {
                self.minor = minor;
                self
            }

            /// Sets the transmission code set of `char` and `string`.
            #[must_use]
            pub fn with_char_code_set(mut self, set: CharCodeSet) -> Self {
                self.char_code_set = set;
                self
            }

            /// The byte order of the stream.
            #[inline]
            pub fn order(&self) -> ByteOrder {
                self.order
            }

            /// The minor GIOP version of the stream.
            pub fn giop_minor(&self) -> u8 {
                self.minor
            }

            /// The transmission code set of `char` and `string`.
            pub fn char_code_set(&self) -> CharCodeSet {
                self.char_code_set
            }
        }
    };
}

mod bits;
mod bounded;
mod context;
mod decimal;
mod fixed_layout;
mod long_double;
pub mod optional;
mod primitives;
mod reader;
mod reference;
mod structure;
mod text;
mod types;
mod value;
mod wide;
mod writer;

use alloc::vec::Vec;

/// The next multiple of `N`, a power of two, from `at` on. `next_multiple_of` costs three instructions more.
#[inline(always)]
pub(crate) const fn aligned<const N: usize>(at: usize) -> usize {
    (at + (N - 1)) & !(N - 1)
}

pub use bits::{BitField, OverWidth, bit_field, fmt_flags, with_bit_field};
pub use bounded::{BoundedMap, BoundedSequence, BoundedString, BoundedWString, OverBound};
pub use context::ContextValues;
pub(crate) use decimal::DIGITS_MAX;
pub use decimal::Fixed;
pub use fixed_layout::{FixedLayout, Form};
pub use long_double::LongDouble;
pub use primitives::Primitive;
pub(crate) use reader::DEPTH_MAX;
pub(crate) use reader::decode_encapsulated;
pub use reader::{Reader, Remainder};
pub use reference::{Reference, ReferenceOut};
pub(crate) use structure::cdr_struct;
pub use text::{CharCodeSet, UnknownCodeSet};
pub use value::{Chunk, ValueHead, ValueStart};
pub use wide::{WChar, WString};
pub use writer::{GATHER_BYTES_MIN, Segment, Segments, Writer};
pub(crate) use writer::{SLACK_BYTES, encapsulate};

pub use crate::{DecodeError, EncodeError};

/// The byte order of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ByteOrder {
    /// Most significant byte first.
    Big,
    /// Least significant byte first.
    Little,
}

impl ByteOrder {
    /// The byte order of this machine.
    pub const NATIVE: Self = if cfg!(target_endian = "big") {
        Self::Big
    } else {
        Self::Little
    };

    /// The byte order of a header's flags (bit 0), or of an encapsulation's first byte.
    pub const fn from_flag(flags: u8) -> Self {
        if flags & 1 == 0 {
            Self::Big
        } else {
            Self::Little
        }
    }

    /// The flag on the wire: 0 for big-endian, 1 for little-endian.
    pub const fn flag(self) -> u8 {
        matches!(self, Self::Little) as u8
    }

    /// Converts a number from this machine's byte order to this one, or back.
    #[inline(always)]
    pub(crate) fn convert<T: Primitive>(self, value: T) -> T {
        if self.is_foreign() {
            value.swapped()
        } else {
            value
        }
    }

    /// True if this is not the byte order of this machine, so that numbers must be swapped.
    pub const fn is_foreign(self) -> bool {
        self.flag() != Self::NATIVE.flag()
    }
}

/// A value that can be written into a message.
pub trait Encode {
    /// Writes the value at the writer's position.
    ///
    /// The message may borrow large runs of bytes from the value for `'a` instead of copying them.
    ///
    /// # Errors
    /// When the value cannot be represented or the message would outgrow its limit.
    fn encode<'a>(&'a self, w: &mut Writer<'a>) -> Result<(), EncodeError>;

    /// Writes the elements of a sequence or array, without a count.
    ///
    /// # Errors
    /// As [`encode`](Self::encode).
    fn encode_slice<'a>(items: &'a [Self], w: &mut Writer<'a>) -> Result<(), EncodeError>
    where
        Self: Sized,
    {
        items.iter().try_for_each(|item| item.encode(w))
    }
}

/// The most bytes of memory that are reserved for each byte left of a message. A string of no characters has six.
const MEMORY_PER_BYTE: usize = 8;

/// A value that can be read from a message.
pub trait Decode: Sized {
    /// The fewest bytes of a value. A count is checked with it before memory is reserved.
    const BYTES_MIN: usize;

    /// Reads a value at the reader's position.
    ///
    /// # Errors
    /// When the bytes are not such a value.
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError>;

    /// Reads the elements of a sequence, whose count is read and checked, and appends them to `into`.
    ///
    /// # Errors
    /// As [`decode`](Self::decode).
    fn decode_into(
        into: &mut Vec<Self>,
        count: usize,
        r: &mut Reader<'_>,
    ) -> Result<(), DecodeError> {
        // The count was checked against the fewest bytes of a value. A union or an optional member takes more than that in memory.
        let is_large = size_of::<Self>() > MEMORY_PER_BYTE * Self::BYTES_MIN.max(1);
        into.reserve(if is_large {
            count.min(r.remaining() / (size_of::<Self>() / MEMORY_PER_BYTE))
        } else {
            count
        });
        for _ in 0..count {
            into.push(Self::decode(r)?);
        }
        Ok(())
    }
}
