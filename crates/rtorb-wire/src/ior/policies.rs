//! The policies of an object that its reference tells.

use super::profile_tag;
use crate::cdr::{cdr_struct, encapsulate};
use crate::{Decode, DecodeError, Encode, EncodeError, Reader, Writer};

/// Types of policies that references hold.
pub mod policy_type {
    /// Whose priority counts: the client's or the server's.
    pub const PRIORITY_MODEL: u32 = 40;
    /// Which protocols a client shall prefer, and how.
    pub const CLIENT_PROTOCOL: u32 = 43;
    /// Which priorities have connections of their own.
    pub const PRIORITY_BANDED_CONNECTION: u32 = 45;
}

/// A policy that is understood, or kept as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExposedPolicy {
    /// Whose priority counts.
    PriorityModel {
        /// The client's or the server's.
        model: PriorityModel,
        /// CORBA priority of the object, or of clients that send none.
        server_priority: i16,
    },
    /// Priorities with connections of their own.
    PriorityBands(Vec<PriorityBand>),
    /// Protocols, best first.
    ClientProtocols(Vec<ExposedProtocol>),
    /// Anything else.
    Other(PolicyValue),
}

impl ExposedPolicy {
    /// Reads a policy; what cannot be read stays [`ExposedPolicy::Other`].
    fn from_value(value: PolicyValue) -> Self {
        let known = Reader::encapsulated(&value.value).and_then(|mut r| {
            Ok(match value.policy_type {
                policy_type::PRIORITY_MODEL => Some(Self::PriorityModel {
                    model: Decode::decode(&mut r)?,
                    server_priority: r.primitive()?,
                }),
                policy_type::PRIORITY_BANDED_CONNECTION => {
                    Some(Self::PriorityBands(Decode::decode(&mut r)?))
                }
                policy_type::CLIENT_PROTOCOL => {
                    Some(Self::ClientProtocols(Decode::decode(&mut r)?))
                }
                _ => None,
            })
        });
        match known {
            Ok(Some(policy)) => policy,
            _ => Self::Other(value),
        }
    }
}

impl Encode for ExposedPolicy {
    fn encode<'a>(&'a self, w: &mut Writer<'a>) -> Result<(), EncodeError> {
        let (policy_type, value) = match self {
            Self::PriorityModel {
                model,
                server_priority,
            } => {
                let value = encapsulate(|w| {
                    model.encode(w)?;
                    server_priority.encode(w)
                })?;
                (policy_type::PRIORITY_MODEL, value)
            }
            Self::PriorityBands(bands) => (
                policy_type::PRIORITY_BANDED_CONNECTION,
                encapsulate(|w| bands.encode(w))?,
            ),
            Self::ClientProtocols(protocols) => (
                policy_type::CLIENT_PROTOCOL,
                encapsulate(|w| protocols.encode(w))?,
            ),
            Self::Other(value) => return value.encode(w),
        };
        w.primitive(policy_type)?;
        w.count(value.len())?;
        w.octets(&value)
    }
}

impl Decode for ExposedPolicy {
    const OCTETS_MIN: usize = PolicyValue::OCTETS_MIN;

    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        PolicyValue::decode(r).map(Self::from_value)
    }
}

/// A policy and its value, as an invocation and a reference hold them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyValue {
    /// Which policy.
    pub policy_type: u32,
    /// Its value's encapsulation.
    pub value: Vec<u8>,
}
cdr_struct!(PolicyValue {
    policy_type: u32,
    value: Vec<u8>
});

/// Whose priority counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PriorityModel {
    /// The client's travels with the call.
    ClientPropagated,
    /// The server has said which.
    ServerDeclared,
}
crate::cdr_enum!(PriorityModel {
    ClientPropagated = 0,
    ServerDeclared = 1
});

/// A range of CORBA priorities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PriorityBand {
    /// The least of them.
    pub low: i16,
    /// The greatest of them.
    pub high: i16,
}
crate::fixed_layout!(PriorityBand {
    low: i16,
    high: i16
});

/// A protocol and how it shall be set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExposedProtocol {
    /// Tag of its profiles.
    pub profile_tag: u32,
    /// How.
    pub properties: ProtocolProperties,
}

/// How a protocol shall be set up. Nothing on the wire says how long these are: the tag of the profile decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtocolProperties {
    /// Of TCP.
    Tcp(TcpProperties),
    /// Of UNIX sockets.
    Unix(UnixProperties),
}

/// How TCP shall be set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpProperties {
    /// Octets of the kernel's send buffer.
    pub send_buffer_octets: i32,
    /// Octets of the kernel's receive buffer.
    pub recv_buffer_octets: i32,
    /// Probe idle connections.
    pub keep_alive: bool,
    /// Do not route.
    pub dont_route: bool,
    /// Send small segments at once.
    pub no_delay: bool,
}
crate::fixed_layout!(TcpProperties {
    send_buffer_octets: i32,
    recv_buffer_octets: i32,
    keep_alive: bool,
    dont_route: bool,
    no_delay: bool
});

/// How UNIX sockets shall be set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnixProperties {
    /// Octets of the kernel's send buffer.
    pub send_buffer_octets: i32,
    /// Octets of the kernel's receive buffer.
    pub recv_buffer_octets: i32,
}
crate::fixed_layout!(UnixProperties {
    send_buffer_octets: i32,
    recv_buffer_octets: i32
});

impl Encode for ExposedProtocol {
    fn encode<'a>(&'a self, w: &mut Writer<'a>) -> Result<(), EncodeError> {
        self.profile_tag.encode(w)?;
        match &self.properties {
            ProtocolProperties::Tcp(tcp) => tcp.encode(w),
            ProtocolProperties::Unix(unix) => unix.encode(w),
        }
    }
}

impl Decode for ExposedProtocol {
    const OCTETS_MIN: usize = 12;

    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let profile_tag = r.primitive()?;
        let properties = match profile_tag {
            profile_tag::INTERNET_IOP => ProtocolProperties::Tcp(Decode::decode(r)?),
            profile_tag::TAO_UIOP => ProtocolProperties::Unix(Decode::decode(r)?),
            value => {
                return Err(DecodeError::BadTag {
                    what: "the protocol of a policy",
                    value,
                });
            }
        };
        Ok(Self {
            profile_tag,
            properties,
        })
    }
}
