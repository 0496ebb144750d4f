//! Streams of bytes between two ORBs, and listening sockets.
//!
//! `tcp` and `unix` connect and listen; both result in a stream socket, so calls take the same path. The bytes of `shared_memory` go
//! through memory beside its socket. `inherited` has listening sockets that a service manager opened. `resolver` finds the addresses of host
//! names for `tcp`.

mod carrier;
mod identity;
mod inherited;
pub(crate) mod properties;
pub(crate) mod resolver;
pub(crate) mod shared_memory;
pub(crate) mod socket;
pub(crate) mod tcp;
pub(crate) mod unix;

pub(crate) use inherited::InheritedSocketError;

use crate::clock::monotonic_ns;
use crate::endpoint::{Endpoint, InheritedSockets, ListenEndpoint, host_name};
use crate::interceptors::RequestPeer;
use crate::realtime::{NetworkPriority, Protocol};
use crate::security::{PeerIdentity, SecureLink, SecureListener, SecureTransport, SecurityReport};
#[cfg(test)]
use crate::tests::network as calls;
use carrier::Carrier;
use core::fmt;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use rtorb_os::inherited::SocketClaim;
use rtorb_os::set_once::SetOnce;
use rtorb_wire::cdr::Segment;
use rtorb_wire::giop::{HEADER_BYTES, Header, MessageType};
use rustix::event::epoll::EventFlags;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown, SocketFlags, getpeername,
    sockopt,
};
#[cfg(not(test))]
use socket as calls;
use std::io::IoSlice;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// Clients that wait until a listener accepts them, unless the host allows fewer (`net.core.somaxconn`).
pub(crate) const QUEUE_MAX: i32 = 1024;

/// A connected, blocking stream socket, or shared memory with such a socket beside it.
#[derive(Debug)]
pub(crate) struct Stream {
    /// What carries the bytes, if that is not the socket alone. It is dropped before the socket, so that a peer that shares memory finds
    /// all bytes before the end.
    carrier: Option<Carrier>,
    /// 0 for none.
    identity: u64,
    socket: OwnedFd,
}

/// The largest number of parts in one system call. The kernel takes 1024; a message has far fewer.
const PARTS_MAX: usize = 18;

/// The error for a message that was not sent completely.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unsent {
    /// The cause; `AGAIN` if the deadline has passed.
    pub(crate) errno: Errno,
    /// True if a part was sent: the peer would take the next message on this stream for the rest.
    pub(crate) has_begun: bool,
}

impl Unsent {
    /// Makes the error for a message of which no byte was sent.
    #[cold]
    pub(crate) const fn whole(errno: Errno) -> Self {
        Self {
            errno,
            has_begun: false,
        }
    }
}

/// Flags of a system call that does not wait.
const NOW: SendFlags = SendFlags::NOSIGNAL.union(SendFlags::DONTWAIT);

/// Bytes that one read discards.
const DRAIN_BYTES: usize = 8 << 10;

/// The largest number of reads that discard bytes: a peer that never stops sending must not hold the thread.
const DRAINS_MAX: usize = 512;

/// Returns true if `head` begins a message after which a server ends the connection.
fn is_farewell(head: &[u8]) -> bool {
    let header = Header::parse(head, usize::MAX).ok().flatten();
    let kind = header.map(|header| header.message_type);
    matches!(
        kind,
        Some(MessageType::CloseConnection | MessageType::MessageError)
    )
}

/// Returns the parts of a message, and their number: the ORB's own bytes, with borrowed ones between them.
fn gather<'m>(own: &'m [u8], lent: &[Segment<'m>]) -> ([IoSlice<'m>; PARTS_MAX], usize) {
    let mut parts = [(); PARTS_MAX].map(|()| IoSlice::new(&[]));
    let mut count = 0;
    let mut from = 0;
    for segment in lent {
        parts[count] = IoSlice::new(&own[from..segment.after]);
        parts[count + 1] = IoSlice::new(segment.bytes);
        count += 2;
        from = segment.after;
    }
    parts[count] = IoSlice::new(&own[from..]);
    (parts, count + 1)
}

impl Stream {
    pub(crate) fn new(socket: OwnedFd) -> Self {
        Self {
            carrier: None,
            identity: identity::of(&socket),
            socket,
        }
    }

