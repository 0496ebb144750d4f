//! Locate messages, and the messages that cancel a request, close a connection and report an error.

use super::numbered::numbered_enum;
use super::{Address, MessageType, Target, Version, begin_message, end_message};
use crate::ior::Ior;
use crate::{DecodeError, EncodeError, Reader, Writer};

/// A locate request.
//= GIOP 1.2 §15.4.5
//# A LocateRequest is a request id and a target address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocateRequestHeader<'m> {
    /// The id of the request.
    pub request_id: u32,
    /// The address of the object.
    pub target: Target<'m>,
}

impl<'m> LocateRequestHeader<'m> {
    /// Decodes a locate request.
    ///
    /// # Errors
    /// When the bytes are not a locate request.
    pub fn decode(r: &mut Reader<'m>) -> Result<Self, DecodeError> {
        Ok(Self {
            request_id: r.primitive()?,
            target: Target::decode(r)?,
        })
    }
}

numbered_enum! {
    /// The status of a locate reply.
    pub enum LocateStatus: u32, from_number {
        /// The server does not know the object.
        UnknownObject = 0,
        /// The server has the object.
        ObjectHere = 1,
        /// The object has moved; the body is its IOR.
        ObjectForward = 2,
        /// The object has moved permanently; the body is its IOR (GIOP 1.2).
        ObjectForwardPerm = 3 since 2,
        /// The body is a [`SystemExceptionBody`](super::SystemExceptionBody) (GIOP 1.2).
        SystemException = 4 since 2,
        /// The body is the form of target address that the server needs (GIOP 1.2).
        NeedsAddressingMode = 5 since 2,
    }
}

/// The header of a locate reply.
//= GIOP 1.2 §15.4.6
//# A LocateReply is a request id, a status and a body, which follows with its own alignment only. GIOP 1.0 and 1.1 have
//# three statuses, GIOP 1.2 has six.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocateReplyHeader {
    /// The id of the request.
    pub request_id: u32,
    /// The status.
    pub status: LocateStatus,
}

impl LocateReplyHeader {
    /// Decodes the header of a locate reply and leaves `r` at the body.
    ///
    /// # Errors
    /// When the bytes are not such a header.
    pub fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (request_id, status) = (r.primitive()?, r.primitive()?);
        let status = LocateStatus::from_number(status, r.giop_minor())
            .ok_or(DecodeError::bad_tag("the status of a locate reply", status))?;
        Ok(Self { request_id, status })
    }
}

/// Writes a whole locate request.
///
/// # Errors
/// When the message would exceed its limit.
pub fn write_locate_request(
    w: &mut Writer<'_>,
    version: Version,
    request_id: u32,
    object_key: &[u8],
) -> Result<(), EncodeError> {
    write_message(w, version, MessageType::LocateRequest, |w| {
        w.primitive(request_id)?;
        Target::encode_key(w, object_key)
    })
}

/// As [`write_locate_request`] of GIOP 1.2, with an address instead of the object key.
///
/// # Errors
/// When the message would exceed its limit.
pub fn write_locate_request_to(
    w: &mut Writer<'_>,
    request_id: u32,
    address: Address<'_>,
) -> Result<(), EncodeError> {
    write_message(w, Version::V1_2, MessageType::LocateRequest, |w| {
        w.primitive(request_id)?;
        address.encode(w)
    })
}

/// Writes a whole locate reply of a status that has no body.
///
/// # Errors
/// When the message would exceed its limit.
pub fn write_locate_reply(
    w: &mut Writer<'_>,
    version: Version,
    request_id: u32,
    status: LocateStatus,
) -> Result<(), EncodeError> {
    write_message(w, version, MessageType::LocateReply, |w| {
        w.primitive(request_id)?;
        w.primitive(status as u32)
    })
}

/// Writes a whole locate reply with the new IOR of an object.
///
/// # Errors
/// When the message would exceed its limit, or the IOR cannot be sent.
pub fn write_locate_forward(
    w: &mut Writer<'_>,
    version: Version,
    request_id: u32,
    ior: &Ior,
) -> Result<(), EncodeError> {
    write_message(w, version, MessageType::LocateReply, |w| {
        w.primitive(request_id)?;
        w.primitive(LocateStatus::ObjectForward as u32)?;
        ior.write(w)
    })
}

/// Writes a whole cancel request.
///
/// # Errors
/// When the message would exceed its limit.
//= GIOP 1.2 §15.4.4
//# A CancelRequest is the id of the request.
pub fn write_cancel_request(
    w: &mut Writer<'_>,
    version: Version,
    request_id: u32,
) -> Result<(), EncodeError> {
    write_message(w, version, MessageType::CancelRequest, |w| {
        w.primitive(request_id)
    })
}

/// Writes the message that closes a connection.
///
/// # Errors
/// When a header does not fit the writer's limit.
//= GIOP 1.2 §15.4.7
//# CloseConnection is a header alone.
pub fn write_close_connection(w: &mut Writer<'_>, version: Version) -> Result<(), EncodeError> {
    write_message(w, version, MessageType::CloseConnection, |_| Ok(()))
}

/// Writes the message that reports an unknown or malformed message.
///
/// # Errors
/// When a header does not fit the writer's limit.
//= GIOP 1.2 §15.4.8
//# MessageError is a header alone.
pub fn write_message_error(w: &mut Writer<'_>, version: Version) -> Result<(), EncodeError> {
    write_message(w, version, MessageType::MessageError, |_| Ok(()))
}

fn write_message<'a>(
    w: &mut Writer<'a>,
    version: Version,
    message_type: MessageType,
    content: impl FnOnce(&mut Writer<'a>) -> Result<(), EncodeError>,
) -> Result<(), EncodeError> {
    begin_message(w, version, message_type)?;
    content(w)?;
    end_message(w)
}
