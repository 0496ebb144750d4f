//! The chunked state of valuetypes: the reader exposes one chunk at a time and moves to the next by itself.

use super::Reader;
use crate::DecodeError;
use crate::cdr::{Chunk, ValueStart};

/// The position of a reader among chunked values.
#[derive(Clone, Copy, Default)]
pub(super) struct Chunks<'m> {
    /// All bytes of the stream, including those behind the current chunk.
    all: &'m [u8],
    /// The number of open chunked values, each inside the one before.
    depth: u32,
    /// If not 0: an end tag of an inner value has ended the open values of that depth and deeper.
    ended: u32,
}

impl<'m> Reader<'m> {
    /// Reads a state with `read`, in chunks if it was sent in chunks, and skips the rest unless the type `is_exact`.
    ///
    /// # Errors
    /// When the value does not end here, or is not chunked where it must be; the error of `read`.
    pub(crate) fn value_state<T>(
        &mut self,
        start: &ValueStart<'_>,
        is_exact: bool,
        read: impl FnOnce(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<T, DecodeError> {
        //= GIOP 1.2 §15.3.4
        //# A value inside a chunked value is between chunks, and is chunked itself.
        if self.is_in_chunks() && (self.is_inside_chunk() || !start.chunked) {
            return Err(DecodeError::UnknownValue);
        }
        if !start.chunked {
            return read(self);
        }
        self.enter_chunks()?;
        let state = read(self)?;
        self.leave_chunks(!is_exact)?;
        Ok(state)
    }

    /// Begins the state of a chunked value, until [`leave_chunks`](Self::leave_chunks).
    ///
    /// # Errors
    /// When the rest of the message does not arrive.
    fn enter_chunks(&mut self) -> Result<(), DecodeError> {
        self.buffer_rest()?;
        let all = self.bytes;
        let chunks = self.chunks();
        chunks.all = all;
        chunks.depth += 1;
        self.hide_behind(self.at);
        Ok(())
    }

    /// Ends the state of a chunked value. If `is_truncated`, skips the members of the derived type that are left.
    ///
    /// # Errors
    /// When the value does not end here.
    //= GIOP 1.2 §15.3.4
    //# A receiver that knows only a base type skips the rest of a truncatable value by its chunks and end tags.
    fn leave_chunks(&mut self, is_truncated: bool) -> Result<(), DecodeError> {
        if !is_truncated && !self.has_only_padding() {
            return Err(DecodeError::UnknownValue);
        }
        self.at = self.bytes.len();
        let Chunks { depth, ended, .. } = *self.chunks();
        self.show_all();
        let ended = if ended != 0 {
            ended
        } else if is_truncated {
            self.skip_chunks(depth)?
        } else {
            match self.chunk()? {
                Chunk::End(ended) if (1..=depth).contains(&ended) => ended,
                _ => return Err(DecodeError::UnknownValue),
            }
        };
        let chunks = self.chunks();
        chunks.ended = if ended < depth { ended } else { 0 };
        chunks.depth = depth - 1;
        if depth > 1 {
            self.hide_behind(self.at);
        }
        Ok(())
    }

    /// Leaves the current chunk if a nested value begins behind it.
    pub(crate) fn approach_value(&mut self) {
        if self.hidden == 0 || !self.has_only_padding() {
            return;
        }
        let at = self.at + self.padding();
        let ahead = self.chunks().all.get(at..);
        let tag = ahead.and_then(|ahead| ahead.first_chunk());
        if tag.is_some_and(|tag| VALUE_TAGS.contains(&self.number(*tag))) {
            self.show_all();
        }
    }

    /// True if the rest of the chunk is only the padding before a tag. omniORB counts this padding as part of the chunk.
    fn has_only_padding(&self) -> bool {
        self.bytes.len() - self.at <= self.padding()
    }

    /// The bytes before the next multiple of 4.
    fn padding(&self) -> usize {
        self.position().wrapping_neg() & 3
    }

    /// True inside a chunked value.
    fn is_in_chunks(&self) -> bool {
        self.values
            .as_ref()
            .is_some_and(|values| values.chunks.depth > 0)
    }

    /// True inside a chunk, where no value may begin.
    pub(crate) fn is_inside_chunk(&self) -> bool {
        self.hidden > 0
    }

    /// True at the end of a chunk.
    #[inline]
    pub(super) fn is_at_chunk_end(&self) -> bool {
        self.hidden > 0 && self.at == self.bytes.len()
    }

    /// Moves to the next chunk.
    #[cold]
    #[inline(never)]
    pub(super) fn next_chunk(&mut self) -> Result<(), DecodeError> {
        let ended = self.chunks().ended;
        self.show_all();
        match self.chunk()? {
            Chunk::State(bytes) if ended == 0 => self.hide_behind(self.at + bytes),
            _ => return Err(DecodeError::UnknownValue),
        }
        Ok(())
    }

    fn chunks(&mut self) -> &mut Chunks<'m> {
        &mut self.values.get_or_insert_default().chunks
    }

    fn show_all(&mut self) {
        self.bytes = self.chunks().all;
        self.hidden = 0;
    }

    fn hide_behind(&mut self, end: usize) {
        let all = self.chunks().all;
        self.bytes = &all[..end];
        self.hidden = all.len() - end;
    }
}

const VALUE_TAGS: core::ops::RangeInclusive<u32> = 0x7fff_ff00..=0x7fff_ffff;
