//! Moving octets: a connected stream, whatever it is made of.
//!
//! `tcp` and `unix` connect and listen; once connected both are a stream socket, and the path of a call is the same. The bytes
//! of `shared_memory` go through memory beside its socket. `resolver` finds the addresses of host names for `tcp`.

pub(crate) mod properties;
pub(crate) mod resolver;
pub(crate) mod shared_memory;
pub(crate) mod socket;
pub(crate) mod tcp;
pub(crate) mod unix;

use crate::clock::monotonic_ns;
use crate::endpoint::{Endpoint, ListenEndpoint, host_name};
use crate::realtime::{NetworkPriority, Protocol};
#[cfg(test)]
use crate::tests::network as calls;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, Ordering};
use rtorb_os::set_once::SetOnce;
use rtorb_wire::cdr::Segment;
use rtorb_wire::giop::{HEADER_OCTETS, Header, MessageType};
use rustix::event::epoll::EventFlags;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown, SocketFlags, sockopt};
#[cfg(not(test))]
use socket as calls;
use std::io::IoSlice;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// A connected stream socket, blocking, or memory with such a socket beside it.
#[derive(Debug)]
pub(crate) struct Stream {
    /// The bytes go through this memory, if there is one. Dropped before the socket, so that its peer finds all bytes at the end.
    memory: Option<Arc<shared_memory::Link>>,
    socket: OwnedFd,
}

/// Parts of one message that are sent at once; the kernel takes 1024, a message has far fewer.
const PARTS_MAX: usize = 18;

/// A message that did not go whole.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unsent {
    /// `AGAIN` when the deadline passed.
    pub(crate) errno: Errno,
    /// True if some of it went: what follows on this stream would be taken for the rest.
    pub(crate) has_begun: bool,
}

impl Unsent {
    /// A message of which nothing went.
    #[cold]
    pub(crate) const fn whole(errno: Errno) -> Self {
        Self {
            errno,
            has_begun: false,
        }
    }
}

/// A system call that does not wait.
const NOW: SendFlags = SendFlags::NOSIGNAL.union(SendFlags::DONTWAIT);

const DRAIN_BYTES: usize = 8 << 10;

/// A peer that sends without end must not hold the thread that drains.
const DRAINS_MAX: usize = 512;

/// True for the beginning of a message after which a server ends the connection.
fn is_farewell(head: &[u8]) -> bool {
    let header = Header::parse(head, usize::MAX).ok().flatten();
    let kind = header.map(|header| header.message_type);
    matches!(
        kind,
        Some(MessageType::CloseConnection | MessageType::MessageError)
    )
}

