//! Profiles: the addresses of an object over TCP and over a UNIX socket.

use super::{TaggedComponent, TaggedProfile};
use crate::cdr::encapsulate;
use crate::version::Version;
use crate::{Decode, DecodeError, Encode, EncodeError, Reader, Writer};

/// Tags of profiles.
pub mod profile_tag {
    /// IIOP: GIOP over TCP.
    pub const INTERNET_IOP: u32 = 0;
    /// Components only.
    pub const MULTIPLE_COMPONENTS: u32 = 1;
    /// TAO's UIOP: GIOP over a UNIX stream socket.
    pub const TAO_UIOP: u32 = 0x5441_4f00;
}

/// An object behind a TCP port.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IiopProfile {
    /// The highest GIOP version of the server.
    pub version: Version,
    /// Host name or address.
    pub host: String,
    /// TCP port; 0 if the server listens with encryption only.
    pub port: u16,
    /// The object key.
    pub object_key: Vec<u8>,
    /// Further information for clients; version 1.0 has none.
    pub components: Vec<TaggedComponent>,
}

impl IiopProfile {
    /// Decodes a profile.
    ///
    /// # Errors
    /// When the profile has another tag, a major version other than 1, or malformed data.
    pub fn from_tagged(profile: &TaggedProfile) -> Result<Self, DecodeError> {
        let (version, mut r) = open(profile.tag, profile_tag::INTERNET_IOP, &profile.data)?;
        Ok(Self {
            version,
            host: Decode::decode(&mut r)?,
            port: r.primitive()?,
            object_key: r.octets()?.to_vec(),
            components: decode_components(&mut r, version)?,
        })
    }

    /// The profile with its tag.
    ///
    /// # Errors
    /// When the host name contains a zero character or one outside of ISO 8859-1.
    pub fn to_tagged(&self) -> Result<TaggedProfile, EncodeError> {
        let data = encapsulate(|w| {
            encode_version(w, self.version)?;
            self.host.encode(w)?;
            self.port.encode(w)?;
            self.object_key.encode(w)?;
            encode_components(w, self.version, &self.components)
        })?;
        Ok(TaggedProfile {
            tag: profile_tag::INTERNET_IOP,
            data,
        })
    }
}

/// An object behind a UNIX stream socket of this host, in the form of TAO.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UiopProfile {
    /// The highest GIOP version of the server.
    pub version: Version,
    /// The socket's path.
    pub path: String,
    /// The object key.
    pub object_key: Vec<u8>,
    /// Further information for clients; version 1.0 has none.
    pub components: Vec<TaggedComponent>,
}

impl UiopProfile {
    /// Decodes a profile.
    ///
    /// # Errors
    /// When the profile has another tag, a major version other than 1, or malformed data.
    pub fn from_tagged(profile: &TaggedProfile) -> Result<Self, DecodeError> {
        let (version, mut r) = open(profile.tag, profile_tag::TAO_UIOP, &profile.data)?;
        Ok(Self {
            version,
            path: Decode::decode(&mut r)?,
            object_key: r.octets()?.to_vec(),
            components: decode_components(&mut r, version)?,
        })
    }

    /// The profile with its tag.
    ///
    /// # Errors
    /// When the path contains a zero character or one outside of ISO 8859-1.
    pub fn to_tagged(&self) -> Result<TaggedProfile, EncodeError> {
        let data = encapsulate(|w| {
            encode_version(w, self.version)?;
            self.path.encode(w)?;
            self.object_key.encode(w)?;
            encode_components(w, self.version, &self.components)
        })?;
        Ok(TaggedProfile {
            tag: profile_tag::TAO_UIOP,
            data,
        })
    }
}

/// A decoded profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProfileBody {
    /// GIOP over TCP.
    Iiop(IiopProfile),
    /// GIOP over a UNIX socket.
    Uiop(UiopProfile),
    /// Components that belong to no protocol.
    Components(Vec<TaggedComponent>),
    /// Any other profile.
    Other(TaggedProfile),
}

impl ProfileBody {
    /// Decodes a profile of any kind.
    ///
    /// # Errors
    /// When the kind is known and the data malformed.
    pub fn from_tagged(profile: &TaggedProfile) -> Result<Self, DecodeError> {
        Ok(match profile.tag {
            profile_tag::INTERNET_IOP => Self::Iiop(IiopProfile::from_tagged(profile)?),
            profile_tag::TAO_UIOP => Self::Uiop(UiopProfile::from_tagged(profile)?),
            profile_tag::MULTIPLE_COMPONENTS => {
                Self::Components(Decode::decode(&mut Reader::encapsulated(&profile.data)?)?)
            }
            _ => Self::Other(profile.clone()),
        })
    }
}

/// The object key in a profile, borrowed from its data.
///
/// # Errors
/// When the kind is unknown or the data malformed.
pub fn object_key(tag: u32, data: &[u8]) -> Result<&[u8], DecodeError> {
    let (_, mut r) = open(tag, tag, data)?;
    // Host or path.
    r.octets()?;
    match tag {
        profile_tag::INTERNET_IOP => {
            r.primitive::<u16>()?;
        }
        profile_tag::TAO_UIOP => {}
        value => return Err(unknown_tag(value)),
    }
    r.octets()
}

/// Checks tag and major version.
//= GIOP 1.2 §15.7.2
//# A client accepts a profile with a higher minor version, and ignores data behind the fields that it knows.
fn open(tag: u32, wanted: u32, data: &[u8]) -> Result<(Version, Reader<'_>), DecodeError> {
    if tag != wanted {
        return Err(unknown_tag(tag));
    }
    let mut r = Reader::encapsulated(data)?;
    let (major, minor) = (r.primitive()?, r.primitive()?);
    if major != 1 {
        return Err(DecodeError::BadVersion { major, minor });
    }
    Ok((Version { major, minor }, r))
}

fn unknown_tag(value: u32) -> DecodeError {
    DecodeError::BadTag {
        what: "the tag of a profile",
        value,
    }
}

fn encode_version(w: &mut Writer<'_>, version: Version) -> Result<(), EncodeError> {
    w.primitive(version.major)?;
    w.primitive(version.minor)
}

fn encode_components<'a>(
    w: &mut Writer<'a>,
    version: Version,
    components: &'a [TaggedComponent],
) -> Result<(), EncodeError> {
    //= GIOP 1.2 §15.7.2
    //# A profile of version 1.0 has no components.
    match version.minor {
        0 => Ok(()),
        _ => components.encode(w),
    }
}

fn decode_components(
    r: &mut Reader<'_>,
    version: Version,
) -> Result<Vec<TaggedComponent>, DecodeError> {
    match version.minor {
        0 => Ok(Vec::new()),
        _ => Decode::decode(r),
    }
}
