//! IIOP's transport: TCP.

use super::resolver::Resolver;
use super::{QUEUE_MAX, Stream};
use crate::clock::monotonic_ns;
use crate::exception::Phase;
use rustix::io::Errno;
use rustix::net::listen as listen_socket;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::time::Duration;

/// Connects to the first address of the host that accepts, by `until_ns` of the monotonic clock.
pub(crate) fn connect(
    resolver: &Resolver,
    host: &str,
    port: u16,
    until_ns: u64,
) -> Result<Stream, (Phase, Errno)> {
    // Some ORBs leave the brackets of a URL around an IPv6 address in their references.
    let unbracketed = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    let host = unbracketed.unwrap_or(host);
    let addresses = resolver
        .addresses(host, port, until_ns)
        .map_err(|errno| (Phase::Resolve, errno))?;
    let mut failure = Errno::HOSTUNREACH;
    for (number, address) in addresses.iter().enumerate() {
        let left_ns = until_ns.saturating_sub(monotonic_ns());
        // An address that drops all packets must not use up the time of the other addresses.
        let share_ns = left_ns / (addresses.len() - number) as u64;
        if share_ns == 0 {
            return Err((Phase::Connect, Errno::TIMEDOUT));
        }
        match connect_to(address, Duration::from_nanos(share_ns)) {
            Ok(stream) => return Ok(stream),
            Err(errno) => failure = errno,
        }
    }
    Err((Phase::Connect, failure))
}

/// Listens on the first free one of `span` ports, from `port` on. Returns the non-blocking socket, and the port.
pub(crate) fn listen(host: &str, port: u16, span: u16) -> Result<(OwnedFd, u16), Errno> {
    let last = port.saturating_add(span.saturating_sub(1));
    let mut bound = Err(Errno::ADDRINUSE);
    for port in port..=last {
        bound = TcpListener::bind((host, port)).map_err(|error| errno(&error));
        if !matches!(bound, Err(Errno::ADDRINUSE)) {
            break;
        }
    }
    let listener = bound?;
    // The queue of the standard library is shorter.
    listen_socket(&listener, QUEUE_MAX)?;
    listener
        .set_nonblocking(true)
        .map_err(|error| errno(&error))?;
    let port = listener.local_addr().map_err(|error| errno(&error))?.port();
    Ok((listener.into(), port))
}

fn connect_to(address: &SocketAddr, timeout: Duration) -> Result<Stream, Errno> {
    #[cfg(test)]
    if let Some(simulated) = crate::tests::network::connect(address, timeout) {
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
