//! Started calls: requests over shared connections, whose replies are read later.

use super::Sharing;
use super::invocation::{Arguments, Invocation};
pub(crate) use super::multiplexed::RETRIES_MAX;
use super::multiplexed::{self, may_retry};
use super::reply::{CallError, Outcome, Results, read_whole_reply};
use crate::exception::{CompletionStatus, SystemException, local};
use crate::wait::WatchError;
use crate::wait::call_table::CallPlace;
use crate::wait::pending_call::PendingCall;
use crate::wait::reply_reader::ReplyReader;
use rtorb_wire::connection::ReplyError;
use std::sync::Arc;

/// Why a started call has no result.
#[derive(Debug)]
pub(crate) enum StartedCallError {
    /// The connection was closed before the server saw the request, which may be sent again on a new one.
    Stale(SystemException),
    /// The exception of the call.
    Exception(SystemException),
}

/// Sends a request. The watchdog ends the call if its deadline passes.
///
/// # Errors
/// INV_POLICY if threads do not share connections, or one thread at a time uses them.
pub(crate) fn start<'a>(
    invocation: &Invocation<'_>,
    place: &mut CallPlace,
    arguments: Arguments<'_, 'a>,
) -> Result<PendingCall, SystemException> {
    let (Sharing::Multiplexed(shared) | Sharing::Banded(shared)) = &invocation.core.sharing else {
        return Err(local::START_UNSHARED);
    };
    let started = multiplexed::start(shared, invocation, &mut place.slot, arguments)?;
    if let Err(refused) = watch(invocation, place, &started) {
        place.note_unwatched();
        started.abandon();
        let refused = refused.at(&invocation.route.endpoint.endpoint);
        let ended = started.waiter.delivery.lock().error;
        return Err(match ended {
            Some(ReplyError::NotSent) => refused,
            _ => refused.with_completion(CompletionStatus::Maybe),
        });
    }
    Ok(started)
}

fn watch(
    invocation: &Invocation<'_>,
    place: &CallPlace,
    started: &PendingCall,
) -> Result<(), WatchError> {
    let watchdog = &invocation.core.watchdog;
    if place.watch(started) {
        watchdog.watch_calls()?;
        watchdog.check_waits();
    }
    Ok(())
}

/// Reads the reply to a call that has ended.
pub(crate) fn read(
    invocation: &Invocation<'_>,
    ended: &PendingCall,
    results: Results<'_>,
) -> Result<Outcome, StartedCallError> {
    let delivery = ended.waiter.delivery.lock();
    let outcome = match delivery.error {
        Some(error) => Err(CallError::NoReply(error)),
        None => {
            let bytes = &delivery.message[..delivery.bytes];
            read_whole_reply(invocation, ended.request_id, bytes, results)
        }
    };
    outcome.map_err(|error| {
        if may_retry(&error, ended.is_connection_new) {
            StartedCallError::Stale(error.into_exception(invocation))
        } else {
            StartedCallError::Exception(error.into_exception(invocation))
        }
    })
}

/// Returns the connections that a thread of the application may read; `None` if threads of the ORB read them, or the threads that call.
pub(crate) fn reply_reader(sharing: &Sharing) -> Option<&Arc<ReplyReader>> {
    match sharing {
        Sharing::Exclusive | Sharing::Bidirectional(_) => None,
        Sharing::Multiplexed(shared) | Sharing::Banded(shared) => shared.reply_reader(),
    }
}
