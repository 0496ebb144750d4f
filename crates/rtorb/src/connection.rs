//! How invocations share connections.
//!
//! `exclusive`: each client thread has its own connection to an endpoint; nobody waits for anybody.

pub(crate) mod exclusive;
mod round_trip;

pub(crate) use round_trip::{Arguments, Connection, Outcome, Request, Results};

use crate::exception::{CompletionStatus, ExceptionKind, Phase, SystemException};

/// An invocation that did not end with a reply.
#[derive(Debug)]
pub(crate) struct Failure {
    /// What the caller shall know.
    pub(crate) exception: SystemException,
    /// True if the peer certainly did not see the request because the connection was stale: sending it again on a
    /// new one is safe.
    pub(crate) stale: bool,
}

impl From<SystemException> for Failure {
    fn from(exception: SystemException) -> Self {
        Self {
            exception,
            stale: false,
        }
    }
}

impl Failure {
    /// True if another route to the object may do: nothing was carried out, and it is not the request's fault.
    pub(crate) fn permits_other_route(&self) -> bool {
        let Some(cause) = &self.exception.cause else {
            return false;
        };
        self.exception.completed == CompletionStatus::No
            && match self.exception.kind {
                ExceptionKind::Transient | ExceptionKind::CommFailure => true,
                // A host that is switched off answers nothing at all.
                ExceptionKind::Timeout => cause.phase == Phase::Connect,
                _ => false,
            }
    }

    /// True if the place that an object had moved to is of no use any more, and the one where it was known may tell
    /// another (CORBA 3, 15.4.3.2).
    pub(crate) fn ends_forward(&self) -> bool {
        let is_gone = self.exception.kind == ExceptionKind::ObjectNotExist
            && self.exception.completed == CompletionStatus::No;
        is_gone || self.permits_other_route()
    }
}
