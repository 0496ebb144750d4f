//! Addresses of transports.

use alloc::string::String;
use core::fmt;
use std::path::PathBuf;

/// An address of a transport.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Endpoint {
    /// IIOP: GIOP over TCP.
    Tcp {
        /// A name, or an IPv4 or IPv6 address without brackets.
        host: String,
        /// The port; 0 lets the system choose when listening.
        port: u16,
    },
    /// SSLIOP: GIOP over TLS over TCP.
    Tls {
        /// A name, or an IPv4 or IPv6 address without brackets.
        host: String,
        /// The port; 0 lets the system choose when listening.
        port: u16,
    },
    /// UIOP: GIOP over a UNIX stream socket.
    Unix {
        /// The rendezvous point in the file system.
        path: PathBuf,
    },
    /// SHMIOP: GIOP through memory that client and server share, on one host.
    SharedMemory {
        /// The socket at which they meet.
        path: PathBuf,
    },
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port } if host.contains(':') => write!(f, "iiop://[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "iiop://{host}:{port}"),
            Self::Tls { host, port } if host.contains(':') => write!(f, "ssliop://[{host}]:{port}"),
            Self::Tls { host, port } => write!(f, "ssliop://{host}:{port}"),
            Self::Unix { path } => write!(f, "uiop://{}", path.display()),
            Self::SharedMemory { path } => write!(f, "shmiop://{}", path.display()),
        }
    }
}
