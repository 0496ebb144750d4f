//! The service contexts of a request or reply: data besides the arguments.

use super::skip_to_body;
use crate::cdr::ByteOrder;
use crate::{DecodeError, EncodeError, Reader, Writer};
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
pub struct ServiceContexts<'m> {
    /// The bytes behind the count, which begin at a multiple of 4.
    bytes: &'m [u8],
    count: u32,
    order: ByteOrder,
}

impl<'m> ServiceContexts<'m> {
    /// No contexts.
    pub const EMPTY: Self = Self {
        bytes: &[],
        count: 0,
        order: ByteOrder::NATIVE,
    };

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
        Ok(Self {
            bytes: r.preceding(r.position() - start),
            count: count as u32,
            order: r.order(),
        })
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
        let contexts = Self {
            bytes: bytes.get(4..end)?,
            count: 1,
            order,
        };
        Some((contexts, end))
    }

    /// The id and the data of the context, if there is one only and it is in the byte order of this host.
    #[inline]
    pub(super) fn only(&self) -> Option<(u32, &'m [u8])> {
        let (&[i0, i1, i2, i3, _, _, _, _], data) = self.bytes.split_first_chunk()?;
        let is_native = self.order == ByteOrder::NATIVE;
        (self.count == 1 && is_native).then_some((u32::from_ne_bytes([i0, i1, i2, i3]), data))
    }

    /// The bytes of the contexts, if they are one context in the byte order of this host: its id, its size and its data.
    #[inline]
    pub(super) fn one_native<const BYTES: usize>(&self) -> Option<&'m [u8; BYTES]> {
        let is_native = self.order == ByteOrder::NATIVE;
        let bytes = self.bytes.try_into().ok()?;
        (self.count == 1 && is_native).then_some(bytes)
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
        ServiceContextsIter {
            reader: Reader::new(self.bytes, self.order),
            left: self.count,
        }
    }

    /// The data of the first context with that id.
    #[inline]
    pub fn find(&self, id: u32) -> Option<&'m [u8]> {
        if self.count == 0 {
            return None;
        }
        if let Some((only, data)) = self.only() {
            return (only == id).then_some(data);
        }
        self.iter()
            .find(|context| context.id == id)
            .map(|context| context.data)
    }

    /// False if there is no context, or only one, which has that id.
    #[inline(always)]
    pub fn has_other_than(&self, id: u32) -> bool {
        self.count != 0 && self.only().is_none_or(|(only, _)| only != id)
    }

    /// The number of contexts.
    #[inline]
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// True if there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.count == 0
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
        self.count == other.count && self.iter().eq(other.iter())
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

/// The size of an empty context: its id and its length.
const CONTEXT_BYTES_MIN: usize = 8;

/// Writes a list of contexts.
#[inline]
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
