//! The service contexts of a request or reply: data besides the arguments.

use super::skip_to_body;
use crate::cdr::ByteOrder;
use crate::{DecodeError, EncodeError, Reader, Writer};
use alloc::vec::Vec;
use core::fmt;

/// One service context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServiceContext<'x> {
    /// The id of the service.
    pub id: u32,
    /// The data, usually an encapsulation.
    pub data: &'x [u8],
}

/// The service contexts of a message, borrowed from it.
///
/// Decoding the header checks them, so iteration cannot fail.
//= CORBA 3 §13.7
//# A service context is an id and bytes. A receiver ignores contexts that it does not know.
#[derive(Clone, Copy)]
pub struct ServiceContexts<'m>(ContextList<'m>);

#[derive(Clone, Copy)]
enum ContextList<'m> {
    Empty,
    /// Empty, because the only one was taken.
    Taken,
    Some {
        /// The bytes behind the count, which begin at a multiple of 4.
        bytes: &'m [u8],
        count: u32,
        order: ByteOrder,
    },
}

impl<'m> ServiceContexts<'m> {
    /// No contexts.
    pub const EMPTY: Self = Self(ContextList::Empty);

    /// No contexts either: the caller of [`RequestHeader::read`](super::RequestHeader::read) has taken the only one.
    pub(super) const TAKEN: Self = Self(ContextList::Taken);

    /// Decodes a list.
    ///
    /// # Errors
    /// When it is longer than the bytes left.
    #[inline]
    pub fn decode(r: &mut Reader<'m>) -> Result<Self, DecodeError> {
        let count = r.count(CONTEXT_BYTES_MIN)?;
        if count == 0 {
            return Ok(Self::EMPTY);
        }
        let start = r.position();
        for _ in 0..count {
            r.primitive::<u32>()?;
            r.octets()?;
        }
        Ok(Self(ContextList::Some {
            bytes: r.preceding(r.position() - start),
            count: count as u32,
            order: r.order(),
        }))
    }

    /// Decodes a list with one context at the beginning of `bytes`, which are at a multiple of 4. Returns also where it ends; `None` for any
    /// other list.
    #[inline]
    pub(super) fn decode_one(bytes: &'m [u8], order: ByteOrder) -> Option<(Self, usize)> {
        let &[c0, c1, c2, c3, _, _, _, _, l0, l1, l2, l3] = bytes.first_chunk()?;
        let length = order.convert(u32::from_ne_bytes([l0, l1, l2, l3])) as usize;
        if order.convert(u32::from_ne_bytes([c0, c1, c2, c3])) != 1 {
            return None;
        }
        let end = length.checked_add(4 + CONTEXT_BYTES_MIN)?;
        let contexts = ContextList::Some {
            bytes: bytes.get(4..end)?,
            count: 1,
            order,
        };
        Some((Self(contexts), end))
    }

    /// The bytes behind the count, the count, and the byte order.
    #[inline]
    const fn parts(&self) -> (&'m [u8], u32, ByteOrder) {
        match self.0 {
            ContextList::Empty | ContextList::Taken => (&[], 0, ByteOrder::NATIVE),
            ContextList::Some {
                bytes,
                count,
                order,
            } => (bytes, count, order),
        }
    }

    /// Decodes the list at the end of a GIOP 1.2 header, and leaves `r` at the body.
    #[inline]
    pub(super) fn decode_last(r: &mut Reader<'m>) -> Result<Self, DecodeError> {
        let contexts = Self::decode(r)?;
        skip_to_body(r)?;
        Ok(contexts)
    }

