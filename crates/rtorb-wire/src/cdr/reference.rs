//! Types that may be nil: enums of valuetypes, and object references, which are an IOR on the wire and a type of the ORB in memory.

use super::{Decode, Encode, Reader, Writer};
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
    const BYTES_MIN: usize = 9;

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
    const BYTES_MIN: usize = <T as Reference>::BYTES_MIN;

    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        T::decode_ior(r)
    }
}
