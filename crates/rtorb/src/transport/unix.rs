//! UIOP's transport: UNIX stream sockets, for peers on one host.

use super::Stream;
use crate::endpoint::Endpoint;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect as connect_socket,
    sockopt,
};
use rustix::net::{listen as listen_socket, socket_with};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

/// Connects to the rendezvous point; waits no longer than `timeout` for a place in the server's queue.
pub(crate) fn connect(path: &Path, timeout: Duration) -> Result<Stream, Errno> {
    let socket = stream_socket(SocketFlags::CLOEXEC)?;
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Send, Some(timeout))?;
    connect_socket(&socket, &SocketAddrUnix::new(path)?)?;
    // The bound is on connecting alone: how long a request may take to go is the call's own affair.
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Send, None)?;
    Ok(Stream::new(socket))
}

/// Listens and answers the socket, not blocking.
///
/// A socket file that nobody listens on any more is replaced; one that is alive is `ADDRINUSE`.
pub(crate) fn listen(path: &Path) -> Result<(OwnedFd, Endpoint), Errno> {
    let address = SocketAddrUnix::new(path)?;
    let socket = stream_socket(SocketFlags::CLOEXEC | SocketFlags::NONBLOCK)?;
    match bind(&socket, &address) {
        Err(Errno::ADDRINUSE) if is_deserted(&address) => {
            rustix::fs::unlink(path)?;
            bind(&socket, &address)?;
        }
        bound => bound?,
    }
    listen_socket(&socket, BACKLOG)?;
    Ok((
        socket,
        Endpoint::Unix {
            path: path.to_owned(),
        },
    ))
}

const BACKLOG: i32 = 128;

fn is_deserted(address: &SocketAddrUnix) -> bool {
    let Ok(probe) = stream_socket(SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) else {
        return false;
    };
    connect_socket(&probe, address) == Err(Errno::CONNREFUSED)
}

fn stream_socket(flags: SocketFlags) -> Result<OwnedFd, Errno> {
    socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
}
