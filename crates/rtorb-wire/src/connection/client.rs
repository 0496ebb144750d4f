//! The client side of a connection: request ids, code sets, what a reply means.

use super::ReceiveError;
use crate::exception::{self, CompletionStatus, ExceptionKind, OMG};
use crate::giop::{
    AddressingMode, LocateReplyHeader, LocateStatus, MessageType, ReplyHeader, ReplyStatus,
    SystemExceptionBody,
};
use crate::ior::Ior;
use crate::{Decode, DecodeError, Reader};
use alloc::boxed::Box;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// The client's state of one connection.
///
/// The threads that share a connection share its state. A thread with a connection of its own pays nothing for this.
#[derive(Debug, Default)]
pub struct ClientState {
    next_request_id: AtomicU32,
    /// True until the server knows the code set of `char` data.
    needs_code_sets: AtomicBool,
    /// True once a reply has arrived.
    has_replied: AtomicBool,
}

/// The outcome of a request, from a reply or a locate reply.
#[derive(Debug, PartialEq, Eq)]
pub enum Reply<'m> {
    /// The operation ended with a result or a user exception. The reader stands before it.
    Results(ReplyStatus),
    /// The object is there (LocateReply).
    ObjectHere,
    /// The server does not know the object (LocateReply).
    UnknownObject,
    /// The operation ended with a system exception.
    SystemException(SystemExceptionBody<'m>),
    /// The object is elsewhere; the operation did not run.
    Forward(Box<Ior>),
    /// The server requires this form of target address; the operation did not run.
    NeedsAddressingMode(AddressingMode),
}

/// The reason why a request got no usable reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReplyError {
    /// The deadline passed before any byte of the request was sent.
    #[error("the request could not be sent in time")]
    NotSent,
    /// The deadline passed while the request was being sent.
    #[error("the request could not be sent whole in time")]
    SendTimedOut,
    /// The transport failed while the request was being sent.
    #[error("the request could not be sent (OS error {os_error})")]
    SendFailed {
        /// The error number of the operating system.
        os_error: i32,
        /// True if the server has replied on the connection before: it may have closed the connection because it was idle.
        is_stale: bool,
    },
    /// The connection was closed before any byte of the request was sent.
    #[error("the connection was closed before the request was sent")]
    ClosedBefore,
    /// The server closed the connection in an orderly way and did not carry out the request.
    #[error("the connection was closed before the request was carried out")]
    Closed,
    /// The deadline passed.
    #[error("no reply came in time")]
    TimedOut,
    /// The peer ended the connection without CloseConnection, or after the beginning of a reply.
    #[error("the connection ended before the reply")]
    Ended,
    /// The transport failed.
    #[error("the connection failed before the reply (OS error {os_error})")]
    Failed {
        /// The error number of the operating system.
        os_error: i32,
    },
    /// A message arrived that no server may send.
    #[error("the server does not understand GIOP as this client does")]
    OutOfPlace,
    /// The server did not understand what was sent (MessageError).
    #[error("the server did not understand the request")]
    NotUnderstood,
    /// The bytes received are not a reply, so the outcome of the request is unknown.
    #[error("not a reply: {0}")]
    Malformed(DecodeError),
    /// The operation ended, but its results cannot be read.
    #[error("the results cannot be read: {0}")]
    BadResults(DecodeError),
    /// The server requires another form of target address than the request had.
    #[error("the server requires another form of target address than the request had")]
    NeedsAddressingMode,
}

impl ClientState {
    /// The state of a new connection whose requests name no code sets: `char` data is ISO 8859-1.
    pub const fn new() -> Self {
        Self {
            next_request_id: AtomicU32::new(0),
            needs_code_sets: AtomicBool::new(false),
            has_replied: AtomicBool::new(false),
        }
    }

    /// The state of a new connection whose first requests name the code sets.
    pub const fn naming_code_sets() -> Self {
        Self {
            needs_code_sets: AtomicBool::new(true),
            ..Self::new()
        }
    }

    /// The state of the end that accepted a bidirectional connection. The client has named the code sets, if they are named.
    pub const fn of_acceptor() -> Self {
        Self {
            next_request_id: AtomicU32::new(1),
            ..Self::new()
        }
    }

    /// The id of the next request, for a thread that does not share the connection.
    //= GIOP 1.2 §15.4.2.1
    //# A request that expects a reply carries an id not in use on this connection.
    #[inline]
    pub fn next_request_id(&mut self) -> u32 {
        let next = self.next_request_id.get_mut();
        let request_id = *next;
        *next = request_id.wrapping_add(REQUEST_ID_STEP);
        request_id
    }

    /// The id of the last request, for a thread that does not share the connection.
    pub fn last_request_id(&mut self) -> u32 {
        let next = self.next_request_id.get_mut();
        next.wrapping_sub(REQUEST_ID_STEP)
    }

