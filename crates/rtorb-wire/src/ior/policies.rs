//! The policies of an object that its reference exposes.

use super::profile_tag;
use crate::cdr::{cdr_struct, encapsulate};
use crate::{Decode, DecodeError, Encode, EncodeError, Reader, Writer};
use alloc::vec::Vec;

/// Types of policies in references.
pub mod policy_type {
    /// The priority model: the client's priority or the server's.
    pub const PRIORITY_MODEL: u32 = 40;
    /// The protocols that clients prefer, with their properties.
    pub const CLIENT_PROTOCOL: u32 = 43;
    /// The bands of priorities with separate connections.
    pub const PRIORITY_BANDED_CONNECTION: u32 = 45;
}

/// A policy in a reference.
//= RT-CORBA 1.2 §Priority Banded Connections
//# A server may expose priority bands in its references.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExposedPolicy {
    /// The priority model.
    PriorityModel {
        /// The client's or the server's priority.
        model: PriorityModel,
        /// The CORBA priority of the object, or of requests without one.
        server_priority: i16,
    },
    /// Bands of priorities with separate connections.
    PriorityBands(Vec<PriorityBand>),
    /// Protocols, best first.
    ClientProtocols(Vec<ExposedProtocol>),
    /// Any other policy.
    Other(PolicyValue),
}

impl ExposedPolicy {
    /// Decodes a policy; an unknown or malformed one is [`ExposedPolicy::Other`].
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
        w.counted_bytes(&value)
    }
}

impl Decode for ExposedPolicy {
    const BYTES_MIN: usize = PolicyValue::BYTES_MIN;

    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        PolicyValue::decode(r).map(Self::from_value)
    }
}

cdr_struct! {
    /// A policy and its value, as an invocation and a reference hold them.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct PolicyValue {
        /// The type of the policy.
        pub policy_type: u32,
        /// The encapsulation of its value.
        pub value: Vec<u8>,
    }

    /// A range of CORBA priorities.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct PriorityBand {
        /// The lowest priority.
        pub low: i16,
        /// The highest priority.
        pub high: i16,
    }

    /// Properties of TCP.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct TcpProperties {
        /// Bytes of the kernel's send buffer.
        pub send_buffer_bytes: i32,
        /// Bytes of the kernel's receive buffer.
        pub recv_buffer_bytes: i32,
        /// Probe idle connections.
        pub keep_alive: bool,
        /// Do not route.
        pub dont_route: bool,
        /// Send small segments at once.
        pub no_delay: bool,
    }

    /// Properties of UNIX sockets.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct UnixProperties {
        /// Bytes of the kernel's send buffer.
        pub send_buffer_bytes: i32,
        /// Bytes of the kernel's receive buffer.
        pub recv_buffer_bytes: i32,
    }
}

/// The priority at which a server executes a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PriorityModel {
    /// The client's, which travels with the request.
    ClientPropagated,
    /// The one that the server declared.
    ServerDeclared,
}
crate::cdr_enum!(PriorityModel {
    ClientPropagated = 0,
    ServerDeclared = 1
});

/// A protocol with its properties.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExposedProtocol {
    /// The tag of its profiles.
    pub profile_tag: u32,
    /// Its properties.
    pub properties: ProtocolProperties,
}

/// Properties of a protocol. On the wire their form depends on the tag of the profile, and their length is not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtocolProperties {
    /// Properties of TCP.
    Tcp(TcpProperties),
    /// Properties of UNIX sockets.
    Unix(UnixProperties),
}

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
    const BYTES_MIN: usize = 12;

    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let profile_tag = r.primitive()?;
        let properties = match profile_tag {
            profile_tag::INTERNET_IOP => ProtocolProperties::Tcp(Decode::decode(r)?),
            profile_tag::TAO_UIOP => ProtocolProperties::Unix(Decode::decode(r)?),
            value => return Err(DecodeError::bad_tag("the protocol of a policy", value)),
        };
        Ok(Self {
            profile_tag,
            properties,
        })
    }
}
