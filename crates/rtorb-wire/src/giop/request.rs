//! Requests: object, operation, and whether the client waits for a reply.

use super::contexts::{self, INVOCATION_POLICIES, PRIORITY_BYTES, RT_CORBA_PRIORITY};
use super::expiry::{END_TIMES_BYTES, OWN_LIST_BYTES, UtcTime, own_end_time};
use super::service_context::{ServiceContext, ServiceContexts, write_contexts};
use super::{Address, BODY_ALIGNMENT, HEADER_BYTES, MessageType, Target, Version, begin_message};
use crate::cdr::{ByteOrder, SLACK_BYTES, aligned};
use crate::{DecodeError, EncodeError, Reader, Writer};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::hint::cold_path;

/// When the server replies to a request.
//= GIOP 1.2 §15.4.2.1
//# The response flags of GIOP 1.2 ask for no reply (0), a reply before the invocation (1), or a reply of the target (3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Response {
    /// Never (oneway).
    None,
    /// Before it invokes the operation (SYNC_WITH_SERVER).
    BeforeInvocation,
    /// After the operation.
    FromTarget,
}

impl Response {
    /// The response flags of GIOP 1.2.
    const fn flags(self) -> u8 {
        match self {
            Self::None => 0,
            Self::BeforeInvocation => 1,
            Self::FromTarget => 3,
        }
    }

    /// The byte in the header of a request of GIOP `version`.
    pub(super) const fn byte(self, version: Version) -> u8 {
        match (version.minor, self) {
            (2.., _) => self.flags(),
            (_, Self::None) => 0,
            _ => 1,
        }
    }
}

/// The header of a received request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestHeader<'m> {
    /// The id of the request.
    pub request_id: u32,
    /// The time at which the server replies.
    pub response: Response,
    /// The address of the object.
    pub target: Target<'m>,
    /// The name of the operation, without the terminating zero.
    pub operation: &'m [u8],
    /// The service contexts.
    pub contexts: ServiceContexts<'m>,
}

impl<'m> RequestHeader<'m> {
    /// A header to [read](Self::read) into.
    pub const EMPTY: Self = Self {
        request_id: 0,
        response: Response::None,
        target: Target::Key(&[]),
        operation: &[],
        contexts: ServiceContexts::EMPTY,
    };

    /// Decodes the header of a request and leaves `r` at the body.
    ///
    /// # Errors
    /// When the bytes are not such a header.
    // Always inline: every call uses it, and other callers are rare.
    #[inline(always)]
    pub fn decode(r: &mut Reader<'m>) -> Result<Self, DecodeError> {
        let mut header = Self::EMPTY;
        header.read(r, |_| false)?;
        Ok(header)
    }

    /// Decodes into an [empty](Self::EMPTY) header, as [`decode`](Self::decode): a header that is moved costs each call 40 instructions.
    ///
    /// Gives the end time to `take`, if it is the only service context, [`UtcTime::end_times`] made it on a host of this byte order, and the
    /// header came in one piece of GIOP 1.2. If `take` returns true, the contexts [are taken](ServiceContexts::are_taken). This costs less
    /// than [`Expiry::of`](super::Expiry::of).
    ///
    /// # Errors
    /// When the bytes are not such a header.
    // Always inline: every call uses it.
    #[inline(always)]
    pub fn read(
        &mut self,
        r: &mut Reader<'m>,
        take: impl FnOnce(UtcTime) -> bool,
    ) -> Result<(), DecodeError> {
        let read = if r.order() == ByteOrder::NATIVE {
            self.read_plain(r, ByteOrder::NATIVE, take)
        } else {
            self.read_swapped(r)
        };
        match read {
            Some(()) => Ok(()),
            None => self.read_any(r),
        }
    }

    /// Not inlined, so that the common case is short enough to be inlined.
    #[inline(never)]
    fn read_swapped(&mut self, r: &mut Reader<'m>) -> Option<()> {
        let order = match ByteOrder::NATIVE {
            ByteOrder::Little => ByteOrder::Big,
            ByteOrder::Big => ByteOrder::Little,
        };
        self.read_plain(r, order, |_| false)
    }

