//! Object references as values: an IOR on the wire, whatever the ORB makes of it in memory.

use super::{Decode, Encode, Reader, Writer};
use crate::{DecodeError, EncodeError};

/// Something that can be sent as an object reference; its `Option` is what goes on the wire, `None` as the nil reference.
pub trait ReferenceOut {
    /// Writes the reference's IOR.
    ///
    /// # Errors
    /// When the message would outgrow its limit.
    fn encode_ior<'a>(&'a self, w: &mut Writer<'a>) -> Result<(), EncodeError>;
}

/// A type that stands for an object.
pub trait Reference: ReferenceOut + Sized {
    /// Reads an IOR; `None` if it is nil.
    ///
    /// # Errors
    /// When the octets are no IOR.
    fn decode_ior(r: &mut Reader<'_>) -> Result<Option<Self>, DecodeError>;
}

impl<T: ReferenceOut> ReferenceOut for &T {
    fn encode_ior<'a>(&'a self, w: &mut Writer<'a>) -> Result<(), EncodeError> {
        (**self).encode_ior(w)
    }
}

impl<T: ReferenceOut> Encode for Option<T> {
    fn encode<'a>(&'a self, w: &mut Writer<'a>) -> Result<(), EncodeError> {
        match self {
            Some(reference) => reference.encode_ior(w),
            None => {
                // A nil reference: an empty type id and no profiles.
                w.primitive(1u32)?;
                w.primitive(0u8)?;
                w.primitive(0u32)
            }
        }
    }
}

impl<T: Reference> Decode for Option<T> {
    const OCTETS_MIN: usize = 9;

    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        T::decode_ior(r)
    }
}
