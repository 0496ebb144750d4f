//! Requests: which operation of which object, and whether somebody waits for the answer.

use super::contexts::{self, PRIORITY_OCTETS, RT_CORBA_PRIORITY};
use super::service_context::{ServiceContext, ServiceContexts, write_contexts};
use super::{
    BODY_ALIGNMENT, HEADER_OCTETS, MessageType, Target, Version, begin_message, skip_to_body,
};
use crate::cdr::ByteOrder;
use crate::{DecodeError, EncodeError, Reader, Writer};

/// When the server answers a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Response {
    /// Never: a oneway.
    None,
    /// Before it calls the object (SYNC_WITH_SERVER).
    BeforeInvocation,
    /// When the object has answered.
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
}

/// The header of a request that came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestHeader<'m> {
    /// What the reply will be known by.
    pub request_id: u32,
    /// Whether and when to reply.
    pub response: Response,
    /// The object.
    pub target: Target<'m>,
    /// The operation's name, without its terminator.
    pub operation: &'m [u8],
    /// What travels with the call.
    pub contexts: ServiceContexts<'m>,
}

impl<'m> RequestHeader<'m> {
    /// Reads the header of a request and leaves `r` at its body.
    ///
    /// # Errors
    /// When the octets are no such header.
    // Always: it is in the path of every call, and its other callers are rare.
    #[inline(always)]
    pub fn decode(r: &mut Reader<'m>) -> Result<Self, DecodeError> {
        match Self::decode_plain(r) {
            Some(plain) => Ok(plain),
            None => Self::decode_any(r),
        }
    }

    /// Kept apart, so that what nearly every request needs is short enough to become part of its caller.
    #[inline(never)]
    fn decode_any(r: &mut Reader<'m>) -> Result<Self, DecodeError> {
        match r.giop_minor() {
            2.. => Self::decode_1_2(r),
            _ => Self::decode_1_0(r),
        }
    }

    /// The header of nearly every request: GIOP 1.2, the object by its key, no service contexts.
    ///
    /// It begins at position 12, so that everything in it is aligned where a multiple of 4 of its own octets is.
    /// Whatever is not so, or not right, is for the careful way to find.
    // Always: it is in the path of every call, and its other callers are rare.
    #[inline(always)]
    fn decode_plain(r: &mut Reader<'m>) -> Option<Self> {
        if r.giop_minor() < 2 || r.position() != HEADER_OCTETS {
            return None;
        }
        let octets = r.buffered();
        let &[i0, i1, i2, i3, flags, _, _, _, 0, 0, _, _, k0, k1, k2, k3] = octets.first_chunk()?
        else {
            return None;
        };
        let response = match flags & 3 {
            0 => Response::None,
            3 => Response::FromTarget,
            _ => return None,
        };
        let key_start = 16;
        let key_end = key_start + r.number([k0, k1, k2, k3]) as usize;
        let key = octets.get(key_start..key_end)?;
        let name_start = key_end.next_multiple_of(4) + 4;
        let name_octets = r.number(*octets.get(name_start - 4..)?.first_chunk()?) as usize;
        let (0, operation) = octets
            .get(name_start..name_start + name_octets)?
            .split_last()?
        else {
            return None;
        };
        let header_end = (name_start + name_octets).next_multiple_of(4) + 4;
        let [0, 0, 0, 0] = octets.get(header_end - 4..header_end)? else {
            return None;
        };
        let body = (HEADER_OCTETS + header_end).next_multiple_of(BODY_ALIGNMENT) - HEADER_OCTETS;
        let request_id = r.number([i0, i1, i2, i3]);
        r.skip_buffered(body.min(octets.len()));
        Some(Self {
            request_id,
            response,
            target: Target::Key(key),
            operation,
            contexts: ServiceContexts::EMPTY,
        })
    }

    fn decode_1_2(r: &mut Reader<'m>) -> Result<Self, DecodeError> {
        let request_id = r.primitive()?;
        let response = match r.primitive::<u8>()? & 3 {
            0 => Response::None,
            1 => Response::BeforeInvocation,
            3 => Response::FromTarget,
            value => {
                return Err(DecodeError::BadTag {
                    what: "the response flags",
                    value: u32::from(value),
                });
            }
        };
        r.take(RESERVED.len())?;
        let target = Target::decode(r)?;
        let operation = r.string_octets()?;
        let contexts = ServiceContexts::decode(r)?;
        skip_to_body(r)?;
        Ok(Self {
            request_id,
            response,
            target,
            operation,
            contexts,
        })
    }

    fn decode_1_0(r: &mut Reader<'m>) -> Result<Self, DecodeError> {
        let contexts = ServiceContexts::decode(r)?;
        let request_id = r.primitive()?;
        let response = match r.primitive::<u8>()? {
            0 => Response::None,
            _ => Response::FromTarget,
        };
        if r.giop_minor() == 1 {
            r.take(RESERVED.len())?;
        }
        let target = Target::decode(r)?;
        let operation = r.string_octets()?;
        let _principal = r.octets()?;
        Ok(Self {
            request_id,
            response,
            target,
            operation,
            contexts,
        })
    }
}