    /// Not inlined, so that the common case is short enough to be inlined.
    #[inline(never)]
    fn read_any(&mut self, r: &mut Reader<'m>) -> Result<(), DecodeError> {
        *self = Self::decode_any(r)?;
        Ok(())
    }

    /// Reads the header of nearly every request: GIOP 1.2, the object by its key, and at most one service context. Consumes nothing if it
    /// returns `None`.
    ///
    /// The header begins at position 12, so multiples of 4 in it are aligned to 4. [`decode_any`](Self::decode_any) reads every
    /// other header, and reports malformed ones.
    // Always inline: every call uses it, and other callers are rare.
    #[inline(always)]
    fn read_plain(
        &mut self,
        r: &mut Reader<'m>,
        order: ByteOrder,
        take: impl FnOnce(UtcTime) -> bool,
    ) -> Option<()> {
        if r.giop_minor() < 2 || r.position() != HEADER_BYTES {
            return None;
        }
        let bytes = r.buffered();
        let &[i0, i1, i2, i3, flags, _, _, _, 0, 0, _, _, k0, k1, k2, k3] = bytes.first_chunk()?
        else {
            return None;
        };
        let response = match flags & 3 {
            0 => Response::None,
            3 => Response::FromTarget,
            _ => return None,
        };
        let key_start = 16;
        let number = |bytes| order.convert(u32::from_ne_bytes(bytes));
        // The lengths can exceed all addresses of a machine with 32 bits.
        let key_end = number([k0, k1, k2, k3]) as usize;
        let key_end = key_end.checked_add(key_start)?;
        let key = bytes.get(key_start..key_end)?;
        let name_start = aligned::<4>(key_end) + 4;
        let name_bytes = number(*bytes.get(name_start - 4..)?.first_chunk()?) as usize;
        let name_end = name_start.checked_add(name_bytes)?;
        let (0, operation) = bytes.get(name_start..name_end)?.split_last()? else {
            return None;
        };
        let count_at = aligned::<4>(name_end);
        let count = bytes.get(count_at..count_at + 4)?;
        self.request_id = number([i0, i1, i2, i3]);
        self.response = response;
        self.target = Target::Key(key);
        self.operation = operation;
        if count == [0; 4] {
            // The contexts are empty already.
            skip_header(r, bytes.len(), count_at + 4);
            return Some(());
        }
        if order == ByteOrder::NATIVE
            && let Some(list) = bytes.get(count_at..count_at + OWN_LIST_BYTES)
            && let Some(end) = list.first_chunk().and_then(own_end_time)
        {
            skip_header(r, bytes.len(), count_at + OWN_LIST_BYTES);
            self.contexts = if take(end) {
                ServiceContexts::TAKEN
            } else {
                cold_path();
                ServiceContexts::decode_one(list, order)?.0
            };
            return Some(());
        }
        self.read_context(r, count_at)
    }

    /// Reads a list of one service context, `at` bytes behind the beginning of the header.
    // Not inlined, so that the common cases, no context or an end time, are short enough to be inlined.
    #[inline(never)]
    fn read_context(&mut self, r: &mut Reader<'m>, at: usize) -> Option<()> {
        let bytes = r.buffered();
        let (contexts, length) = ServiceContexts::decode_one(bytes.get(at..)?, r.order())?;
        self.contexts = contexts;
        skip_header(r, bytes.len(), at + length);
        Some(())
    }