    /// As [`next_request_id`](Self::next_request_id), for threads that share the connection.
    #[inline]
    pub fn next_shared_request_id(&self) -> u32 {
        self.next_request_id
            .fetch_add(REQUEST_ID_STEP, Ordering::Relaxed)
    }

    /// True until the server knows the code sets. Until then, requests must name them.
    //= CORBA 3 §13.10.2.5
    //# The first request of a connection names the code sets of the connection.
    #[inline]
    pub fn needs_code_sets(&self) -> bool {
        self.needs_code_sets.load(Ordering::Relaxed)
    }

    /// Records that a reply has arrived.
    #[inline]
    pub fn note_reply(&self, kind: MessageType) {
        if !self.has_replied.load(Ordering::Relaxed) {
            self.has_replied.store(true, Ordering::Relaxed);
        }
        // A LocateRequest has no service contexts, so that its reply says nothing of code sets.
        if kind == MessageType::Reply && self.needs_code_sets() {
            self.needs_code_sets.store(false, Ordering::Relaxed);
        }
    }

    /// The error of a request that the transport failed to send.
    pub fn send_failed(&self, os_error: i32) -> ReplyError {
        ReplyError::SendFailed {
            os_error,
            is_stale: self.has_replied.load(Ordering::Relaxed),
        }
    }
}

/// Request ids of a client are even: on a bidirectional connection the other end takes the odd ones.
//= GIOP 1.2 §15.8
//# On a bidirectional connection, the end that opened it has even request ids, and the other end odd ones.
const REQUEST_ID_STEP: u32 = 2;

impl<'m> Reply<'m> {
    /// Reads a reply or a locate reply up to its results, if it is for that request; `None` if it is for another.
    ///
    /// # Errors
    /// When the bytes are not such a reply.
    // Always inlined: every call uses it, and its other callers are rare.
    #[inline(always)]
    pub fn decode(
        kind: MessageType,
        r: &mut Reader<'m>,
        request_id: u32,
    ) -> Result<Option<Self>, DecodeError> {
        if kind == MessageType::LocateReply {
            return Self::decode_locate_reply(r, request_id);
        }
        let reply = ReplyHeader::decode(r)?;
        //= GIOP 1.2 §15.4.4
        //# A reply to a request that was cancelled, or to an unknown request, is ignored.
        if reply.request_id != request_id {
            return Ok(None);
        }
        Ok(Some(match reply.status {
            ReplyStatus::NoException | ReplyStatus::UserException => Self::Results(reply.status),
            ReplyStatus::SystemException => Self::SystemException(SystemExceptionBody::decode(r)?),
            ReplyStatus::LocationForward | ReplyStatus::LocationForwardPerm => {
                Self::Forward(Box::new(Ior::decode(r)?))
            }
            ReplyStatus::NeedsAddressingMode => {
                Self::NeedsAddressingMode(AddressingMode::decode(r)?)
            }
        }))
    }

    #[cold]
    fn decode_locate_reply(
        r: &mut Reader<'m>,
        request_id: u32,
    ) -> Result<Option<Self>, DecodeError> {
        let reply = LocateReplyHeader::decode(r)?;
        if reply.request_id != request_id {
            return Ok(None);
        }
        Ok(Some(match reply.status {
            LocateStatus::ObjectHere => Self::ObjectHere,
            LocateStatus::UnknownObject => Self::UnknownObject,
            LocateStatus::ObjectForward | LocateStatus::ObjectForwardPerm => {
                Self::Forward(Box::new(Ior::decode(r)?))
            }
            LocateStatus::SystemException => Self::SystemException(SystemExceptionBody::decode(r)?),
            LocateStatus::NeedsAddressingMode => {
                Self::NeedsAddressingMode(AddressingMode::decode(r)?)
            }
        }))
    }

    /// The id of the request that a reply or a locate reply is for.
    ///
    /// # Errors
    /// When the bytes are not such a reply.
    pub fn request_id(kind: MessageType, r: &mut Reader<'_>) -> Result<u32, DecodeError> {
        Ok(match kind {
            MessageType::LocateReply => LocateReplyHeader::decode(r)?.request_id,
            _ => ReplyHeader::decode(r)?.request_id,
        })
    }
}

impl ReplyError {
    /// The system exception of the request, and its minor code.
    pub const fn exception(self) -> (ExceptionKind, u32) {
        match self {
            Self::NotSent | Self::SendTimedOut => (ExceptionKind::Timeout, OMG | 2),
            Self::ClosedBefore | Self::Closed => (ExceptionKind::Transient, OMG | 2),
            Self::TimedOut => (ExceptionKind::Timeout, OMG | 3),
            Self::Malformed(error) | Self::BadResults(error) => exception::of_decoding(error),
            Self::NeedsAddressingMode => (ExceptionKind::NoImplement, 0),
            Self::NotUnderstood => (ExceptionKind::CommFailure, exception::NOT_UNDERSTOOD),
            _ => (ExceptionKind::CommFailure, 0),
        }
    }

