//! SHMIOP's transport: two rings of bytes in memory that client and server share, and a UNIX socket beside them.
//!
//! The client connects to the server's socket file. The server makes the memory and sends its descriptor with the first message.
//! GIOP messages then go through the rings. The socket lives as long as the connection, because the kernel closes it when a process
//! ends in any way; and it is the *doorbell* of threads that wait in epoll. `link` is the stream over both, `lingering` has the wait
//! strategies, and `peer_watch` wakes sleeping threads when their peer is gone. The memory has no name, so nothing is left behind.

mod lingering;
mod link;
mod peer_watch;

pub(crate) use link::MemoryLink;
pub(crate) use peer_watch::PeerWatch;

use super::{Stream, unix};
use crate::clock::monotonic_ns;
use crate::realtime::Protocol;
use crate::strategies::SharedMemoryWait;
use core::mem::MaybeUninit;
use rtorb_os::byte_rings::{Duplex, is_capacity};
use rtorb_os::clock::timespec;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use rustix::process::geteuid;
use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

/// How an ORB uses shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    /// The wait strategy: what a thread does before it sleeps.
    pub(crate) wait: SharedMemoryWait,
    /// Bytes of each ring that a server makes.
    pub(crate) ring_bytes: usize,
    /// The group whose processes are trusted, as those of the own user are.
    pub(crate) group: Option<u32>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            wait: SharedMemoryWait::default(),
            ring_bytes: 256 << 10,
            group: None,
        }
    }
}

impl Settings {
    /// Returns the settings for connections with a protocol of a policy.
    pub(crate) fn of_protocol(&self, protocol: Option<Protocol>) -> Self {
        match protocol {
            Some(Protocol::SharedMemory(memory)) => Self {
                wait: memory.wait.unwrap_or(self.wait),
                ..*self
            },
            _ => *self,
        }
    }
}

/// The size of a server's first message, which carries the descriptor of the memory.
const GREETING_BYTES: usize = 16;
const MAGIC: [u8; 8] = *b"RTORBSHM";
const VERSION: u32 = 1;

/// Connects to a socket file and maps the memory that the server sends, by `until_ns` of the monotonic clock.
pub(crate) fn connect(path: &Path, until_ns: u64, settings: &Settings) -> Result<Stream, Errno> {
    let socket = unix::connect_socket_to(path, until_ns)?;
    check_peer(&socket, settings)?;
    let (greeting, memory) = receive_greeting(&socket, until_ns)?;
    let duplex = Duplex::open(memory, capacity(&greeting)?)?;
    Ok(Stream::through(
        MemoryLink::new(duplex, settings.wait),
        socket,
    ))
}

/// Makes the memory for an accepted client, and sends it.
pub(crate) fn accept(socket: OwnedFd, settings: &Settings) -> Result<Stream, Errno> {
    check_peer(&socket, settings)?;
    let (duplex, memory) = Duplex::create(settings.ring_bytes)?;
    let link = MemoryLink::new(duplex, settings.wait);
    // Before the client can send, because the server may wait for its first message in epoll.
    link.await_at_doorbell();
    send_greeting(&socket, settings.ring_bytes, &memory)?;
    Ok(Stream::through(link, socket))
}

/// Checks that the peer is a process of the same user or of the trusted group. Fails with `ACCESS` if it is not.
fn check_peer(socket: impl AsFd, settings: &Settings) -> Result<(), Errno> {
    let peer = socket_peercred(socket)?;
    is_trusted(peer.uid.as_raw(), peer.gid.as_raw(), settings)
        .then_some(())
        .ok_or(Errno::ACCESS)
}

fn is_trusted(user: u32, group: u32, settings: &Settings) -> bool {
    user == geteuid().as_raw() || settings.group == Some(group)
}

fn send_greeting(socket: impl AsFd, capacity: usize, memory: impl AsFd) -> Result<(), Errno> {
    let mut greeting = [0; GREETING_BYTES];
    greeting[..8].copy_from_slice(&MAGIC);
    greeting[8..12].copy_from_slice(&VERSION.to_le_bytes());
    let capacity = u32::try_from(capacity).map_err(|_| Errno::INVAL)?;
    greeting[12..].copy_from_slice(&capacity.to_le_bytes());
    let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut room);
    let descriptors = [memory.as_fd()];
    control.push(SendAncillaryMessage::ScmRights(&descriptors));
    // A new socket has room for the message.
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    let sent = sendmsg(socket, &[IoSlice::new(&greeting)], &mut control, flags)?;
    (sent == GREETING_BYTES).then_some(()).ok_or(Errno::NOBUFS)
}

/// Receives the first message of a server.
///
/// # Errors
/// `TIMEDOUT` if it does not arrive by `deadline_ns`, `CONNREFUSED` if the server ends the connection, `PROTO` for another message.
fn receive_greeting(
    socket: &OwnedFd,
    deadline_ns: u64,
) -> Result<([u8; GREETING_BYTES], OwnedFd), Errno> {
    await_message(socket, deadline_ns)?;
    let mut greeting = [0; GREETING_BYTES];
    let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut room);
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let parts = &mut [IoSliceMut::new(&mut greeting)];
    let received = recvmsg(socket, parts, &mut control, flags)?.bytes;
    let memory = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    match (received, memory) {
        (GREETING_BYTES, Some(memory)) => Ok((greeting, memory)),
        (0, _) => Err(Errno::CONNREFUSED),
        _ => Err(Errno::PROTO),
    }
}

fn await_message(socket: &OwnedFd, deadline_ns: u64) -> Result<(), Errno> {
    loop {
        let left_ns = deadline_ns.saturating_sub(monotonic_ns());
        let mut interest = [PollFd::new(socket, PollFlags::IN)];
        match poll(&mut interest, Some(&timespec(left_ns))) {
            Ok(0) if left_ns == 0 => return Err(Errno::TIMEDOUT),
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => return Ok(()),
            Err(errno) => return Err(errno),
        }
    }
}

/// Returns the capacity of the rings in a greeting. Fails with `PROTO` for a greeting of another version.
fn capacity(greeting: &[u8; GREETING_BYTES]) -> Result<usize, Errno> {
    let number = |from: usize| {
        let bytes = [0, 1, 2, 3].map(|index| greeting[from + index]);
        u32::from_le_bytes(bytes)
    };
    let capacity = number(12) as usize;
    let is_right = greeting[..8] == MAGIC && number(8) == VERSION && is_capacity(capacity);
    is_right.then_some(capacity).ok_or(Errno::PROTO)
}

#[cfg(test)]
mod tests;
