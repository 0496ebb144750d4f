//! The bytes of a client's connection that its socket did not take yet.

use crate::transport::Stream;
use rtorb_wire::{Writer, giop};
use rustix::io::Errno;

/// Unsent bytes, in the order in which they must go.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    bytes: Vec<u8>,
    /// How many of them have been sent.
    sent: usize,
}

/// Memory that an empty outbox keeps; more is given back.
const KEPT_BYTES_MAX: usize = 64 << 10;

impl Outbox {
    pub(super) fn is_empty(&self) -> bool {
        self.sent == self.bytes.len()
    }

    /// How many bytes are unsent.
    pub(super) fn len(&self) -> usize {
        self.bytes.len() - self.sent
    }

    /// Appends a message without its first `sent` bytes, in fragments of at most `fragment_bytes` if it is larger.
    ///
    /// # Errors
    /// NOMEM when there is no memory for it.
    #[cold]
    pub(super) fn append(
        &mut self,
        message: &Writer<'_>,
        sent: usize,
        fragment_bytes: Option<usize>,
    ) -> Result<(), Errno> {
        self.bytes
            .try_reserve(message.len() - sent)
            .map_err(|_| Errno::NOMEM)?;
        let whole = message.to_octets();
        match fragment_bytes.filter(|&max| whole.len() > max) {
            None => self.bytes.extend_from_slice(&whole[sent..]),
            Some(max) => {
                giop::fragments(&whole, max).for_each(|part| self.bytes.extend_from_slice(&part));
            }
        }
        Ok(())
    }

    /// Sends what the socket takes now; true when nothing is left.
    pub(super) fn flush(&mut self, stream: &Stream) -> Result<bool, Errno> {
        while !self.is_empty() {
            match stream.send_message_now(&self.bytes[self.sent..], &[])? {
                0 => return Ok(false),
                sent => self.sent += sent,
            }
        }
        self.clear();
        Ok(true)
    }

    /// Drops all unsent bytes.
    pub(super) fn clear(&mut self) {
        self.sent = 0;
        self.bytes.clear();
        self.bytes.shrink_to(KEPT_BYTES_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    #[test]
    fn what_the_socket_does_not_take_goes_later_and_in_order() {
        let (mut peer, own) = UnixStream::pair().expect("two sockets");
        let stream = Stream::new(own.into());
        let mut outbox = Outbox::default();
        let mut expected = Vec::new();
        for (number, sent) in [(0u8, 0), (1, 7), (2, 0)] {
            let mut w = Writer::new(Vec::new(), usize::MAX);
            w.octets(&vec![number; 300_000]).expect("there is room");
            expected.extend_from_slice(&w.to_octets()[sent..]);
            outbox.append(&w, sent, None).expect("there is memory");
        }
        assert_eq!(outbox.len(), expected.len());
        let mut received = vec![0; expected.len()];
        let mut taken = 0;
        while outbox.flush(&stream) == Ok(false) {
            taken += peer.read(&mut received[taken..]).expect("there is more");
        }
        peer.read_exact(&mut received[taken..]).expect("the rest");
        assert!(received == expected && outbox.is_empty());
    }
}
