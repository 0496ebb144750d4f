//! The policies of RT-CORBA, for clients and for object adapters.

use super::priority::Priority;
use super::threadpool::ThreadpoolId;
use super::{PriorityBand, PriorityModel};

/// A policy of RT-CORBA 1.x; made by hand or by [`RtOrb`](super::RtOrb).
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
    ServerProtocol(Vec<Protocol>),
    /// ClientProtocolPolicy (type 43), of a client or an adapter: which protocols a client shall use, best first, and how.
    ClientProtocol(Vec<Protocol>),
    /// PrivateConnectionPolicy (type 44), of a client: the reference's connection is not used by any other one.
    PrivateConnection,
    /// PriorityBandedConnectionPolicy (type 45), of a client or an adapter: priorities with connections of their own.
    PriorityBandedConnection(Vec<PriorityBand>),
}

/// A protocol and its properties (RTCORBA::Protocol).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Protocol {
    /// IIOP.
    Tcp(TcpProtocolProperties),
    /// GIOP over UNIX stream sockets.
    UnixDomain(UnixDomainProtocolProperties),
}

/// TCPProtocolProperties, with TAO's addition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// Marks packets by the call's priority: DSCP, and SO_PRIORITY for the host's own queues.
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnixDomainProtocolProperties {
    /// Octets of the kernel's send buffer (SO_SNDBUF); 0 leaves it to the system.
    pub send_buffer_size: u32,
    /// Octets of the kernel's receive buffer (SO_RCVBUF); 0 leaves it to the system.
    pub recv_buffer_size: u32,
}
