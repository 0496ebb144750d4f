//! Optional members. CDR has none: they have the form of a sequence of at most one element.

use super::{Decode, Encode, OverBound, Reader, Writer};
use crate::{DecodeError, EncodeError};

/// The fewest bytes of an optional member.
pub const BYTES_MIN: usize = 4;

/// Writes an optional member.
///
/// # Errors
/// Those of the value, and when the message would exceed its limit.
pub fn encode<'a, T: Encode>(value: &'a Option<T>, w: &mut Writer<'a>) -> Result<(), EncodeError> {
    value.as_slice().encode(w)
}

/// Reads an optional member.
///
/// # Errors
/// Those of the value, and for more than one element.
pub fn decode<T: Decode>(r: &mut Reader<'_>) -> Result<Option<T>, DecodeError> {
    match r.count(T::BYTES_MIN)? {
        0 => Ok(None),
        // Recursive types nest through optional members, so this bounds their depth.
        1 => r.nested(T::decode).map(Some),
        count => Err(OverBound { count, bound: 1 }.into()),
    }
}
