//! Oneways that wait for nothing (SYNC_NONE): not for the transport, nor for another thread, nor for a connection.

use super::invocation::{Arguments, Invocation};
use super::single::{SendNowError, SingleConnection};
use super::{Sharing, exclusive, multiplexed};
use crate::exception::{
    Cause, CompletionStatus, ExceptionKind, Phase, SystemException, inconsistent, oneway,
};
use std::sync::Arc;
use std::time::Duration;

/// Why a connection cannot be used at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unavailable {
    /// No connection is open.
    Unconnected,
    /// Another thread uses it.
    InUse,
    /// Many threads wait on it at once, and one of them may be sending.
    Shared,
}

/// Sends a oneway on the open connection that a call would use. The connection keeps the bytes that the socket does not take.
/// Returns true if the socket took all of them.
#[inline]
pub(crate) fn send<'a>(
    invocation: &Invocation<'_>,
    arguments: Arguments<'_, 'a>,
) -> Result<bool, SystemException> {
    let sent = at_once(invocation, |connection| {
        connection.send_now(invocation, arguments)
    });
    let error = match sent {
        Ok(Ok(is_flushed)) => return Ok(is_flushed),
        Ok(Err(error)) => error,
        Err(unavailable) => return Err(unavailable.exception(invocation)),
    };
    Err(match error {
        SendNowError::BehindAnother => transient(invocation, oneway::BEHIND_ANOTHER, Phase::Send),
        SendNowError::Failed(error) => error.into_exception(invocation),
    })
}

/// Sends as much of a kept oneway as the socket takes without waiting. Returns true if nothing is left.
#[inline]
pub(crate) fn flush(invocation: &Invocation<'_>) -> Result<bool, SystemException> {
    match at_once(invocation, SingleConnection::flush) {
        Ok(Ok(is_flushed)) => Ok(is_flushed),
        Ok(Err(error)) => Err(error.into_exception(invocation)),
        Err(Unavailable::InUse) => Ok(false),
        Err(unavailable) => Err(unavailable.exception(invocation)),
    }
}

#[inline]
fn at_once<T>(
    invocation: &Invocation<'_>,
    act: impl FnOnce(&mut SingleConnection) -> T,
) -> Result<T, Unavailable> {
    match &invocation.core.sharing {
        Sharing::Exclusive => exclusive::at_once(invocation, act).ok_or(Unavailable::Unconnected),
        Sharing::Multiplexed(shared) | Sharing::Banded(shared) => {
            multiplexed::at_once(shared, invocation, act)
        }
        Sharing::Bidirectional(_) => Err(Unavailable::Shared),
    }
}

impl Unavailable {
    #[cold]
    fn exception(self, invocation: &Invocation<'_>) -> SystemException {
        match self {
            Self::Unconnected => transient(invocation, oneway::UNCONNECTED, Phase::Connect),
            Self::InUse => transient(invocation, oneway::IN_USE, Phase::Send),
            Self::Shared => {
                let minor = inconsistent::SYNC_NONE_ON_SHARED;
                SystemException::new(ExceptionKind::InvPolicy, minor, CompletionStatus::No)
            }
        }
    }
}

#[cold]
fn transient(invocation: &Invocation<'_>, minor: u32, phase: Phase) -> SystemException {
    SystemException::new(ExceptionKind::Transient, minor, CompletionStatus::No).with_cause(Cause {
        phase,
        endpoint: Some(Arc::clone(&invocation.route.endpoint.endpoint)),
        elapsed: Duration::ZERO,
        errno: None,
    })
}
