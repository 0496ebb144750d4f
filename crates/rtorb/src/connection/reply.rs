//! The end of an invocation: the content of its reply, or an error.

use super::invocation::{Invocation, InvocationKind};
use crate::clock::monotonic_ns;
use crate::endpoint::Endpoint;
use crate::exception::{Cause, Phase, SystemException, local};
use rtorb_wire::cdr::Remainder;
use rtorb_wire::connection::{Deadline, Message, Reply, ReplyError};
use rtorb_wire::giop::{AddressingMode, Header, ReplyStatus};
use rtorb_wire::ior::Ior;
use rtorb_wire::{DecodeError, Reader};
use rustix::io::Errno;
use std::sync::Arc;

/// The outcome of an invocation that reached the object.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// The reply has a result or a user exception, which the reader of results has read.
    Done,
    /// The object is at another location.
    Forward(Box<Ior>),
    /// The server requires this form of target address.
    Readdress(AddressingMode),
}

/// Reads the body of a reply with a result or a user exception. For interceptors, it also notes the service contexts of other replies.
pub(crate) type Results<'f> =
    &'f mut dyn FnMut(ReplyStatus, &mut Reader<'_>) -> Result<(), DecodeError>;

/// The reason why an invocation failed on a connection.
#[derive(Debug)]
pub(super) enum CallError {
    /// There is no usable reply. The connection cannot be used again.
    NoReply(ReplyError),
    /// The reply is a system exception, or the request could not be encoded. The connection can be used again.
    Exception(SystemException),
}

impl From<ReplyError> for CallError {
    fn from(error: ReplyError) -> Self {
        Self::NoReply(error)
    }
}

impl From<SystemException> for CallError {
    fn from(exception: SystemException) -> Self {
        Self::Exception(exception)
    }
}

/// Reads a Reply or LocateReply. Returns `None` if it is for another request. `rest` is the part that is not received yet.
// Always: it is in the path of every call.
#[inline(always)]
pub(super) fn read_reply(
    invocation: &Invocation<'_>,
    request_id: u32,
    message: Message<'_>,
    rest: Option<&mut dyn Remainder>,
    results: Results<'_>,
) -> Result<Option<Outcome>, CallError> {
    let mut reader = message
        .reader()
        .with_char_code_set(invocation.route.endpoint.char_code_set)
        .with_context(invocation.client);
    if let Some(rest) = rest {
        reader = reader.with_remainder(rest);
    }
    let reader = &mut reader;
    let reply = Reply::decode(message.header.message_type, reader, request_id);
    let Some(reply) = reply.map_err(ReplyError::Malformed)? else {
        return Ok(None);
    };
    match reply {
        Reply::Results(status) => {
            results(status, reader).map_err(ReplyError::BadResults)?;
            Ok(Some(Outcome::Done))
        }
        Reply::ObjectHere => Ok(Some(Outcome::Done)),
        Reply::Forward(ior) => forward(invocation, ior, reader, results),
        Reply::UnknownObject => Err(CallError::Exception(local::OBJECT_GONE)),
        Reply::SystemException(_) if matches!(invocation.kind, InvocationKind::Passed(_)) => {
            results(ReplyStatus::SystemException, reader).map_err(ReplyError::BadResults)?;
            Ok(Some(Outcome::Done))
        }
        Reply::SystemException(body) => {
            note_contexts(invocation, ReplyStatus::SystemException, reader, results)?;
            Err(CallError::Exception(body.into()))
        }
        Reply::NeedsAddressingMode(mode) => Ok(Some(Outcome::Readdress(mode))),
    }
}

/// Forwards the call. For interceptors it stores the new location, and ends the request with an exception that the caller replaces.
#[cold]
fn forward(
    invocation: &Invocation<'_>,
    ior: Box<Ior>,
    reader: &mut Reader<'_>,
    results: Results<'_>,
) -> Result<Option<Outcome>, CallError> {
    let Some(intercepted) = invocation.kind.intercepted() else {
        return Ok(Some(Outcome::Forward(ior)));
    };
    note_contexts(invocation, ReplyStatus::LocationForward, reader, results)?;
    intercepted.forward.replace(Some(ior));
    Err(CallError::Exception(local::CONTRADICTION))
}

