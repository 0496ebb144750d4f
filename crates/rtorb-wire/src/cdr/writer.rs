//! The writing end of a CDR stream: a position in a reused buffer, and octets lent by the caller.

use super::{ByteOrder, CharCodeSet, DEPTH_MAX, Primitive};
use crate::EncodeError;
use arrayvec::ArrayVec;
use core::any::TypeId;
use std::collections::HashMap;

/// Runs of octets at least this long are lent to the message, not copied into it.
///
/// Below it a copy is cheaper than one more part for the kernel to gather.
pub const GATHER_OCTETS_MIN: usize = 16384;

/// Most runs that one message gathers; further ones are copied.
const SEGMENTS_MAX: usize = 4;

/// Zeroes kept behind the end, so that padding is written without a branch.
const SLACK_OCTETS: usize = 8;

/// Octets that stand in the message behind the first `after` octets of the writer's own.
#[derive(Clone, Copy, Debug)]
pub struct Segment<'a> {
    /// How many octets of the writer's buffer come before.
    pub after: usize,
    /// The lent octets.
    pub octets: &'a [u8],
}

/// The lent parts of one message.
pub type Segments<'a> = ArrayVec<Segment<'a>, SEGMENTS_MAX>;

/// Encodes values one behind the other, aligned and in one byte order.
///
/// The buffer is taken over and given back, so that a connection uses the same memory for every message. `'a` is how
/// long lent octets live.
#[derive(Debug)]
pub struct Writer<'a> {
    buffer: Vec<u8>,
    at: usize,
    gathered: usize,
    origin: usize,
    segments: Segments<'a>,
    octets_max: usize,
    order: ByteOrder,
    minor: u8,
    char_code_set: CharCodeSet,
    values: Option<Box<Values>>,
}

/// What tells one value from another: its address and its type.
type Identity = (usize, TypeId);

/// What is known of the values of one stream.
#[derive(Debug, Default)]
struct Values {
    /// Where those written begin.
    written: HashMap<Identity, usize>,
    /// How many of them are being written, each inside the one before.
    depth: u8,
}

impl<'a> Writer<'a> {
    /// Begins a stream in `buffer`, whose contents are overwritten; at most `octets_max` octets.
    pub fn new(mut buffer: Vec<u8>, octets_max: usize) -> Self {
        // A buffer that served a larger limit must not lend its size to this one.
        buffer.truncate(octets_max.saturating_add(SLACK_OCTETS));
        Self {
            buffer,
            at: 0,
            gathered: 0,
            origin: 0,
            segments: ArrayVec::new_const(),
            octets_max,
            order: ByteOrder::NATIVE,
            minor: 2,
            char_code_set: CharCodeSet::Latin1,
            values: None,
        }
    }

    /// The same in another byte order than this machine's.
    #[must_use]
    pub fn with_order(mut self, order: ByteOrder) -> Self {
        self.order = order;
        self
    }

    /// The same for GIOP 1.`minor`, which decides the form of wide characters.
    #[must_use]
    pub fn with_giop_minor(mut self, minor: u8) -> Self {
        self.minor = minor;
        self
    }

    /// The same with another transmission code set for `char` and `string`.
    #[must_use]
    pub fn with_char_code_set(mut self, set: CharCodeSet) -> Self {
        self.char_code_set = set;
        self
    }

    /// Writes the padding up to a multiple of `alignment` (a power of two, at most 8).
    ///
    /// # Errors
    /// When the message would outgrow its limit.
    pub fn align(&mut self, alignment: usize) -> Result<(), EncodeError> {
        self.claim(alignment, 0).map(|_| ())
    }

    /// Writes a number of any size, aligned.
    ///
    /// # Errors
    /// When the message would outgrow its limit.
    #[inline(always)]
    pub fn primitive<T: Primitive>(&mut self, value: T) -> Result<(), EncodeError> {
        let at = self.claim(size_of::<T>(), size_of::<T>())?;
        let value = if self.order.is_foreign() {
            value.swapped()
        } else {
            value
        };
        self.buffer[at..at + size_of::<T>()].copy_from_slice(bytemuck::bytes_of(&value));
        Ok(())
    }

