//! The reader of a CDR stream: the bytes of a message and a position in them.

mod chunks;
mod remainder;

use alloc::boxed::Box;
use alloc::vec::Vec;
pub use remainder::Remainder;

use super::{ByteOrder, CharCodeSet, Decode, Primitive};
use crate::DecodeError;
use alloc::borrow::Cow;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use arrayvec::ArrayVec;
use chunks::Chunks;
use core::any::Any;

/// Values nested deeper than this are refused: sequences, maps, optional members, valuetypes, anys, TypeCodes.
pub(crate) const DEPTH_MAX: u8 = 64;

/// The most structs, unions and arrays around a value that is read by its TypeCode. A peer may have made the TypeCode.
const STEPS_MAX: u8 = 128;

/// One level of nesting in `Reader::depth`, whose lower byte counts steps.
const LEVEL: u16 = 1 << 8;

/// Reads the value of an encapsulation.
pub(crate) fn decode_encapsulated<T: Decode>(bytes: &[u8]) -> Result<T, DecodeError> {
    T::decode(&mut Reader::encapsulated(bytes)?)
}

/// Decodes aligned values one after the other, from either byte order.
///
/// Strings and bytes can be borrowed from the message for `'m`.
pub struct Reader<'m> {
    bytes: &'m [u8],
    at: usize,
    /// The stream position of `bytes[0]`, wrapping.
    shift: usize,
    rest: Option<&'m mut dyn Remainder>,
    order: ByteOrder,
    minor: u8,
    /// The levels of nesting, in the upper byte; and in the lower byte, the structs, unions and arrays that only a TypeCode describes.
    depth: u16,
    char_code_set: CharCodeSet,
    context: Option<&'m (dyn Any + Send + Sync)>,
    values: Option<Box<ReadValues<'m>>>,
    /// The number of bytes behind the current chunk; 0 outside of chunks.
    hidden: usize,
}

/// The valuetypes read from one stream.
#[derive(Default)]
struct ReadValues<'m> {
    /// The values by the position of their tags, with the nesting depth of each.
    read: BTreeMap<usize, (Arc<dyn Any + Send + Sync>, u8)>,
    /// The positions of the values that are being read.
    open: ArrayVec<usize, { DEPTH_MAX as usize }>,
    /// The nesting depth so far of the value that is being read.
    below: u8,
    chunks: Chunks<'m>,
}

/// The key of the repository ids of values read by their TypeCode among the values that were read. It is no position of a value, because no
/// multiple of 4. A field of their own would make a [`Reader`] longer to drop in every call.
const IDS: usize = usize::MAX;

type Ids = BTreeSet<Arc<str>>;

impl<'m> Reader<'m> {
    /// Reads a stream that starts with `bytes`.
    pub fn new(bytes: &'m [u8], order: ByteOrder) -> Self {
        Self {
            bytes,
            at: 0,
            shift: 0,
            rest: None,
            order,
            minor: 2,
            depth: 0,
            char_code_set: CharCodeSet::Latin1,
            context: None,
            values: None,
            hidden: 0,
        }
    }

    /// Reads an encapsulation.
    ///
    /// # Errors
    /// When there is no first byte, or it is neither 0 nor 1.
    //= GIOP 1.2 §15.3.3
    //# The first byte of an encapsulation is its byte order, 0 for big-endian or 1 for little-endian.
    pub fn encapsulated(bytes: &'m [u8]) -> Result<Self, DecodeError> {
        match bytes.first() {
            Some(flag @ (0 | 1)) => {
                let mut reader = Self::new(bytes, ByteOrder::from_flag(*flag));
                reader.at = 1;
                Ok(reader)
            }
            _ => Err(DecodeError::BadEncapsulation),
        }
    }

    /// Sets the source of the bytes that follow those in memory.
    #[must_use]
    pub fn with_remainder(mut self, rest: &'m mut dyn Remainder) -> Self {
        self.rest = Some(rest);
        self
    }

    /// Attaches data that some values need, such as the ORB for an object reference.
    #[must_use]
    pub fn with_context(mut self, context: &'m (dyn Any + Send + Sync)) -> Self {
        self.context = Some(context);
        self
    }

