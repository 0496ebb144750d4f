//! Fragments: the parts of a message, each of which is a message.

use super::header::{FLAGS_AT, HEADER_BYTES, MORE_FRAGMENTS, SIZE_AT, TYPE_AT};
use super::{Header, MessageType};
use crate::ByteOrder;
use alloc::vec::Vec;

/// Splits a finished GIOP 1.1 or 1.2 message into messages of at most `bytes_max` bytes, but no less than
/// [`FRAGMENT_BYTES_MIN`].
///
/// A message that cannot be fragmented (GIOP 1.0, messages without a body, locate messages of 1.1) is returned unchanged.
//= GIOP 1.2 §15.4.9
//# The size of every part but the last is a multiple of 8, header included, so that no number straddles a boundary.
pub fn fragments(message: &[u8], bytes_max: usize) -> impl Iterator<Item = Vec<u8>> {
    let part_bytes = bytes_max.max(FRAGMENT_BYTES_MIN) & !7;
    let header = Header::parse(message, usize::MAX).ok().flatten();
    let header = header.filter(|header| {
        header.message_bytes() == message.len()
            && message.len() > part_bytes
            && may_be_fragmented(header)
    });
    let mut rest = message;
    core::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let Some(header) = header else {
            return Some(core::mem::take(&mut rest).to_vec());
        };
        let mut part = Vec::with_capacity(part_bytes);
        if rest.len() < message.len() {
            // In GIOP 1.2 every message that can be fragmented has its request id behind the header.
            part.extend_from_slice(&message[..fragment_header_bytes(&header)]);
            part[TYPE_AT] = MessageType::Fragment as u8;
        }
        let (now, behind) = rest.split_at((part_bytes - part.len()).min(rest.len()));
        part.extend_from_slice(now);
        patch(&mut part, header.order, !behind.is_empty());
        rest = behind;
        Some(part)
    })
}

/// The smallest useful fragment: a header, a request id and one number.
pub const FRAGMENT_BYTES_MIN: usize = 24;

/// True if the parts of such a message may be sent as messages.
//= GIOP 1.2 §15.4.9
//# Requests and replies may be fragmented, and in GIOP 1.2 locate requests and locate replies too.
pub(crate) const fn may_be_fragmented(header: &Header) -> bool {
    match header.message_type {
        MessageType::Request | MessageType::Reply => header.version.minor >= 1,
        MessageType::LocateRequest | MessageType::LocateReply => header.version.minor >= 2,
        _ => false,
    }
}

/// The size of a fragment's header with, in GIOP 1.2, the request id.
pub(crate) const fn fragment_header_bytes(header: &Header) -> usize {
    match header.version.minor {
        1 => HEADER_BYTES,
        _ => HEADER_BYTES + 4,
    }
}

/// Overwrites the size and the fragment flag of a message.
pub(crate) fn patch(message: &mut [u8], order: ByteOrder, more_fragments: bool) {
    let size = order.convert((message.len() - HEADER_BYTES) as u32);
    message[FLAGS_AT] = order.flag() | (u8::from(more_fragments) * MORE_FRAGMENTS);
    message[SIZE_AT..HEADER_BYTES].copy_from_slice(&size.to_ne_bytes());
}
