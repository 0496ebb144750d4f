//! IIOP's transport: TCP.

use super::Stream;
use crate::endpoint::Endpoint;
use crate::exception::Phase;
use rustix::io::Errno;
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// Connects to the first address of the host that answers, within `timeout` in all.
///
/// A name is looked up by the system's resolver, whose own time limit holds.
pub(crate) fn connect(host: &str, port: u16, timeout: Duration) -> Result<Stream, (Phase, Errno)> {
    // Some ORBs leave the brackets of a URL around an IPv6 address in their references.
    let unbracketed = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    let addresses = (unbracketed.unwrap_or(host), port)
        .to_socket_addrs()
        .map_err(|_| (Phase::Resolve, Errno::HOSTUNREACH))?;
    let begun = Instant::now();
    let mut failure = (Phase::Resolve, Errno::HOSTUNREACH);
    let count = addresses.len();
    for (number, address) in addresses.enumerate() {
        let left = timeout.saturating_sub(begun.elapsed());
        // One address that swallows all packets must not use up the time of those behind it.
        let share = left / u32::try_from(count - number).unwrap_or(u32::MAX);
        if share.is_zero() {
            return Err((Phase::Connect, Errno::TIMEDOUT));
        }
        match connect_to(&address, share) {
            Ok(stream) => return Ok(stream),
            Err(errno) => failure = (Phase::Connect, errno),
        }
    }
    Err(failure)
}

/// Listens on the first free one of `span` ports from `port` on. Returns the socket, not blocking, and the port that it has.
pub(crate) fn listen(host: &str, port: u16, span: u16) -> Result<(OwnedFd, Endpoint), Errno> {
    let last = port.saturating_add(span.saturating_sub(1));
    let mut bound = Err(Errno::ADDRINUSE);
    for port in port..=last {
        bound = TcpListener::bind((host, port)).map_err(|error| errno(&error));
        if !matches!(bound, Err(Errno::ADDRINUSE)) {
            break;
        }
    }
    let listener = bound?;
    listener
        .set_nonblocking(true)
        .map_err(|error| errno(&error))?;
    let port = listener.local_addr().map_err(|error| errno(&error))?.port();
    Ok((
        listener.into(),
        Endpoint::Tcp {
            host: host.to_owned(),
            port,
        },
    ))
}

fn connect_to(address: &SocketAddr, timeout: Duration) -> Result<Stream, Errno> {
    #[cfg(test)]
    if let Some(simulated) = crate::tests::network::connect(address) {
        return simulated;
    }
    let stream = TcpStream::connect_timeout(address, timeout).map_err(|error| errno(&error))?;
    stream.set_nodelay(true).map_err(|error| errno(&error))?;
    Ok(Stream::new(stream.into()))
}

fn errno(error: &std::io::Error) -> Errno {
    match error.raw_os_error() {
        Some(code) => Errno::from_raw_os_error(code),
        None if error.kind() == std::io::ErrorKind::TimedOut => Errno::TIMEDOUT,
        None => Errno::ADDRNOTAVAIL,
    }
}