    /// Reads an aligned number.
    ///
    /// # Errors
    /// When the message ends too early.
    //= GIOP 1.2 §15.3.1.1
    //# A number of n bytes starts at a multiple of n, counted from the start of the innermost stream.
    //= GIOP 1.2 §15.3.1.2
    //# The sender chooses the byte order of numbers, and the receiver swaps the bytes if its own order is another.
    #[inline(always)]
    pub fn primitive<T: Primitive>(&mut self) -> Result<T, DecodeError> {
        let pad = self.position().wrapping_neg() & (size_of::<T>() - 1);
        let start = self.at + pad;
        let Some(bytes) = self.bytes.get(start..start + size_of::<T>()) else {
            self.buffer_exactly(pad + size_of::<T>())?;
            return self.primitive();
        };
        let value: T = bytemuck::pod_read_unaligned(bytes);
        self.at = start + size_of::<T>();
        Ok(self.order.convert(value))
    }

    /// Reads a count of elements of at least `bytes_min` bytes each, and checks it against the bytes left.
    ///
    /// # Errors
    /// When the bytes left cannot hold that many elements.
    #[inline]
    pub fn count(&mut self, bytes_min: usize) -> Result<usize, DecodeError> {
        let count = self.primitive::<u32>()?;
        let left = self.remaining();
        // Elements without bytes (empty structs) count as one byte each, so that they are bounded too.
        if count as usize > left / bytes_min.max(1) {
            return Err(DecodeError::CountTooLarge { count, left });
        }
        Ok(count as usize)
    }

