//! What a round trip that failed is called: which exception, in which phase, and whether it may be tried again.

use super::Connection;
use crate::connection::Failure;
use crate::exception::{Cause, CompletionStatus, ExceptionKind, Phase, SystemException};
use crate::wait::read::{Deadline, Silence};
use rtorb_wire::DecodeError;
use rustix::io::Errno;
use std::sync::Arc;
use std::time::Duration;

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

impl Connection {
    /// What a failure is called when the watchdog caused it.
    #[cold]
    pub(super) fn late(&self, failure: Failure, deadline: Deadline) -> Failure {
        match failure.exception.cause.as_ref().map(|cause| cause.phase) {
            Some(Phase::Send) => self.send_failure(Errno::AGAIN, deadline),
            Some(_) => self.silence_failure(Silence::TimedOut, deadline),
            None => failure,
        }
    }

    pub(super) fn send_failure(&self, errno: Errno, deadline: Deadline) -> Failure {
        let exception = match errno {
            Errno::AGAIN => SystemException::omg(ExceptionKind::Timeout, 2)
                .with_completion(CompletionStatus::Maybe),
            // Nothing of a request that could not be sent whole is carried out.
            _ => SystemException::new(ExceptionKind::CommFailure, 0, CompletionStatus::No),
        };
        let mut failure = self.failure(exception, Phase::Send, deadline.elapsed(), Some(errno));
        failure.stale = self.proved && errno != Errno::AGAIN;
        failure
    }

    pub(super) fn silence_failure(&self, silence: Silence, deadline: Deadline) -> Failure {
        let (exception, errno) = match silence {
            Silence::TimedOut => (SystemException::omg(ExceptionKind::Timeout, 3), None),
            Silence::Ended => (ExceptionKind::CommFailure.into(), None),
            Silence::Failed(errno) => (ExceptionKind::CommFailure.into(), Some(errno)),
        };
        let exception = exception.with_completion(CompletionStatus::Maybe);
        self.failure(exception, Phase::AwaitReply, deadline.elapsed(), errno)
    }

    /// Octets that are no reply to this request say nothing of what became of it.
    pub(super) fn header_failure(&self, error: DecodeError, deadline: Deadline) -> Failure {
        let completed = CompletionStatus::Maybe;
        self.decode_failure(Undecodable { error, completed }, None, deadline)
    }

    pub(super) fn decode_failure(
        &self,
        undecodable: Undecodable,
        silence: Option<Silence>,
        deadline: Deadline,
    ) -> Failure {
        if let Some(silence) = silence {
            return self.silence_failure(silence, deadline);
        }
        let exception =
            SystemException::from_decode(undecodable.error).with_completion(undecodable.completed);
        self.failure(exception, Phase::DecodeReply, deadline.elapsed(), None)
    }

    pub(super) fn failure(
        &self,
        exception: SystemException,
        phase: Phase,
        elapsed: Duration,
        errno: Option<Errno>,
    ) -> Failure {
        self.exception(exception, phase, elapsed, errno).into()
    }

    pub(super) fn exception(
        &self,
        exception: SystemException,
        phase: Phase,
        elapsed: Duration,
        errno: Option<Errno>,
    ) -> SystemException {
        exception.with_cause(Cause {
            phase,
            endpoint: Some(Arc::clone(&self.endpoint.endpoint)),
            elapsed,
            errno,
        })
    }
}
