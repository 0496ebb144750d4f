//! What a round trip that failed is called: which exception, in which phase, and whether it may be tried again.

use super::Failure;
use super::reply::{Outcome, Read, Undecodable};
use crate::endpoint::Endpoint;
use crate::exception::{Cause, CompletionStatus, ExceptionKind, Phase, SystemException};
use crate::reference::SyncScope;
use crate::wait::read::{Deadline, Silence};
use rtorb_wire::DecodeError;
use rustix::io::Errno;
use std::sync::Arc;

/// A call in progress, as its failures tell of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attempt<'c> {
    pub(super) endpoint: &'c Arc<Endpoint>,
    pub(super) deadline: Deadline,
    /// True once a reply came: only then can the connection have been closed for having been idle.
    pub(super) proved: bool,
}

impl<'c> Attempt<'c> {
    /// One without a connection yet.
    pub(super) fn unproved(endpoint: &'c Arc<Endpoint>, deadline: Deadline) -> Self {
        Self {
            endpoint,
            deadline,
            proved: false,
        }
    }

    /// What a failure is called when the watchdog caused it.
    #[cold]
    pub(super) fn late(&self, failure: Failure) -> Failure {
        match failure.exception.cause.as_ref().map(|cause| cause.phase) {
            Some(Phase::Send) => self.send_failure(Errno::AGAIN),
            Some(_) => self.silence_failure(Silence::TimedOut),
            None => failure,
        }
    }

    pub(super) fn send_failure(&self, errno: Errno) -> Failure {
        let exception = match errno {
            Errno::AGAIN => SystemException::omg(ExceptionKind::Timeout, 2)
                .with_completion(CompletionStatus::Maybe),
            // Nothing of a request that could not be sent whole is carried out.
            _ => SystemException::new(ExceptionKind::CommFailure, 0, CompletionStatus::No),
        };
        let mut failure = self.failure(exception, Phase::Send, Some(errno));
        failure.stale = self.proved && errno != Errno::AGAIN;
        failure
    }

    /// The deadline passed before any octet of the request went.
    #[cold]
    pub(super) fn not_sent_in_time(&self) -> Failure {
        let exception = SystemException::omg(ExceptionKind::Timeout, 2);
        self.failure(exception, Phase::Send, None)
    }

    /// A oneway that waits for nothing has no connection to go by.
    #[cold]
    pub(super) fn unconnected(&self) -> Failure {
        self.failure(
            SyncScope::transient(SyncScope::UNCONNECTED),
            Phase::Connect,
            None,
        )
    }

    /// A oneway that waits for nothing would have to wait until the rest of another is sent.
    #[cold]
    pub(super) fn behind_another(&self) -> Failure {
        self.failure(
            SyncScope::transient(SyncScope::BEHIND_ANOTHER),
            Phase::Send,
            None,
        )
    }

    /// A oneway that waits for nothing would have to wait until another thread's call is over.
    #[cold]
    pub(super) fn in_use(&self) -> Failure {
        self.failure(SyncScope::transient(SyncScope::IN_USE), Phase::Send, None)
    }

    pub(super) fn silence_failure(&self, silence: Silence) -> Failure {
        let (exception, errno) = match silence {
            Silence::TimedOut => (SystemException::omg(ExceptionKind::Timeout, 3), None),
            Silence::Ended => (ExceptionKind::CommFailure.into(), None),
            Silence::Failed(errno) => (ExceptionKind::CommFailure.into(), Some(errno)),
        };
        let exception = exception.with_completion(CompletionStatus::Maybe);
        self.failure(exception, Phase::AwaitReply, errno)
    }

    /// The connection was closed before the peer took up the request: it said CloseConnection, and what was not replied to
    /// was not processed (GIOP 1.2, 15.4.7), or the request was not sent yet.
    #[cold]
    pub(super) fn closed_before(&self, phase: Phase) -> Failure {
        let exception = SystemException::omg(ExceptionKind::Transient, 2);
        Failure {
            stale: true,
            ..self.failure(exception, phase, None)
        }
    }

    /// The peer sent a message that no server sends, or said that it does not understand ours.
    #[cold]
    pub(super) fn out_of_place(&self) -> Failure {
        let maybe = CompletionStatus::Maybe;
        let exception = SystemException::new(ExceptionKind::CommFailure, 0, maybe);
        self.failure(exception, Phase::AwaitReply, None)
    }

    /// Octets that are no reply to this request say nothing of what became of it.
    pub(super) fn header_failure(&self, error: DecodeError) -> Failure {
        let completed = CompletionStatus::Maybe;
        self.decode_failure(Undecodable { error, completed }, None)
    }

    pub(super) fn decode_failure(
        &self,
        undecodable: Undecodable,
        silence: Option<Silence>,
    ) -> Failure {
        if let Some(silence) = silence {
            return self.silence_failure(silence);
        }
        let exception =
            SystemException::from_decode(undecodable.error).with_completion(undecodable.completed);
        self.failure(exception, Phase::DecodeReply, None)
    }

    /// How the call ended, by its reply; `None` if that was another's.
    #[inline]
    pub(super) fn conclude(&self, read: Read) -> Result<Option<Outcome>, Failure> {
        match read {
            Read::Done => Ok(Some(Outcome::Done)),
            Read::Other => Ok(None),
            Read::Forward(ior) => Ok(Some(Outcome::Forward(ior))),
            Read::Exception(exception) => Err(exception.into()),
            Read::NeedsAddressingMode => {
                let no = CompletionStatus::No;
                let exception = SystemException::new(ExceptionKind::NoImplement, 0, no);
                Err(self.failure(exception, Phase::AwaitReply, None))
            }
        }
    }

    pub(super) fn failure(
        &self,
        exception: SystemException,
        phase: Phase,
        errno: Option<Errno>,
    ) -> Failure {
        let cause = Cause {
            phase,
            endpoint: Some(Arc::clone(self.endpoint)),
            elapsed: self.deadline.elapsed(),
            errno: errno.map(Into::into),
        };
        exception.with_cause(cause).into()
    }
}
