//! The queue of bytes that the transport did not take.

use crate::Writer;
use crate::giop;
use alloc::vec::Vec;

/// A bounded queue of the bytes that the transport did not take.
///
/// They are sent before any other message of the connection. A client keeps at most the rest of one message, or the queue of a
/// connection whose own thread sends; a server keeps replies in the order in which they were made.
#[derive(Debug)]
pub struct Outbox {
    /// The bytes kept. The first `sent` of them have been sent since.
    bytes: Vec<u8>,
    sent: usize,
    bytes_max: usize,
}

/// The reason why an [`Outbox`] refused a message. It keeps no part of that message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OutboxError {
    /// The message would exceed the bound.
    #[error("{bytes} bytes would wait to be sent, and the limit is {bytes_max}")]
    Full {
        /// Bytes that would wait.
        bytes: usize,
        /// Bytes that may wait.
        bytes_max: usize,
    },
    /// An allocation failed.
    #[error("no memory for {bytes} bytes that wait to be sent")]
    NoMemory {
        /// Bytes that would wait.
        bytes: usize,
    },
}

impl Outbox {
    /// An empty outbox for at most `bytes_max` bytes. It allocates no memory before it keeps a message.
    pub const fn new(bytes_max: usize) -> Self {
        Self {
            bytes: Vec::new(),
            sent: 0,
            bytes_max,
        }
    }

    /// Allocates the memory of the first `bytes` bytes now.
    #[must_use]
    pub fn with_memory(mut self, bytes: usize) -> Self {
        self.bytes.reserve(bytes);
        self
    }

    /// Keeps a message except for its first `sent` bytes, which the transport took. Keeps all or nothing.
    ///
    /// # Errors
    /// When the bound would be exceeded, or for lack of memory.
    #[cold]
    pub fn keep(&mut self, message: &Writer<'_>, sent: usize) -> Result<(), OutboxError> {
        self.reserve(message.len().saturating_sub(sent))?;
        let (own, lent) = message.parts();
        let mut skip = sent;
        let mut from = 0;
        for segment in lent {
            self.append_behind(&own[from..segment.after], &mut skip);
            self.append_behind(segment.bytes, &mut skip);
            from = segment.after;
        }
        self.append_behind(&own[from..], &mut skip);
        Ok(())
    }

    /// Keeps a message in fragments of at most `fragment_bytes` bytes. Keeps all or nothing.
    ///
    /// # Errors
    /// When the bound would be exceeded, or for lack of memory.
    #[cold]
    pub fn keep_fragments(
        &mut self,
        message: &Writer<'_>,
        fragment_bytes: usize,
    ) -> Result<(), OutboxError> {
        let whole = message.to_bytes();
        let total = giop::fragments(&whole, fragment_bytes).map(|part| part.len());
        self.reserve(total.sum())?;
        for part in giop::fragments(&whole, fragment_bytes) {
            self.bytes.extend_from_slice(&part);
        }
        Ok(())
    }

    /// Reports that the transport took the first `count` bytes of [`unsent`](Self::unsent).
    #[inline]
    pub fn advance(&mut self, count: usize) {
        debug_assert!(count <= self.len(), "sent more bytes than wait");
        self.sent += count;
        if self.sent >= self.bytes.len() {
            self.bytes.clear();
            self.sent = 0;
        }
    }

    /// Removes a message that must no longer be sent: `count` bytes behind the first `skip` unsent ones.
    #[cold]
    pub fn withdraw(&mut self, skip: usize, count: usize) {
        debug_assert!(skip + count <= self.len(), "removed more bytes than wait");
        let from = (self.sent + skip).min(self.bytes.len());
        let to = (from + count).min(self.bytes.len());
        self.bytes.drain(from..to);
        self.advance(0);
    }

    /// The bytes to send next.
    #[inline]
    pub fn unsent(&self) -> &[u8] {
        &self.bytes[self.sent..]
    }

    /// The number of bytes that wait.
    #[inline]
    pub fn len(&self) -> usize {
        self.bytes.len() - self.sent
    }

    /// True if nothing waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Frees the memory if nothing waits and it is larger than `bytes` bytes.
    pub fn trim(&mut self, bytes: usize) {
        if self.is_empty() && self.bytes.capacity() > bytes {
            self.bytes = Vec::new();
        }
    }