/// Shows interceptors the service contexts of a reply that has no results.
#[cold]
fn note_contexts(
    invocation: &Invocation<'_>,
    status: ReplyStatus,
    reader: &mut Reader<'_>,
    results: Results<'_>,
) -> Result<(), ReplyError> {
    if invocation.kind.intercepted().is_some() {
        results(status, reader).map_err(ReplyError::BadResults)?;
    }
    Ok(())
}

/// Reads the reply to a request from a whole message.
// Always: it is in the path of collocated calls, and its other callers are few.
#[inline(always)]
pub(super) fn read_whole_reply(
    invocation: &Invocation<'_>,
    request_id: u32,
    bytes: &[u8],
    results: Results<'_>,
) -> Result<Outcome, CallError> {
    let header = Header::parse(bytes, invocation.core.limits.message_bytes_max);
    let header = header.map_err(ReplyError::Malformed)?;
    let header = header.ok_or(ReplyError::Malformed(DecodeError::BadMagic))?;
    let message = Message { header, bytes };
    let outcome = read_reply(invocation, request_id, message, None, results)?;
    outcome.ok_or_else(|| {
        let other = DecodeError::BadTag {
            what: "the id of a reply",
            value: request_id,
        };
        ReplyError::Malformed(other).into()
    })
}

impl CallError {
    /// Returns true if the connection was closed before the server saw the request, which may be sent again on a new one.
    #[inline]
    pub(super) fn is_stale(&self) -> bool {
        #[cfg(simulation)]
        if rtorb_os::simulation::is_planted("sent-twice") {
            return matches!(self, Self::NoReply(_));
        }
        matches!(self, Self::NoReply(error) if error.is_stale())
    }

    /// Returns the exception of the call.
    #[cold]
    pub(super) fn into_exception(self, invocation: &Invocation<'_>) -> SystemException {
        match self {
            Self::NoReply(error) => {
                let endpoint = &invocation.route.endpoint.endpoint;
                no_reply(error, endpoint, invocation.deadline)
            }
            Self::Exception(exception) => exception,
        }
    }
}

/// Returns the system exception of a request without a usable reply, with its cause.
#[cold]
pub(super) fn no_reply(
    error: ReplyError,
    endpoint: &Arc<Endpoint>,
    deadline: Deadline,
) -> SystemException {
    let phase = match error {
        ReplyError::NotSent
        | ReplyError::SendTimedOut
        | ReplyError::SendFailed { .. }
        | ReplyError::ClosedBefore => Phase::Send,
        ReplyError::Malformed(_) | ReplyError::BadResults(_) => Phase::DecodeReply,
        _ => Phase::AwaitReply,
    };
    if matches!(error, ReplyError::Failed { os_error } if os_error == Errno::KEYREJECTED.raw_os_error())
    {
        // The handshake of TLS 1.3 has ended for the client before the server looks at its certificate. The server has served nothing.
        return local::OWN_CERTIFICATE_REFUSED.with_cause(Cause {
            phase: Phase::Handshake,
            endpoint: Some(Arc::clone(endpoint)),
            elapsed: deadline.elapsed(monotonic_ns()),
            errno: None,
        });
    }
    let (kind, minor) = error.exception();
    let errno = match error {
        ReplyError::SendTimedOut => Some(Errno::AGAIN),
        ReplyError::SendFailed { os_error, .. } | ReplyError::Failed { os_error } => {
            Some(Errno::from_raw_os_error(os_error))
        }
        _ => None,
    };
    let completion = error.completion();
    #[cfg(simulation)]
    let completion = if rtorb_os::simulation::is_planted("completion-untrue") {
        rtorb_wire::exception::CompletionStatus::No
    } else {
        completion
    };
    let exception = SystemException::new(kind, minor, completion).with_cause(Cause {
        phase,
        endpoint: Some(Arc::clone(endpoint)),
        elapsed: deadline.elapsed(monotonic_ns()),
        errno: errno.map(Into::into),
    });
    match error {
        ReplyError::BadResults(beyond @ DecodeError::BeyondLargest { .. }) => {
            exception.with_detail(beyond)
        }
        _ => exception,
    }
}