    /// Makes a stream whose bytes a secure transport seals and opens.
    pub(crate) fn secured(mut self, link: Arc<dyn SecureLink>) -> Self {
        self.carrier = Some(Carrier::Secure(link));
        self
    }

    /// Makes a stream whose bytes go through shared memory.
    pub(crate) fn through(memory: shared_memory::MemoryLink, socket: OwnedFd) -> Self {
        Self {
            carrier: Some(Carrier::Memory(Arc::new(memory))),
            identity: identity::of(&socket),
            socket,
        }
    }

    /// Returns what both ends know the connection by in recordings; 0 if it was opened before the recorder ran.
    #[inline]
    pub(crate) fn identity(&self) -> u64 {
        self.identity
    }

    /// Returns the memory that carries the bytes, if the peers share memory.
    pub(crate) fn memory(&self) -> Option<&Arc<shared_memory::MemoryLink>> {
        match &self.carrier {
            Some(Carrier::Memory(memory)) => Some(memory),
            _ => None,
        }
    }

    /// Returns true if the socket carries the bytes as they are: [`peek`](Self::peek) can see those that have arrived.
    pub(crate) fn shows_unread_bytes(&self) -> bool {
        self.carrier.is_none()
    }

    /// Returns true if a secure transport holds bytes that are opened and not received.
    pub(crate) fn holds_opened_bytes(&self) -> bool {
        matches!(&self.carrier, Some(Carrier::Secure(link)) if link.holds_bytes())
    }

    /// Returns who the peer has proved to be, if it has.
    #[cold]
    pub(crate) fn peer_identity(&self) -> Option<&Arc<PeerIdentity>> {
        match &self.carrier {
            Some(Carrier::Secure(link)) => link.peer(),
            _ => None,
        }
    }

    /// Returns the IP address of the peer, if it has one.
    pub(crate) fn peer_address(&self) -> Option<IpAddr> {
        let address = getpeername(&self.socket).ok()??;
        let address = SocketAddr::try_from(address).ok()?;
        Some(address.ip().to_canonical())
    }

    /// Returns the peer, for interceptors.
    pub(crate) fn peer(&self) -> RequestPeer {
        let address = getpeername(&self.socket).ok().flatten();
        let address = address.and_then(|address| SocketAddr::try_from(address).ok());
        if let Some(address) = address {
            let ip = address.ip().to_canonical();
            return RequestPeer::Tcp(SocketAddr::new(ip, address.port()));
        }
        sockopt::socket_peercred(&self.socket).map_or(RequestPeer::Gone, |peer| {
            RequestPeer::Process {
                pid: peer.pid.as_raw_nonzero().get(),
                uid: peer.uid.as_raw(),
                gid: peer.gid.as_raw(),
            }
        })
    }

    /// Prepares the stream for an event loop: its descriptor becomes readable when bytes arrive.
    pub(crate) fn register_for_polling(&self) {
        if let Some(memory) = self.memory() {
            memory.register_for_polling();
        }
    }

    /// Returns true if there are bytes that the descriptor does not report. Receive them before you wait for the descriptor.
    ///
    /// A socket stays readable as long as it has bytes. The doorbell of shared memory rings once, and a secure transport may hold opened bytes.
    #[inline]
    pub(crate) fn holds_unreported_bytes(&self) -> bool {
        self.carrier
            .as_ref()
            .is_some_and(Carrier::holds_unreported_bytes)
    }

    /// Returns true if a thread lingers on this connection before it waits in an event loop.
    #[inline]
    pub(crate) fn lingers(&self) -> bool {
        self.memory().is_some_and(|memory| memory.lingers())
    }

    /// Lingers. Returns true if there are bytes that the descriptor does not report.
    pub(crate) fn linger(&self) -> bool {
        self.memory().is_some_and(|memory| memory.linger())
    }

    /// Returns the events that report room for bytes to send.
    pub(crate) fn room_events(&self) -> EventFlags {
        match self.memory() {
            None => EventFlags::OUT,
            Some(_) => EventFlags::IN,
        }
    }

    /// Notes that an event loop has reported room for bytes to send.
    pub(crate) fn note_room_event(&self) {
        if let Some(memory) = self.memory() {
            memory.read_doorbell(&self.socket);
        }
    }

