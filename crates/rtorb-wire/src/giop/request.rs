//! Requests: which operation of which object, and whether somebody waits for the answer.

use super::service_context::{ServiceContext, ServiceContexts, write_contexts};
use super::{MessageType, Target, Version, begin_message, skip_to_body};
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
    #[inline]
    pub fn decode(r: &mut Reader<'m>) -> Result<Self, DecodeError> {
        if r.giop_minor() >= 2 {
            Self::decode_1_2(r)
        } else {
            Self::decode_1_0(r)
        }
    }

    #[inline]
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
