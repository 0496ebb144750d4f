//! TCP and UNIX sockets that a service manager passed to the process, and that listen already.

use super::{ListeningSocket, SocketOwner};
use crate::endpoint::{Endpoint, InheritedSockets};
use rtorb_os::inherited::{InheritError, TakenSocket, take_sockets};
use rustix::io::{Errno, ioctl_fionbio};
use rustix::net::{SocketAddrUnix, getsockname, ipproto, sockopt};
use std::ffi::OsStr;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// Why the sockets of an endpoint cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InheritedSocketError {
    #[error(transparent)]
    NotTaken(#[from] InheritError),
    #[error("a socket is neither of TCP nor a UNIX socket with an absolute path")]
    OtherFamily,
    #[error("TLS needs a TCP socket, and {} is a UNIX socket", .0.display())]
    TlsOverUnix(PathBuf),
    #[error("the endpoint publishes addresses, and none of its sockets is of TCP")]
    NothingToPublish,
    #[error(
        "{0} is an address of one link, which no reference contains: publish another by publish=HOST:PORT"
    )]
    OfLink(Ipv6Addr),
    #[error("{0}")]
    Host(#[from] Errno),
}

/// Takes the sockets of an endpoint: at least one. `publishes` is true if references contain other addresses than theirs.
pub(super) fn take(
    sockets: &InheritedSockets,
    publishes: bool,
) -> Result<Vec<ListeningSocket>, InheritedSocketError> {
    let taken = take_sockets(&sockets.name)?.into_iter();
    let prepared = taken.map(|TakenSocket { socket, claim }| {
        let bound = address(&socket, sockets.is_secure, publishes)?;
        // Several threads are woken by one client. Those that come late must not wait for the next client.
        ioctl_fionbio(&socket, true)?;
        Ok(ListeningSocket {
            socket,
            bound,
            owner: SocketOwner::ServiceManager { _claim: claim },
        })
    });
    prepared.collect()
}

/// Returns the address of a listening socket.
fn address(
    socket: &OwnedFd,
    is_secure: bool,
    publishes: bool,
) -> Result<Endpoint, InheritedSocketError> {
    let address = getsockname(socket)?;
    if let Ok(address) = SocketAddr::try_from(address.clone()) {
        if sockopt::socket_protocol(socket)? != Some(ipproto::TCP) {
            return Err(InheritedSocketError::OtherFamily);
        }
        if !publishes {
            check_scope(address.ip())?;
        }
        let host = address.ip().to_canonical().to_string();
        let port = address.port();
        return Ok(if is_secure {
            Endpoint::Tls { host, port }
        } else {
            Endpoint::Tcp { host, port }
        });
    }
    let address = SocketAddrUnix::try_from(address).ok();
    let path = address.as_ref().and_then(SocketAddrUnix::path_bytes);
    let path = path.map(|bytes| Path::new(OsStr::from_bytes(bytes)));
    // A relative path means another file in another process, and an abstract name is in no reference.
    let path = path.filter(|path| path.is_absolute());
    let path = path.ok_or(InheritedSocketError::OtherFamily)?.to_owned();
    if is_secure {
        return Err(InheritedSocketError::TlsOverUnix(path));
    }
    Ok(Endpoint::Unix { path })
}

/// Refuses a link-local address: it means another host on each link, and a reference cannot name the link.
fn check_scope(address: IpAddr) -> Result<(), InheritedSocketError> {
    match address {
        IpAddr::V6(address) if address.is_unicast_link_local() => {
            Err(InheritedSocketError::OfLink(address))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, SocketType, bind, socket};
    use std::net::{TcpListener, UdpSocket};

    fn address_of(socket: impl Into<OwnedFd>, is_secure: bool) -> Result<String, String> {
        let address = address(&socket.into(), is_secure, false);
        address
            .map(|endpoint| endpoint.to_string())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn the_address_is_that_of_the_socket() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("it is bound").port();
        let twin = listener.try_clone().expect("a descriptor");
        let plain = address_of(listener, false);
        assert_eq!(plain, Ok(format!("iiop://127.0.0.1:{port}")));
        let secure = address_of(twin, true);
        assert_eq!(secure, Ok(format!("ssliop://127.0.0.1:{port}")));
    }

    #[test]
    fn an_address_of_one_link_is_in_no_reference() {
        let address = |text: &str| text.parse().expect("an address");
        let refused = check_scope(address("fe80::1")).expect_err("it has a scope");
        assert!(refused.to_string().contains("publish="), "{refused}");
        for reachable in ["::1", "2001:db8::1", "192.0.2.1"] {
            check_scope(address(reachable)).expect("it has none");
        }
    }

    #[test]
    fn a_unix_socket_has_an_absolute_path_and_no_tls() {
        let unix = || socket(AddressFamily::UNIX, SocketType::STREAM, None).expect("a socket");
        let folder = tempfile::tempdir().expect("the host has a folder");
        let path = folder.path().join("socket");
        let named = unix();
        bind(&named, &SocketAddrUnix::new(&path).expect("short")).expect("it is free");
        let twin = named.try_clone().expect("a descriptor");
        let expected = format!("uiop://{}", path.display());
        assert_eq!(address_of(named, false), Ok(expected));
        let error = address_of(twin, true).expect_err("TLS is over TCP");
        assert!(error.contains("TLS needs a TCP socket"), "{error}");
        let error = address_of(unix(), false).expect_err("it has no path");
        assert!(error.contains("absolute path"), "{error}");
    }

    #[test]
    fn a_socket_that_is_not_of_tcp_is_refused() {
        let datagrams = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let error = address_of(datagrams, false).expect_err("it is of UDP");
        assert!(error.contains("neither of TCP"), "{error}");
    }
}
