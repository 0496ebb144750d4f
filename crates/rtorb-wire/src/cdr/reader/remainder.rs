//! Messages whose end is not in memory yet: the reader fetches it when it is needed.

use super::Reader;
use crate::DecodeError;
use alloc::vec::Vec;

/// The rest of a message that is not in memory yet.
///
/// A large message is decoded while its end is still in the socket. A long run of bytes then goes straight to its
/// destination, without a copy.
pub trait Remainder {
    /// The number of bytes of the message that were not read from here yet.
    fn left(&self) -> usize;

    /// Reads the next `count` bytes and appends them to `into`.
    ///
    /// # Errors
    /// [`DecodeError::Interrupted`] when they do not arrive.
    fn append(&mut self, into: &mut Vec<u8>, count: usize) -> Result<(), DecodeError>;

    /// Reads all that is left and returns `head` followed by it.
    ///
    /// # Errors
    /// [`DecodeError::Interrupted`] when it does not arrive.
    fn complete(&mut self, head: &[u8]) -> Result<&[u8], DecodeError>;
}

impl Reader<'_> {
    /// Ensures that `bytes` more bytes are in memory, or all that the message has.
    ///
    /// # Errors
    /// [`DecodeError::Interrupted`] when the rest does not arrive.
    #[inline]
    pub fn buffer_up(&mut self, bytes: usize) -> Result<(), DecodeError> {
        if self.is_at_chunk_end() {
            self.next_chunk()
        } else if self.rest.is_some() && self.bytes.len() - self.at < bytes {
            self.buffer_rest()
        } else {
            Ok(())
        }
    }

    /// The number of bytes behind the position, in memory or not.
    #[inline]
    pub fn remaining(&self) -> usize {
        let rest = self.rest.as_ref().map_or(0, |rest| rest.left());
        self.bytes.len() - self.at + self.hidden + rest
    }

    /// Checks the message, from its first byte to its last, against the bound that its operation states.
    ///
    /// # Errors
    /// [`DecodeError::BeyondLargest`].
    #[inline]
    pub fn check_largest(&self, limit: u32) -> Result<(), DecodeError> {
        match self.position().saturating_add(self.remaining()) {
            bytes if bytes > limit as usize => Err(DecodeError::BeyondLargest { bytes, limit }),
            _ => Ok(()),
        }
    }

    /// Copies the bytes in memory and reads the rest of a long run straight behind them.
    pub(super) fn stream_bytes(
        &mut self,
        into: &mut Vec<u8>,
        length: usize,
    ) -> Result<(), DecodeError> {
        let buffered = self.buffered();
        let Some(rest) = self
            .rest
            .as_mut()
            .filter(|rest| buffered.len() + rest.left() >= length)
        else {
            return Err(DecodeError::Truncated {
                needed: length,
                left: self.remaining(),
            });
        };
        into.reserve_exact(length);
        into.extend_from_slice(buffered);
        rest.append(into, length - buffered.len())?;
        let position = self.position() + length;
        self.bytes = &[];
        self.at = 0;
        self.shift = position;
        Ok(())
    }

    #[cold]
    #[inline(never)]
    pub(super) fn buffer_exactly(&mut self, needed: usize) -> Result<(), DecodeError> {
        if self.is_at_chunk_end() {
            return self.next_chunk();
        }
        if self.rest.is_none() || self.remaining() < needed {
            return Err(DecodeError::Truncated {
                needed,
                left: self.remaining(),
            });
        }
        self.buffer_rest()
    }

    #[cold]
    #[inline(never)]
    pub(super) fn buffer_rest(&mut self) -> Result<(), DecodeError> {
        if let Some(rest) = self.rest.take() {
            self.bytes = rest.complete(self.bytes)?;
        }
        Ok(())
    }
}
