//! Target addresses: the object of a request, in the three forms of GIOP 1.2.

use crate::ior::{self, Ior, TaggedProfile};
use crate::{Decode, DecodeError, EncodeError, Reader, Writer};

/// The address of the object of a request.
//= GIOP 1.2 §15.4.2.1
//# A GIOP 1.2 client addresses an object by its key, by a profile or by its reference, and a server accepts all three.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target<'m> {
    /// The object key: the form that this ORB sends, and the only form before GIOP 1.2.
    Key(&'m [u8]),
    /// A profile of the reference.
    Profile {
        /// The tag of the profile.
        tag: u32,
        /// The encapsulation of the profile.
        data: &'m [u8],
    },
    /// The whole reference.
    Reference {
        /// The index of the profile that the client uses.
        selected: u32,
        /// The reference.
        ior: Ior,
    },
}

/// A target address of GIOP 1.2 to send, other than the object key.
#[derive(Clone, Copy, Debug)]
pub enum Address<'x> {
    /// A profile of the reference.
    Profile(&'x TaggedProfile),
    /// The whole reference.
    Reference {
        /// The index of the profile that leads to the server.
        selected: u32,
        /// The reference.
        ior: &'x Ior,
    },
}

impl Address<'_> {
    pub(super) fn encode(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        match self {
            Self::Profile(profile) => {
                w.primitive(PROFILE)?;
                w.primitive(profile.tag)?;
                w.counted_bytes(&profile.data)
            }
            Self::Reference { selected, ior } => {
                w.primitive(REFERENCE)?;
                w.primitive(*selected)?;
                ior.write(w)
            }
        }
    }
}

/// A form of target address that a server may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressingMode {
    /// The object key (`KeyAddr`).
    Key,
    /// A profile of the reference (`ProfileAddr`).
    Profile,
    /// The whole reference (`ReferenceAddr`).
    Reference,
}

impl AddressingMode {
    /// Decodes the body of a reply of the status `NeedsAddressingMode`.
    //= GIOP 1.2 §15.4.3.2
    //# NEEDS_ADDRESSING_MODE has the form of target address as its body, and the client sends the request again with that form.
    #[cold]
    pub(crate) fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match r.primitive::<u16>()? {
            KEY => Ok(Self::Key),
            PROFILE => Ok(Self::Profile),
            REFERENCE => Ok(Self::Reference),
            value => Err(bad_form(value)),
        }
    }
}

/// `KeyAddr`, `ProfileAddr`, `ReferenceAddr`.
const KEY: u16 = 0;
const PROFILE: u16 = 1;
const REFERENCE: u16 = 2;

const fn bad_form(value: u16) -> DecodeError {
    DecodeError::bad_tag("the form of a target address", value as u32)
}

impl<'m> Target<'m> {
    /// The object key of any form.
    ///
    /// # Errors
    /// When the kind of the profile is unknown, it is malformed, or it is not in the reference.
    #[inline]
    pub fn object_key(&self) -> Result<&[u8], DecodeError> {
        match self {
            Self::Key(key) => Ok(key),
            Self::Profile { tag, data } => ior::object_key(*tag, data),
            Self::Reference { selected, ior } => {
                let profile = ior.profiles.get(*selected as usize);
                let profile =
                    profile.ok_or(DecodeError::bad_tag("the selected profile", *selected))?;
                ior::object_key(profile.tag, &profile.data)
            }
        }
    }

    /// Decodes a target address of GIOP 1.2, or an object key of earlier versions.
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
            value => Err(bad_form(value)),
        }
    }

    /// Writes an object key, in GIOP 1.2 with its disposition.
    #[inline]
    pub(super) fn encode_key(w: &mut Writer<'_>, key: &[u8]) -> Result<(), EncodeError> {
        if w.giop_minor() >= 2 {
            w.primitive(KEY)?;
        }
        w.counted_bytes(key)
    }
}