    /// Writes a count of elements.
    ///
    /// # Errors
    /// When an unsigned long cannot say it.
    #[inline]
    pub fn count(&mut self, count: usize) -> Result<(), EncodeError> {
        let count = u32::try_from(count).map_err(|_| EncodeError::CountTooLarge { count })?;
        self.primitive(count)
    }

    /// Copies octets into the message.
    ///
    /// # Errors
    /// When the message would outgrow its limit.
    #[inline]
    pub fn octets(&mut self, octets: &[u8]) -> Result<(), EncodeError> {
        let at = self.claim(1, octets.len())?;
        self.buffer[at..at + octets.len()].copy_from_slice(octets);
        Ok(())
    }

    /// Puts octets into the message, lent if they are many and copied if they are few.
    ///
    /// # Errors
    /// When the message would outgrow its limit.
    #[inline]
    pub fn lend_octets(&mut self, octets: &'a [u8]) -> Result<(), EncodeError> {
        if octets.len() < GATHER_OCTETS_MIN || self.segments.is_full() {
            return self.octets(octets);
        }
        self.check_limit(self.at + self.gathered + octets.len())?;
        self.segments.push(Segment {
            after: self.at,
            octets,
        });
        self.gathered += octets.len();
        Ok(())
    }

    /// Writes numbers of one kind: in one piece where the byte order is this machine's.
    ///
    /// # Errors
    /// When the message would outgrow its limit.
    #[inline]
    pub fn primitives<T: Primitive>(&mut self, values: &'a [T]) -> Result<(), EncodeError> {
        if values.is_empty() {
            return Ok(());
        }
        self.claim(size_of::<T>(), 0)?;
        // Octets have no order of their own.
        if size_of::<T>() == 1 || !self.order.is_foreign() {
            return self.lend_octets(bytemuck::cast_slice(values));
        }
        let octets = size_of_val(values);
        let at = self.claim(1, octets)?;
        let room = self.buffer[at..at + octets].chunks_exact_mut(size_of::<T>());
        for (slot, value) in room.zip(values) {
            slot.copy_from_slice(bytemuck::bytes_of(&value.swapped()));
        }
        Ok(())
    }

    /// Writes an encapsulation: its length, its byte order and what `content` writes, with alignment of its own.
    ///
    /// # Errors
    /// What `content` answers, or when the message would outgrow its limit.
    pub fn encapsulation(
        &mut self,
        content: impl FnOnce(&mut Self) -> Result<(), EncodeError>,
    ) -> Result<(), EncodeError> {
        self.sized(|w| {
            let outer = w.origin;
            // Nothing inside an encapsulation refers to what stands outside.
            let outer_values = w.values.take();
            w.origin = w.at + w.gathered;
            let written = w.primitive(w.order.flag()).and_then(|()| content(w));
            w.origin = outer;
            w.values = outer_values;
            written
        })
    }

    /// Writes an unsigned long that counts the octets that `content` writes, and those octets.
    ///
    /// # Errors
    /// What `content` answers, or when the message would outgrow its limit.
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

    /// Overwrites the unsigned long at `at` octets from the start of the writer's own buffer.
    ///
    /// # Panics
    /// If nothing was written there: a mistake of the caller.
    #[inline]
    pub fn patch_u32(&mut self, at: usize, value: u32) {
        let value = if self.order.is_foreign() {
            value.swap_bytes()
        } else {
            value
        };
        self.buffer[at..at + 4].copy_from_slice(&value.to_ne_bytes());
    }

