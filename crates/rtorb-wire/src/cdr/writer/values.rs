//! The valuetypes of a stream: those that were written, and the chunks around those that are being written.

use super::Writer;
use crate::EncodeError;
use crate::cdr::DEPTH_MAX;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::{Any, TypeId};

/// The identity of a value: its address and its type.
type Identity = (usize, TypeId);

/// The valuetypes written to one stream.
#[derive(Debug, Default)]
pub(super) struct WrittenValues {
    /// The positions of the values written.
    written: BTreeMap<Identity, usize>,
    /// The number of values that are being written, each inside the one before.
    depth: u8,
    /// The number of those that are chunked.
    depth_chunked: u32,
    /// The open chunk.
    chunk: Option<OpenChunk>,
    /// Values that the message does not borrow, so that no other value can get the address of one.
    kept: Vec<Arc<dyn Any + Send + Sync>>,
}

#[derive(Debug)]
struct OpenChunk {
    /// The end of the buffer before the chunk.
    before: usize,
    /// The index of the chunk's size in the buffer.
    size_at: usize,
    /// The length of the stream before the chunk's state.
    start: usize,
}

impl WrittenValues {
    /// Drops the values after the first `at` bytes of the stream.
    pub(super) fn forget_after(&mut self, at: usize) {
        self.written.retain(|_, position| *position < at);
    }
}

impl Writer<'_> {
    /// Writes the head of a value, and its state with `state`; in chunks if the value `is_custom` or is inside a chunked one.
    ///
    /// # Errors
    /// [`EncodeError::TooDeep`] when too many values are open; the error of `state`.
    //= GIOP 1.2 §15.3.4
    //# The state of a custom valuetype is sent in chunks.
    pub(crate) fn value(
        &mut self,
        repository_id: &str,
        identity: Identity,
        is_custom: bool,
        state: impl FnOnce(&mut Self) -> Result<(), EncodeError>,
    ) -> Result<(), EncodeError> {
        let is_chunked = self.leave_chunk()? || is_custom;
        let position = self.begin_value(&[repository_id], is_chunked)?;
        let values = self.values.get_or_insert_default();
        if values.depth == DEPTH_MAX {
            return Err(EncodeError::TooDeep { max: DEPTH_MAX });
        }
        values.depth += 1;
        values.written.insert(identity, position);
        let written = if is_chunked {
            self.chunks(state)
        } else {
            state(self)
        };
        if let Some(values) = &mut self.values {
            values.depth -= 1;
        }
        written
    }

    /// Keeps a value that was written until the end of the stream.
    pub(crate) fn keep_value(&mut self, value: Arc<dyn Any + Send + Sync>) {
        self.values.get_or_insert_default().kept.push(value);
    }

    /// The position of a value that was written before.
    pub(crate) fn value_position(&self, identity: Identity) -> Option<usize> {
        self.values.as_ref()?.written.get(&identity).copied()
    }

    /// True if a value was written that is not null.
    pub(crate) fn has_values(&self) -> bool {
        self.values.is_some()
    }

    /// True inside a chunked value.
    pub(crate) fn is_in_chunks(&self) -> bool {
        self.values
            .as_ref()
            .is_some_and(|values| values.depth_chunked > 0)
    }

    /// Writes a state in chunks, and its end tag.
    fn chunks(
        &mut self,
        state: impl FnOnce(&mut Self) -> Result<(), EncodeError>,
    ) -> Result<(), EncodeError> {
        self.values.get_or_insert_default().depth_chunked += 1;
        let written = self.enter_chunk().and_then(|()| state(self));
        let ended = written.and_then(|()| self.leave_chunk());
        let values = self.values.get_or_insert_default();
        let depth = values.depth_chunked;
        values.depth_chunked -= 1;
        // After an error, the buffer may be cut off before the chunk.
        values.chunk = None;
        ended?;
        self.end_value(depth)?;
        if depth > 1 {
            self.enter_chunk()?;
        }
        Ok(())
    }

    fn enter_chunk(&mut self) -> Result<(), EncodeError> {
        let before = self.at;
        let size_at = self.claim(4, 4)?;
        let chunk = OpenChunk {
            before,
            size_at,
            start: self.len(),
        };
        self.values.get_or_insert_default().chunk = Some(chunk);
        Ok(())
    }

    /// Ends the open chunk. Returns true inside a chunked value.
    //= GIOP 1.2 §15.3.4
    //# A value inside a chunked value is between chunks, and is chunked itself.
    fn leave_chunk(&mut self) -> Result<bool, EncodeError> {
        let Some(values) = &mut self.values else {
            return Ok(false);
        };
        let is_chunked = values.depth_chunked > 0;
        if let Some(chunk) = values.chunk.take() {
            let count = self.len() - chunk.start;
            if count == 0 {
                // No chunk is empty.
                self.at = chunk.before;
                return Ok(is_chunked);
            }
            let size = u32::try_from(count).ok().filter(|size| *size < CHUNK_END);
            let size = size.ok_or(EncodeError::CountTooLarge { count })?;
            self.patch_u32(chunk.size_at, size);
        }
        Ok(is_chunked)
    }
}

/// The smallest number that is not a chunk size: the first value tag.
const CHUNK_END: u32 = 0x7fff_ff00;
