//! How invocations share connections.
//!
//! `exclusive`: each client thread has its own connection to an endpoint; nobody waits for anybody. `multiplexed`: all client
//! threads have one. `banded` says which of several connections to an endpoint a priority takes, so that with it
//! `multiplexed` has one a band.
//!
//! `round_trip` is a connection that one thread uses at a time, `shared` one on which many wait at once; `opening` makes the
//! stream of both, `request` and `reply` say what goes over it. `without_waiting` sends oneways that wait for nothing over the
//! first kind.

pub(crate) mod banded;
pub(crate) mod exclusive;
mod failures;
pub(crate) mod multiplexed;
mod opening;
mod reply;
mod request;
mod round_trip;
pub(crate) mod shared;
pub(crate) mod without_waiting;

pub(crate) use multiplexed::{Lines, OpenLines};
pub(crate) use reply::{Outcome, Results};
pub(crate) use request::{Arguments, Ask, Request};

use crate::exception::{CompletionStatus, ExceptionKind, Phase, SystemException};
use crate::reference::SyncScope;
use crate::rt::{NetworkPriority, PriorityBand};
use crate::strategies::ConnectionStrategy;

/// Which of the connections to one endpoint a call takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Channel {
    /// Calls of these CORBA priorities; none where all have one connection.
    pub(crate) band: Option<PriorityBand>,
    /// How its packets are marked; none where they are not.
    pub(crate) marks: Option<NetworkPriority>,
}

impl Channel {
    /// The one connection of calls whose priority does not matter.
    pub(crate) const ANY: Self = Self {
        band: None,
        marks: None,
    };
}

/// Asks an object by one route: sends a request and, if one is due, waits for its reply.
#[inline]
pub(crate) fn call<'a>(
    request: &Request<'_>,
    arguments: Arguments<'_, 'a>,
    results: Results<'_>,
) -> Result<Outcome, Failure> {
    match request.orb.strategies.connection {
        ConnectionStrategy::Exclusive => exclusive::call(request, arguments, results),
        ConnectionStrategy::Multiplexed { .. } | ConnectionStrategy::Banded { .. } => {
            multiplexed::call(request, arguments, results)
        }
    }
}

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

    /// True if a oneway that waits for nothing did not go because the route has no open connection: another may have one.
    pub(crate) fn is_unconnected(&self) -> bool {
        self.exception.kind == ExceptionKind::Transient
            && self.exception.minor == SyncScope::UNCONNECTED
    }

    /// True if the place that an object had moved to is of no use any more, and the one where it was known may tell
    /// another (CORBA 3, 15.4.3.2).
    pub(crate) fn ends_forward(&self) -> bool {
        let is_gone = self.exception.kind == ExceptionKind::ObjectNotExist
            && self.exception.completed == CompletionStatus::No;
        is_gone || self.permits_other_route()
    }
}