    //= GIOP 1.2 §15.4.2.1
    //# A request of GIOP 1.2 is its id, response flags, 3 reserved bytes, target address, operation and service contexts.
    //= GIOP 1.2 §15.4.2.1
    //# A request of GIOP 1.0 is service contexts, its id, whether a reply is expected, object key, operation and principal.
    //# GIOP 1.1 has 3 reserved bytes before the object key.
    #[inline]
    fn decode_any(r: &mut Reader<'m>) -> Result<Self, DecodeError> {
        let minor = r.giop_minor();
        let first = (minor < 2)
            .then(|| ServiceContexts::decode(r))
            .transpose()?;
        let request_id = r.primitive()?;
        let flags = r.primitive::<u8>()?;
        let response = match (minor, flags & 3) {
            (0 | 1, _) if flags != 0 => Response::FromTarget,
            (_, 0) => Response::None,
            (_, 1) => Response::BeforeInvocation,
            (_, 3) => Response::FromTarget,
            (_, value) => return Err(DecodeError::bad_tag("the response flags", value.into())),
        };
        if minor > 0 {
            r.take(RESERVED.len())?;
        }
        let target = Target::decode(r)?;
        let operation = r.string_bytes()?;
        let contexts = match first {
            Some(contexts) => {
                let _principal = r.octets()?;
                contexts
            }
            None => ServiceContexts::decode_last(r)?,
        };
        Ok(Self {
            request_id,
            response,
            target,
            operation,
            contexts,
        })
    }
}

/// Skips a header of `end` bytes, and what aligns the body: at most all of the `left` bytes.
#[inline(always)]
fn skip_header(r: &mut Reader<'_>, left: usize, end: usize) {
    let body = aligned::<BODY_ALIGNMENT>(HEADER_BYTES + end) - HEADER_BYTES;
    r.skip_buffered(body.min(left));
}

/// The header of a request to send.
#[derive(Clone, Copy, Debug)]
pub struct RequestStart<'x> {
    /// The id, unique among the requests of this connection that wait for a reply.
    pub request_id: u32,
    /// When the server replies.
    pub response: Response,
    /// The object key.
    pub object_key: &'x [u8],
    /// The name of the operation.
    pub operation: &'x str,
    /// The service contexts.
    pub contexts: &'x [ServiceContext<'x>],
}

/// The common start of all requests to one object: message header, and request header up to the object key.
///
/// Exists only in GIOP 1.2, where the parts that differ between requests follow the key; see [`RequestPrefix::new`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestPrefix {
    bytes: Box<[u8]>,
    /// The beginning of a list of service contexts that contains only end times.
    end_time_head: [u8; LIST_HEAD_BYTES],
}

/// The number of contexts, and the id and the size of the first.
const LIST_HEAD_BYTES: usize = 12;
/// A list of service contexts that contains only end times, and what a writer has behind it.
const LIST_ROOM: usize = LIST_HEAD_BYTES + END_TIMES_BYTES + SLACK_BYTES;

/// The positions of request id and response flags in a request of GIOP 1.2.
const ID_AT: usize = HEADER_BYTES;
const FLAGS_AT: usize = ID_AT + 4;

impl RequestPrefix {
    /// The prefix for an object in a byte order; `None` before GIOP 1.2.
    ///
    /// # Errors
    /// When the key is too long.
    pub fn new(
        version: Version,
        order: ByteOrder,
        object_key: &[u8],
    ) -> Result<Option<Self>, EncodeError> {
        if version.minor < 2 {
            return Ok(None);
        }
        let bytes_max = object_key.len() + 64;
        let mut w = Writer::new(Vec::with_capacity(bytes_max), bytes_max).with_order(order);
        begin_message(&mut w, version, MessageType::Request)?;
        w.octets(&[0; 8])?;
        Target::encode_key(&mut w, object_key)?;
        w.align(4)?;
        let mut head = [0; LIST_HEAD_BYTES];
        let numbers = [1, INVOCATION_POLICIES, END_TIMES_BYTES as u32];
        for (bytes, number) in head.chunks_exact_mut(4).zip(numbers) {
            bytes.copy_from_slice(&w.ordered(number));
        }
        Ok(Some(Self {
            bytes: w.to_bytes().into(),
            end_time_head: head,
        }))
    }

    /// Begins a request without service contexts; a faster [`begin_request`].
    ///
    /// The writer must be empty and have the byte order of the prefix.
    ///
    /// # Errors
    /// When the message would exceed its limit.
    // Always inline: every call uses it, and other callers are rare.
    #[inline(always)]
    pub fn begin_request(
        &self,
        w: &mut Writer<'_>,
        request_id: u32,
        response: Response,
        operation: &str,
    ) -> Result<(), EncodeError> {
        w.set_giop_minor(2);
        let id = w.ordered(request_id);
        w.begin_with(&self.bytes, operation.as_bytes())?;
        w.patch(ID_AT, &id);
        w.patch(FLAGS_AT, &[response.flags()]);
        Ok(())
    }