    /// Takes back everything behind the first `at` octets of the stream; what was lent behind them is let go.
    pub fn truncate(&mut self, at: usize) {
        if let Some(values) = &mut self.values {
            values.written.retain(|_, position| *position < at);
        }
        while let Some(segment) = self.segments.last_mut()
            && segment.after + self.gathered > at
        {
            self.at = segment.after;
            self.gathered -= segment.octets.len();
            let kept = at.saturating_sub(self.at + self.gathered);
            if kept > 0 {
                segment.octets = &segment.octets[..kept];
                self.gathered += kept;
                return;
            }
            self.segments.pop();
        }
        self.at = self.at.min(at - self.gathered);
    }

    /// Writes for GIOP 1.`minor` from here on, which decides the form of wide characters.
    pub fn set_giop_minor(&mut self, minor: u8) {
        self.minor = minor;
    }

    /// Refuses a message that has become larger than its limit.
    ///
    /// # Errors
    /// [`EncodeError::TooLarge`].
    #[inline]
    pub(crate) fn check_len(&self) -> Result<(), EncodeError> {
        self.check_limit(self.len())
    }

    /// Makes room for `octets` more octets now, so that what follows does not have to.
    ///
    /// # Errors
    /// When the message would outgrow its limit.
    #[inline]
    pub fn reserve(&mut self, octets: usize) -> Result<(), EncodeError> {
        let end = self.at + octets + SLACK_OCTETS;
        if end > self.buffer.len() {
            self.grow(end)
        } else {
            Ok(())
        }
    }