    /// Borrows the next `count` bytes.
    ///
    /// # Errors
    /// When fewer are left.
    #[inline]
    pub fn take(&mut self, count: usize) -> Result<&'m [u8], DecodeError> {
        let end = self.at.saturating_add(count);
        let Some(bytes) = self.bytes.get(self.at..end) else {
            self.buffer_exactly(count)?;
            return self.take(count);
        };
        self.at = end;
        Ok(bytes)
    }

    /// Reads a count and borrows that many bytes.
    ///
    /// # Errors
    /// When the count is larger than what is left.
    #[inline]
    pub fn octets(&mut self) -> Result<&'m [u8], DecodeError> {
        let count = self.count(1)?;
        self.take(count)
    }

    /// Reads a sequence of numbers. Borrows it if byte order and alignment fit this machine, and copies it otherwise.
    ///
    /// # Errors
    /// When the count is larger than what is left.
    #[inline]
    pub fn primitives<T: Primitive>(&mut self) -> Result<Cow<'m, [T]>, DecodeError> {
        let count = self.count(size_of::<T>())?;
        if count == 0 {
            return Ok(Cow::Borrowed(&[]));
        }
        self.align(size_of::<T>())?;
        let bytes = self.take(count.saturating_mul(size_of::<T>()))?;
        if !self.swaps::<T>()
            && let Ok(values) = bytemuck::try_cast_slice(bytes)
        {
            return Ok(Cow::Borrowed(values));
        }
        let mut values = Vec::with_capacity(count);
        self.convert(bytes, &mut values);
        Ok(Cow::Owned(values))
    }

    /// Reads `count` numbers and appends them to `into`.
    ///
    /// # Errors
    /// When fewer are left.
    #[inline]
    pub fn primitives_into<T: Primitive>(
        &mut self,
        into: &mut Vec<T>,
        count: usize,
    ) -> Result<(), DecodeError> {
        if count == 0 {
            return Ok(());
        }
        self.align(size_of::<T>())?;
        let length = count.saturating_mul(size_of::<T>());
        if length > self.buffered().len()
            && self.rest.is_some()
            && let Some(into) = (into as &mut dyn Any).downcast_mut::<Vec<u8>>()
        {
            return self.stream_bytes(into, length);
        }
        let bytes = self.take(length)?;
        self.convert(bytes, into);
        Ok(())
    }

    /// Skips the padding up to a multiple of `alignment` (a power of two, at most 8).
    ///
    /// # Errors
    /// When the message ends too early.
    #[inline]
    pub fn align(&mut self, alignment: usize) -> Result<(), DecodeError> {
        if self.is_at_chunk_end() {
            self.next_chunk()?;
        }
        let pad = self.position().wrapping_neg() & (alignment - 1);
        self.take(pad).map(|_| ())
    }

    /// Steps over an encapsulation and returns a reader of its contents, with the GIOP version, code set and context of this reader.
    ///
    /// # Errors
    /// When it does not begin with a byte order, or is longer than what is left.
    pub fn encapsulation(&mut self) -> Result<Reader<'m>, DecodeError> {
        let bytes = self.octets()?;
        let mut inner = Reader::encapsulated(bytes)?;
        inner.minor = self.minor;
        inner.char_code_set = self.char_code_set;
        inner.depth = self.depth;
        inner.context = self.context;
        Ok(inner)
    }

    /// The whole stream from its first byte, including what was read already. Waits for the rest of the message.
    ///
    /// # Errors
    /// When the rest does not arrive, or when a long run of bytes was read straight to its destination.
    pub fn whole(&mut self) -> Result<&'m [u8], DecodeError> {
        self.buffer_rest()?;
        if self.shift != 0 || self.hidden != 0 {
            return Err(DecodeError::Interrupted);
        }
        Ok(self.bytes)
    }

    /// Runs `read` one level deeper.
    ///
    /// # Errors
    /// [`DecodeError::TooDeep`] beyond the bound, or the error of `read`.
    pub fn nested<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<T, DecodeError> {
        self.enter()?;
        let value = read(self);
        self.leave();
        value
    }

    /// The position in the stream, from which alignment counts.
    #[inline]
    pub fn position(&self) -> usize {
        self.at.wrapping_add(self.shift)
    }

    /// The bytes in memory behind the position.
    #[inline]
    pub fn buffered(&self) -> &'m [u8] {
        &self.bytes[self.at..]
    }

    /// The data that [`with_context`](Self::with_context) attached.
    pub fn context(&self) -> Option<&'m (dyn Any + Send + Sync)> {
        self.context
    }

    /// Converts four bytes in the byte order of this stream to a number.
    #[inline(always)]
    pub(crate) fn number(&self, bytes: [u8; 4]) -> u32 {
        self.order.convert(u32::from_ne_bytes(bytes))
    }

    /// Skips `count` bytes of [`buffered`](Self::buffered).
    #[inline]
    pub(crate) fn skip_buffered(&mut self, count: usize) {
        debug_assert!(self.at + count <= self.bytes.len());
        self.at += count;
    }

    /// Enters one level of nesting, until [`leave`](Self::leave).
    #[inline]
    pub(crate) fn enter(&mut self) -> Result<(), DecodeError> {
        if self.depth >= u16::from_be_bytes([DEPTH_MAX, 0]) {
            return Err(DecodeError::TooDeep { max: DEPTH_MAX });
        }
        self.depth += LEVEL;
        Ok(())
    }

    /// Runs `read` inside one more struct, union or array of a type that only a TypeCode describes.
    ///
    /// # Errors
    /// [`DecodeError::TooDeep`] beyond the bound, or the error of `read`.
    pub(crate) fn step<T, E: From<DecodeError>>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, E>,
    ) -> Result<T, E> {
        if self.depth.to_be_bytes()[1] == STEPS_MAX {
            return Err(DecodeError::TooDeep { max: STEPS_MAX }.into());
        }
        self.depth += 1;
        let value = read(self);
        self.depth -= 1;
        value
    }

    #[inline]
    pub(crate) fn leave(&mut self) {
        self.depth -= LEVEL;
    }

    /// Reads the state of the value that begins at `position`, and keeps the value for later indirections.
    ///
    /// # Errors
    /// [`DecodeError::TooDeep`], or the error of `read`.
    pub(crate) fn keep_value<T: Any + Send + Sync>(
        &mut self,
        position: usize,
        read: impl FnOnce(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<Arc<T>, DecodeError> {
        let values = self.values.get_or_insert_default();
        let earlier = core::mem::take(&mut values.below);
        // With too many open values, reading one more fails.
        let is_open = values.open.try_push(position).is_ok();
        let value = Arc::new(self.nested(read)?);
        let values = self.values.get_or_insert_default();
        if is_open {
            values.open.pop();
        }
        // A value with indirections can be deeper than its bytes are nested, and dropping it recurses as deep.
        if values.below == DEPTH_MAX {
            return Err(DecodeError::TooDeep { max: DEPTH_MAX });
        }
        let depth = values.below + 1;
        values.below = depth.max(earlier);
        values.read.insert(position, (value.clone(), depth));
        Ok(value)
    }

    /// The value that began at that position.
    ///
    /// # Errors
    /// [`DecodeError::Ring`] if it is still being read, [`DecodeError::UnknownValue`] if there is none.
    pub(crate) fn value_at(
        &mut self,
        position: usize,
    ) -> Result<Arc<dyn Any + Send + Sync>, DecodeError> {
        let values = self.values.as_mut().ok_or(DecodeError::UnknownValue)?;
        if values.open.contains(&position) {
            return Err(DecodeError::Ring);
        }
        let found = values.read.get(&position);
        let (value, depth) = found.ok_or(DecodeError::UnknownValue)?;
        values.below = values.below.max(*depth);
        Ok(value.clone())
    }

    /// The repository id of a value. All values of a type share one, because a value can be a few bytes that do not name their type.
    pub(crate) fn shared_id(&mut self, id: &str) -> Arc<str> {
        let read = &mut self.values.get_or_insert_default().read;
        let (ids, _) = read.entry(IDS).or_insert_with(|| (Arc::new(Ids::new()), 0));
        let ids = Arc::get_mut(ids).and_then(|ids| ids.downcast_mut::<Ids>());
        if let Some(known) = ids.as_ref().and_then(|ids| ids.get(id)) {
            return Arc::clone(known);
        }
        let id = Arc::<str>::from(id);
        // Nobody else has the set.
        if let Some(ids) = ids {
            ids.insert(Arc::clone(&id));
        }
        id
    }

    /// The `count` bytes before the position, which must be in memory.
    #[inline]
    pub(crate) fn preceding(&self, count: usize) -> &'m [u8] {
        &self.bytes[self.at - count..self.at]
    }

    /// A reader of what was read so far; `None` if it is not in memory any more.
    pub(crate) fn clone_before(&self) -> Option<Self> {
        let is_in_memory = self.shift == 0;
        is_in_memory
            .then(|| Self::new(&self.bytes[..self.at], self.order).with_giop_minor(self.minor))
    }

    /// A second reader at the position, of what is in memory.
    pub(crate) fn clone_in_memory(&self) -> Self {
        self.clone_at_index(self.at)
    }

    /// A second reader at the position, to look ahead at the next four bytes or all that are left.
    pub(super) fn clone_here(&mut self) -> Result<Self, DecodeError> {
        self.buffer_up(4)?;
        Ok(self.clone_at_index(self.at))
    }

    /// A second reader at an earlier position; `None` if its bytes are not in memory.
    pub(super) fn clone_at(&self, position: usize) -> Option<Self> {
        let at = position.checked_sub(self.shift)?;
        (at <= self.at).then(|| self.clone_at_index(at))
    }

    fn clone_at_index(&self, at: usize) -> Self {
        Self {
            bytes: self.bytes,
            at,
            rest: None,
            values: None,
            hidden: 0,
            ..*self
        }
    }

    /// Appends the numbers in `bytes`: in one copy if byte order and alignment fit this machine.
    fn convert<T: Primitive>(&self, bytes: &[u8], into: &mut Vec<T>) {
        let values = bytes
            .chunks_exact(size_of::<T>())
            .map(bytemuck::pod_read_unaligned::<T>);
        match bytemuck::try_cast_slice(bytes) {
            _ if self.swaps::<T>() => into.extend(values.map(T::swapped)),
            Ok(values) => into.extend_from_slice(values),
            Err(_) => into.extend(values),
        }
    }

    /// True if numbers of type `T` must be swapped. Single bytes need not.
    #[inline(always)]
    fn swaps<T>(&self) -> bool {
        size_of::<T>() > 1 && self.order.is_foreign()
    }
}

stream_form!(Reader);

impl core::fmt::Debug for Reader<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Reader")
            .field("position", &self.position())
            .field("remaining", &self.remaining())
            .field("order", &self.order)
            .finish_non_exhaustive()
    }
}