    /// Adds service contexts to the header that [`begin_request`](Self::begin_request) has written.
    ///
    /// # Errors
    /// When the message would exceed its limit.
    pub fn add_contexts(
        w: &mut Writer<'_>,
        contexts: &[ServiceContext<'_>],
    ) -> Result<(), EncodeError> {
        w.truncate(w.len() - 4);
        write_contexts(w, contexts)
    }

    /// Adds a service context, as [`add_contexts`](Self::add_contexts): the CORBA priority of the call (RTCorbaPriority).
    ///
    /// # Errors
    /// When the message would exceed its limit.
    pub fn add_priority(w: &mut Writer<'_>, priority: i16) -> Result<(), EncodeError> {
        let count_at = w.len() - 4;
        w.patch_u32(count_at, 1);
        let (id, bytes) = (
            w.ordered(RT_CORBA_PRIORITY),
            w.ordered(PRIORITY_BYTES as u32),
        );
        let context = w.block::<12>()?;
        context[..4].copy_from_slice(&id);
        context[4..8].copy_from_slice(&bytes);
        context[8..].copy_from_slice(&contexts::priority(priority));
        Ok(())
    }

    /// Adds a service context, as [`add_contexts`](Self::add_contexts): the end time of the call. Returns false, and adds nothing, if the
    /// buffer has no room for it.
    #[inline]
    pub fn add_end_time(&self, w: &mut Writer<'_>, end: UtcTime) -> bool {
        let Some(list) = w.block_over_count::<LIST_ROOM>() else {
            return false;
        };
        let (head, times) = list.split_at_mut(LIST_HEAD_BYTES);
        head.copy_from_slice(&self.end_time_head);
        let times = times.first_chunk_mut();
        times.map(|times| end.write_end_times(times)).is_some()
    }
}

/// Begins a request: message header and request header, without the padding before a body
/// (see [`encode_body`](super::encode_body)).
///
/// GIOP 1.0 and 1.1 have no [`Response::BeforeInvocation`], and request a reply of the target instead.
///
/// # Errors
/// When the message would exceed its limit.
#[inline]
pub fn begin_request(
    w: &mut Writer<'_>,
    version: Version,
    start: &RequestStart<'_>,
) -> Result<(), EncodeError> {
    begin_request_to(w, version, start, |w| {
        Target::encode_key(w, start.object_key)
    })
}

/// As [`begin_request`] of GIOP 1.2, with an address instead of the object key of `start`.
///
/// # Errors
/// When the message would exceed its limit.
#[cold]
pub fn begin_request_at(
    w: &mut Writer<'_>,
    start: &RequestStart<'_>,
    address: Address<'_>,
) -> Result<(), EncodeError> {
    begin_request_to(w, Version::V1_2, start, |w| address.encode(w))
}

#[inline]
fn begin_request_to<'a>(
    w: &mut Writer<'a>,
    version: Version,
    start: &RequestStart<'_>,
    address: impl FnOnce(&mut Writer<'a>) -> Result<(), EncodeError>,
) -> Result<(), EncodeError> {
    begin_message(w, version, MessageType::Request)?;
    let is_1_2 = version.minor >= 2;
    if !is_1_2 {
        write_contexts(w, start.contexts)?;
    }
    w.primitive(start.request_id)?;
    w.primitive(start.response.byte(version))?;
    if version.minor > 0 {
        w.octets(&RESERVED)?;
    }
    address(w)?;
    // The name of an operation is an IDL identifier, which is ASCII in every code set.
    w.terminated_bytes(start.operation.as_bytes())?;
    if is_1_2 {
        return write_contexts(w, start.contexts);
    }
    // The principal, which is obsolete.
    w.primitive(0u32)
}

const RESERVED: [u8; 3] = [0; 3];
