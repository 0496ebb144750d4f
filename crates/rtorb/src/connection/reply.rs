//! What a reply says.

use crate::exception::{CompletionStatus, ExceptionKind, SystemException};
use rtorb_wire::giop::{
    LocateReplyHeader, LocateStatus, MessageType, ReplyHeader, ReplyStatus, SystemExceptionBody,
};
use rtorb_wire::ior::Ior;
use rtorb_wire::{Decode, DecodeError, Reader};

/// How an invocation that reached the object ended.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// With a result or a user exception, which the reply's reader has taken.
    Done,
    /// The object is elsewhere.
    Forward(Ior),
}

/// Reads the body of a reply with a result or a user exception.
pub(crate) type Results<'f> =
    &'f mut dyn FnMut(ReplyStatus, &mut Reader<'_>) -> Result<(), DecodeError>;

/// What a message turned out to be.
pub(super) enum Read {
    Done,
    /// A reply to a request that nobody waits for any more.
    Other,
    Forward(Ior),
    Exception(SystemException),
    NeedsAddressingMode,
}

/// A reply that could not be read, and what it says all the same of the operation.
pub(super) struct Undecodable {
    pub(super) error: DecodeError,
    pub(super) completed: CompletionStatus,
}

/// Until the status is read, and in replies that say nothing of success, nobody knows.
impl From<DecodeError> for Undecodable {
    fn from(error: DecodeError) -> Self {
        Self {
            error,
            completed: CompletionStatus::Maybe,
        }
    }
}

/// Reads a reply of either kind; its results only if it answers the request of that id.
#[inline]
pub(super) fn interpret(
    kind: MessageType,
    reader: &mut Reader<'_>,
    request_id: u32,
    results: Results<'_>,
) -> Result<Read, Undecodable> {
    if kind == MessageType::LocateReply {
        return interpret_whereabouts(reader, request_id);
    }
    let reply = ReplyHeader::decode(reader)?;
    if reply.request_id != request_id {
        return Ok(Read::Other);
    }
    match reply.status {
        ReplyStatus::NoException | ReplyStatus::UserException => {
            let completed = CompletionStatus::Yes;
            results(reply.status, reader).map_err(|error| Undecodable { error, completed })?;
            Ok(Read::Done)
        }
        ReplyStatus::SystemException => Ok(Read::Exception(system_exception(reader)?)),
        ReplyStatus::LocationForward | ReplyStatus::LocationForwardPerm => {
            Ok(Read::Forward(Ior::decode(reader)?))
        }
        ReplyStatus::NeedsAddressingMode => Ok(Read::NeedsAddressingMode),
    }
}

#[cold]
fn interpret_whereabouts(reader: &mut Reader<'_>, request_id: u32) -> Result<Read, Undecodable> {
    let reply = LocateReplyHeader::decode(reader)?;
    if reply.request_id != request_id {
        return Ok(Read::Other);
    }
    Ok(match reply.status {
        LocateStatus::ObjectHere => Read::Done,
        LocateStatus::UnknownObject => Read::Exception(ExceptionKind::ObjectNotExist.into()),
        LocateStatus::ObjectForward | LocateStatus::ObjectForwardPerm => {
            Read::Forward(Ior::decode(reader)?)
        }
        LocateStatus::SystemException => Read::Exception(system_exception(reader)?),
        LocateStatus::NeedsAddressingMode => Read::NeedsAddressingMode,
    })
}

fn system_exception(reader: &mut Reader<'_>) -> Result<SystemException, DecodeError> {
    let body = SystemExceptionBody::decode(reader)?;
    Ok(SystemException::new(
        ExceptionKind::from_repository_id(body.repository_id),
        body.minor,
        CompletionStatus::from_number(body.completed),
    ))
}
