//! The policies of RT-CORBA, for clients and for object adapters.

use super::priority::Priority;
use super::threadpool::ThreadpoolId;
use super::{PriorityBand, PriorityModel};
use rtorb_wire::ior::{self, profile_tag};

/// A policy of RT-CORBA 1.x; made by hand or by [`RtOrb`](crate::rt::RtOrb).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Policy {
    /// PriorityModelPolicy (type 40), of an adapter: whose priority a call has.
    PriorityModel {
        /// The client's, or the object's.
        model: PriorityModel,
        /// The object's, or that of calls that bring none.
        server_priority: Priority,
    },
    /// ThreadpoolPolicy (type 41), of an adapter: which threads serve its objects.
    Threadpool(ThreadpoolId),
    /// ServerProtocolPolicy (type 42), of an adapter: by which protocols its objects are reached, and how those are set up.
    ///
    /// Endpoints are set up once: adapters that share the ORB's, or a pool, agree on that or the second one is refused.
    ServerProtocol(Vec<Protocol>),
    /// ClientProtocolPolicy (type 43), of a client or an adapter: which protocols a client shall use, best first, and how.
    ClientProtocol(Vec<Protocol>),
    /// PrivateConnectionPolicy (type 44), of a client: the reference's connection is not used by any other one.
    PrivateConnection,
    /// PriorityBandedConnectionPolicy (type 45), of a client or an adapter: priorities with connections of their own.
    PriorityBandedConnection(Vec<PriorityBand>),
}

impl Policy {
    /// Its name in the standard, without `Policy`.
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

    /// True if it is an adapter's alone: a client cannot have it.
    pub(crate) const fn is_server_only(&self) -> bool {
        matches!(
            self,
            Self::PriorityModel { .. } | Self::Threadpool(_) | Self::ServerProtocol(_)
        )
    }
}

/// A protocol and its properties (RTCORBA::Protocol).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Protocol {
    /// IIOP.
    Tcp(TcpProtocolProperties),
    /// GIOP over UNIX stream sockets.
    UnixDomain(UnixDomainProtocolProperties),
}

impl Protocol {
    /// As references tell it: TAO's form, without what the standard has no field for.
    pub(crate) fn to_wire(self) -> ior::ExposedProtocol {
        let octets = |size: u32| i32::try_from(size).unwrap_or(i32::MAX);
        match self {
            Self::Tcp(tcp) => ior::ExposedProtocol {
                profile_tag: profile_tag::INTERNET_IOP,
                properties: ior::ProtocolProperties::Tcp(ior::TcpProperties {
                    send_buffer_octets: octets(tcp.send_buffer_size),
                    recv_buffer_octets: octets(tcp.recv_buffer_size),
                    keep_alive: tcp.keep_alive,
                    dont_route: tcp.dont_route,
                    no_delay: tcp.no_delay,
                }),
            },
            Self::UnixDomain(unix) => ior::ExposedProtocol {
                profile_tag: profile_tag::TAO_UIOP,
                properties: ior::ProtocolProperties::Unix(ior::UnixProperties {
                    send_buffer_octets: octets(unix.send_buffer_size),
                    recv_buffer_octets: octets(unix.recv_buffer_size),
                }),
            },
        }
    }
}

/// TCPProtocolProperties, with TAO's addition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TcpProtocolProperties {
    /// Octets of the kernel's send buffer (SO_SNDBUF); 0 leaves it to the system.
    pub send_buffer_size: u32,
    /// Octets of the kernel's receive buffer (SO_RCVBUF); 0 leaves it to the system.
    pub recv_buffer_size: u32,
    /// Probes idle connections (SO_KEEPALIVE).
    pub keep_alive: bool,
    /// Reaches directly connected hosts only (SO_DONTROUTE).
    pub dont_route: bool,
    /// Sends small segments at once (TCP_NODELAY).
    pub no_delay: bool,
    /// Marks packets by priority: DSCP, and SO_PRIORITY for the host's own queues. A client's by that of the call; a
    /// server's by that of the lane, or the declared one of the adapter, and where both are missing, not.
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

/// UnixDomainProtocolProperties.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct UnixDomainProtocolProperties {
    /// Octets of the kernel's send buffer (SO_SNDBUF); 0 leaves it to the system.
    pub send_buffer_size: u32,
    /// Octets of the kernel's receive buffer (SO_RCVBUF); 0 leaves it to the system.
    pub recv_buffer_size: u32,
}
