//! One end of a TLS connection: seals what is sent and opens what is received, on the thread of the caller.

use crate::certificate;
use crate::fault::is_refusal;
use core::sync::atomic::{AtomicBool, Ordering};
use rtorb::security::{PeerIdentity, SecureLink};
use rtorb::thread::Errno;
use rtorb_os::sync::Mutex;
use rustix::net::{RecvFlags, SendFlags, recv, send, sendmsg};
use rustls::{Connection, SupportedCipherSuite};
use std::io::{self, IoSlice, Read as _, Write as _};
use std::os::fd::BorrowedFd;
use std::sync::Arc;

/// One end of a TLS connection whose handshake is over.
#[derive(Debug)]
pub(crate) struct TlsLink {
    /// Held while bytes are sealed or opened, and in system calls that do not wait; never while a thread waits for the socket.
    state: Mutex<State>,
    holds_bytes: AtomicBool,
    peer: Option<Arc<PeerIdentity>>,
}

#[derive(Debug)]
struct State {
    connection: Connection,
    /// The number of bytes, 0 or 1, that are sealed and were counted as unsent, because the socket did not take all that is sealed.
    owed: usize,
    /// Why no more can be received.
    ended: Option<Errno>,
    /// True once the peer has sent bytes.
    has_opened: bool,
    /// The number of records that may be sealed yet.
    records_left: u64,
}

/// The most bytes that are sealed at a time: one record. The lock is free between two of them.
const SEALED_MAX: usize = 16 << 10;

/// The records that a key of TLS 1.2 seals for the handshake and for alerts; there are few, of 2^24 at least.
const OTHER_RECORDS: u64 = 256;

/// The most bytes that a peer may send in a row without a byte of content.
const EMPTY_MAX: usize = 64 << 10;

/// The most parts of a message that are sealed at a time.
const PARTS_MAX: usize = 32;

impl TlsLink {
    /// Makes the link of a connection whose handshake is over.
    pub(crate) fn new(mut connection: Connection) -> Self {
        connection.set_buffer_limit(Some(SEALED_MAX));
        let peer = connection.peer_certificates();
        let peer = peer.and_then(|chain| certificate::identity(chain.first()?));
        let mut state = State {
            records_left: records_max(&connection),
            connection,
            owed: 0,
            ended: None,
            has_opened: false,
        };
        Self {
            holds_bytes: AtomicBool::new(state.holds_bytes()),
            peer: peer.map(Arc::new),
            state: Mutex::new(state),
        }
    }
}

impl SecureLink for TlsLink {
    fn send_now(&self, socket: BorrowedFd<'_>, parts: &[IoSlice<'_>]) -> Result<usize, Errno> {
        let mut room = [(); PARTS_MAX].map(|()| IoSlice::new(&[]));
        let count = parts.len().min(PARTS_MAX);
        room[..count].copy_from_slice(&parts[..count]);
        let mut parts = &mut room[..count];
        let mut sent = 0;
        loop {
            let mut state = self.state.lock();
            // What is sealed goes first.
            if !state.flush(socket)? {
                return Ok(sent);
            }
            let owed = core::mem::take(&mut state.owed);
            sent += owed;
            IoSlice::advance_slices(&mut parts, owed);
            if parts.iter().all(|part| part.is_empty()) {
                return Ok(sent);
            }
            let left = state.records_left.checked_sub(1);
            state.records_left = left.ok_or(Errno::PIPE)?;
            let sealed = state.connection.writer().write_vectored(parts);
            let sealed = sealed.map_err(|error| errno(&error))?;
            if !state.flush(socket)? {
                // A message of which no byte counts as sent would not be finished by its sender.
                state.owed = 1;
                return Ok(sent + sealed - 1);
            }
            sent += sealed;
            IoSlice::advance_slices(&mut parts, sealed);
        }
    }

    fn receive_now(&self, socket: BorrowedFd<'_>, into: &mut [u8]) -> Result<usize, Errno> {
        let mut state = self.state.lock();
        let received = state.receive(socket, into);
        let holds_bytes = received.is_ok_and(|count| count == into.len()) && state.holds_bytes();
        self.holds_bytes.store(holds_bytes, Ordering::Release);
        received
    }

    fn holds_bytes(&self) -> bool {
        self.holds_bytes.load(Ordering::Acquire)
    }

    fn end_sending(&self, socket: BorrowedFd<'_>) {
        let mut state = self.state.lock();
        state.connection.send_close_notify();
        // The peer finds the end of the socket too.
        let _ = state.flush(socket);
    }

    fn peer(&self) -> Option<&Arc<PeerIdentity>> {
        self.peer.as_ref()
    }
}

