//! What both ends of a connection know it by, so that a recording joins what they recorded of it.
//!
//! It is made of both addresses, in the same order at both ends. A UNIX socket that connects has no address of its own, so the kernel gives it one
//! (unix(7), "Autobind feature") while the recorder runs.

use crate::recorder;
use rustix::io::Errno;
use rustix::net::{SocketAddrAny, SocketAddrUnix, bind, getpeername, getsockname};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

/// Returns the identity of a connected socket; 0 if the recorder does not run, or the socket has no addresses.
pub(super) fn of(socket: &OwnedFd) -> u64 {
    if !recorder::is_running() {
        return 0;
    }
    let own = getsockname(socket).ok().and_then(number);
    let peer = getpeername(socket).ok().flatten().and_then(number);
    match (own, peer) {
        (Some(own), Some(peer)) => fold(
            fold(BASIS, &own.min(peer).to_le_bytes()),
            &own.max(peer).to_le_bytes(),
        ),
        _ => 0,
    }
}

/// Has the kernel give a UNIX socket an address that no other socket has.
pub(super) fn name(socket: &OwnedFd) -> Result<(), Errno> {
    bind(socket, &SocketAddrUnix::new_unnamed())
}

/// Returns a number for an address; `None` for one that does not tell sockets apart.
fn number(address: SocketAddrAny) -> Option<u64> {
    if let Ok(unix) = SocketAddrUnix::try_from(address.clone()) {
        return match (unix.path_bytes(), unix.abstract_name()) {
            (Some(path), _) => Some(fold(BASIS, path)),
            (None, Some(name)) => Some(fold(!BASIS, name)),
            (None, None) => None,
        };
    }
    let address = SocketAddr::try_from(address).ok()?;
    // The same host may be written as an address of IPv4 or of IPv6.
    let text = (address.ip().to_canonical(), address.port());
    let port = text.1.to_le_bytes();
    Some(match text.0 {
        std::net::IpAddr::V4(ip) => fold(fold(BASIS, &ip.octets()), &port),
        std::net::IpAddr::V6(ip) => fold(fold(BASIS, &ip.octets()), &port),
    })
}

const BASIS: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a, of which both ends must have the same result, whatever their versions.
fn fold(basis: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(basis, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
