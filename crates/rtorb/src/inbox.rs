//! The octets of a connection that were received and not yet used up.

use crate::transport::Stream;
use rtorb_wire::DecodeError;
use rtorb_wire::giop::Header;
use rustix::io::Errno;

/// A reused buffer in which messages lie as they came.
///
/// The message to be read next always begins at the start of the buffer, so that its numbers lie as this machine
/// aligns them and can be borrowed.
#[derive(Debug)]
pub(crate) struct Inbox {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    octets_max: usize,
    /// Octets of the next message, once it is known to be not all there; else 0.
    expected: usize,
    is_full: bool,
}

/// What a connection starts with: more than nearly all messages need, and little for a thousand connections.
const OCTETS_MIN: usize = 8 << 10;

/// What is received at a time behind the message that is awaited, however large the buffer has become: who reads several
/// connections turns to the next one then, and moving up what is left after each message stays cheap.
const AHEAD_OCTETS: usize = 64 << 10;

impl Inbox {
    /// An empty inbox for messages of at most `octets_max` octets.
    pub(crate) fn new(octets_max: usize) -> Self {
        Self {
            buffer: vec![0; OCTETS_MIN],
            start: 0,
            end: 0,
            octets_max,
            expected: 0,
            is_full: false,
        }
    }

    /// The header of the next message; `None` while it is not all there.
    #[inline]
    pub(crate) fn header(&self) -> Result<Option<Header>, DecodeError> {
        Header::parse(&self.buffer[self.start..self.end], self.octets_max)
    }

    /// What is there of the next message, at most `octets` of it.
    #[inline]
    pub(crate) fn octets(&self, octets: usize) -> &[u8] {
        &self.buffer[self.start..self.end.min(self.start + octets)]
    }

    /// How much is there, of whatever messages.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.end - self.start
    }

    /// True if [`receive_now`](Self::receive_now) took as much as it takes at a time.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.is_full
    }

    /// Leaves the next `octets` octets behind.
    #[inline]
    pub(crate) fn consume(&mut self, octets: usize) {
        self.expected = 0;
        self.start += octets;
        if self.start >= self.end {
            self.start = 0;
            self.end = 0;
        } else {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
    }

    /// Moves the next message, all `octets` of which are there, to the start of `message`, which may be longer.
    ///
    /// The buffers change places where nothing lies behind the message, so that most are not copied.
    pub(crate) fn take(&mut self, octets: usize, message: &mut Vec<u8>) {
        if octets < self.len() {
            if message.len() < octets {
                message.resize(octets, 0);
            }
            message[..octets].copy_from_slice(self.octets(octets));
            return self.consume(octets);
        }
        core::mem::swap(&mut self.buffer, message);
        (self.start, self.end, self.expected) = (0, 0, 0);
        if self.buffer.len() < OCTETS_MIN {
            self.buffer.resize(OCTETS_MIN, 0);
        }
    }

    /// True if a message of that size can lie in the buffer as it is.
    #[inline]
    pub(crate) fn holds(&self, octets: usize) -> bool {
        octets <= self.buffer.len()
    }

    /// Makes room for the rest of a message of `octets` octets.
    ///
    /// The buffer at most doubles: a peer has to send octets to make it grow, not just announce them.
    pub(crate) fn make_room(&mut self, octets: usize) {
        self.expected = octets;
        if self.end == self.buffer.len() {
            let size = octets.min(2 * self.buffer.len()).max(self.end + 1);
            self.buffer.resize(size, 0);
        }
    }

    /// Makes room for a whole message of `octets` octets, which is known to be wanted.
    pub(crate) fn make_room_for_all(&mut self, octets: usize) {
        if octets > self.buffer.len() {
            self.buffer.resize(octets, 0);
        }
    }

    /// Receives once, waiting; the number of octets, 0 when the peer has ended.
    #[inline]
    pub(crate) fn receive(&mut self, stream: &Stream) -> Result<usize, Errno> {
        let received = stream.receive(&mut self.buffer[self.end..])?;
        self.end += received;
        Ok(received)
    }

    /// Receives without waiting what is there, or some of it.
    #[inline]
    pub(crate) fn receive_now(&mut self, stream: &Stream) -> Result<usize, Errno> {
        let ahead = self.expected.max(self.end) + AHEAD_OCTETS;
        let room_end = ahead.min(self.buffer.len());
        let received = stream.receive_now(&mut self.buffer[self.end..room_end])?;
        self.end += received;
        self.is_full = self.end == room_end;
        Ok(received)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_large_message_lets_no_flood_in_behind_it() {
        let (mut peer, own) = UnixStream::pair().expect("two sockets");
        let stream = Stream::new(own.into());
        let mut inbox = Inbox::new(1 << 20);
        inbox.make_room_for_all(1 << 20);
        let sent = vec![7; 3 * AHEAD_OCTETS / 2];
        peer.write_all(&sent).expect("the kernel takes them");
        assert_eq!(inbox.receive_now(&stream), Ok(AHEAD_OCTETS));
        assert!(inbox.is_full());
        inbox.consume(AHEAD_OCTETS);
        assert_eq!(inbox.receive_now(&stream), Ok(AHEAD_OCTETS / 2));
        assert!(!inbox.is_full());
        // One that is awaited comes whole.
        inbox.make_room(2 * AHEAD_OCTETS);
        peer.write_all(&sent).expect("the kernel takes them");
        assert_eq!(inbox.receive_now(&stream), Ok(sent.len()));
    }
}
