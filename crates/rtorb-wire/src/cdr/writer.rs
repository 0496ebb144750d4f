//! The writer of a CDR stream: a position in a reused buffer, and runs of bytes borrowed from the caller.

mod values;

use super::{ByteOrder, CharCodeSet, Primitive, aligned};
use crate::EncodeError;
use alloc::boxed::Box;
use alloc::vec::Vec;
use arrayvec::ArrayVec;
use core::hint::cold_path;
use values::WrittenValues;

/// The message borrows runs of at least this many bytes instead of copying them.
///
/// Copying a shorter run costs less than one more part for the kernel to gather.
pub const GATHER_BYTES_MIN: usize = 16384;

/// The most borrowed runs of one message; further ones are copied.
const SEGMENTS_MAX: usize = 4;

/// Zeros behind the end, so that padding is written without a branch.
pub(crate) const SLACK_BYTES: usize = 8;

/// A borrowed run of bytes in a message.
#[derive(Clone, Copy, Debug)]
pub struct Segment<'a> {
    /// The number of bytes of the writer's buffer before it.
    pub after: usize,
    /// The borrowed bytes.
    pub bytes: &'a [u8],
}

/// The borrowed runs of one message.
pub type Segments<'a> = ArrayVec<Segment<'a>, SEGMENTS_MAX>;

/// Encodes aligned values one after the other, in one byte order.
///
/// The writer takes its buffer from the caller and returns it, so that a connection uses the same memory for every message.
/// It borrows runs of bytes for `'a`.
#[derive(Debug)]
pub struct Writer<'a> {
    buffer: Vec<u8>,
    at: usize,
    gathered: usize,
    origin: usize,
    segments: Segments<'a>,
    bytes_max: usize,
    order: ByteOrder,
    minor: u8,
    char_code_set: CharCodeSet,
    values: Option<Box<WrittenValues>>,
}

impl<'a> Writer<'a> {
    /// Begins a stream of at most `bytes_max` bytes in `buffer`, and overwrites its contents.
    pub fn new(mut buffer: Vec<u8>, bytes_max: usize) -> Self {
        // A buffer that was used with a larger limit may be longer than this limit allows.
        buffer.truncate(bytes_max.saturating_add(SLACK_BYTES));
        Self {
            buffer,
            at: 0,
            gathered: 0,
            origin: 0,
            segments: ArrayVec::new_const(),
            bytes_max,
            order: ByteOrder::NATIVE,
            minor: 2,
            char_code_set: CharCodeSet::Latin1,
            values: None,
        }
    }

    /// Memory in which a writer of at most `bytes_max` bytes never grows.
    pub fn memory(bytes_max: usize) -> Vec<u8> {
        Vec::with_capacity(bytes_max.saturating_add(SLACK_BYTES))
    }

    /// Continues a stream that was [finished](Self::finish_whole) with these values, so that it can be sent.
    pub fn of_whole(buffer: Vec<u8>, len: usize) -> Self {
        let mut w = Self::new(buffer, usize::MAX);
        w.at = len.min(w.buffer.len());
        w
    }

    /// Sets the byte order; without this, it is the order of this machine.
    #[must_use]
    pub fn with_order(mut self, order: ByteOrder) -> Self {
        self.order = order;
        self
    }

    /// Writes the padding up to a multiple of `alignment` (a power of two, at most 8).
    ///
    /// # Errors
    /// When the message would exceed its limit.
    #[inline]
    pub fn align(&mut self, alignment: usize) -> Result<(), EncodeError> {
        self.claim(alignment, 0).map(|_| ())
    }

    /// Writes an aligned number.
    ///
    /// # Errors
    /// When the message would exceed its limit.
    #[inline(always)]
    pub fn primitive<T: Primitive>(&mut self, value: T) -> Result<(), EncodeError> {
        let at = self.claim(size_of::<T>(), size_of::<T>())?;
        let value = self.order.convert(value);
        self.buffer[at..at + size_of::<T>()].copy_from_slice(bytemuck::bytes_of(&value));
        Ok(())
    }

    /// Writes a count of elements.
    ///
    /// # Errors
    /// When it does not fit an unsigned long.
    #[inline]
    pub fn count(&mut self, count: usize) -> Result<(), EncodeError> {
        let count = u32::try_from(count).map_err(|_| EncodeError::CountTooLarge { count })?;
        self.primitive(count)
    }

