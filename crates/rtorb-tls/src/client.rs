//! The handshake of a client, on the thread of the call.

use crate::fault;
use crate::link::{Socket, TlsLink, errno};
use crate::verifier::take_refused;
use rtorb::security::{HandshakeError, HandshakeFault};
use rtorb::thread::Errno;
use rtorb_os::clock::{monotonic_ns, timespec};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{RecvFlags, recv};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};
use std::os::fd::BorrowedFd;
use std::sync::Arc;

/// Makes the handshake over a connected socket, until `until_ns` of the monotonic clock.
pub(crate) fn connect(
    config: &Arc<ClientConfig>,
    socket: BorrowedFd<'_>,
    host: &str,
    until_ns: u64,
) -> Result<TlsLink, HandshakeError> {
    let host = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .unwrap_or(host);
    let name = ServerName::try_from(host.to_owned()).map_err(|_| HandshakeError {
        fault: HandshakeFault::OtherName,
        detail: format!("{host:?} is neither a host name nor an address, so no certificate has it"),
    })?;
    let connection = ClientConnection::new(Arc::clone(config), name);
    let mut connection = connection.map_err(|error| fault::of_error(&error, None))?;
    let failed = |errno| HandshakeError {
        fault: HandshakeFault::Connection(errno),
        detail: String::new(),
    };
    let mut has_received = false;
    let mut stream = Socket::new(socket);
    loop {
        while connection.wants_write() {
            match connection.write_tls(&mut stream) {
                Ok(_) => {}
                Err(error) => match errno(&error) {
                    Errno::AGAIN => {
                        await_ready(socket, PollFlags::OUT, until_ns).map_err(failed)?
                    }
                    Errno::INTR => {}
                    errno => return Err(failed(errno)),
                },
            }
        }
        if !connection.is_handshaking() {
            return Ok(TlsLink::new(connection.into()));
        }
        await_ready(socket, PollFlags::IN, until_ns).map_err(failed)?;
        if !core::mem::replace(&mut has_received, true) {
            check_first(socket)?;
        }
        match connection.read_tls(&mut stream) {
            // As a server does that is full or ends: another endpoint may help.
            Ok(0) => return Err(failed(Errno::CONNRESET)),
            Ok(_) => {}
            Err(error) => match errno(&error) {
                Errno::AGAIN | Errno::INTR => continue,
                errno => return Err(failed(errno)),
            },
        }
        take_refused();
        if let Err(error) = connection.process_new_packets() {
            // The alert tells the server why; it may be gone.
            let _ = connection.write_tls(&mut stream);
            return Err(fault::of_error(&error, take_refused().as_ref()));
        }
    }
}

/// Checks that the first bytes of a peer begin a record of TLS.
fn check_first(socket: BorrowedFd<'_>) -> Result<(), HandshakeError> {
    let mut first = [0; FIRST_BYTES];
    let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
    let count = recv(socket, &mut first[..], flags).map_or(0, |(count, _)| count);
    match foreign(&first[..count]) {
        Some(detail) => Err(HandshakeError {
            fault: HandshakeFault::Plain,
            detail,
        }),
        None => Ok(()),
    }
}

/// The bytes that are looked at for what a peer speaks.
pub(crate) const FIRST_BYTES: usize = 8;

/// Returns what a peer speaks whose first bytes begin no record of TLS.
pub(crate) fn foreign(first: &[u8]) -> Option<String> {
    let is_record = match first {
        [] => true,
        [kind] => (20..=23).contains(kind),
        [kind, major, ..] => (20..=23).contains(kind) && *major == 3,
    };
    if is_record {
        return None;
    }
    Some(if first.starts_with(b"GIOP") {
        "the peer speaks GIOP without TLS".to_owned()
    } else {
        format!(
            "the peer speaks another protocol, which begins with {:?}",
            String::from_utf8_lossy(first)
        )
    })
}

fn await_ready(socket: BorrowedFd<'_>, events: PollFlags, until_ns: u64) -> Result<(), Errno> {
    loop {
        let left_ns = until_ns.saturating_sub(monotonic_ns());
        let mut interest = [PollFd::from_borrowed_fd(socket, events)];
        match poll(&mut interest, Some(&timespec(left_ns))) {
            Ok(0) if left_ns == 0 => return Err(Errno::TIMEDOUT),
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => return Ok(()),
            Err(errno) => return Err(errno),
        }
    }
}