    /// The completion status of the operation.
    pub const fn completion(self) -> CompletionStatus {
        match self {
            //= GIOP 1.2 §15.4.7
            //# A request without a reply before CloseConnection was not processed.
            Self::NotSent | Self::ClosedBefore | Self::Closed | Self::NeedsAddressingMode => {
                CompletionStatus::No
            }
            // A server does not carry out half a request.
            Self::SendFailed { .. } => CompletionStatus::No,
            Self::BadResults(_) => CompletionStatus::Yes,
            _ => CompletionStatus::Maybe,
        }
    }

    /// True if the server certainly did not see the request because the connection was closed: it may be sent again on a
    /// new one.
    pub const fn is_stale(self) -> bool {
        match self {
            Self::Closed | Self::ClosedBefore => true,
            Self::SendFailed { is_stale, .. } => is_stale,
            _ => false,
        }
    }

    /// True if the request was not sent whole.
    pub const fn is_send_failure(self) -> bool {
        matches!(
            self,
            Self::NotSent | Self::SendTimedOut | Self::SendFailed { .. } | Self::ClosedBefore
        )
    }

    /// Converts an error that arose because the deadline passed and the transport was shut down for it.
    pub const fn when_late(self) -> Self {
        match self {
            Self::NotSent | Self::ClosedBefore => Self::NotSent,
            Self::SendTimedOut | Self::SendFailed { .. } => Self::SendTimedOut,
            _ => Self::TimedOut,
        }
    }
}

impl From<ReceiveError> for ReplyError {
    fn from(error: ReceiveError) -> Self {
        match error {
            // A server that has begun to reply has carried out the request. It must not carry it out again.
            ReceiveError::Closed { amid_message: true } => Self::Ended,
            ReceiveError::Closed { .. } => Self::Closed,
            ReceiveError::Malformed(error) => Self::Malformed(error),
            ReceiveError::OutOfPlace(_) => Self::OutOfPlace,
            ReceiveError::MessageError => Self::NotUnderstood,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [ReplyError; 15] = [
        ReplyError::NotSent,
        ReplyError::SendTimedOut,
        ReplyError::SendFailed {
            os_error: 104,
            is_stale: true,
        },
        ReplyError::SendFailed {
            os_error: 104,
            is_stale: false,
        },
        ReplyError::ClosedBefore,
        ReplyError::Closed,
        ReplyError::TimedOut,
        ReplyError::Ended,
        ReplyError::Failed { os_error: 104 },
        ReplyError::OutOfPlace,
        ReplyError::NotUnderstood,
        ReplyError::Malformed(DecodeError::BadMagic),
        ReplyError::BadResults(DecodeError::BadString),
        ReplyError::NeedsAddressingMode,
        ReplyError::BadResults(DecodeError::Interrupted),
    ];

    #[test]
    fn only_a_request_that_did_not_run_is_sent_again() {
        for error in ALL {
            assert!(!error.is_stale() || error.completion() == CompletionStatus::No);
        }
        assert_eq!(ALL.iter().filter(|error| error.is_stale()).count(), 3);
    }

    #[test]
    fn a_late_failure_is_a_timeout_of_its_phase_and_never_sent_again() {
        for error in ALL {
            let late = error.when_late();
            assert_eq!(late.is_send_failure(), error.is_send_failure());
            assert_eq!(late.exception().0, ExceptionKind::Timeout);
            let is_unsent = matches!(error, ReplyError::NotSent | ReplyError::ClosedBefore);
            assert_eq!(late.completion() == CompletionStatus::No, is_unsent);
            assert!(!late.is_stale());
        }
    }

    #[test]
    fn a_connection_is_stale_for_sending_only_once_a_reply_came() {
        let state = ClientState::new();
        assert!(!state.needs_code_sets());
        assert!(!state.send_failed(32).is_stale());
        state.note_reply(MessageType::LocateReply);
        assert!(state.send_failed(32).is_stale());
    }

    #[test]
    //= GIOP 1.2 §15.4.2.2
    //% test
    fn request_ids_differ_whichever_way_they_are_taken() {
        let mut state = ClientState::new();
        let ids = [
            state.next_request_id(),
            state.next_shared_request_id(),
            state.next_request_id(),
        ];
        assert_eq!(ids, [0, 2, 4]);
        let acceptor = ClientState::of_acceptor();
        let ids = [(); 3].map(|()| acceptor.next_shared_request_id());
        assert_eq!(ids, [1, 3, 5], "they never meet");
        assert!(!acceptor.needs_code_sets());
    }
}