impl State {
    /// Sends what is sealed. Returns false if the socket does not take all of it.
    fn flush(&mut self, socket: BorrowedFd<'_>) -> Result<bool, Errno> {
        while self.connection.wants_write() {
            match self.connection.write_tls(&mut Socket::new(socket)) {
                Ok(_) => {}
                Err(error) => match errno(&error) {
                    Errno::AGAIN => return Ok(false),
                    Errno::INTR => {}
                    failed => return Err(self.reason_of(socket, failed)),
                },
            }
        }
        Ok(true)
    }

    /// Returns why sending has failed: a peer that refuses the certificate of this side says so, and closes.
    #[cold]
    fn reason_of(&mut self, socket: BorrowedFd<'_>, failed: Errno) -> Errno {
        if !self.has_opened && matches!(failed, Errno::PIPE | Errno::CONNRESET) {
            let mut reader = Socket::new(socket);
            while self.ended.is_none() && matches!(self.open_some(&mut reader), Ok(1..)) {}
        }
        match self.ended {
            Some(Errno::KEYREJECTED) => Errno::KEYREJECTED,
            _ => failed,
        }
    }

    /// Fills `into` until the socket has no more.
    fn receive(&mut self, socket: BorrowedFd<'_>, into: &mut [u8]) -> Result<usize, Errno> {
        let mut socket = Socket::new(socket);
        let mut total = 0;
        let mut empty = 0;
        while total < into.len() {
            match self.connection.reader().read(&mut into[total..]) {
                Ok(0) => return Ok(total),
                Ok(count) => {
                    total += count;
                    empty = 0;
                    self.has_opened = true;
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // The peer has ended without close_notify. Its messages say whether one is cut.
                Err(_) => return Ok(total),
            }
            if let Some(errno) = self.ended {
                return (total > 0).then_some(total).ok_or(errno);
            }
            if socket.is_empty {
                break;
            }
            let opened = match self.open_some(&mut socket) {
                Ok(opened) => opened,
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => continue,
                Err(errno) => return (total > 0).then_some(total).ok_or(errno),
            };
            empty += opened;
            if empty > EMPTY_MAX && !self.holds_bytes() {
                self.ended = Some(Errno::PROTO);
            }
        }
        (total > 0 || into.is_empty())
            .then_some(total)
            .ok_or(Errno::AGAIN)
    }

    /// Reads from the socket once, and opens the records that are whole. Returns the number of bytes, 0 at the end.
    fn open_some(&mut self, socket: &mut Socket<'_>) -> Result<usize, Errno> {
        let read = self.connection.read_tls(socket);
        let read = read.map_err(|error| errno(&error))?;
        if let Err(error) = self.connection.process_new_packets() {
            let is_refusal = !self.has_opened && is_refusal(&error);
            self.ended = Some(if is_refusal {
                Errno::KEYREJECTED
            } else {
                Errno::PROTO
            });
            // The alert, if the socket takes it.
            let _ = self.connection.write_tls(socket);
        }
        Ok(read)
    }

    fn holds_bytes(&mut self) -> bool {
        let first = self.connection.reader().into_first_chunk();
        first.is_ok_and(|chunk| !chunk.is_empty())
    }
}

/// A socket, read and written without waiting.
pub(crate) struct Socket<'s> {
    socket: BorrowedFd<'s>,
    /// True if the last read took all that was there.
    pub(crate) is_empty: bool,
}

