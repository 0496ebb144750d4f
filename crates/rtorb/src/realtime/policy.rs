//! The policies of RT-CORBA, for clients and for object adapters.

use super::threadpool::ThreadpoolId;
use super::{Priority, PriorityBand, PriorityModel};
use crate::strategies::SharedMemoryWait;
use rtorb_wire::ior::{self, profile_tag};
use serde::Deserialize;

/// A policy of RT-CORBA 1.x; [`RtOrb`](crate::rt::RtOrb) makes policies too.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Policy {
    /// PriorityModelPolicy (type 40), of an adapter: whose priority a call has.
    PriorityModel {
        /// Whether the client or the object determines the priority.
        model: PriorityModel,
        /// The object's priority, or that of requests without a priority.
        server_priority: Priority,
    },
    /// ThreadpoolPolicy (type 41), of an adapter: which threads serve its objects.
    Threadpool(ThreadpoolId),
    /// ServerProtocolPolicy (type 42), of an adapter: the protocols that lead to its objects, and their properties.
    ///
    /// Endpoints are set up once. If adapters that share endpoints need different properties, the second adapter is refused.
    ServerProtocol(Vec<Protocol>),
    /// ClientProtocolPolicy (type 43), of a client or an adapter: the protocols for clients to use, best first, and their properties.
    ClientProtocol(Vec<Protocol>),
    /// PrivateConnectionPolicy (type 44), of a client: no other reference uses the reference's connection.
    PrivateConnection,
    /// PriorityBandedConnectionPolicy (type 45), of a client or an adapter: each band of priorities has its own connection.
    PriorityBandedConnection(Vec<PriorityBand>),
}

impl Policy {
    /// Returns the policy's name in the standard, without `Policy`.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::PriorityModel { .. } => "PriorityModel",
            Self::Threadpool(_) => "Threadpool",
            Self::ServerProtocol(_) => "ServerProtocol",
            Self::ClientProtocol(_) => "ClientProtocol",
            Self::PrivateConnection => "PrivateConnection",
            Self::PriorityBandedConnection(_) => "PriorityBandedConnection",
        }
    }

    /// Returns true if only an adapter can have the policy.
    pub(crate) const fn is_server_only(&self) -> bool {
        matches!(
            self,
            Self::PriorityModel { .. } | Self::Threadpool(_) | Self::ServerProtocol(_)
        )
    }
}

/// A protocol and its properties (RTCORBA::Protocol).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(tag = "protocol", rename_all = "lowercase")]
#[non_exhaustive]
pub enum Protocol {
    /// IIOP.
    Tcp(TcpProtocolProperties),
    /// GIOP over UNIX stream sockets.
    #[serde(rename = "unix")]
    UnixDomain(UnixDomainProtocolProperties),
    /// GIOP through shared memory.
    #[serde(rename = "shm")]
    SharedMemory(SharedMemoryProtocolProperties),
}

/// Returns true if the band contains a priority, and only legal ones.
pub(crate) fn is_band(band: &PriorityBand) -> bool {
    (0..=band.high).contains(&band.low)
}

/// Returns true if the band contains the priority.
#[inline]
pub(crate) fn is_in_band(band: &PriorityBand, priority: Priority) -> bool {
    (band.low..=band.high).contains(&priority.get())
}

impl Protocol {
    /// Returns true if a protocol is listed twice.
    pub(crate) fn is_repeated(protocols: &[Self]) -> bool {
        let kind = core::mem::discriminant::<Self>;
        let is_before = |index: usize, protocol| {
            let mut before = protocols[..index].iter();
            before.any(|other| kind(other) == kind(protocol))
        };
        let mut numbered = protocols.iter().enumerate();
        numbered.any(|(index, protocol)| is_before(index, protocol))
    }

    /// Returns the form for references, which is TAO's, without properties that the standard does not define.
    ///
    /// `None` for shared memory: an ORB that does not know a protocol cannot decode the list after it.
    pub(crate) fn to_wire(self) -> Option<ior::ExposedProtocol> {
        let bytes = |size: u32| i32::try_from(size).unwrap_or(i32::MAX);
        Some(match self {
            Self::SharedMemory(_) => return None,
            Self::Tcp(tcp) => ior::ExposedProtocol {
                profile_tag: profile_tag::INTERNET_IOP,
                properties: ior::ProtocolProperties::Tcp(ior::TcpProperties {
                    send_buffer_bytes: bytes(tcp.send_buffer_size),
                    recv_buffer_bytes: bytes(tcp.recv_buffer_size),
                    keep_alive: tcp.keep_alive,
                    dont_route: tcp.dont_route,
                    no_delay: tcp.no_delay,
                }),
            },
            Self::UnixDomain(unix) => ior::ExposedProtocol {
                profile_tag: profile_tag::TAO_UIOP,
                properties: ior::ProtocolProperties::Unix(ior::UnixProperties {
                    send_buffer_bytes: bytes(unix.send_buffer_size),
                    recv_buffer_bytes: bytes(unix.recv_buffer_size),
                }),
            },
        })
    }
}

/// TCPProtocolProperties, with TAO's addition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TcpProtocolProperties {
    /// Bytes of the kernel's send buffer (SO_SNDBUF); 0 for the system's default.
    pub send_buffer_size: u32,
    /// Bytes of the kernel's receive buffer (SO_RCVBUF); 0 for the system's default.
    pub recv_buffer_size: u32,
    /// Probes idle connections (SO_KEEPALIVE).
    pub keep_alive: bool,
    /// Reaches directly connected hosts only (SO_DONTROUTE).
    pub dont_route: bool,
    /// Sends small segments at once (TCP_NODELAY).
    pub no_delay: bool,
    /// Marks packets by priority: DSCP, and SO_PRIORITY for the host's own queues. A client marks by the priority of the call, a
    /// server by that of the lane, else by the one that the adapter declares, else not at all.
    pub enable_network_priority: bool,
}

impl Default for TcpProtocolProperties {
    fn default() -> Self {
        Self {
            send_buffer_size: 0,
            recv_buffer_size: 0,
            keep_alive: false,
            dont_route: false,
            no_delay: true,
            enable_network_priority: false,
        }
    }
}

/// Properties of shared memory, which the standard does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SharedMemoryProtocolProperties {
    /// What a thread does before it sleeps; `None` for the ORB's choice ([`OrbBuilder::shared_memory_wait`]).
    ///
    /// [`OrbBuilder::shared_memory_wait`]: crate::OrbBuilder::shared_memory_wait
    pub wait: Option<SharedMemoryWait>,
}

/// UnixDomainProtocolProperties.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UnixDomainProtocolProperties {
    /// Bytes of the kernel's send buffer (SO_SNDBUF); 0 for the system's default.
    pub send_buffer_size: u32,
    /// Bytes of the kernel's receive buffer (SO_RCVBUF); 0 for the system's default.
    pub recv_buffer_size: u32,
}
