//! Which object a request is for, in the three forms that GIOP 1.2 allows.

use super::service_context::write_octets;
use crate::ior::{self, Ior};
use crate::{Decode, DecodeError, EncodeError, Reader, Writer};

/// The address of a request's object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target<'m> {
    /// Its key: what clients send first, and the only form before GIOP 1.2.
    Key(&'m [u8]),
    /// A profile of its reference.
    Profile {
        /// The profile's tag.
        tag: u32,
        /// The profile's encapsulation.
        data: &'m [u8],
    },
    /// Its whole reference.
    Reference {
        /// Index of the profile that the client chose.
        selected: u32,
        /// The reference.
        ior: Ior,
    },
}

/// `KeyAddr`, `ProfileAddr`, `ReferenceAddr`.
const KEY: u16 = 0;
const PROFILE: u16 = 1;
const REFERENCE: u16 = 2;

impl<'m> Target<'m> {
    /// The object's key, wherever it stands.
    ///
    /// # Errors
    /// When the profile is of a kind without a known key, is malformed, or is not in the reference.
    #[inline]
    pub fn object_key(&self) -> Result<&[u8], DecodeError> {
        match self {
            Self::Key(key) => Ok(key),
            Self::Profile { tag, data } => ior::object_key(*tag, data),
            Self::Reference { selected, ior } => {
                let profile = ior.profiles.get(*selected as usize);
                let profile = profile.ok_or(DecodeError::BadTag {
                    what: "the selected profile",
                    value: *selected,
                })?;
                ior::object_key(profile.tag, &profile.data)
            }
        }
    }

    /// Reads a target address of GIOP 1.2, or a key of the versions before.
    #[inline]
    pub(super) fn decode(r: &mut Reader<'m>) -> Result<Self, DecodeError> {
        if r.giop_minor() < 2 {
            return r.octets().map(Self::Key);
        }
        match r.primitive::<u16>()? {
            KEY => r.octets().map(Self::Key),
            PROFILE => Ok(Self::Profile {
                tag: r.primitive()?,
                data: r.octets()?,
            }),
            REFERENCE => Ok(Self::Reference {
                selected: r.primitive()?,
                ior: Ior::decode(r)?,
            }),
            value => Err(DecodeError::BadTag {
                what: "the form of a target address",
                value: u32::from(value),
            }),
        }
    }

    /// Writes a key, with its disposition where the version has one.
    #[inline]
    pub(super) fn encode_key(w: &mut Writer<'_>, key: &[u8]) -> Result<(), EncodeError> {
        if w.giop_minor() >= 2 {
            w.primitive(KEY)?;
        }
        write_octets(w, key)
    }
}