    /// Copies bytes into the message.
    ///
    /// # Errors
    /// When the message would exceed its limit.
    #[inline]
    pub fn octets(&mut self, bytes: &[u8]) -> Result<(), EncodeError> {
        let at = self.claim(1, bytes.len())?;
        self.buffer[at..at + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    /// Writes the number of bytes, and a copy of them.
    ///
    /// # Errors
    /// When the message would exceed its limit.
    #[inline]
    pub(crate) fn counted_bytes(&mut self, bytes: &[u8]) -> Result<(), EncodeError> {
        self.count(bytes.len())?;
        self.octets(bytes)
    }

    /// Writes a string whose bytes are in the code set already: its length with the terminating zero, the bytes and the zero.
    ///
    /// # Errors
    /// When the message would exceed its limit.
    #[inline]
    pub(crate) fn terminated_bytes(&mut self, bytes: &[u8]) -> Result<(), EncodeError> {
        self.count(bytes.len() + 1)?;
        self.octets(bytes)?;
        self.primitive(0u8)
    }

    /// Adds bytes to the message: borrows a long run, and copies a short one.
    ///
    /// # Errors
    /// When the message would exceed its limit.
    #[inline]
    pub fn lend_bytes(&mut self, bytes: &'a [u8]) -> Result<(), EncodeError> {
        if bytes.len() < GATHER_BYTES_MIN || self.segments.is_full() {
            return self.octets(bytes);
        }
        self.check_limit(self.at + self.gathered + bytes.len())?;
        self.segments.push(Segment {
            after: self.at,
            bytes,
        });
        self.gathered += bytes.len();
        Ok(())
    }

    /// Writes numbers of one type: in one copy where the byte order is this machine's.
    ///
    /// # Errors
    /// When the message would exceed its limit.
    #[inline]
    pub fn primitives<T: Primitive>(&mut self, values: &'a [T]) -> Result<(), EncodeError> {
        if values.is_empty() {
            return Ok(());
        }
        self.claim(size_of::<T>(), 0)?;
        // Single bytes have no order.
        if size_of::<T>() == 1 || !self.order.is_foreign() {
            return self.lend_bytes(bytemuck::cast_slice(values));
        }
        let bytes = size_of_val(values);
        let at = self.claim(1, bytes)?;
        let room = self.buffer[at..at + bytes].chunks_exact_mut(size_of::<T>());
        for (slot, value) in room.zip(values) {
            slot.copy_from_slice(bytemuck::bytes_of(&value.swapped()));
        }
        Ok(())
    }

    /// Writes an encapsulation with the data that `content` writes.
    ///
    /// # Errors
    /// The error of `content`, or when the message would exceed its limit.
    //= GIOP 1.2 §15.3.3
    //# An encapsulation is its length, its byte order and data whose alignment counts from the byte order.
    pub fn encapsulation(
        &mut self,
        content: impl FnOnce(&mut Self) -> Result<(), EncodeError>,
    ) -> Result<(), EncodeError> {
        self.sized(|w| {
            let outer = w.origin;
            //= GIOP 1.2 §15.3.4.3
            //# An indirection in an encapsulation does not refer to a value outside of it.
            let outer_values = w.values.take();
            w.origin = w.at + w.gathered;
            let written = w.primitive(w.order.flag()).and_then(|()| content(w));
            w.origin = outer;
            w.values = outer_values;
            written
        })
    }

    /// Writes the number of bytes that `content` writes, and those bytes.
    ///
    /// # Errors
    /// The error of `content`, or when the message would exceed its limit.
    pub fn sized(
        &mut self,
        content: impl FnOnce(&mut Self) -> Result<(), EncodeError>,
    ) -> Result<(), EncodeError> {
        let length_at = self.claim(4, 4)?;
        let start = self.at + self.gathered;
        content(self)?;
        let length = self.at + self.gathered - start;
        let length =
            u32::try_from(length).map_err(|_| EncodeError::CountTooLarge { count: length })?;
        self.patch_u32(length_at, length);
        Ok(())
    }

    /// Overwrites the unsigned long at index `at` of the writer's buffer.
    ///
    /// # Panics
    /// If nothing was written there.
    #[inline]
    pub fn patch_u32(&mut self, at: usize, value: u32) {
        self.patch(at, &self.ordered(value));
    }

    /// Discards all but the first `at` bytes of the stream.
    #[inline]
    pub fn truncate(&mut self, at: usize) {
        if self.values.is_some() || !self.segments.is_empty() {
            self.forget_after(at);
        }
        self.at = self.at.min(at - self.gathered);
    }

    /// Drops the values and the borrowed runs after the first `at` bytes of the stream.
    fn forget_after(&mut self, at: usize) {
        if let Some(values) = &mut self.values {
            values.forget_after(at);
        }
        while let Some(segment) = self.segments.last_mut()
            && segment.after + self.gathered > at
        {
            self.at = segment.after;
            self.gathered -= segment.bytes.len();
            let kept = at.saturating_sub(self.at + self.gathered);
            if kept > 0 {
                segment.bytes = &segment.bytes[..kept];
                self.gathered += kept;
                return;
            }
            self.segments.pop();
        }
    }

    /// Writes the wide characters of GIOP 1.`minor` from here on.
    pub fn set_giop_minor(&mut self, minor: u8) {
        self.minor = minor;
    }

    /// Writes numbers in that byte order from here on.
    pub(crate) fn set_order(&mut self, order: ByteOrder) {
        self.order = order;
    }

    /// Checks the message against its limit.
    ///
    /// # Errors
    /// [`EncodeError::TooLarge`].
    #[inline]
    pub(crate) fn check_len(&self) -> Result<(), EncodeError> {
        self.check_limit(self.len())
    }

    /// Checks the message against the bound that its operation states.
    ///
    /// # Errors
    /// [`EncodeError::BeyondLargest`].
    #[inline]
    pub fn check_largest(&self, limit: u32) -> Result<(), EncodeError> {
        match self.len() {
            bytes if bytes > limit as usize => Err(EncodeError::BeyondLargest { bytes, limit }),
            _ => Ok(()),
        }
    }

    /// Reserves memory for `bytes` more bytes.
    ///
    /// # Errors
    /// When the message would exceed its limit.
    #[inline]
    pub fn reserve(&mut self, bytes: usize) -> Result<(), EncodeError> {
        let end = self.at + bytes + SLACK_BYTES;
        if end > self.buffer.len() {
            self.grow(end)
        } else {
            Ok(())
        }
    }

    /// The stream so far: the bytes of the buffer, and the runs borrowed between them.
    #[inline]
    pub fn parts(&self) -> (&[u8], &[Segment<'a>]) {
        (&self.buffer[..self.at], &self.segments)
    }

    /// Returns the buffer for the next message.
    #[inline]
    pub fn into_buffer(self) -> Vec<u8> {
        self.buffer
    }

    /// Takes the buffer out for the next message. The stream is over.
    #[inline]
    pub fn take_buffer(&mut self) -> Vec<u8> {
        self.at = 0;
        core::mem::take(&mut self.buffer)
    }

    /// Ends the stream. Returns the buffer, the number of bytes used in it, and the runs borrowed between them.
    pub fn finish(self) -> (Vec<u8>, usize, Segments<'a>) {
        (self.buffer, self.at, self.segments)
    }

    /// Ends the stream in one piece. Returns the buffer, with copies of the borrowed runs, and the number of bytes used in it.
    #[inline]
    pub fn finish_whole(mut self) -> (Vec<u8>, usize) {
        let bytes = self.make_whole();
        (self.buffer, bytes)
    }

    /// Copies the borrowed runs into the buffer, where the stream then stands in one piece. Returns the number of its bytes.
    #[inline]
    pub fn make_whole(&mut self) -> usize {
        if !self.segments.is_empty() {
            self.take_segments();
        }
        self.at
    }

    /// A copy of the stream in one piece.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.at + self.gathered);
        let mut from = 0;
        for segment in &self.segments {
            bytes.extend_from_slice(&self.buffer[from..segment.after]);
            bytes.extend_from_slice(segment.bytes);
            from = segment.after;
        }
        bytes.extend_from_slice(&self.buffer[from..self.at]);
        bytes
    }

    /// Copies the borrowed runs into the buffer, from the last to the first: every byte moves once.
    #[cold]
    fn take_segments(&mut self) {
        let (mut own_end, mut end) = (self.at, self.at + self.gathered);
        if self.buffer.len() < end {
            self.buffer.resize(end, 0);
        }
        (self.at, self.gathered) = (end, 0);
        for Segment { after, bytes } in self.segments.drain(..).rev() {
            end -= own_end - after;
            self.buffer.copy_within(after..own_end, end);
            own_end = after;
            let lent_end = end;
            end -= bytes.len();
            self.buffer[end..lent_end].copy_from_slice(bytes);
        }
    }

    /// The number of bytes so far, borrowed ones included.
    #[inline]
    pub fn len(&self) -> usize {
        self.at + self.gathered
    }

    /// True if the stream is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The position in the innermost stream, from which alignment counts.
    #[inline]
    pub fn position(&self) -> usize {
        self.at + self.gathered - self.origin
    }

    /// The next `N` bytes, for the caller to fill. The position must be aligned for them.
    ///
    /// # Errors
    /// When the message would exceed its limit.
    #[inline(always)]
    pub(crate) fn block<const N: usize>(&mut self) -> Result<&mut [u8; N], EncodeError> {
        self.reserve(N)?;
        let at = self.at;
        self.at = at + N;
        let Some(block) = self.buffer[at..].first_chunk_mut() else {
            unreachable!("the bytes are reserved")
        };
        Ok(block)
    }

    /// Replaces the count that was written last by a block, for the caller to fill. The last [`SLACK_BYTES`] of `ROOM` stay behind the
    /// end. `None` if the buffer must grow for that.
    #[inline(always)]
    pub(crate) fn block_over_count<const ROOM: usize>(&mut self) -> Option<&mut [u8; ROOM]> {
        // Without a count, this is behind all buffers.
        let at = self.at.wrapping_sub(4);
        let Some((_, ahead)) = self.buffer.split_at_mut_checked(at) else {
            cold_path();
            return None;
        };
        let Some(block) = ahead.first_chunk_mut() else {
            cold_path();
            return None;
        };
        self.at = at + ROOM - SLACK_BYTES;
        Some(block)
    }

    /// Begins the stream with `prefix`, the string `text` and a count of zero: the start of a request.
    ///
    /// `prefix` must end at a multiple of 4.
    // Always: it is in the path of every call.
    #[inline(always)]
    pub(crate) fn begin_with(&mut self, prefix: &[u8], text: &[u8]) -> Result<(), EncodeError> {
        let text_at = prefix.len() + 4;
        let text_end = text_at + text.len();
        // The terminator, at most three bytes of padding and the count: at most eight zeros.
        let end = aligned::<4>(text_end + 1) + 4;
        self.reserve(end)?;
        let count = self.ordered(text.len() as u32 + 1);
        self.buffer[..prefix.len()].copy_from_slice(prefix);
        self.buffer[prefix.len()..text_at].copy_from_slice(&count);
        self.buffer[text_at..text_end].copy_from_slice(text);
        self.buffer[text_end..text_end + SLACK_BYTES].copy_from_slice(&[0; SLACK_BYTES]);
        self.at = end;
        Ok(())
    }

    /// Overwrites bytes that were written before.
    #[inline(always)]
    pub(crate) fn patch(&mut self, at: usize, bytes: &[u8]) {
        self.buffer[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// The bytes of a number in the order of this stream.
    #[inline(always)]
    pub(crate) fn ordered(&self, value: u32) -> [u8; 4] {
        self.order.convert(value).to_ne_bytes()
    }

    /// Pads to `alignment`, takes `size` bytes behind the padding, and returns their index in the buffer.
    //= GIOP 1.2 §15.3.1.1
    //# Padding before an aligned value has no defined content; zeros are sent.
    #[inline(always)]
    fn claim(&mut self, alignment: usize, size: usize) -> Result<usize, EncodeError> {
        let pad = self.position().wrapping_neg() & (alignment - 1);
        let at = self.at + pad;
        let end = at + size;
        if end + SLACK_BYTES > self.buffer.len() {
            self.grow(end + SLACK_BYTES)?;
        }
        self.buffer[self.at..self.at + SLACK_BYTES].copy_from_slice(&[0; SLACK_BYTES]);
        self.at = end;
        Ok(at)
    }

    /// The whole buffer and the position in it, after [`reserve`](Self::reserve).
    #[inline(always)]
    pub(super) fn raw(&mut self) -> (&mut [u8], usize) {
        (&mut self.buffer, self.at)
    }

    /// Moves the end after [`raw`](Self::raw) was written.
    #[inline(always)]
    pub(super) fn advance_to(&mut self, at: usize) {
        debug_assert!(at <= self.buffer.len());
        self.at = at;
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, needed: usize) -> Result<(), EncodeError> {
        self.check_limit((needed + self.gathered).saturating_sub(SLACK_BYTES))?;
        let bytes = needed.next_power_of_two().max(256);
        let bytes = bytes.min(self.bytes_max.saturating_add(SLACK_BYTES));
        let more = bytes - self.buffer.len();
        self.buffer
            .try_reserve_exact(more)
            .map_err(|_| EncodeError::NoMemory { bytes })?;
        self.buffer.resize(bytes, 0);
        Ok(())
    }

    #[inline]
    fn check_limit(&self, bytes: usize) -> Result<(), EncodeError> {
        if bytes > self.bytes_max {
            Err(EncodeError::TooLarge {
                limit: self.bytes_max,
            })
        } else {
            Ok(())
        }
    }
}

stream_form!(Writer);

/// The most bytes of an encapsulation that [`encapsulate`] makes.
const ENCAPSULATION_BYTES_MAX: usize = 1 << 24;

/// Returns an encapsulation without its length: the byte order, and what `content` writes.
pub(crate) fn encapsulate<'a>(
    content: impl FnOnce(&mut Writer<'a>) -> Result<(), EncodeError>,
) -> Result<Vec<u8>, EncodeError> {
    let mut w = Writer::new(Vec::new(), ENCAPSULATION_BYTES_MAX);
    w.primitive(w.order().flag())?;
    content(&mut w)?;
    Ok(w.to_bytes())
}
