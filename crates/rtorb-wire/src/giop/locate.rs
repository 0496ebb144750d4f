//! Locate messages, and the short messages that cancel, close and complain.

use super::{MessageType, Target, Version, begin_message, end_message};
use crate::ior::Ior;
use crate::{DecodeError, EncodeError, Reader, Writer};

/// The header of a locate request, which is all of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocateRequestHeader<'m> {
    /// What the reply will be known by.
    pub request_id: u32,
    /// The object.
    pub target: Target<'m>,
}

impl<'m> LocateRequestHeader<'m> {
    /// Reads a locate request.
    ///
    /// # Errors
    /// When the octets are no such message.
    pub fn decode(r: &mut Reader<'m>) -> Result<Self, DecodeError> {
        Ok(Self {
            request_id: r.primitive()?,
            target: Target::decode(r)?,
        })
    }
}

/// Where an object is.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocateStatus {
    /// Not known here.
    UnknownObject = 0,
    /// Here.
    ObjectHere,
    /// The body is an IOR: there now.
    ObjectForward,
    /// The body is an IOR: there for good (GIOP 1.2).
    ObjectForwardPerm,
    /// The body is a [`SystemExceptionBody`](super::SystemExceptionBody) (GIOP 1.2).
    SystemException,
    /// The body is a short, the form of target address to send (GIOP 1.2).
    NeedsAddressingMode,
}

/// The header of a locate reply; the body follows with no more than its own alignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocateReplyHeader {
    /// Which request it answers.
    pub request_id: u32,
    /// Where the object is.
    pub status: LocateStatus,
}

impl LocateReplyHeader {
    /// Reads the header of a locate reply and leaves `r` at its body.
    ///
    /// # Errors
    /// When the octets are no such header.
    pub fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let request_id = r.primitive()?;
        let status = match (r.primitive()?, r.giop_minor()) {
            (0, _) => LocateStatus::UnknownObject,
            (1, _) => LocateStatus::ObjectHere,
            (2, _) => LocateStatus::ObjectForward,
            (3, 2..) => LocateStatus::ObjectForwardPerm,
            (4, 2..) => LocateStatus::SystemException,
            (5, 2..) => LocateStatus::NeedsAddressingMode,
            (value, _) => {
                return Err(DecodeError::BadTag {
                    what: "the status of a locate reply",
                    value,
                });
            }
        };
        Ok(Self { request_id, status })
    }
}

/// Writes a whole locate request.
///
/// # Errors
/// When the message would outgrow its limit.
pub fn write_locate_request(
    w: &mut Writer<'_>,
    version: Version,
    request_id: u32,
    object_key: &[u8],
) -> Result<(), EncodeError> {
    begin_message(w, version, MessageType::LocateRequest)?;
    w.primitive(request_id)?;
    Target::encode_key(w, object_key)?;
    end_message(w)
}

/// Writes a whole locate reply of a status that has no body.
///
/// # Errors
/// When the message would outgrow its limit.
pub fn write_locate_reply(
    w: &mut Writer<'_>,
    version: Version,
    request_id: u32,
    status: LocateStatus,
) -> Result<(), EncodeError> {
    begin_locate_reply(w, version, request_id, status)?;
    end_message(w)
}

/// Writes a whole locate reply that says where the object is now.
///
/// # Errors
/// When the message would outgrow its limit, or the IOR cannot be sent.
pub fn write_locate_forward(
    w: &mut Writer<'_>,
    version: Version,
    request_id: u32,
    ior: &Ior,
) -> Result<(), EncodeError> {
    begin_locate_reply(w, version, request_id, LocateStatus::ObjectForward)?;
    ior.write(w)?;
    end_message(w)
}

/// Writes a whole cancel request.
///
/// # Errors
/// When the message would outgrow its limit.
pub fn write_cancel_request(
    w: &mut Writer<'_>,
    version: Version,
    request_id: u32,
) -> Result<(), EncodeError> {
    begin_message(w, version, MessageType::CancelRequest)?;
    w.primitive(request_id)?;
    end_message(w)
}

/// Writes the message that ends a connection in good order.
///
/// # Errors
/// When not even that fits into the writer's limit.
pub fn write_close_connection(w: &mut Writer<'_>, version: Version) -> Result<(), EncodeError> {
    begin_message(w, version, MessageType::CloseConnection)?;
    end_message(w)
}

/// Writes the answer to a message that was not understood.
///
/// # Errors
/// When not even that fits into the writer's limit.
pub fn write_message_error(w: &mut Writer<'_>, version: Version) -> Result<(), EncodeError> {
    begin_message(w, version, MessageType::MessageError)?;
    end_message(w)
}

fn begin_locate_reply(
    w: &mut Writer<'_>,
    version: Version,
    request_id: u32,
    status: LocateStatus,
) -> Result<(), EncodeError> {
    begin_message(w, version, MessageType::LocateReply)?;
    w.primitive(request_id)?;
    w.primitive(status as u32)
}
