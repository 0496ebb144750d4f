//! Replies: the outcome of a request.

use super::numbered::numbered_enum;
use super::service_context::{ServiceContext, ServiceContexts, write_contexts};
use super::{HEADER_BYTES, MessageType, Version, begin_message};
use crate::{DecodeError, EncodeError, Reader, Writer};

numbered_enum! {
    /// The outcome of a request, which determines the body.
    //= GIOP 1.2 §15.4.3.1
    //# GIOP 1.0 and 1.1 have four statuses of a reply, GIOP 1.2 has six.
    pub enum ReplyStatus: u32, from_number {
        /// The body is the result, then the inout and out parameters in order.
        NoException = 0,
        /// The body is a repository id and the members of a user exception.
        UserException = 1,
        /// The body is a [`SystemExceptionBody`](super::SystemExceptionBody).
        SystemException = 2,
        /// The object has moved; the body is its IOR.
        LocationForward = 3,
        /// The object has moved permanently; the body is its IOR (GIOP 1.2).
        LocationForwardPerm = 4 since 2,
        /// The body is the form of target address that the server needs (GIOP 1.2).
        NeedsAddressingMode = 5 since 2,
    }
}

/// The header of a received reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyHeader<'m> {
    /// The id of the request.
    pub request_id: u32,
    /// The outcome.
    pub status: ReplyStatus,
    /// The service contexts.
    pub contexts: ServiceContexts<'m>,
}

impl<'m> ReplyHeader<'m> {
    /// Decodes the header of a reply and leaves `r` at the body.
    ///
    /// # Errors
    /// When the bytes are not such a header.
    // Always inline: every call uses it, and other callers are rare.
    #[inline(always)]
    pub fn decode(r: &mut Reader<'m>) -> Result<Self, DecodeError> {
        match Self::decode_plain(r) {
            Some(plain) => Ok(plain),
            None => Self::decode_any(r),
        }
    }

    /// Not inlined, so that the common case is short enough to be inlined.
    //= GIOP 1.2 §15.4.3.1
    //# A reply of GIOP 1.2 is the request id, the status and service contexts. In 1.0 and 1.1 the contexts come first.
    #[inline(never)]
    fn decode_any(r: &mut Reader<'m>) -> Result<Self, DecodeError> {
        let minor = r.giop_minor();
        let first = (minor < 2)
            .then(|| ServiceContexts::decode(r))
            .transpose()?;
        let (request_id, status) = (r.primitive()?, r.primitive()?);
        let status = ReplyStatus::from_number(status, minor)
            .ok_or(DecodeError::bad_tag("the status of a reply", status))?;
        let contexts = match first {
            Some(contexts) => contexts,
            None => ServiceContexts::decode_last(r)?,
        };
        Ok(Self {
            request_id,
            status,
            contexts,
        })
    }

    /// Returns the service contexts of the reply that `r` has read up to its body or farther; none if its header is not in memory any more.
    #[cold]
    pub fn contexts_before(r: &Reader<'m>) -> ServiceContexts<'m> {
        let header = r.clone_before().and_then(|mut read| {
            read.take(HEADER_BYTES).ok()?;
            Self::decode(&mut read).ok()
        });
        header.map_or(ServiceContexts::EMPTY, |header| header.contexts)
    }

    /// Returns the repository id of the user exception in the body, which `r` reads next; empty if it is not in memory.
    #[cold]
    pub fn exception_after(r: &Reader<'m>) -> &'m [u8] {
        r.clone_in_memory().string_bytes().unwrap_or_default()
    }
}

impl ReplyHeader<'_> {
    /// The header of nearly every reply, at fixed positions: GIOP 1.2, no service contexts, no exception.
    #[inline]
    fn decode_plain(r: &mut Reader<'_>) -> Option<Self> {
        if r.giop_minor() < 2 {
            return None;
        }
        let header: &[u8; PLAIN_BYTES] = r.buffered().first_chunk()?;
        let [i0, i1, i2, i3, 0, 0, 0, 0, 0, 0, 0, 0] = *header else {
            return None;
        };
        let request_id = r.number([i0, i1, i2, i3]);
        // It ends at position 24, where a body begins.
        r.skip_buffered(PLAIN_BYTES);
        Some(Self {
            request_id,
            status: ReplyStatus::NoException,
            contexts: ServiceContexts::EMPTY,
        })
    }
}

/// Request id, status and count of contexts.
const PLAIN_BYTES: usize = 12;

/// Begins a reply: message header and reply header, without the padding before a body
/// (see [`encode_body`](super::encode_body)).
///
/// # Errors
/// When the message would exceed its limit.
// Always inline: every call uses it, and other callers are rare.
#[inline(always)]
pub fn begin_reply(
    w: &mut Writer<'_>,
    version: Version,
    request_id: u32,
    status: ReplyStatus,
    contexts: &[ServiceContext<'_>],
) -> Result<(), EncodeError> {
    begin_message(w, version, MessageType::Reply)?;
    if version.minor >= 2 {
        let (id, number) = (w.ordered(request_id), w.ordered(status as u32));
        let block = w.block::<8>()?;
        block[..4].copy_from_slice(&id);
        block[4..].copy_from_slice(&number);
        return write_contexts(w, contexts);
    }
    write_contexts(w, contexts)?;
    w.primitive(request_id)?;
    w.primitive(status as u32)
}