    /// Sends all bytes: one system call, unless the peer takes them slowly.
    #[inline]
    pub(crate) fn send(&self, bytes: &[u8]) -> Result<(), Unsent> {
        if let Some(carrier) = &self.carrier {
            return carrier.send_bytes(&self.socket, bytes);
        }
        loop {
            match calls::send(&self.socket, bytes, SendFlags::NOSIGNAL) {
                Ok(sent) if sent == bytes.len() => return Ok(()),
                Ok(sent) => return self.send_rest(&mut [IoSlice::new(&bytes[sent..])]),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(Unsent::whole(errno)),
            }
        }
    }

    /// Sends the rest of a message. Fails with `AGAIN` if that takes longer in all than the socket's send timeout.
    ///
    /// The kernel applies the timeout to each system call alone: a peer that takes a byte now and then could hold this thread without limit.
    #[cold]
    fn send_rest(&self, parts: &mut [IoSlice<'_>]) -> Result<(), Unsent> {
        let begun = |errno| Unsent {
            errno,
            has_begun: true,
        };
        let deadline_ns = carrier::send_deadline(&self.socket).map_err(begun)?;
        self.send_parts_by(parts, deadline_ns)
            .map_err(|unsent| begun(unsent.errno))
    }

    /// Sends a message: the ORB's own bytes, with borrowed ones between them.
    #[inline]
    pub(crate) fn send_message(&self, own: &[u8], lent: &[Segment<'_>]) -> Result<(), Unsent> {
        if lent.is_empty() {
            return self.send(own);
        }
        let (mut parts, count) = gather(own, lent);
        let mut parts = &mut parts[..count];
        if let Some(carrier) = &self.carrier {
            return carrier.send(&self.socket, parts, None);
        }
        loop {
            match calls::sendmsg(
                &self.socket,
                parts,
                &mut SendAncillaryBuffer::default(),
                SendFlags::NOSIGNAL,
            ) {
                Ok(sent) => {
                    IoSlice::advance_slices(&mut parts, sent);
                    return if parts.iter().all(|part| part.is_empty()) {
                        Ok(())
                    } else {
                        self.send_rest(parts)
                    };
                }
                Err(Errno::INTR) => {}
                Err(errno) => return Err(Unsent::whole(errno)),
            }
        }
    }

    /// Sends a message as [`send_message`](Self::send_message) does, on a stream that several threads use, until `deadline_ns` of the
    /// monotonic clock at the latest.
    pub(crate) fn send_message_by(
        &self,
        own: &[u8],
        lent: &[Segment<'_>],
        deadline_ns: Option<u64>,
    ) -> Result<(), Unsent> {
        self.send_rest_by(own, lent, 0, deadline_ns)
    }

    /// Sends the rest of a message whose first `sent` bytes are sent, as [`send_message_by`](Self::send_message_by) does.
    pub(crate) fn send_rest_by(
        &self,
        own: &[u8],
        lent: &[Segment<'_>],
        sent: usize,
        deadline_ns: Option<u64>,
    ) -> Result<(), Unsent> {
        let (mut parts, count) = gather(own, lent);
        let mut parts = &mut parts[..count];
        IoSlice::advance_slices(&mut parts, sent);
        self.send_parts_by(parts, deadline_ns)
    }

    /// Sends all parts, and waits for room in the socket until `deadline_ns` at the latest.
    fn send_parts_by(
        &self,
        mut parts: &mut [IoSlice<'_>],
        deadline_ns: Option<u64>,
    ) -> Result<(), Unsent> {
        if let Some(carrier) = &self.carrier {
            return carrier.send(&self.socket, parts, deadline_ns);
        }
        let mut has_begun = false;
        loop {
            let sent = calls::sendmsg(
                &self.socket,
                parts,
                &mut SendAncillaryBuffer::default(),
                NOW,
            );
            let unsent = |errno| Unsent { errno, has_begun };
            match sent {
                Ok(sent) => {
                    has_begun |= sent > 0;
                    IoSlice::advance_slices(&mut parts, sent);
                    if parts.iter().all(|part| part.is_empty()) {
                        return Ok(());
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    let is_ready = await_ready(&self.socket, PollFlags::OUT, deadline_ns);
                    if !is_ready.map_err(unsent)? {
                        return Err(unsent(Errno::AGAIN));
                    }
                }
                Err(errno) => return Err(unsent(errno)),
            }
        }
    }

    /// Sends as much of a message as the socket takes at once, in one system call. Returns the number of bytes.
    #[inline]
    pub(crate) fn send_message_now(
        &self,
        own: &[u8],
        lent: &[Segment<'_>],
    ) -> Result<usize, Errno> {
        if self.carrier.is_some() || !lent.is_empty() {
            return self.send_gathered_now(own, lent);
        }
        loop {
            match calls::send(&self.socket, own, NOW) {
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(0),
                sent => return sent,
            }
        }
    }

    // Inlined, it would cost a message without borrowed bytes 30 instructions.
    #[inline(never)]
    fn send_gathered_now(&self, own: &[u8], lent: &[Segment<'_>]) -> Result<usize, Errno> {
        if let Some(carrier) = &self.carrier {
            return carrier.send_message_now(&self.socket, own, lent);
        }
        let (parts, count) = gather(own, lent);
        loop {
            let mut none = SendAncillaryBuffer::default();
            match calls::sendmsg(&self.socket, &parts[..count], &mut none, NOW) {
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(0),
                sent => return sent,
            }
        }
    }

    /// Copies the bytes that have arrived and are not received, without waiting. Returns 0 if the peer has ended. Those of shared memory
    /// and of a secure transport are not seen (`AGAIN`).
    #[cold]
    pub(crate) fn peek(&self, into: &mut [u8]) -> Result<usize, Errno> {
        if self.carrier.is_some() {
            return Err(Errno::AGAIN);
        }
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        calls::recv(&self.socket, into, flags).map(|(_, count)| count)
    }

    /// Has [`receive`](Self::receive) at a socket wait for `timeout` at most; without one, as long as it takes. The kernel's timers may add
    /// an eighth. A wait at shared memory has no timeout: it [can be interrupted](shared_memory::MemoryLink::interrupt).
    ///
    /// The kernel then sets a timer in each wait, which takes 15 to 30 ns on some hosts, and 0.2 us, 2 % of a call, on a virtual machine.
    #[cold]
    pub(crate) fn set_receive_timeout(&self, timeout: Option<Duration>) -> Result<(), Errno> {
        if self.memory().is_some() {
            return Ok(());
        }
        sockopt::set_socket_timeout(&self.socket, sockopt::Timeout::Recv, timeout)
    }

    /// Receives at least one byte. Returns 0 if the peer has ended, `AGAIN` if the receive timeout has passed.
    #[inline]
    pub(crate) fn receive(&self, into: &mut [u8]) -> Result<usize, Errno> {
        if let Some(carrier) = &self.carrier {
            return carrier.receive(&self.socket, into);
        }
        loop {
            match calls::recv(&self.socket, &mut *into, RecvFlags::empty()) {
                Err(Errno::INTR) => {}
                answer => return answer.map(|(received, _)| received),
            }
        }
    }

    /// Receives available bytes without waiting.
    pub(crate) fn receive_now(&self, into: &mut [u8]) -> Result<usize, Errno> {
        if let Some(carrier) = &self.carrier {
            return carrier.receive_now(&self.socket, into);
        }
        calls::recv(&self.socket, into, RecvFlags::DONTWAIT).map(|(received, _)| received)
    }

    /// Returns true if the peer has ended the connection or has sent MessageError. One system call, which removes no byte from the
    /// socket. Call it when no reply is due.
    #[cold]
    pub(crate) fn has_ended(&self) -> bool {
        if let Some(carrier) = &self.carrier {
            return carrier.has_peer_ended(&self.socket);
        }
        let mut head = [0; HEADER_BYTES];
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        match calls::recv(&self.socket, &mut head[..], flags) {
            Ok((0, _)) => true,
            Ok((received, _)) => is_farewell(&head[..received]),
            Err(errno) => !matches!(errno, Errno::AGAIN | Errno::INTR),
        }
    }

    /// Returns true if the end is what is received next: this or the other side has ended the connection, and no bytes are unread. Those of
    /// shared memory and of a secure transport are not seen, and count as unread.
    #[cold]
    pub(crate) fn is_over(&self) -> bool {
        match self.peek(&mut [0]) {
            Ok(unread) => unread == 0,
            Err(errno) => !matches!(errno, Errno::AGAIN | Errno::INTR),
        }
    }

    /// Waits until either side has ended sending to this one, whatever is unread. Returns false if `until_ns` passes first.
    #[cold]
    pub(crate) fn await_hangup(&self, until_ns: u64) -> Result<bool, Errno> {
        await_ready(&self.socket, PollFlags::RDHUP, Some(until_ns))
    }

    /// Appends received bytes to `into` without waiting: at most `bytes_max`, and no more than it has room for.
    #[inline]
    pub(crate) fn receive_behind_now(
        &self,
        into: &mut Vec<u8>,
        bytes_max: usize,
    ) -> Result<usize, Errno> {
        if let Some(carrier) = &self.carrier {
            return carrier.receive_behind_now(&self.socket, into, bytes_max);
        }
        calls::receive_behind_now(&self.socket, into, bytes_max)
    }

    /// Waits until bytes can be received. Returns false if `deadline_ns` of the monotonic clock passes first.
    pub(crate) fn await_readable(&self, deadline_ns: Option<u64>) -> Result<bool, Errno> {
        match &self.carrier {
            Some(Carrier::Memory(memory)) => memory.await_readable(&self.socket, deadline_ns),
            Some(Carrier::Secure(link)) if link.holds_bytes() => Ok(true),
            _ => await_ready(&self.socket, PollFlags::IN, deadline_ns),
        }
    }

    /// Receives available bytes and discards them, up to a bound.
    pub(crate) fn drain(&self) {
        if let Some(memory) = self.memory() {
            return memory.discard(&self.socket);
        }
        // Not initialised: a server that closes drains several times, and most of these receive nothing.
        let mut room = [MaybeUninit::<u8>::uninit(); DRAIN_BYTES];
        for _ in 0..DRAINS_MAX {
            match calls::recv(&self.socket, &mut room[..], RecvFlags::DONTWAIT) {
                Ok((_, 1..)) | Err(Errno::INTR) => {}
                Ok(_) | Err(_) => return,
            }
        }
    }

    /// Returns true if the peer's host has all sent bytes, or will never have them: then closing loses nothing.
    pub(crate) fn is_acknowledged(&self) -> bool {
        // The peer keeps memory for as long as it maps it.
        if self.memory().is_some() || calls::unacknowledged_bytes(&self.socket).unwrap_or(0) == 0 {
            return true;
        }
        // A connection that was reset acknowledges nothing any more.
        let now = rtorb_os::clock::timespec(0);
        let events = calls::poll(&self.socket, PollFlags::empty(), Some(&now));
        events.is_ok_and(|events| events.intersects(PollFlags::HUP | PollFlags::ERR))
    }

    /// Ends sending: after the sent bytes, the peer reads the end of the stream.
    pub(crate) fn end_sending(&self) {
        self.shutdown(Shutdown::Write);
    }

    /// Ends both directions, and wakes all threads that send or receive.
    pub(crate) fn shut(&self) {
        self.shutdown(Shutdown::Both);
    }

    /// Ends receiving, and wakes all threads that receive.
    pub(crate) fn end_receiving(&self) {
        self.shutdown(Shutdown::Read);
    }
}

impl Stream {
    fn shutdown(&self, what: Shutdown) {
        match &self.carrier {
            Some(carrier) => carrier.end(&self.socket, what),
            // It fails only if the peer is gone, and then the socket is shut.
            None => drop(calls::shutdown(&self.socket, what)),
        }
    }
}

impl Stream {
    /// Returns true if IP packets carry the bytes.
    pub(crate) fn is_tcp(&self) -> bool {
        let domain = sockopt::socket_domain(&self.socket);
        matches!(domain, Ok(AddressFamily::INET | AddressFamily::INET6))
    }
}

/// Waits for an event of a socket. Returns false if `deadline_ns` passes first.
fn await_ready(socket: &OwnedFd, what: PollFlags, deadline_ns: Option<u64>) -> Result<bool, Errno> {
    loop {
        let left = match deadline_ns.map(|deadline_ns| deadline_ns.saturating_sub(monotonic_ns())) {
            Some(0) => return Ok(false),
            left => left.map(rtorb_os::clock::timespec),
        };
        match calls::poll(socket, what, left.as_ref()) {
            Ok(events) => return Ok(!events.is_empty()),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// A listening socket, and its endpoint with the actual port.
#[derive(Debug)]
pub(crate) struct Listener {
    /// It is readable while a client waits. For TLS it is not the listening socket.
    pub(crate) socket: OwnedFd,
    secure: Option<SecurePort>,
    pub(crate) bound: Endpoint,
    /// The endpoints for references, if this is a TCP port.
    published: Vec<Endpoint>,
    options: SetOnce<ConnectionOptions>,
    owner: SocketOwner,
    ended: AtomicBool,
}

/// A non-blocking listening socket, its address, and who ends it.
#[derive(Debug)]
struct ListeningSocket {
    socket: OwnedFd,
    bound: Endpoint,
    owner: SocketOwner,
}

/// Who opened a listening socket, and ends it.
#[derive(Debug)]
enum SocketOwner {
    /// The listener, with the socket file that it made.
    Listener(Option<unix::SocketFile>),
    /// A service manager. Its copy of the socket listens on, and clients wait there for the next run of the server.
    ServiceManager {
        /// No other listener has the socket as long as this one has it.
        _claim: SocketClaim,
    },
}

/// A port whose clients make a handshake before they are accepted.
#[derive(Debug)]
struct SecurePort {
    socket: OwnedFd,
    clients: Box<dyn SecureListener>,
    wants_client_certificate: bool,
}

/// What secures the connections of an ORB, and where it reports refused clients and files that it cannot use.
#[derive(Clone)]
pub(crate) struct Securing {
    pub(crate) transport: Option<Arc<dyn SecureTransport>>,
    pub(crate) report: SecurityReport,
}

impl fmt::Debug for Securing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Securing")
            .field("transport", &self.transport)
            .finish_non_exhaustive()
    }
}

impl Default for Securing {
    fn default() -> Self {
        Self {
            transport: None,
            report: Arc::new(|_| ()),
        }
    }
}

impl Securing {
    /// Returns what secures ports; `PROTONOSUPPORT` if the ORB has nothing for that.
    fn transport(&self) -> Result<&Arc<dyn SecureTransport>, Errno> {
        self.transport.as_ref().ok_or(Errno::PROTONOSUPPORT)
    }

    /// Secures a listening TCP socket. Returns what is readable while a client waits, and the port.
    fn secure(&self, socket: OwnedFd) -> Result<(OwnedFd, SecurePort), Errno> {
        let transport = self.transport()?;
        let report = Arc::clone(&self.report);
        let clients = transport.listen(fcntl_dupfd_cloexec(&socket, 0)?, report)?;
        let readiness = clients.readiness()?;
        let port = SecurePort {
            socket,
            clients,
            wants_client_certificate: transport.wants_client_certificate(),
        };
        Ok((readiness, port))
    }
}

/// Options of accepted connections, from the protocol policy of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConnectionOptions {
    pub(crate) protocol: Protocol,
    /// The marks of sent packets; `None` leaves them unmarked.
    pub(crate) marks: Option<NetworkPriority>,
}

impl ConnectionOptions {
    fn apply(&self, socket: &OwnedFd) -> Result<(), Errno> {
        properties::apply(socket, &self.protocol)?;
        self.marks
            .map_or(Ok(()), |marks| properties::mark(socket, marks))
    }
}

impl Listener {
    /// Returns true if `endpoint` is this listener's own, or is in its references.
    pub(crate) fn leads_to(&self, endpoint: &Endpoint) -> bool {
        self.bound == *endpoint || self.published.contains(endpoint)
    }

    /// Returns the endpoints for references, if this is a TCP port.
    pub(crate) fn published(&self) -> &[Endpoint] {
        &self.published
    }

    /// Opens a socket at an address.
    pub(crate) fn bind(
        endpoint: &Endpoint,
        listen: &ListenEndpoint,
        securing: &Securing,
    ) -> Result<Self, Errno> {
        let (socket, bound, file) = match endpoint {
            Endpoint::Tcp { host, port } => {
                let (socket, port) = tcp::listen(host, *port, listen.port_span)?;
                let host = host.clone();
                (socket, Endpoint::Tcp { host, port }, None)
            }
            Endpoint::Tls { host, port } => {
                securing.transport()?;
                let (socket, port) = tcp::listen(host, *port, listen.port_span)?;
                let host = host.clone();
                (socket, Endpoint::Tls { host, port }, None)
            }
            Endpoint::Unix { path } | Endpoint::SharedMemory { path } => {
                let (socket, file) = unix::listen(path)?;
                (socket, endpoint.clone(), Some(file))
            }
        };
        let listening = ListeningSocket {
            socket,
            bound,
            owner: SocketOwner::Listener(file),
        };
        Self::new(listening, listen, securing)
    }

    /// Takes sockets that a service manager passed to the process: at least one. Others can take a socket again once its listener is
    /// dropped, also because another endpoint cannot be listened on.
    pub(crate) fn inherit(
        sockets: &InheritedSockets,
        listen: &ListenEndpoint,
        securing: &Securing,
    ) -> Result<Vec<Self>, InheritedSocketError> {
        if sockets.is_secure {
            securing.transport()?;
        }
        let taken = inherited::take(sockets, !listen.published.is_empty())?.into_iter();
        let listeners = taken.map(|socket| Self::new(socket, listen, securing));
        let listeners: Vec<_> = listeners.collect::<Result<_, Errno>>()?;
        let mut published = listeners.iter().flat_map(Self::published);
        if !listen.published.is_empty() && published.next().is_none() {
            return Err(InheritedSocketError::NothingToPublish);
        }
        Ok(listeners)
    }

    fn new(
        listening: ListeningSocket,
        listen: &ListenEndpoint,
        securing: &Securing,
    ) -> Result<Self, Errno> {
        let ListeningSocket {
            socket,
            bound,
            owner,
        } = listening;
        let (socket, secure) = match &bound {
            Endpoint::Tls { .. } => {
                let (readiness, port) = securing.secure(socket)?;
                (readiness, Some(port))
            }
            _ => (socket, None),
        };
        Ok(Self {
            socket,
            secure,
            published: published(listen, &bound),
            bound,
            options: SetOnce::new(),
            owner,
            ended: AtomicBool::new(false),
        })
    }

    /// Sets the options of new connections. Returns false if they conflict with earlier ones.
    ///
    /// They apply to the listening socket too, because TCP fixes the window of a connection before it is accepted (tcp(7)). So a
    /// refusal of the host is also found now, and not when a client connects.
    pub(crate) fn set_options(&self, options: ConnectionOptions) -> Result<bool, Errno> {
        if self.options.get().is_some_and(|other| *other != options) {
            return Ok(false);
        }
        options.apply(self.listening())?;
        Ok(*self.options.get_or_make(|| options) == options)
    }

    /// Returns true if clients must have a certificate.
    pub(crate) fn wants_client_certificate(&self) -> bool {
        let secure = self.secure.as_ref();
        secure.is_some_and(|port| port.wants_client_certificate)
    }

    /// Returns the socket that listens.
    fn listening(&self) -> &OwnedFd {
        self.secure.as_ref().map_or(&self.socket, |it| &it.socket)
    }

    /// Returns the options of new connections, if they are set.
    pub(crate) fn options(&self) -> Option<&ConnectionOptions> {
        self.options.get()
    }

    /// Returns true if a client waits to be accepted.
    pub(crate) fn has_client(&self) -> bool {
        let mut interest = [PollFd::new(&self.socket, PollFlags::IN)];
        matches!(poll(&mut interest, Some(&Timespec::default())), Ok(1..))
    }

    /// Accepts one waiting connection. Fails with `AGAIN` if there is none.
    pub(crate) fn accept(&self, memory: &shared_memory::Settings) -> Result<Stream, Errno> {
        // A socket that was shut accepts nobody. That of a service manager is not shut.
        if self.ended.load(Ordering::Acquire) {
            return Err(Errno::INVAL);
        }
        if let Some(port) = &self.secure {
            let (socket, link) = port.clients.accept()?;
            self.set_up(&socket)?;
            return Ok(Stream::new(socket).secured(link));
        }
        let socket = calls::accept_with(&self.socket, SocketFlags::CLOEXEC)?;
        self.set_up(&socket)?;
        if matches!(self.bound, Endpoint::SharedMemory { .. }) {
            let protocol = self.options.get().map(|options| options.protocol);
            return shared_memory::accept(socket, &memory.of_protocol(protocol));
        }
        Ok(Stream::new(socket))
    }

    /// Applies the options to an accepted connection.
    fn set_up(&self, socket: &OwnedFd) -> Result<(), Errno> {
        if matches!(self.bound, Endpoint::Tcp { .. } | Endpoint::Tls { .. }) {
            sockopt::set_tcp_nodelay(socket, true)?;
        }
        match self.options.get() {
            Some(options) => options.apply(socket),
            None => Ok(()),
        }
    }

    /// Stops listening. If its own socket stayed open, clients would connect and never be served.
    pub(crate) fn end(&self) {
        if self.ended.swap(true, Ordering::AcqRel) {
            return;
        }
        // Before the shutdown: while this socket listens, no other server replaces its file.
        if let SocketOwner::Listener(Some(file)) = &self.owner {
            file.remove();
        }
        if let Some(port) = &self.secure {
            port.clients.end();
        }
        if matches!(self.owner, SocketOwner::Listener(_)) {
            // It fails only if the socket does not listen, and then there is nothing to do.
            let _ = calls::shutdown(self.listening(), Shutdown::Both);
        }
    }
}

/// Returns the endpoints for references to objects behind `bound`.
fn published(listen: &ListenEndpoint, bound: &Endpoint) -> Vec<Endpoint> {
    let (host, port, is_secure) = match bound {
        Endpoint::Tcp { host, port } => (host, *port, false),
        Endpoint::Tls { host, port } => (host, *port, true),
        Endpoint::Unix { .. } | Endpoint::SharedMemory { .. } => return Vec::new(),
    };
    let endpoint = |host, port| {
        if is_secure {
            Endpoint::Tls { host, port }
        } else {
            Endpoint::Tcp { host, port }
        }
    };
    let addresses = listen.published.iter();
    let published = addresses.map(|it| endpoint(it.host.clone(), it.port.unwrap_or(port)));
    let mut endpoints: Vec<_> = published.collect();
    if endpoints.is_empty() {
        let host = match host.as_str() {
            // All interfaces: the name of this host is the best address for them.
            "0.0.0.0" | "::" => host_name(),
            host => host.to_owned(),
        };
        endpoints.push(endpoint(host, port));
    }
    endpoints
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::realtime::TcpProtocolProperties;
    use std::net::TcpStream;

    #[test]
    fn a_connection_that_comes_in_is_set_up_as_the_policy_says() {
        let listen = "iiop://127.0.0.1:0".parse().expect("legal");
        let endpoint = Endpoint::Tcp {
            host: "127.0.0.1".to_owned(),
            port: 0,
        };
        let listener = Listener::bind(&endpoint, &listen, &Securing::default());
        let listener = listener.expect("loopback has a free port");
        let Endpoint::Tcp { host, port } = &listener.bound else {
            panic!("{:?}", listener.bound);
        };
        let tcp = TcpProtocolProperties {
            keep_alive: true,
            no_delay: false,
            ..TcpProtocolProperties::default()
        };
        let options = ConnectionOptions {
            protocol: Protocol::Tcp(tcp),
            marks: Some(NetworkPriority {
                dscp: 46,
                socket_priority: 6,
            }),
        };
        assert_eq!(listener.set_options(options), Ok(true));
        let other = ConnectionOptions {
            protocol: Protocol::Tcp(TcpProtocolProperties::default()),
            marks: None,
        };
        assert_eq!(listener.set_options(other), Ok(false));
        assert_eq!(sockopt::tcp_nodelay(&listener.socket), Ok(false));
        let _client = TcpStream::connect((&**host, *port)).expect("it listens");
        let accepted = listener
            .accept(&shared_memory::Settings::default())
            .expect("it is there");
        assert_eq!(sockopt::socket_keepalive(&accepted), Ok(true));
        assert_eq!(sockopt::tcp_nodelay(&accepted), Ok(false));
        assert_eq!(sockopt::ip_tos(&accepted), Ok(0xb8));
    }
}
