//! Common Data Representation: how values become octets and octets values (CORBA 3, GIOP chapter, "CDR Transfer Syntax").
//!
//! [`Writer`] and [`Reader`] keep the position and the byte order, [`Encode`] and [`Decode`] say how a type uses them, and
//! [`FixedLayout`] is the short way for types whose octets are the same ones every time.

mod bounded;
mod decimal;
mod fixed_layout;
mod long_double;
mod primitives;
mod reader;
mod reference;
mod sequences;
mod structure;
mod text;
mod value;
mod wide;
mod writer;

pub use bounded::{BoundedSequence, BoundedString, BoundedWString, OverBound};
pub use decimal::Fixed;
pub use fixed_layout::{FixedLayout, Form};
pub use long_double::LongDouble;
pub use primitives::Primitive;
pub(crate) use reader::DEPTH_MAX;
pub use reader::{Reader, Remainder};
pub use reference::{Reference, ReferenceOut};
pub(crate) use structure::cdr_struct;
pub use text::CharCodeSet;
pub use value::{Chunk, ValueHead, ValueStart};
pub use wide::{WChar, WString};
pub(crate) use writer::encapsulate;
pub use writer::{GATHER_OCTETS_MIN, Segment, Segments, Writer};

use crate::{DecodeError, EncodeError};

/// The order of the octets of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ByteOrder {
    /// Most significant octet first.
    Big,
    /// Least significant octet first.
    Little,
}

impl ByteOrder {
    /// This machine's.
    pub const NATIVE: Self = if cfg!(target_endian = "big") {
        Self::Big
    } else {
        Self::Little
    };

    /// What bit 0 of a header's flags, or the first octet of an encapsulation, says.
    pub const fn from_flag(octet: u8) -> Self {
        if octet & 1 == 0 {
            Self::Big
        } else {
            Self::Little
        }
    }

    /// Bit 0 of the flags: 0 big, 1 little.
    pub const fn flag(self) -> u8 {
        matches!(self, Self::Little) as u8
    }

    /// True if octets have to change places between this machine and the wire.
    pub const fn is_foreign(self) -> bool {
        self.flag() != Self::NATIVE.flag()
    }
}

/// A value that can go into a message.
pub trait Encode {
    /// Writes the value at the writer's position.
    ///
    /// `'a` is how long the value is lent: a large run of octets may be gathered from where it is instead of copied.
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

/// A value that can come out of a message.
pub trait Decode: Sized {
    /// The fewest octets a value takes: a count is checked against what is left before anything is reserved.
    const OCTETS_MIN: usize;

    /// Reads a value at the reader's position.
    ///
    /// # Errors
    /// When the octets are not such a value.
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError>;

    /// Reads the elements of a sequence whose count is already read and checked, behind what `into` holds.
    ///
    /// # Errors
    /// As [`decode`](Self::decode).
    fn decode_into(
        into: &mut Vec<Self>,
        count: usize,
        r: &mut Reader<'_>,
    ) -> Result<(), DecodeError> {
        into.reserve(count);
        for _ in 0..count {
            into.push(Self::decode(r)?);
        }
        Ok(())
    }
}
