//! Tagged components: what a reference says about object and server besides the address.

use super::policies::ExposedPolicy;
use crate::cdr::{cdr_struct, encapsulate};
use crate::code_sets::CodeSetComponentInfo;
use crate::{Decode, DecodeError, Encode, EncodeError, Reader, Writer};

/// Tags of components.
pub mod component_tag {
    /// The ORB that created the reference.
    pub const ORB_TYPE: u32 = 0;
    /// Code sets of the server.
    pub const CODE_SETS: u32 = 1;
    /// The object's policies for clients.
    pub const POLICIES: u32 = 2;
    /// Another address of the server.
    pub const ALTERNATE_IIOP_ADDRESS: u32 = 3;
    /// The whole object key.
    pub const COMPLETE_OBJECT_KEY: u32 = 5;
    /// TLS on another port.
    pub const SSL_SEC_TRANS: u32 = 20;
    /// The URL of Java classes.
    pub const JAVA_CODEBASE: u32 = 25;
    /// Transactions, of CORBA 2.
    pub const TRANSACTION_POLICY: u32 = 26;
    /// Replicas.
    pub const FT_GROUP: u32 = 27;
    /// This profile is the primary replica's.
    pub const FT_PRIMARY: u32 = 28;
    /// Heartbeats.
    pub const FT_HEARTBEAT_ENABLED: u32 = 29;
    /// Transactions.
    pub const OTS_POLICY: u32 = 31;
    /// Transactions and invocations.
    pub const INV_POLICY: u32 = 32;
    /// Addresses with TLS.
    pub const TLS_SEC_TRANS: u32 = 36;
    /// A multicast group.
    pub const GROUP: u32 = 39;
    /// TAO's endpoints with their priorities.
    pub const TAO_ENDPOINTS: u32 = 0x5441_4f02;
    /// omniORB: bidirectional connections.
    pub const OMNI_BIDIR: u32 = 0x4154_5401;
    /// omniORB: a UNIX socket of one host.
    pub const OMNI_UNIX_TRANS: u32 = 0x4154_5402;
    /// omniORB: the run of the server that created the reference.
    pub const OMNI_PERSISTENT_ID: u32 = 0x4154_5403;
    /// omniORB: limits of the connection.
    pub const OMNI_RESTRICTED: u32 = 0x4154_5404;
}

/// Information for clients about an object or its server.
//= CORBA 3 §13.6.5
//# A component is a tag and bytes. A client ignores components that it does not know.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TaggedComponent {
    /// Its kind; see [`component_tag`].
    pub tag: u32,
    /// Its data, usually an encapsulation.
    pub data: Vec<u8>,
}

impl TaggedComponent {
    /// A description in one line.
    pub fn describe(&self) -> String {
        match Component::from_tagged(self) {
            Ok(component) => component.to_string(),
            Err(error) => format!("component {:#x}, {error}", self.tag),
        }
    }
}

cdr_struct!(TaggedComponent {
    tag: u32,
    data: Vec<u8>
});

/// A decoded component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Component {
    /// The ORB that created the reference; see [`orb_name`].
    OrbType(u32),
    /// Code sets of the server.
    CodeSets(CodeSetComponentInfo),
    /// Policies of the object.
    Policies(Vec<ExposedPolicy>),
    /// Another address.
    AlternateIiopAddress(ListenPoint),
    /// The whole object key.
    CompleteObjectKey(Vec<u8>),
    /// TLS on a port of its own.
    SslSecTrans(SslSecTrans),
    /// Addresses with TLS.
    TlsSecTrans {
        /// The [association options](association) that the server supports.
        supports: u16,
        /// The options that it requires.
        requires: u16,
        /// The addresses.
        addresses: Vec<ListenPoint>,
    },
    /// The URL of Java classes.
    JavaCodebase(String),
    /// A policy of transactions, which is one number.
    NumberPolicy {
        /// [`component_tag::TRANSACTION_POLICY`], `OTS_POLICY` or `INV_POLICY`.
        tag: u32,
        /// Its value.
        value: u16,
    },
    /// A group of replicas, or of receivers.
    Group {
        /// [`component_tag::FT_GROUP`] or `GROUP`.
        tag: u32,
        /// The domain of the group.
        domain: String,
        /// The number of the group in its domain.
        id: u64,
        /// The version of the group, which counts changes.
        version: u32,
    },
    /// A boolean.
    Flag {
        /// [`component_tag::FT_PRIMARY`] or `FT_HEARTBEAT_ENABLED`.
        tag: u32,
        /// Its value.
        set: bool,
    },
    /// TAO's endpoints with their priorities. The first is the profile's own.
    TaoEndpoints(Vec<TaoEndpoint>),
    /// TAO's endpoints in a UIOP profile.
    TaoUnixEndpoints(Vec<TaoUnixEndpoint>),
    /// omniORB's UNIX socket, for clients on the same host.
    OmniUnixTrans {
        /// The name of the host.
        host: String,
        /// The socket's path.
        path: String,
    },
    /// Any other component.
    Other(TaggedComponent),
}