    fn reserve(&mut self, more: usize) -> Result<(), OutboxError> {
        let bytes = self.len().saturating_add(more);
        if bytes > self.bytes_max {
            let bytes_max = self.bytes_max;
            return Err(OutboxError::Full { bytes, bytes_max });
        }
        // Drops the bytes already sent, so that the memory is bounded too.
        self.bytes.drain(..self.sent);
        self.sent = 0;
        self.bytes
            .try_reserve(more)
            .map_err(|_| OutboxError::NoMemory { bytes })
    }

    /// Appends a part of a message without its first `skip` bytes, and subtracts the skipped ones from `skip`.
    fn append_behind(&mut self, part: &[u8], skip: &mut usize) {
        let skipped = part.len().min(*skip);
        *skip -= skipped;
        self.bytes.extend_from_slice(&part[skipped..]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::giop::{MessageType, Version, begin_message, end_message};

    /// A message with two lent runs of bytes.
    fn message<'a>(first: &'a [u8], second: &'a [u8]) -> Writer<'a> {
        let mut w = Writer::new(Vec::new(), 1 << 20);
        begin_message(&mut w, Version::V1_2, MessageType::Request).expect("it fits");
        w.primitive(7u32).expect("it fits");
        w.lend_bytes(first).expect("it fits");
        w.primitive(9u8).expect("it fits");
        w.lend_bytes(second).expect("it fits");
        w.primitive(11u8).expect("it fits");
        end_message(&mut w).expect("it fits");
        w
    }

    #[test]
    fn keeps_a_message_without_the_bytes_sent_wherever_they_end() {
        let (first, second) = (vec![1; 20_000], vec![2; 17_000]);
        let message = message(&first, &second);
        assert_eq!(message.parts().1.len(), 2);
        let whole = message.to_bytes();
        let ends = [0, 1, 12, 16, 17, 20_015, 20_016, 20_017, 20_018, 37_016];
        for sent in ends.into_iter().chain([whole.len() - 1]) {
            let mut outbox = Outbox::new(whole.len());
            outbox.keep(&message, sent).expect("there is room");
            assert_eq!(outbox.unsent(), &whole[sent..], "{sent}");
            assert!(!outbox.is_empty());
        }
    }

    #[test]
    fn keeps_messages_in_order_within_the_bound() {
        let bytes = vec![1; 16_384];
        let message = message(&bytes, &bytes);
        let whole = message.to_bytes();
        let mut outbox = Outbox::new(2 * whole.len());
        outbox.keep(&message, 10).expect("there is room");
        outbox.keep(&message, 0).expect("there is room");
        let full = OutboxError::Full {
            bytes: 3 * whole.len() - 10,
            bytes_max: 2 * whole.len(),
        };
        assert_eq!(outbox.keep(&message, 0), Err(full));
        outbox.advance(whole.len());
        assert_eq!(outbox.len(), whole.len() - 10);
        outbox.keep(&message, 0).expect("there is room again");
        assert_eq!(&outbox.unsent()[..whole.len() - 10], &whole[10..]);
        assert_eq!(&outbox.unsent()[whole.len() - 10..], &whole[..]);
        outbox.advance(outbox.len());
        assert!(outbox.is_empty());
        outbox.trim(0);
        assert_eq!((outbox.len(), outbox.bytes.capacity()), (0, 0));
    }

    #[test]
    fn a_message_that_is_withdrawn_leaves_the_others_whole() {
        let bytes = vec![1; 100];
        let message = message(&bytes, &[]);
        let whole = message.to_bytes();
        let mut outbox = Outbox::new(4 * whole.len()).with_memory(whole.len());
        for _ in 0..3 {
            outbox.keep(&message, 0).expect("there is room");
        }
        outbox.advance(10);
        outbox.withdraw(whole.len() - 10, whole.len());
        assert_eq!(outbox.unsent(), [&whole[10..], &whole[..]].concat());
        outbox.withdraw(whole.len() - 10, whole.len());
        outbox.advance(whole.len() - 10);
        assert_eq!((outbox.is_empty(), outbox.len()), (true, 0));
        outbox.keep(&message, 0).expect("there is room");
        outbox.withdraw(0, whole.len());
        assert!(outbox.is_empty());
    }

    #[test]
    fn keeps_fragments_whole_or_nothing() {
        let bytes = vec![5; 100];
        let message = message(&bytes, &[]);
        let parts: Vec<u8> = giop::fragments(&message.to_bytes(), 32).flatten().collect();
        let mut outbox = Outbox::new(parts.len());
        outbox.keep_fragments(&message, 32).expect("there is room");
        assert_eq!(outbox.unsent(), parts);
        let mut small = Outbox::new(parts.len() - 1);
        assert!(small.keep_fragments(&message, 32).is_err());
        assert!(small.is_empty());
    }
}
