//! Oneways that wait for nothing (SYNC_NONE): not for the transport, nor for another thread, nor for a connection.

use super::failures::Attempt;
use super::request::{Arguments, Request};
use super::round_trip::Connection;
use super::{Failure, exclusive, multiplexed};
use crate::exception::{CompletionStatus, ExceptionKind, SystemException, inconsistent};
use crate::strategies::{ConnectionStrategy, WaitStrategy};
use crate::wait::read::Deadline;

/// Why a connection cannot be had at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unavailable {
    /// There is none that is open.
    Unconnected,
    /// Another thread has it.
    InUse,
    /// Many threads wait on it at once, and one of them may be sending.
    OfAllThreads,
}

/// Hands a oneway to the open connection that a call would take; what the transport does not take now is kept there. True when
/// it took all.
#[inline]
pub(crate) fn send<'a>(
    request: &Request<'_>,
    arguments: Arguments<'_, 'a>,
) -> Result<bool, Failure> {
    match at_once(request, |connection| {
        connection.send_now(request, arguments)
    }) {
        Ok(sent) => sent,
        Err(unavailable) => Err(unavailable.failure(request)),
    }
}

/// Sends what is kept of a oneway, as far as that goes at once; true when nothing is left.
#[inline]
pub(crate) fn flush(request: &Request<'_>) -> Result<bool, Failure> {
    match at_once(request, Connection::flush) {
        Ok(flushed) => flushed,
        Err(Unavailable::InUse) => Ok(false),
        Err(unavailable) => Err(unavailable.failure(request)),
    }
}

#[inline]
fn at_once<T>(
    request: &Request<'_>,
    act: impl FnOnce(&mut Connection) -> T,
) -> Result<T, Unavailable> {
    let connection = request.orb.strategies.connection;
    match connection {
        ConnectionStrategy::Exclusive => {
            exclusive::at_once(request, act).ok_or(Unavailable::Unconnected)
        }
        _ if connection.wait() == WaitStrategy::Read => multiplexed::at_once(request, act),
        _ => Err(Unavailable::OfAllThreads),
    }
}

impl Unavailable {
    #[cold]
    fn failure(self, request: &Request<'_>) -> Failure {
        let endpoint = &request.route.endpoint.endpoint;
        let attempt = Attempt::unproved(endpoint, Deadline::after(None));
        match self {
            Self::Unconnected => attempt.unconnected(),
            Self::InUse => attempt.in_use(),
            Self::OfAllThreads => {
                let minor = inconsistent::SYNC_NONE_ON_SHARED;
                let no = CompletionStatus::No;
                SystemException::new(ExceptionKind::InvPolicy, minor, no).into()
            }
        }
    }
}