    /// The contexts in order.
    #[inline]
    pub fn iter(&self) -> ServiceContextsIter<'m> {
        let (bytes, count, order) = self.parts();
        ServiceContextsIter {
            reader: Reader::new(bytes, order),
            left: count,
        }
    }

    /// The data of the first context with that id.
    #[inline]
    pub fn find(&self, id: u32) -> Option<&'m [u8]> {
        let (bytes, count, order) = self.parts();
        if count == 0 {
            return None;
        }
        if count == 1
            && order == ByteOrder::NATIVE
            && let Some((only, data)) = bytes.split_first_chunk()
        {
            let &[i0, i1, i2, i3, _, _, _, _] = only;
            return (u32::from_ne_bytes([i0, i1, i2, i3]) == id).then_some(data);
        }
        self.iter()
            .find(|context| context.id == id)
            .map(|context| context.data)
    }

    /// The number of contexts.
    #[inline]
    pub fn len(&self) -> usize {
        self.parts().1 as usize
    }

    /// True if there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        !matches!(self.0, ContextList::Some { .. })
    }

    /// True if there are none because the caller of [`RequestHeader::read`](super::RequestHeader::read) has taken the only one.
    #[inline]
    pub const fn are_taken(&self) -> bool {
        matches!(self.0, ContextList::Taken)
    }
}

impl<'m> IntoIterator for ServiceContexts<'m> {
    type Item = ServiceContext<'m>;
    type IntoIter = ServiceContextsIter<'m>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl PartialEq for ServiceContexts<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl Eq for ServiceContexts<'_> {}

impl fmt::Debug for ServiceContexts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// An iterator over the service contexts of a message.
#[derive(Debug)]
pub struct ServiceContextsIter<'m> {
    reader: Reader<'m>,
    left: u32,
}

impl<'m> Iterator for ServiceContextsIter<'m> {
    type Item = ServiceContext<'m>;

    #[inline]
    fn next(&mut self) -> Option<ServiceContext<'m>> {
        self.left = self.left.checked_sub(1)?;
        let id = self.reader.primitive().ok()?;
        let data = self.reader.octets().ok()?;
        Some(ServiceContext { id, data })
    }
}

/// Service contexts in memory of their own, which later ones use again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContextBuffer {
    /// The id of each context, and where its data ends in `bytes`.
    ends: Vec<(u32, usize)>,
    bytes: Vec<u8>,
}

impl ContextBuffer {
    /// The most contexts in a buffer.
    pub const CONTEXTS_MAX: usize = 32;

    /// Removes all contexts, and keeps the memory unless it is larger than `kept_bytes_max`.
    pub fn clear(&mut self, kept_bytes_max: usize) {
        self.ends.clear();
        self.bytes.clear();
        self.bytes.shrink_to(kept_bytes_max);
    }

    /// Adds a context. Returns false, and adds nothing, if [`CONTEXTS_MAX`](Self::CONTEXTS_MAX) are there.
    pub fn add(&mut self, id: u32, data: &[u8]) -> bool {
        if self.ends.len() >= Self::CONTEXTS_MAX {
            return false;
        }
        self.bytes.extend_from_slice(data);
        self.ends.push((id, self.bytes.len()));
        true
    }

    /// The contexts in order.
    pub fn iter(&self) -> impl Iterator<Item = ServiceContext<'_>> {
        let mut start = 0;
        self.ends.iter().map(move |&(id, end)| {
            let data = &self.bytes[start..end];
            start = end;
            ServiceContext { id, data }
        })
    }

    /// The data of the first context with that id.
    pub fn find(&self, id: u32) -> Option<&[u8]> {
        let mut contexts = self.iter();
        contexts
            .find(|context| context.id == id)
            .map(|context| context.data)
    }

    /// True if there are none.
    pub const fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
}

/// The size of an empty context: its id and its length.
const CONTEXT_BYTES_MIN: usize = 8;

/// Writes a list of contexts.
// Always: nearly every list is empty, and then little of this is left.
#[inline(always)]
pub(super) fn write_contexts(
    w: &mut Writer<'_>,
    contexts: &[ServiceContext<'_>],
) -> Result<(), EncodeError> {
    w.count(contexts.len())?;
    for context in contexts {
        w.primitive(context.id)?;
        w.counted_bytes(context.data)?;
    }
    Ok(())
}
