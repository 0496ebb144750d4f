//! The items of this crate that generated code uses. The ORBs re-export them.

pub use alloc::collections::BTreeMap;
pub use alloc::string::String;
pub use alloc::sync::Arc;
pub use alloc::vec::Vec;

pub use crate::any::{Any, Typed, Value, map_type_code};
pub use crate::cdr::{
    BoundedMap, BoundedSequence, BoundedString, BoundedWString, ContextValues, Fixed, LongDouble,
    OverBound, OverWidth, Reference, ReferenceOut, WChar, WString, optional,
};
pub use crate::operation_table::OperationTable;
pub use crate::type_code::{self, TypeCode};
pub use crate::valuetype::{self, Candidate, ValueType, read_abstract_head, write_abstract_head};
pub use crate::{Decode, DecodeError, Encode, EncodeError, FixedLayout, Reader, Writer};
pub use crate::{bitmask, bitset, cdr_enum, fixed_layout};

/// Encodes an argument that may have text. An error about a character names its position in the request, from 1.
///
/// # Errors
/// As [`Encode::encode`].
#[inline]
pub fn encode_argument<'a, T: Encode + ?Sized>(
    position: u8,
    value: &'a T,
    w: &mut Writer<'a>,
) -> Result<(), EncodeError> {
    value.encode(w).map_err(|error| error.in_argument(position))
}