    /// The stream so far: the writer's own octets, and what is lent between them.
    #[inline]
    pub fn parts(&self) -> (&[u8], &[Segment<'a>]) {
        (&self.buffer[..self.at], &self.segments)
    }

    /// Gives the buffer back for the next message.
    #[inline]
    pub fn into_buffer(self) -> Vec<u8> {
        self.buffer
    }

    /// Ends the stream: the writer's own octets with their count, and what is lent between them.
    pub fn finish(self) -> (Vec<u8>, usize, Segments<'a>) {
        (self.buffer, self.at, self.segments)
    }

    /// The stream as one run of octets, copied: for what cannot be gathered, and encapsulations kept apart.
    pub fn to_octets(&self) -> Vec<u8> {
        let mut octets = Vec::with_capacity(self.at + self.gathered);
        let mut from = 0;
        for segment in &self.segments {
            octets.extend_from_slice(&self.buffer[from..segment.after]);
            octets.extend_from_slice(segment.octets);
            from = segment.after;
        }
        octets.extend_from_slice(&self.buffer[from..self.at]);
        octets
    }

    /// Octets written so far, lent ones included.
    #[inline]
    pub fn len(&self) -> usize {
        self.at + self.gathered
    }

    /// True if nothing is written yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Octets since the start of the innermost stream: what alignment counts from.
    #[inline]
    pub fn position(&self) -> usize {
        self.at + self.gathered - self.origin
    }

    /// The byte order it writes.
    pub fn order(&self) -> ByteOrder {
        self.order
    }

    /// The minor GIOP version it writes for.
    pub fn giop_minor(&self) -> u8 {
        self.minor
    }

    /// The transmission code set of `char` and `string`.
    pub fn char_code_set(&self) -> CharCodeSet {
        self.char_code_set
    }

    /// Where a value that was written before begins.
    pub(crate) fn value_position(&self, identity: Identity) -> Option<usize> {
        self.values.as_ref()?.written.get(&identity).copied()
    }

    /// Notes where a value begins, whose state is written until [`close_value`](Self::close_value).
    ///
    /// # Errors
    /// [`EncodeError::TooDeep`] when it is inside too many others.
    pub(crate) fn open_value(
        &mut self,
        identity: Identity,
        position: usize,
    ) -> Result<(), EncodeError> {
        let values = self.values.get_or_insert_default();
        if values.depth == DEPTH_MAX {
            return Err(EncodeError::TooDeep { max: DEPTH_MAX });
        }
        values.depth += 1;
        values.written.insert(identity, position);
        Ok(())
    }

    pub(crate) fn close_value(&mut self) {
        if let Some(values) = &mut self.values {
            values.depth -= 1;
        }
    }

    /// Takes the next `N` octets for the caller to fill; the position must be aligned as they need it.
    ///
    /// # Errors
    /// When the message would outgrow its limit.
    #[inline(always)]
    pub(crate) fn block<const N: usize>(&mut self) -> Result<&mut [u8; N], EncodeError> {
        self.reserve(N)?;
        let at = self.at;
        self.at = at + N;
        let Some(block) = self.buffer[at..].first_chunk_mut() else {
            unreachable!("they were reserved")
        };
        Ok(block)
    }

    /// Begins the stream with octets made before, a string behind them and a count of zero: a request's beginning.
    ///
    /// `prefix` must end at a multiple of 4.
    #[inline]
    pub(crate) fn begin_with(&mut self, prefix: &[u8], text: &[u8]) -> Result<(), EncodeError> {
        let text_at = prefix.len() + 4;
        let text_end = text_at + text.len();
        // The terminator, at most three octets of padding and the count: never more than eight zeroes.
        let end = (text_end + 1).next_multiple_of(4) + 4;
        self.reserve(end)?;
        let count = self.ordered(text.len() as u32 + 1);
        self.buffer[..prefix.len()].copy_from_slice(prefix);
        self.buffer[prefix.len()..text_at].copy_from_slice(&count);
        self.buffer[text_at..text_end].copy_from_slice(text);
        self.buffer[text_end..text_end + SLACK_OCTETS].copy_from_slice(&[0; SLACK_OCTETS]);
        self.at = end;
        Ok(())
    }

    /// Overwrites octets that were written before.
    #[inline(always)]
    pub(crate) fn patch(&mut self, at: usize, octets: &[u8]) {
        self.buffer[at..at + octets.len()].copy_from_slice(octets);
    }

    /// A number's octets in the order of this stream.
    #[inline(always)]
    pub(crate) fn ordered(&self, value: u32) -> [u8; 4] {
        if self.order.is_foreign() {
            value.swap_bytes()
        } else {
            value
        }
        .to_ne_bytes()
    }

    /// Pads to `alignment`, takes `size` octets behind it, and says where they begin in the buffer.
    #[inline(always)]
    fn claim(&mut self, alignment: usize, size: usize) -> Result<usize, EncodeError> {
        let pad = self.position().wrapping_neg() & (alignment - 1);
        let at = self.at + pad;
        let end = at + size;
        if end + SLACK_OCTETS > self.buffer.len() {
            self.grow(end + SLACK_OCTETS)?;
        }
        self.buffer[self.at..self.at + SLACK_OCTETS].copy_from_slice(&[0; SLACK_OCTETS]);
        self.at = end;
        Ok(at)
    }

    /// The whole buffer and the position in it, for writers that have reserved.
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
        self.check_limit((needed + self.gathered).saturating_sub(SLACK_OCTETS))?;
        let octets = needed.next_power_of_two().max(256);
        let octets = octets.min(self.octets_max.saturating_add(SLACK_OCTETS));
        let more = octets - self.buffer.len();
        self.buffer
            .try_reserve_exact(more)
            .map_err(|_| EncodeError::NoMemory { octets })?;
        self.buffer.resize(octets, 0);
        Ok(())
    }

    #[inline]
    fn check_limit(&self, octets: usize) -> Result<(), EncodeError> {
        if octets > self.octets_max {
            Err(EncodeError::TooLarge {
                limit: self.octets_max,
            })
        } else {
            Ok(())
        }
    }
}

/// Most bytes of an encapsulation that is made on its own.
const ENCAPSULATION_BYTES_MAX: usize = 1 << 24;

/// The bytes of an encapsulation, byte order first, that `content` writes.
pub(crate) fn encapsulate<'a>(
    content: impl FnOnce(&mut Writer<'a>) -> Result<(), EncodeError>,
) -> Result<Vec<u8>, EncodeError> {
    let mut w = Writer::new(Vec::new(), ENCAPSULATION_BYTES_MAX);
    w.primitive(w.order().flag())?;
    content(&mut w)?;
    Ok(w.to_octets())
}
