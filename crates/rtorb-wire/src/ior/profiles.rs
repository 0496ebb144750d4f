//! Profiles: the addresses of an object over TCP, over a UNIX socket and through shared memory.

use super::{Component, SslSecTrans, TaggedComponent, TaggedProfile, association};
use crate::cdr::{decode_encapsulated, encapsulate};
use crate::version::Version;
use crate::{Decode, DecodeError, Encode, EncodeError, Reader};
use alloc::string::String;
use alloc::vec::Vec;

/// Tags of profiles.
pub mod profile_tag {
    /// IIOP: GIOP over TCP.
    pub const INTERNET_IOP: u32 = 0;
    /// Components only.
    pub const MULTIPLE_COMPONENTS: u32 = 1;
    /// TAO's UIOP: GIOP over a UNIX stream socket.
    pub const TAO_UIOP: u32 = 0x5441_4f00;
    /// rtorb's SHMIOP: GIOP through shared memory. The tag is private; other ORBs ignore the profile.
    pub const RTORB_SHMIOP: u32 = 0x5254_4f00;
}

/// Defines a profile by its tag and the fields of its address, and implements its form.
macro_rules! profile {
    ($(#[$doc:meta])* $name:ident = $tag:ident { $($(#[$about:meta])* $field:ident : $type:ty,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub struct $name {
            /// The highest GIOP version of the server.
            pub version: Version,
            $($(#[$about])* pub $field: $type,)+
            /// The object key.
            pub object_key: Vec<u8>,
            /// Further information for clients; version 1.0 has none.
            pub components: Vec<TaggedComponent>,
        }

        impl $name {
            /// Decodes a profile.
            ///
            /// # Errors
            /// When the profile has another tag, a major version other than 1, or malformed data.
            pub fn from_tagged(profile: &TaggedProfile) -> Result<Self, DecodeError> {
                let (version, mut r) = open(profile.tag, profile_tag::$tag, &profile.data)?;
                Ok(Self {
                    version,
                    $($field: Decode::decode(&mut r)?,)+
                    object_key: r.octets()?.to_vec(),
                    components: match version.minor {
                        0 => Vec::new(),
                        _ => Decode::decode(&mut r)?,
                    },
                })
            }

            /// The profile with its tag.
            ///
            /// # Errors
            /// When the address contains a zero character or one outside of ISO 8859-1.
            pub fn to_tagged(&self) -> Result<TaggedProfile, EncodeError> {
                let data = encapsulate(|w| {
                    w.octets(&[self.version.major, self.version.minor])?;
                    $(self.$field.encode(w)?;)+
                    self.object_key.encode(w)?;
                    //= GIOP 1.2 §15.7.2
                    //# A profile of version 1.0 has no components.
                    match self.version.minor {
                        0 => Ok(()),
                        _ => self.components.encode(w),
                    }
                })?;
                Ok(TaggedProfile { tag: profile_tag::$tag, data })
            }
        }
    };
}

profile! {
    /// An object behind a TCP port.
    IiopProfile = INTERNET_IOP {
        /// Host name or address.
        host: String,
        /// TCP port; 0 if the server listens with encryption only.
        port: u16,
    }
}

impl IiopProfile {
    /// A profile whose object is reached over TLS alone. Its version is 1.1 at least, because it needs a component.
    pub fn over_tls(version: Version, host: String, port: u16, object_key: Vec<u8>) -> Self {
        let options = association::INTEGRITY
            | association::CONFIDENTIALITY
            | association::ESTABLISH_TRUST_IN_TARGET;
        let ssl = Component::SslSecTrans(SslSecTrans {
            supports: options | association::ESTABLISH_TRUST_IN_CLIENT,
            requires: options,
            port,
        });
        Self {
            version: version.max(Version::V1_1),
            host,
            port: 0,
            object_key,
            // Three numbers can always be encoded.
            components: ssl.to_tagged().into_iter().collect(),
        }
    }
}

profile! {
    /// An object behind a UNIX stream socket of this host, in the form of TAO.
    UiopProfile = TAO_UIOP {
        /// The socket's path.
        path: String,
    }
}

profile! {
    /// An object behind shared memory of one host.
    ShmiopProfile = RTORB_SHMIOP {
        /// The identity of the host: a client compares it with its own. Empty: the host of the client.
        host: String,
        /// The path of the socket at which client and server meet.
        path: String,
    }
}

/// A decoded profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProfileBody {
    /// GIOP over TCP.
    Iiop(IiopProfile),
    /// GIOP over a UNIX socket.
    Uiop(UiopProfile),
    /// GIOP through shared memory.
    Shmiop(ShmiopProfile),
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
            profile_tag::RTORB_SHMIOP => Self::Shmiop(ShmiopProfile::from_tagged(profile)?),
            profile_tag::MULTIPLE_COMPONENTS => {
                Self::Components(decode_encapsulated(&profile.data)?)
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
        profile_tag::RTORB_SHMIOP => {
            r.octets()?;
        }
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
    DecodeError::bad_tag("the tag of a profile", value)
}
