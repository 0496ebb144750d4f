//! What carries the bytes of a stream beside or above its socket: shared memory, or a secure transport.
//!
//! The functions that a stream calls are not inlined there: that would cost a call over a socket 50 instructions.

use super::shared_memory::MemoryLink;
use super::{PARTS_MAX, Unsent, calls, gather};
use crate::clock::monotonic_ns;
use crate::security::SecureLink;
use rtorb_os::clock::timespec;
use rtorb_wire::cdr::Segment;
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{RecvFlags, Shutdown, sockopt};
use std::io::IoSlice;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

/// The carrier of a stream whose bytes do not go through its socket as they are.
#[derive(Debug)]
pub(super) enum Carrier {
    /// The memory that the peers share.
    Memory(Arc<MemoryLink>),
    /// Seals what is sent and opens what is received.
    Secure(Arc<dyn SecureLink>),
}

/// The most bytes that one read appends.
const APPENDED_MAX: usize = 16 << 10;

impl Carrier {
    /// Sends all bytes, and waits for room.
    #[inline(never)]
    pub(super) fn send_bytes(&self, socket: &OwnedFd, bytes: &[u8]) -> Result<(), Unsent> {
        self.send(socket, &mut [IoSlice::new(bytes)], None)
    }

    /// Sends all parts, and waits for room until `deadline_ns` at the latest.
    pub(super) fn send(
        &self,
        socket: &OwnedFd,
        parts: &mut [IoSlice<'_>],
        deadline_ns: Option<u64>,
    ) -> Result<(), Unsent> {
        match self {
            Self::Memory(memory) => memory.send(socket, parts, deadline_ns),
            Self::Secure(link) => send_sealed(&**link, socket, parts, deadline_ns),
        }
    }

    /// Sends as much of a message as there is room for, and returns the number of bytes.
    #[inline(never)]
    pub(super) fn send_message_now(
        &self,
        socket: &OwnedFd,
        own: &[u8],
        lent: &[Segment<'_>],
    ) -> Result<usize, Errno> {
        match self {
            Self::Memory(memory) => memory.send_message_now(socket, own, lent),
            Self::Secure(link) => {
                let (parts, count) = gather(own, lent);
                link.send_now(socket.as_fd(), &parts[..count])
            }
        }
    }

    /// Receives at least one byte. Returns 0 if the peer has ended, `AGAIN` if the receive timeout of the socket has passed.
    #[inline(never)]
    pub(super) fn receive(&self, socket: &OwnedFd, into: &mut [u8]) -> Result<usize, Errno> {
        match self {
            Self::Memory(memory) => memory.receive(socket, into),
            Self::Secure(link) => receive_opened(&**link, socket, into),
        }
    }

    /// Receives available bytes without waiting.
    #[inline(never)]
    pub(super) fn receive_now(&self, socket: &OwnedFd, into: &mut [u8]) -> Result<usize, Errno> {
        match self {
            Self::Memory(memory) => memory.receive_now(socket, into),
            Self::Secure(link) => link.receive_now(socket.as_fd(), into),
        }
    }

    /// Appends available bytes to `into` without waiting: at most `bytes_max`, and no more than it has room for.
    #[inline(never)]
    pub(super) fn receive_behind_now(
        &self,
        socket: &OwnedFd,
        into: &mut Vec<u8>,
        bytes_max: usize,
    ) -> Result<usize, Errno> {
        match self {
            Self::Memory(memory) => memory.receive_behind_now(socket, into, bytes_max),
            Self::Secure(link) => {
                let before = into.len();
                let room = bytes_max.min(into.capacity() - before).min(APPENDED_MAX);
                into.resize(before + room, 0);
                let received = link.receive_now(socket.as_fd(), &mut into[before..]);
                into.truncate(before + received.unwrap_or(0));
                received
            }
        }
    }

    /// Returns true if bytes or the end can be received without waiting for the socket.
    pub(super) fn holds_unreported_bytes(&self) -> bool {
        match self {
            Self::Memory(memory) => memory.holds_unreported_bytes(),
            Self::Secure(link) => link.holds_bytes(),
        }
    }

    /// Returns true if the peer has ended the connection, or is gone. Receives nothing: another thread may wait for it.
    #[cold]
    pub(super) fn has_peer_ended(&self, socket: &OwnedFd) -> bool {
        match self {
            Self::Memory(memory) => memory.has_peer_gone(socket),
            Self::Secure(_) => {
                let ended = PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR;
                let events = calls::poll(socket, PollFlags::RDHUP, Some(&timespec(0)));
                events.is_ok_and(|events| events.intersects(ended))
            }
        }
    }

    /// Ends sending, receiving or both.
    pub(super) fn end(&self, socket: &OwnedFd, what: Shutdown) {
        match self {
            Self::Memory(memory) => memory.end(socket, what),
            Self::Secure(link) => {
                if matches!(what, Shutdown::Write | Shutdown::Both) {
                    link.end_sending(socket.as_fd());
                }
                // It fails only if the peer is gone, and then the socket is shut.
                let _ = calls::shutdown(socket, what);
            }
        }
    }
}

/// Seals and sends all parts. Waits for room until `deadline_ns`, or for the send timeout of the socket, at the latest.
fn send_sealed(
    link: &dyn SecureLink,
    socket: &OwnedFd,
    mut parts: &mut [IoSlice<'_>],
    mut deadline_ns: Option<u64>,
) -> Result<(), Unsent> {
    let mut has_begun = false;
    loop {
        let unsent = |errno| Unsent { errno, has_begun };
        let count = parts.len().min(PARTS_MAX);
        match link.send_now(socket.as_fd(), &parts[..count]) {
            Ok(sent) => {
                has_begun |= sent > 0;
                IoSlice::advance_slices(&mut parts, sent);
                if parts.iter().all(|part| part.is_empty()) {
                    return Ok(());
                }
            }
            Err(Errno::INTR) => continue,
            Err(errno) => return Err(unsent(errno)),
        }
        let unsent = |errno| Unsent { errno, has_begun };
        if deadline_ns.is_none() {
            deadline_ns = send_deadline(socket).map_err(unsent)?;
        }
        if !super::await_ready(socket, PollFlags::OUT, deadline_ns).map_err(unsent)? {
            return Err(unsent(Errno::AGAIN));
        }
    }
}

/// Receives and opens bytes. Waits for them, for the receive timeout of the socket at most: a peer that sends a record byte by byte would
/// otherwise begin it anew with each byte.
fn receive_opened(
    link: &dyn SecureLink,
    socket: &OwnedFd,
    into: &mut [u8],
) -> Result<usize, Errno> {
    let mut begun_ns = None;
    loop {
        match link.receive_now(socket.as_fd(), into) {
            Err(Errno::AGAIN) if !into.is_empty() => {}
            received => return received,
        }
        match begun_ns {
            // Most records come whole. The socket's own timeout bounds the wait for them, in one system call.
            None => {
                begun_ns = Some(monotonic_ns());
                await_bytes(socket)?;
            }
            Some(begun_ns) => {
                let deadline_ns = after_timeout(begun_ns, socket, sockopt::Timeout::Recv)?;
                if !super::await_ready(socket, PollFlags::IN, deadline_ns)? {
                    return Err(Errno::AGAIN);
                }
            }
        }
    }
}

/// Returns the time at which the send timeout of a socket has passed.
pub(super) fn send_deadline(socket: &OwnedFd) -> Result<Option<u64>, Errno> {
    after_timeout(monotonic_ns(), socket, sockopt::Timeout::Send)
}

/// Returns the time at which a timeout of a socket that began at `begun_ns` has passed; `None` if the socket has none.
fn after_timeout(
    begun_ns: u64,
    socket: &OwnedFd,
    which: sockopt::Timeout,
) -> Result<Option<u64>, Errno> {
    let timeout = sockopt::socket_timeout(socket, which)?;
    Ok(timeout.map(|timeout| {
        begun_ns.saturating_add(u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX))
    }))
}

/// Waits for sealed bytes or the end, for the receive timeout of the socket at most.
fn await_bytes(socket: &OwnedFd) -> Result<(), Errno> {
    match calls::recv(socket, &mut [0][..], RecvFlags::PEEK) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(errno) => Err(errno),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::security::PeerIdentity;
    use core::time::Duration;
    use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType};
    use std::os::fd::BorrowedFd;

    /// A link that opens nothing: it reads one byte of a record in a millisecond.
    #[derive(Debug)]
    struct Dribbling;

    impl SecureLink for Dribbling {
        fn send_now(&self, _: BorrowedFd<'_>, _: &[IoSlice<'_>]) -> Result<usize, Errno> {
            Err(Errno::PIPE)
        }

        fn receive_now(&self, socket: BorrowedFd<'_>, _: &mut [u8]) -> Result<usize, Errno> {
            std::thread::sleep(Duration::from_millis(1));
            rustix::net::recv(socket, &mut [0][..], RecvFlags::DONTWAIT)?;
            Err(Errno::AGAIN)
        }

        fn holds_bytes(&self) -> bool {
            false
        }

        fn end_sending(&self, _: BorrowedFd<'_>) {}

        fn peer(&self) -> Option<&Arc<PeerIdentity>> {
            None
        }
    }

    #[test]
    fn a_record_that_comes_byte_by_byte_is_awaited_for_one_timeout() {
        let (peer, socket) = rustix::net::socketpair(
            AddressFamily::UNIX,
            SocketType::STREAM,
            SocketFlags::CLOEXEC,
            None,
        )
        .expect("two sockets");
        let timeout = Some(Duration::from_millis(20));
        sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, timeout).expect("a timeout");
        // Two seconds, if each byte began the timeout anew.
        rustix::net::send(&peer, &[0; 2000], SendFlags::empty()).expect("there is room");
        let received = receive_opened(&Dribbling, &socket, &mut [0; 8]);
        assert_eq!(received, Err(Errno::AGAIN));
        let left = rustix::net::recv(&socket, &mut [0; 2000][..], RecvFlags::DONTWAIT);
        assert!(left.is_ok_and(|(left, _)| left > 0), "all were awaited");
    }
}
