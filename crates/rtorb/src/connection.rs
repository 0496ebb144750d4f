//! How invocations share connections.
//!
//! `exclusive`: each client thread has its own connection to an endpoint; nobody waits for anybody.

pub(crate) mod exclusive;
mod round_trip;

pub(crate) use round_trip::{Arguments, Connection, Outcome, Request, Results};

use crate::exception::{CompletionStatus, ExceptionKind, SystemException};

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
        self.exception.completed == CompletionStatus::No
            && matches!(
                self.exception.kind,
                ExceptionKind::Transient | ExceptionKind::CommFailure
            )
            && self.exception.cause.is_some()
    }
}
