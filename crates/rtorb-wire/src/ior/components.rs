//! Tagged components: what a reference says about its object and its server beside the address.

use super::policies::ExposedPolicy;
use crate::cdr::{cdr_struct, encapsulate};
use crate::code_sets::CodeSetComponentInfo;
use crate::{Decode, DecodeError, Encode, EncodeError, Reader, Writer};

/// Tags of components.
pub mod component_tag {
    /// Which ORB made the reference.
    pub const ORB_TYPE: u32 = 0;
    /// Code sets of the server.
    pub const CODE_SETS: u32 = 1;
    /// Policies of the object that clients have to know.
    pub const POLICIES: u32 = 2;
    /// One more address of the server.
    pub const ALTERNATE_IIOP_ADDRESS: u32 = 3;
    /// The whole object key.
    pub const COMPLETE_OBJECT_KEY: u32 = 5;
    /// TLS beside the profile's port.
    pub const SSL_SEC_TRANS: u32 = 20;
    /// Where Java classes are.
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
    /// omniORB: which run of the server made the reference.
    pub const OMNI_PERSISTENT_ID: u32 = 0x4154_5403;
    /// omniORB: limits of the connection.
    pub const OMNI_RESTRICTED: u32 = 0x4154_5404;
}

/// Something that a client may want to know about an object or its server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TaggedComponent {
    /// What it is: see [`component_tag`].
    pub tag: u32,
    /// Its octets, most often an encapsulation.
    pub data: Vec<u8>,
}

impl TaggedComponent {
    /// What it says, in one line for people.
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

/// A component that is understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Component {
    /// Which ORB made the reference: see [`orb_name`].
    OrbType(u32),
    /// Code sets of the server.
    CodeSets(CodeSetComponentInfo),
    /// Policies of the object.
    Policies(Vec<ExposedPolicy>),
    /// One more address.
    AlternateIiopAddress(ListenPoint),
    /// The whole object key.
    CompleteObjectKey(Vec<u8>),
    /// TLS on a port of its own.
    SslSecTrans(SslSecTrans),
    /// Addresses with TLS.
    TlsSecTrans {
        /// [Association options](association) that the server has.
        supports: u16,
        /// Those that it insists on.
        requires: u16,
        /// Where.
        addresses: Vec<ListenPoint>,
    },
    /// Where Java classes are.
    JavaCodebase(String),
    /// A policy that is one number, with its tag: transactions.
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
        /// Whose group.
        domain: String,
        /// Its number there.
        id: u64,
        /// Counts changes of the group.
        version: u32,
    },
    /// Yes or no, with its tag.
    Flag {
        /// [`component_tag::FT_PRIMARY`] or `FT_HEARTBEAT_ENABLED`.
        tag: u32,
        /// Yes.
        set: bool,
    },
    /// Endpoints with their priorities, in the form of TAO; the first is the profile's own.
    TaoEndpoints(Vec<TaoEndpoint>),
    /// The same in a UIOP profile.
    TaoUnixEndpoints(Vec<TaoUnixEndpoint>),
    /// A UNIX socket, in the form of omniORB; good on that host alone.
    OmniUnixTrans {
        /// The host's own name for itself.
        host: String,
        /// The socket's path.
        path: String,
    },
    /// Anything else.
    Other(TaggedComponent),
}

impl Component {
    /// Reads a component of any kind.
    ///
    /// # Errors
    /// When its kind is known and its data malformed.
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

    /// As [`from_tagged`](Self::from_tagged), for a component of a UIOP profile: there TAO writes endpoints in another form
    /// under the same tag.
    ///
    /// # Errors
    /// When its kind is known and its data malformed.
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
    /// When a text holds what cannot be sent.
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

/// Major and minor version of group components.
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

/// Options of a secured connection, as bits.
pub mod association {
    /// Nothing.
    pub const NO_PROTECTION: u16 = 1;
    /// Octets cannot be changed unnoticed.
    pub const INTEGRITY: u16 = 2;
    /// Octets cannot be read.
    pub const CONFIDENTIALITY: u16 = 4;
    /// The server proves who it is.
    pub const ESTABLISH_TRUST_IN_TARGET: u16 = 32;
    /// The client proves who it is.
    pub const ESTABLISH_TRUST_IN_CLIENT: u16 = 64;
}

/// TLS on a port of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SslSecTrans {
    /// [Association options](association) that the server has.
    pub supports: u16,
    /// Those that it insists on.
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

/// An endpoint with a priority, in the form of TAO.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TaoEndpoint {
    /// Host name or address.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// CORBA priority of the lane behind it; -1 for none.
    pub priority: i16,
}
cdr_struct!(TaoEndpoint {
    host: String,
    port: u16,
    priority: i16
});

/// A UNIX socket with a priority, in the form of TAO.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TaoUnixEndpoint {
    /// The socket's path.
    pub path: String,
    /// CORBA priority of the lane behind it; -1 for none.
    pub priority: i16,
}
cdr_struct!(TaoUnixEndpoint {
    path: String,
    priority: i16
});