/// The parts of a message of the ORB's own octets with lent ones between them, and how many there are.
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
            memory: None,
            socket,
        }
    }

    /// A stream whose bytes go through shared memory.
    pub(crate) fn through(memory: shared_memory::Link, socket: OwnedFd) -> Self {
        Self {
            memory: Some(Arc::new(memory)),
            socket,
        }
    }

    /// The memory through which the bytes go, if they do.
    pub(crate) fn memory(&self) -> Option<&Arc<shared_memory::Link>> {
        self.memory.as_ref()
    }

    /// Prepares for an event loop: [`AsFd`] is readable when bytes come.
    pub(crate) fn be_polled(&self) {
        if let Some(memory) = &self.memory {
            memory.be_polled();
        }
    }

    /// True if there are bytes of which the descriptor says nothing: receive them before waiting for it.
    ///
    /// A socket stays readable as long as it has bytes. Memory does not: its doorbell rings once.
    #[inline]
    pub(crate) fn holds_unreported_bytes(&self) -> bool {
        self.memory
            .as_ref()
            .is_some_and(|memory| memory.holds_unreported_bytes())
    }

    /// True if a thread lingers on this connection before it waits in an event loop.
    #[inline]
    pub(crate) fn lingers(&self) -> bool {
        self.memory.as_ref().is_some_and(|memory| memory.lingers())
    }

    /// Lingers; true if there are bytes of which the descriptor says nothing: receive them before waiting for it.
    pub(crate) fn linger(&self) -> bool {
        self.memory.as_ref().is_some_and(|memory| memory.linger())
    }

    /// What an event loop waits for that has bytes to send.
    pub(crate) fn room_events(&self) -> EventFlags {
        match &self.memory {
            None => EventFlags::OUT,
            Some(_) => EventFlags::IN,
        }
    }

    /// Notes that an event loop reported room for bytes to send.
    pub(crate) fn note_room_event(&self) {
        if let Some(memory) = &self.memory {
            memory.hear_doorbell(&self.socket);
        }
    }

    /// Sends all octets: one system call unless the peer takes them slowly.
    #[inline]
    pub(crate) fn send(&self, octets: &[u8]) -> Result<(), Unsent> {
        if let Some(memory) = &self.memory {
            return memory.send_octets(&self.socket, octets);
        }
        loop {
            match calls::send(&self.socket, octets, SendFlags::NOSIGNAL) {
                Ok(sent) if sent == octets.len() => return Ok(()),
                Ok(sent) => return self.send_rest(&mut [IoSlice::new(&octets[sent..])]),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(Unsent::whole(errno)),
            }
        }
    }

    /// Sends what the peer did not take at once; `AGAIN` when it takes longer than the socket's send timeout in all.
    ///
    /// The timeout itself bounds a system call only: a peer that takes an octet now and then would hold us for ever.
    #[cold]
    fn send_rest(&self, parts: &mut [IoSlice<'_>]) -> Result<(), Unsent> {
        let begun = |errno| Unsent {
            errno,
            has_begun: true,
        };
        let timeout = sockopt::socket_timeout(&self.socket, sockopt::Timeout::Send);
        let timeout = timeout.map_err(begun)?;
        let deadline_ns = timeout.map(|timeout| {
            monotonic_ns().saturating_add(u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX))
        });
        self.send_parts_by(parts, deadline_ns)
            .map_err(|unsent| begun(unsent.errno))
    }

    /// Sends a message of the ORB's own octets with lent ones between them.
    #[inline]
    pub(crate) fn send_message(&self, own: &[u8], lent: &[Segment<'_>]) -> Result<(), Unsent> {
        if lent.is_empty() {
            return self.send(own);
        }
        let (mut parts, count) = gather(own, lent);
        let mut parts = &mut parts[..count];
        if let Some(memory) = &self.memory {
            return memory.send(&self.socket, parts, None);
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

    /// As [`send_message`](Self::send_message) on a stream that several threads use, at the latest until `deadline_ns` of the
    /// monotonic clock.
    pub(crate) fn send_message_by(
        &self,
        own: &[u8],
        lent: &[Segment<'_>],
        deadline_ns: Option<u64>,
    ) -> Result<(), Unsent> {
        self.send_rest_by(own, lent, 0, deadline_ns)
    }

    /// As [`send_message_by`](Self::send_message_by) for a message whose first `sent` bytes went already.
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

    /// Sends parts; waits for room in the socket until `deadline_ns` at the latest.
    fn send_parts_by(
        &self,
        mut parts: &mut [IoSlice<'_>],
        deadline_ns: Option<u64>,
    ) -> Result<(), Unsent> {
        if let Some(memory) = &self.memory {
            return memory.send(&self.socket, parts, deadline_ns);
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
                    let is_ready = self.await_ready(PollFlags::OUT, deadline_ns);
                    if !is_ready.map_err(unsent)? {
                        return Err(unsent(Errno::AGAIN));
                    }
                }
                Err(errno) => return Err(unsent(errno)),
            }
        }
    }

    /// Sends what the socket takes of a message at once, and answers how many octets that was: one system call.
    #[inline]
    pub(crate) fn send_message_now(
        &self,
        own: &[u8],
        lent: &[Segment<'_>],
    ) -> Result<usize, Errno> {
        if self.memory.is_some() || !lent.is_empty() {
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

    // Inlined, it would cost a message without lent octets 30 instructions.
    #[inline(never)]
    fn send_gathered_now(&self, own: &[u8], lent: &[Segment<'_>]) -> Result<usize, Errno> {
        if let Some(memory) = &self.memory {
            return memory.send_message_now(&self.socket, own, lent);
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

    /// Receives at least one byte. Returns 0 if the peer has ended, `AGAIN` if the receive timeout has passed.
    #[inline]
    pub(crate) fn receive(&self, into: &mut [u8]) -> Result<usize, Errno> {
        if let Some(memory) = &self.memory {
            return memory.receive(&self.socket, into);
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
        if let Some(memory) = &self.memory {
            return memory.receive_now(&self.socket, into);
        }
        calls::recv(&self.socket, into, RecvFlags::DONTWAIT).map(|(received, _)| received)
    }

    /// True if the peer has ended the connection, or says that it does not understand us: one system call, which takes nothing.
    /// To be asked when no reply is due.
    #[cold]
    pub(crate) fn has_ended(&self) -> bool {
        if let Some(memory) = &self.memory {
            return memory.has_peer_gone(&self.socket);
        }
        let mut head = [0; HEADER_OCTETS];
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        match calls::recv(&self.socket, &mut head[..], flags) {
            Ok((0, _)) => true,
            Ok((received, _)) => is_farewell(&head[..received]),
            Err(errno) => !matches!(errno, Errno::AGAIN | Errno::INTR),
        }
    }

    /// Appends received bytes to `into` without waiting: at most `bytes_max`, and no more than it has room for.
    #[inline]
    pub(crate) fn receive_behind_now(
        &self,
        into: &mut Vec<u8>,
        bytes_max: usize,
    ) -> Result<usize, Errno> {
        if let Some(memory) = &self.memory {
            return memory.receive_behind_now(&self.socket, into, bytes_max);
        }
        calls::receive_behind_now(&self.socket, into, bytes_max)
    }

    /// Waits until something can be received; false if `deadline_ns` of the monotonic clock passes first.
    pub(crate) fn await_readable(&self, deadline_ns: Option<u64>) -> Result<bool, Errno> {
        if let Some(memory) = &self.memory {
            return memory.await_readable(&self.socket, deadline_ns);
        }
        self.await_ready(PollFlags::IN, deadline_ns)
    }

    fn await_ready(&self, what: PollFlags, deadline_ns: Option<u64>) -> Result<bool, Errno> {
        loop {
            let left =
                match deadline_ns.map(|deadline_ns| deadline_ns.saturating_sub(monotonic_ns())) {
                    Some(0) => return Ok(false),
                    left => left.map(rtorb_os::clock::timespec),
                };
            match calls::poll(&self.socket, what, left.as_ref()) {
                Ok(events) => return Ok(!events.is_empty()),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
        }
    }

    /// Receives available bytes and discards them, up to a bound.
    pub(crate) fn drain(&self) {
        if let Some(memory) = &self.memory {
            return memory.discard(&self.socket);
        }
        // Not initialised: a closing server drains in rounds, most of which receive nothing.
        let mut room = [MaybeUninit::<u8>::uninit(); DRAIN_BYTES];
        for _ in 0..DRAINS_MAX {
            match calls::recv(&self.socket, &mut room[..], RecvFlags::DONTWAIT) {
                Ok((_, 1..)) | Err(Errno::INTR) => {}
                Ok(_) | Err(_) => return,
            }
        }
    }

    /// True once the peer's host has all that was sent, or never will: ending the connection takes nothing of it away.
    pub(crate) fn is_acknowledged(&self) -> bool {
        // The peer keeps memory for as long as it maps it.
        if self.memory.is_some() || calls::unacknowledged_bytes(&self.socket).unwrap_or(0) == 0 {
            return true;
        }
        // A connection that was reset acknowledges nothing any more.
        let now = rtorb_os::clock::timespec(0);
        let events = calls::poll(&self.socket, PollFlags::empty(), Some(&now));
        events.is_ok_and(|events| events.intersects(PollFlags::HUP | PollFlags::ERR))
    }

    /// Ends what this side sends: behind that, the peer reads the end.
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
        match &self.memory {
            Some(memory) => memory.end(&self.socket, what),
            // A peer that is gone already has shut it for us.
            None => drop(calls::shutdown(&self.socket, what)),
        }
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// A listening socket and the endpoint that it really has.
#[derive(Debug)]
pub(crate) struct Listener {
    pub(crate) socket: OwnedFd,
    pub(crate) bound: Endpoint,
    /// Host and port for references, if it is a TCP port.
    published: Vec<Endpoint>,
    set_up: SetOnce<SetUp>,
    /// The socket file that this listener made.
    file: Option<unix::SocketFile>,
    ended: AtomicBool,
}

/// How connections that come in are set up, as a server's protocol policy says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SetUp {
    pub(crate) protocol: Protocol,
    /// Of the packets that go out; `None` leaves them unmarked.
    pub(crate) marks: Option<NetworkPriority>,
}

impl SetUp {
    fn apply(&self, socket: &OwnedFd) -> Result<(), Errno> {
        properties::apply(socket, &self.protocol)?;
        self.marks
            .map_or(Ok(()), |marks| properties::mark(socket, marks))
    }
}

impl Listener {
    /// True if that endpoint is this listener's: as it is bound, or as references have it.
    pub(crate) fn leads_to(&self, endpoint: &Endpoint) -> bool {
        self.bound == *endpoint || self.published.contains(endpoint)
    }

    /// The endpoints for references, if it is a TCP port.
    pub(crate) fn published(&self) -> &[Endpoint] {
        &self.published
    }

    pub(crate) fn bind(listen: &ListenEndpoint) -> Result<Self, Errno> {
        let (socket, bound, file) = match &listen.endpoint {
            Endpoint::Tcp { host, port } => {
                let (socket, bound) = tcp::listen(host, *port, listen.port_span)?;
                (socket, bound, None)
            }
            Endpoint::Unix { path } | Endpoint::SharedMemory { path } => {
                let (socket, file) = unix::listen(path)?;
                (socket, listen.endpoint.clone(), Some(file))
            }
        };
        Ok(Self {
            socket,
            published: published(listen, &bound),
            bound,
            set_up: SetOnce::new(),
            file,
            ended: AtomicBool::new(false),
        })
    }

    /// Has connections set up so from now on; false if they are set up otherwise already.
    ///
    /// The listening socket is set up too: TCP settles a connection's window before it is accepted (tcp(7)). And what the host
    /// refuses is known now, and not when each connection comes in.
    pub(crate) fn set_up(&self, set_up: SetUp) -> Result<bool, Errno> {
        if self.set_up.get().is_some_and(|other| *other != set_up) {
            return Ok(false);
        }
        set_up.apply(&self.socket)?;
        Ok(*self.set_up.get_or_make(|| set_up) == set_up)
    }

    /// True if a client waits to be accepted.
    pub(crate) fn has_client(&self) -> bool {
        let mut interest = [PollFd::new(&self.socket, PollFlags::IN)];
        matches!(poll(&mut interest, Some(&Timespec::default())), Ok(1..))
    }

    /// Takes one waiting connection; `AGAIN` when there is none.
    pub(crate) fn accept(&self, memory: &shared_memory::Settings) -> Result<Stream, Errno> {
        let socket = calls::accept_with(&self.socket, SocketFlags::CLOEXEC)?;
        if matches!(self.bound, Endpoint::Tcp { .. }) {
            sockopt::set_tcp_nodelay(&socket, true)?;
        }
        if let Some(set_up) = self.set_up.get() {
            set_up.apply(&socket)?;
        }
        if matches!(self.bound, Endpoint::SharedMemory { .. }) {
            let protocol = self.set_up.get().map(|set_up| set_up.protocol);
            return shared_memory::accept(socket, &memory.of_protocol(protocol));
        }
        Ok(Stream::new(socket))
    }

    /// Refuses connections from now on: left open, the socket would let clients in that are never served.
    pub(crate) fn end(&self) {
        if self.ended.swap(true, Ordering::AcqRel) {
            return;
        }
        // While this socket listens, no other server takes its file for a deserted one and puts its own in the place.
        if let Some(file) = &self.file {
            file.remove();
        }
        // It fails only if the socket does not listen, and then there is nothing to end.
        let _ = calls::shutdown(&self.socket, Shutdown::Both);
    }
}

/// The endpoints that references to objects behind `bound` contain.
fn published(listen: &ListenEndpoint, bound: &Endpoint) -> Vec<Endpoint> {
    let Endpoint::Tcp { host, port } = bound else {
        return Vec::new();
    };
    let published = listen.published.iter().map(|address| Endpoint::Tcp {
        host: address.host.clone(),
        port: address.port.unwrap_or(*port),
    });
    let mut endpoints: Vec<_> = published.collect();
    if endpoints.is_empty() {
        let host = match host.as_str() {
            // Every interface: this host's name is the best that is known of them.
            "0.0.0.0" | "::" => host_name(),
            host => host.to_owned(),
        };
        endpoints.push(Endpoint::Tcp { host, port: *port });
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
        let listener = Listener::bind(&listen).expect("loopback has a free port");
        let Endpoint::Tcp { host, port } = &listener.bound else {
            panic!("{:?}", listener.bound);
        };
        let tcp = TcpProtocolProperties {
            keep_alive: true,
            no_delay: false,
            ..TcpProtocolProperties::default()
        };
        let set_up = SetUp {
            protocol: Protocol::Tcp(tcp),
            marks: Some(NetworkPriority {
                dscp: 46,
                socket_priority: 6,
            }),
        };
        assert_eq!(listener.set_up(set_up), Ok(true));
        let other = SetUp {
            protocol: Protocol::Tcp(TcpProtocolProperties::default()),
            marks: None,
        };
        assert_eq!(listener.set_up(other), Ok(false));
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