impl Component {
    /// Decodes a component of any kind.
    ///
    /// # Errors
    /// When the kind is known and the data malformed.
    pub fn from_tagged(component: &TaggedComponent) -> Result<Self, DecodeError> {
        use component_tag as tag;
        if component.tag == tag::COMPLETE_OBJECT_KEY {
            return Ok(Self::CompleteObjectKey(component.data.clone()));
        }
        let open = || Reader::encapsulated(&component.data);
        Ok(match component.tag {
            tag::ORB_TYPE => Self::OrbType(open()?.primitive()?),
            tag::CODE_SETS => Self::CodeSets(Decode::decode(&mut open()?)?),
            tag::POLICIES => Self::Policies(Decode::decode(&mut open()?)?),
            tag::ALTERNATE_IIOP_ADDRESS => {
                Self::AlternateIiopAddress(Decode::decode(&mut open()?)?)
            }
            tag::SSL_SEC_TRANS => Self::SslSecTrans(SslSecTrans::decode(&mut open()?)?),
            tag::TLS_SEC_TRANS => {
                let mut r = open()?;
                Self::TlsSecTrans {
                    supports: r.primitive()?,
                    requires: r.primitive()?,
                    addresses: Decode::decode(&mut r)?,
                }
            }
            tag::JAVA_CODEBASE => Self::JavaCodebase(Decode::decode(&mut open()?)?),
            tag::TRANSACTION_POLICY | tag::OTS_POLICY | tag::INV_POLICY => Self::NumberPolicy {
                tag: component.tag,
                value: open()?.primitive()?,
            },
            tag::FT_GROUP | tag::GROUP => {
                let mut r = open()?;
                let _version: [u8; 2] = Decode::decode(&mut r)?;
                Self::Group {
                    tag: component.tag,
                    domain: Decode::decode(&mut r)?,
                    id: r.primitive()?,
                    version: r.primitive()?,
                }
            }
            tag::FT_PRIMARY | tag::FT_HEARTBEAT_ENABLED => Self::Flag {
                tag: component.tag,
                set: Decode::decode(&mut open()?)?,
            },
            tag::TAO_ENDPOINTS => Self::TaoEndpoints(Decode::decode(&mut open()?)?),
            tag::OMNI_UNIX_TRANS => {
                let mut r = open()?;
                Self::OmniUnixTrans {
                    host: Decode::decode(&mut r)?,
                    path: Decode::decode(&mut r)?,
                }
            }
            _ => Self::Other(component.clone()),
        })
    }

    /// As [`from_tagged`](Self::from_tagged), for a component of a UIOP profile, where TAO's endpoints have another form.
    ///
    /// # Errors
    /// When the kind is known and the data malformed.
    pub fn from_uiop_tagged(component: &TaggedComponent) -> Result<Self, DecodeError> {
        match component.tag {
            component_tag::TAO_ENDPOINTS => {
                let mut r = Reader::encapsulated(&component.data)?;
                Ok(Self::TaoUnixEndpoints(Decode::decode(&mut r)?))
            }
            _ => Self::from_tagged(component),
        }
    }

    /// The component with its tag.
    ///
    /// # Errors
    /// When a string cannot be sent.
    pub fn to_tagged(&self) -> Result<TaggedComponent, EncodeError> {
        let data = match self {
            Self::CompleteObjectKey(key) => key.clone(),
            Self::Other(component) => return Ok(component.clone()),
            _ => encapsulate(|w| self.encode_content(w))?,
        };
        Ok(TaggedComponent {
            tag: self.tag(),
            data,
        })
    }

