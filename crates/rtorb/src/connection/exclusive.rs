//! One connection for each thread and endpoint. A thread finds it without a lock and never waits for another thread.

use super::Channel;
use super::client::ClientCore;
use super::invocation::{Arguments, Invocation};
use super::reply::{CallError, Outcome, Results};
use super::route::SharedEndpoint;
use super::single::SingleConnection;
use crate::clock::coarse_monotonic_ns;
use crate::exception::SystemException;
use core::cell::RefCell;
use std::sync::{Arc, Weak};

thread_local! {
    /// This thread's idle connections; the most recently used one is the last.
    #[expect(clippy::vec_box, reason = "each call takes one out and puts it back: a pointer moves, not a connection")]
    static IDLE: RefCell<Vec<Box<ThreadConnection>>> = const { RefCell::new(Vec::new()) };
}

/// A connection of one thread, with the endpoint and channel that it leads to.
#[derive(Debug)]
struct ThreadConnection {
    connection: SingleConnection,
    /// Keeps the endpoint in the table, so that a later reference finds this connection.
    endpoint: Arc<SharedEndpoint>,
    channel: Channel,
    /// The connection's ORB. Weak: an idle connection does not keep it alive.
    core: Weak<ClientCore>,
}

/// Sends a call on this thread's connection, or on a new one if the server has closed that connection.
// Always: it is in the path of every call, and has one caller. Otherwise it costs 35 instructions.
#[inline(always)]
pub(crate) fn call<'a>(
    invocation: &Invocation<'_>,
    arguments: Arguments<'_, 'a>,
    results: Results<'_>,
) -> Result<Outcome, SystemException> {
    if let Some(mut own) = take::<true>(invocation) {
        match own.connection.call(invocation, arguments, results) {
            Ok(outcome) => {
                keep_if_sound(own, invocation);
                return Ok(outcome);
            }
            Err(error) if error.is_stale() => {}
            Err(error) => return Err(failed(own, invocation, error)),
        }
    }
    call_on_new(&invocation.delayed(), arguments, results)
}

#[cold]
fn call_on_new<'a>(
    invocation: &Invocation<'_>,
    arguments: Arguments<'_, 'a>,
    results: Results<'_>,
) -> Result<Outcome, SystemException> {
    let mut own = ThreadConnection::open(invocation)?;
    match own.connection.call(invocation, arguments, results) {
        Ok(outcome) => {
            keep_if_sound(own, invocation);
            Ok(outcome)
        }
        Err(error) => Err(failed(own, invocation, error)),
    }
}

/// Runs `act` on this thread's connection for the invocation; `None` if the thread has no free one.
#[inline]
pub(super) fn at_once<T>(
    invocation: &Invocation<'_>,
    act: impl FnOnce(&mut SingleConnection) -> T,
) -> Option<T> {
    let mut own = take::<false>(invocation)?;
    if own.connection.has_ended_idle(coarse_monotonic_ns()) {
        return None;
    }
    let done = act(&mut own.connection);
    keep_if_sound(own, invocation);
    Some(done)
}

impl ThreadConnection {
    #[cold]
    fn open(invocation: &Invocation<'_>) -> Result<Box<Self>, SystemException> {
        close_abandoned();
        Ok(Box::new(Self {
            connection: SingleConnection::open(invocation)?,
            endpoint: Arc::clone(&invocation.route.endpoint),
            channel: invocation.channel,
            core: Arc::downgrade(invocation.core),
        }))
    }

    /// Returns true if the connection has the endpoint and the channel of the invocation.
    #[inline]
    fn serves(&self, invocation: &Invocation<'_>) -> bool {
        Arc::ptr_eq(&self.endpoint, &invocation.route.endpoint)
            && self.channel == invocation.channel
    }

    /// Returns true if no call can use the connection again: its ORB is dropped or shut down, or its private reference is dropped.
    fn is_abandoned(&self) -> bool {
        let is_unreachable = self.endpoint.is_private && Arc::strong_count(&self.endpoint) == 1;
        is_unreachable || self.core.upgrade().is_none_or(|core| core.is_closed())
    }
}

/// Takes this thread's connection for the invocation out of the table, if it has one that is not in use.
///
/// A connection in use is not in the table. So a nested call on the same thread opens another connection.
///
/// Each of the two callers has a copy of the code, which is inlined in the path of every call.
#[inline(always)]
fn take<const IS_CALL: bool>(invocation: &Invocation<'_>) -> Option<Box<ThreadConnection>> {
    IDLE.try_with(|idle| {
        let mut idle = idle.borrow_mut();
        let place = idle.iter().rposition(|own| own.serves(invocation))?;
        Some(if place + 1 == idle.len() {
            idle.pop()?
        } else {
            idle.remove(place)
        })
    })
    // A thread that calls from a destructor while it ends has no table.
    .ok()?
}

/// Keeps the connection for the next call, unless it cannot be used again.
// Always: it is in the path of every call, and most of its other callers are rare.
#[inline(always)]
fn keep_if_sound(own: Box<ThreadConnection>, invocation: &Invocation<'_>) {
    if own.connection.is_sound() {
        keep(own, invocation.core.limits.thread_connections_max);
    }
}

/// Ends a call that failed, and returns its exception.
#[cold]
fn failed(
    own: Box<ThreadConnection>,
    invocation: &Invocation<'_>,
    error: CallError,
) -> SystemException {
    keep_if_sound(own, invocation);
    error.into_exception(invocation)
}

/// Keeps a connection for the next call. Closes another one if the thread has too many.
#[inline(always)]
fn keep(own: Box<ThreadConnection>, connections_max: usize) {
    // If the thread is ending, the connection is closed.
    let _ = IDLE.try_with(|idle| {
        let mut idle = idle.borrow_mut();
        if idle.len() >= connections_max {
            close_one(&mut idle);
        }
        idle.push(own);
    });
}

/// Closes the connection that was not used for the longest time, preferably one without unsent bytes.
#[cold]
#[expect(clippy::vec_box, reason = "as in the table")]
fn close_one(idle: &mut Vec<Box<ThreadConnection>>) {
    let unused = idle.iter().position(|own| own.connection.is_flushed());
    idle.remove(unused.unwrap_or(0));
}

/// Closes this thread's abandoned connections.
fn close_abandoned() {
    let _ = IDLE.try_with(|idle| idle.borrow_mut().retain(|own| !own.is_abandoned()));
}
