//! Object references as values: an IOR on the wire, and a type of the ORB in memory.

use super::{Decode, Encode, Reader, ValueHead, Writer};
use crate::type_code::Kind;
use crate::{DecodeError, EncodeError};

/// A type that can be sent as an object reference. `None` of its `Option` is the nil reference.
pub trait ReferenceOut {
    /// Writes the reference's IOR.
    ///
    /// # Errors
    /// When the message would exceed its limit.
    fn encode_ior<'a>(&'a self, w: &mut Writer<'a>) -> Result<(), EncodeError>;

    /// Writes the nil reference.
    ///
    /// # Errors
    /// When the message would exceed its limit.
    //= GIOP 1.2 §15.3.6
    //# The nil reference is an IOR with an empty type id and no profiles.
    fn encode_nil(w: &mut Writer<'_>) -> Result<(), EncodeError> {
        w.primitive(1u32)?;
        w.primitive(0u8)?;
        w.primitive(0u32)
    }
}

/// A type that can be received as an object reference.
pub trait Reference: ReferenceOut + Sized {
    /// The fewest bytes of a reference.
    const OCTETS_MIN: usize = 9;

    /// Reads an IOR; `None` if it is nil.
    ///
    /// # Errors
    /// When the bytes are not an IOR.
    fn decode_ior(r: &mut Reader<'_>) -> Result<Option<Self>, DecodeError>;
}

impl<T: ReferenceOut> ReferenceOut for &T {
    fn encode_ior<'a>(&'a self, w: &mut Writer<'a>) -> Result<(), EncodeError> {
        (**self).encode_ior(w)
    }

    fn encode_nil(w: &mut Writer<'_>) -> Result<(), EncodeError> {
        T::encode_nil(w)
    }
}

impl<T: ReferenceOut> Encode for Option<T> {
    fn encode<'a>(&'a self, w: &mut Writer<'a>) -> Result<(), EncodeError> {
        match self {
            Some(reference) => reference.encode_ior(w),
            None => T::encode_nil(w),
        }
    }
}

impl<T: Reference> Decode for Option<T> {
    const OCTETS_MIN: usize = <T as Reference>::OCTETS_MIN;

    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        T::decode_ior(r)
    }
}

/// Writes the head of an abstract interface's reference; if `is_nil`, all of it.
///
/// # Errors
/// When the message would exceed its limit.
//= GIOP 1.2 §15.3.7
//# An abstract interface is a boolean: true before an object reference, false before a value. Nil is the null value.
pub fn write_abstract_head(w: &mut Writer<'_>, is_nil: bool) -> Result<(), EncodeError> {
    w.primitive(u8::from(!is_nil))?;
    if is_nil { w.null_value() } else { Ok(()) }
}

/// Reads the head of an abstract interface's reference. Returns true if an object reference follows, false for nil.
///
/// # Errors
/// [`DecodeError::Unsupported`] for a value, or when the message ends.
pub fn read_abstract_head(r: &mut Reader<'_>) -> Result<bool, DecodeError> {
    if bool::decode(r)? {
        return Ok(true);
    }
    r.approach_value();
    match r.value_head()? {
        ValueHead::Null => Ok(false),
        ValueHead::Again { .. } | ValueHead::Value(_) => Err(DecodeError::Unsupported {
            kind: Kind::Value as u32,
        }),
    }
}