/// What a request begins with.
#[derive(Clone, Copy, Debug)]
pub struct RequestStart<'x> {
    /// Unique among the requests of this connection that wait for a reply.
    pub request_id: u32,
    /// Whether and when a reply shall come.
    pub response: Response,
    /// The object's key.
    pub object_key: &'x [u8],
    /// The operation's name.
    pub operation: &'x str,
    /// What travels with the call.
    pub contexts: &'x [ServiceContext<'x>],
}

/// What every request to one object begins with, made once: message header, request header up to the object's key.
///
/// Only for GIOP 1.2, where the key comes before all that differs from call to call; see [`RequestPrefix::new`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestPrefix {
    octets: Box<[u8]>,
}

/// Where the request id and the response flags stand in a request of GIOP 1.2.
const ID_AT: usize = HEADER_OCTETS;
const FLAGS_AT: usize = ID_AT + 4;

impl RequestPrefix {
    /// The prefix for an object in a byte order; `None` before GIOP 1.2.
    ///
    /// # Errors
    /// When the key is longer than a message may be.
    pub fn new(
        version: Version,
        order: ByteOrder,
        object_key: &[u8],
    ) -> Result<Option<Self>, EncodeError> {
        if version.minor < 2 {
            return Ok(None);
        }
        let octets_max = object_key.len() + 64;
        let mut w = Writer::new(Vec::with_capacity(octets_max), octets_max).with_order(order);
        begin_message(&mut w, version, MessageType::Request)?;
        w.octets(&[0; 8])?;
        Target::encode_key(&mut w, object_key)?;
        w.align(4)?;
        Ok(Some(Self {
            octets: w.to_octets().into(),
        }))
    }

    /// Begins a request without service contexts: as [`begin_request`], with less to do.
    ///
    /// The writer must be empty and write in the prefix's byte order.
    ///
    /// # Errors
    /// When the message would outgrow its limit.
    // Always: it is in the path of every call, and its other callers are rare.
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
        w.begin_with(&self.octets, operation.as_bytes())?;
        w.patch(ID_AT, &id);
        w.patch(FLAGS_AT, &[response.flags()]);
        Ok(())
    }

    /// As [`begin_request`](Self::begin_request), with the CORBA priority of the call as its one service context
    /// (RTCorbaPriority).
    ///
    /// # Errors
    /// When the message would outgrow its limit.
    pub fn begin_request_with_priority(
        &self,
        w: &mut Writer<'_>,
        request_id: u32,
        response: Response,
        operation: &str,
        priority: i16,
    ) -> Result<(), EncodeError> {
        self.begin_request(w, request_id, response, operation)?;
        let count_at = w.len() - 4;
        w.patch_u32(count_at, 1);
        let (id, octets) = (
            w.ordered(RT_CORBA_PRIORITY),
            w.ordered(PRIORITY_OCTETS as u32),
        );
        let context = w.block::<12>()?;
        context[..4].copy_from_slice(&id);
        context[4..8].copy_from_slice(&octets);
        context[8..].copy_from_slice(&contexts::priority(priority));
        Ok(())
    }
}

/// Begins a request: message header and request header, without the padding before a body
/// (see [`encode_body`](super::encode_body)).
///
/// Before GIOP 1.2 there is no [`Response::BeforeInvocation`]; it asks for a reply there.
///
/// # Errors
/// When the message would outgrow its limit.
#[inline]
pub fn begin_request(
    w: &mut Writer<'_>,
    version: Version,
    start: &RequestStart<'_>,
) -> Result<(), EncodeError> {
    begin_message(w, version, MessageType::Request)?;
    if version.minor >= 2 {
        w.primitive(start.request_id)?;
        w.octets(&[start.response.flags(), 0, 0, 0])?;
        Target::encode_key(w, start.object_key)?;
        write_operation(w, start.operation)?;
        return write_contexts(w, start.contexts);
    }
    write_contexts(w, start.contexts)?;
    w.primitive(start.request_id)?;
    w.primitive(u8::from(start.response != Response::None))?;
    if version.minor == 1 {
        w.octets(&RESERVED)?;
    }
    Target::encode_key(w, start.object_key)?;
    write_operation(w, start.operation)?;
    // The principal, which nobody uses.
    w.primitive(0u32)
}

const RESERVED: [u8; 3] = [0; 3];

/// Operation names are identifiers of IDL, ASCII in every code set.
#[inline]
fn write_operation(w: &mut Writer<'_>, operation: &str) -> Result<(), EncodeError> {
    w.count(operation.len() + 1)?;
    w.octets(operation.as_bytes())?;
    w.primitive(0u8)
}