    /// Its tag.
    pub fn tag(&self) -> u32 {
        use component_tag as tag;
        match self {
            Self::OrbType(_) => tag::ORB_TYPE,
            Self::CodeSets(_) => tag::CODE_SETS,
            Self::Policies(_) => tag::POLICIES,
            Self::AlternateIiopAddress(_) => tag::ALTERNATE_IIOP_ADDRESS,
            Self::CompleteObjectKey(_) => tag::COMPLETE_OBJECT_KEY,
            Self::SslSecTrans(_) => tag::SSL_SEC_TRANS,
            Self::TlsSecTrans { .. } => tag::TLS_SEC_TRANS,
            Self::JavaCodebase(_) => tag::JAVA_CODEBASE,
            Self::NumberPolicy { tag, .. } | Self::Group { tag, .. } | Self::Flag { tag, .. } => {
                *tag
            }
            Self::TaoEndpoints(_) | Self::TaoUnixEndpoints(_) => tag::TAO_ENDPOINTS,
            Self::OmniUnixTrans { .. } => tag::OMNI_UNIX_TRANS,
            Self::Other(component) => component.tag,
        }
    }

    fn encode_content<'a>(&'a self, w: &mut Writer<'a>) -> Result<(), EncodeError> {
        match self {
            Self::OrbType(orb) => orb.encode(w),
            Self::CodeSets(info) => info.encode(w),
            Self::Policies(policies) => policies.encode(w),
            Self::AlternateIiopAddress(address) => address.encode(w),
            Self::SslSecTrans(trans) => trans.encode(w),
            Self::TlsSecTrans {
                supports,
                requires,
                addresses,
            } => {
                supports.encode(w)?;
                requires.encode(w)?;
                addresses.encode(w)
            }
            Self::JavaCodebase(url) => url.encode(w),
            Self::NumberPolicy { value, .. } => value.encode(w),
            Self::Group {
                domain,
                id,
                version,
                ..
            } => {
                w.octets(&GROUP_VERSION)?;
                domain.encode(w)?;
                id.encode(w)?;
                version.encode(w)
            }
            Self::Flag { set, .. } => set.encode(w),
            Self::TaoEndpoints(endpoints) => endpoints.encode(w),
            Self::TaoUnixEndpoints(endpoints) => endpoints.encode(w),
            Self::OmniUnixTrans { host, path } => {
                host.encode(w)?;
                path.encode(w)
            }
            Self::CompleteObjectKey(octets) => w.octets(octets),
            Self::Other(component) => w.octets(&component.data),
        }
    }
}

/// The version of group components.
const GROUP_VERSION: [u8; 2] = [1, 0];

/// The name of an ORB by its [`Component::OrbType`].
pub fn orb_name(orb_type: u32) -> Option<&'static str> {
    match orb_type {
        0x5441_4f00 => Some("TAO"),
        0x4154_5400 => Some("omniORB"),
        0x4a41_4300 => Some("JacORB"),
        _ => None,
    }
}

/// Options of a secured connection (bits).
pub mod association {
    /// No protection.
    pub const NO_PROTECTION: u16 = 1;
    /// Changes of the data are detected.
    pub const INTEGRITY: u16 = 2;
    /// The data is encrypted.
    pub const CONFIDENTIALITY: u16 = 4;
    /// The server authenticates itself.
    pub const ESTABLISH_TRUST_IN_TARGET: u16 = 32;
    /// The client authenticates itself.
    pub const ESTABLISH_TRUST_IN_CLIENT: u16 = 64;
}

/// TLS on a port of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SslSecTrans {
    /// The [association options](association) that the server supports.
    pub supports: u16,
    /// The options that it requires.
    pub requires: u16,
    /// TCP port, on the host of the profile.
    pub port: u16,
}
crate::fixed_layout!(SslSecTrans {
    supports: u16,
    requires: u16,
    port: u16
});

/// Where an ORB accepts connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenPoint {
    /// Host name or address.
    pub host: String,
    /// TCP port.
    pub port: u16,
}
cdr_struct!(ListenPoint {
    host: String,
    port: u16
});

/// TAO's endpoint with a priority.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TaoEndpoint {
    /// Host name or address.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// The CORBA priority of its lane; -1 for none.
    pub priority: i16,
}
cdr_struct!(TaoEndpoint {
    host: String,
    port: u16,
    priority: i16
});

/// TAO's UNIX socket with a priority.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TaoUnixEndpoint {
    /// The socket's path.
    pub path: String,
    /// The CORBA priority of its lane; -1 for none.
    pub priority: i16,
}
cdr_struct!(TaoUnixEndpoint {
    path: String,
    priority: i16
});