impl<'s> Socket<'s> {
    pub(crate) fn new(socket: BorrowedFd<'s>) -> Self {
        Self {
            socket,
            is_empty: false,
        }
    }
}

impl io::Read for Socket<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let room = into.len();
        let (_, count) = recv(self.socket, into, RecvFlags::DONTWAIT)?;
        self.is_empty = count > 0 && count < room;
        Ok(count)
    }
}

impl io::Write for Socket<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(send(self.socket, bytes, NOW)?)
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        Ok(sendmsg(self.socket, parts, &mut Default::default(), NOW)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the number of records that a connection may seal. TLS 1.3 changes its keys in time. A key of TLS 1.2 is used up: rustls would
/// then count bytes as sealed that it drops.
fn records_max(connection: &Connection) -> u64 {
    match connection.negotiated_cipher_suite() {
        Some(SupportedCipherSuite::Tls12(suite)) => {
            let records = suite.common.confidentiality_limit;
            records.saturating_sub(OTHER_RECORDS)
        }
        _ => u64::MAX,
    }
}

const NOW: SendFlags = SendFlags::NOSIGNAL.union(SendFlags::DONTWAIT);

/// Returns the error number of a system call of [`Socket`]; `PROTO` for an error that TLS itself found.
pub(crate) fn errno(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::PROTO)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::AUTHORITY;
    use crate::test_keys::server_keys;
    use rtorb::security::ClientCertificates;
    use rustls::crypto::ring;
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject as _;
    use rustls::version::{TLS12, TLS13};
    use rustls::{
        ClientConfig, ClientConnection, RootCertStore, ServerConnection, SupportedProtocolVersion,
    };
    use std::os::fd::AsFd as _;
    use std::os::unix::net::UnixStream;

    /// Takes what one end has sealed to the other.
    fn pass(from: &mut Connection, to: &mut Connection) {
        let mut sealed = Vec::new();
        while from.wants_write() {
            from.write_tls(&mut sealed).expect("there is room");
        }
        let mut unread = sealed.as_slice();
        while !unread.is_empty() {
            to.read_tls(&mut unread).expect("it is in memory");
            to.process_new_packets().expect("right certificates");
        }
    }

    /// A client whose handshake of this version is over.
    fn client(version: &'static SupportedProtocolVersion) -> Connection {
        let (folder, settings) = server_keys();
        let configs = settings.clients(ClientCertificates::None).configs();
        let server = configs.expect("right files").server;
        let server = ServerConnection::new(server.expect("it has a certificate"));
        let mut roots = RootCertStore::empty();
        let root = CertificateDer::from_pem_file(folder.path().join(AUTHORITY));
        roots
            .add(root.expect("it is there"))
            .expect("a certificate");
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[version])
            .expect("right settings")
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = "localhost".try_into().expect("a name");
        let client = ClientConnection::new(Arc::new(config), name).expect("right settings");
        let mut client = Connection::from(client);
        let mut server = Connection::from(server.expect("right settings"));
        for _ in 0..4 {
            pass(&mut client, &mut server);
            pass(&mut server, &mut client);
        }
        assert!(!client.is_handshaking());
        client
    }

    /// After 2^24 records of TLS 1.2, rustls takes bytes and sends nothing but the end.
    #[test]
    fn nothing_counts_as_sent_that_a_used_up_key_does_not_seal() {
        let (near, _far) = UnixStream::pair().expect("the host has descriptors");
        let link = TlsLink::new(client(&TLS12));
        let send = |bytes: &[u8]| link.send_now(near.as_fd(), &[IoSlice::new(bytes)]);
        assert_eq!(send(b"first"), Ok(5));
        let left = core::mem::replace(&mut link.state.lock().records_left, 1);
        assert_eq!(left, (1 << 24) - OTHER_RECORDS - 1);
        assert_eq!(send(b"last"), Ok(4));
        assert_eq!(send(b"more"), Err(Errno::PIPE));
        let link = TlsLink::new(client(&TLS13));
        assert_eq!(link.state.lock().records_left, u64::MAX);
    }
}
