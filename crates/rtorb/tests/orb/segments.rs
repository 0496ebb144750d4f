//! The segments of connections through shared memory, as raw peers see them: how they come, and garbage in them.

use rustix::io::{Errno, pwrite};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;

/// The header of the segment: the state of both rings.
pub(super) const HEADER_BYTES: usize = 4096;

/// The smallest ring.
pub(super) const RING_BYTES: usize = 4096;

/// What a peer may do to a segment with the smallest rings at any moment.
pub(super) struct Scribbler {
    random: u64,
}

/// What a scribbler writes into.
#[derive(Clone, Copy, Debug)]
pub(super) enum Area {
    /// Anything, the positions of both rings included.
    Whole,
    /// Who waits, who has ended, and on which CPU an end runs.
    Flags,
    /// The bytes of messages.
    Payload,
}

impl Scribbler {
    /// One that writes the same for each seed.
    pub(super) fn new(seed: u64) -> Self {
        Self { random: seed }
    }

    /// A number below that one.
    pub(super) fn number(&mut self, below: usize) -> usize {
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) as usize % below
    }

    /// Writes some bytes into the header, where both rings have their state, or into the rings.
    pub(super) fn scribble(&mut self, memory: &OwnedFd) {
        self.scribble_in(Area::Whole, memory);
    }

    /// Writes some bytes into that area.
    pub(super) fn scribble_in(&mut self, area: Area, memory: &OwnedFd) {
        let bytes = (self.random >> (8 * self.number(8))).to_ne_bytes();
        let end = HEADER_BYTES + 2 * RING_BYTES - bytes.len();
        let offset = match area {
            Area::Whole => {
                let area = [STATE_BYTES, STATE_BYTES, end][self.number(3)];
                self.number(area)
            }
            // Behind the position of one of the four ends.
            Area::Flags => 64 * self.number(4) + 8 + self.number(8),
            Area::Payload => HEADER_BYTES + self.number(end - HEADER_BYTES),
        };
        let length = 1 + self.number(bytes.len());
        pwrite(memory, &bytes[..length], offset as u64).expect("it may be written");
    }
}

/// The state of the rings is in the first bytes of the header.
const STATE_BYTES: usize = 256;

/// What a server of ours sends to a client that connects.
pub(super) struct Meeting {
    pub(super) socket: UnixStream,
    pub(super) greeting: Vec<u8>,
    pub(super) memory: OwnedFd,
}

/// Meets a server of ours as a client does.
pub(super) fn meet(path: &Path) -> Meeting {
    let socket = UnixStream::connect(path).expect("it listens");
    let mut greeting = vec![0; 64];
    let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut room);
    let parts = &mut [IoSliceMut::new(&mut greeting)];
    let received = recvmsg(&socket, parts, &mut control, RecvFlags::empty());
    greeting.truncate(received.expect("it greets").bytes);
    let memory = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut files) => files.next(),
        _ => None,
    });
    Meeting {
        socket,
        greeting,
        memory: memory.expect("it sends its memory"),
    }
}

/// The first message of a server.
pub(super) fn greeting(magic: &[u8; 8], version: u32, capacity: usize) -> Vec<u8> {
    let capacity = u32::try_from(capacity).expect("a small number");
    [
        magic.as_slice(),
        &version.to_le_bytes(),
        &capacity.to_le_bytes(),
    ]
    .concat()
}

/// Sends the first message of a server to a client that waits for it, with the memory.
pub(super) fn send(socket: &UnixStream, greeting: &[u8], file: Option<&OwnedFd>) {
    try_send(socket, greeting, file).expect("the client waits");
}

/// The same to a client that may have given up.
pub(super) fn try_send(
    socket: &UnixStream,
    greeting: &[u8],
    file: Option<&OwnedFd>,
) -> Result<(), Errno> {
    let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut room);
    let files: Vec<_> = file.map(AsFd::as_fd).into_iter().collect();
    if !files.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(&files));
    }
    let parts = [IoSlice::new(greeting)];
    sendmsg(socket, &parts, &mut control, SendFlags::NOSIGNAL).map(drop)
}
