//! A private connection a thread: found without a lock, used without waiting for another thread.

use super::reply::{Outcome, Results};
use super::request::{Arguments, Request};
use super::round_trip::Connection;
use super::{Channel, Failure};
use crate::orb::{OrbCore, SharedEndpoint};
use crate::wait::read::Deadline;
use core::cell::RefCell;
use std::sync::{Arc, Weak};

thread_local! {
    /// This thread's idle connections, the one used last at the end.
    #[expect(clippy::vec_box, reason = "each call takes one out and puts it back: a pointer moves, not a connection")]
    static IDLE: RefCell<Vec<Box<Own>>> = const { RefCell::new(Vec::new()) };
}

/// A connection of one thread, and which calls it is for.
#[derive(Debug)]
struct Own {
    connection: Connection,
    /// Held, so that a reference made later finds this connection though no other reference is left.
    endpoint: Arc<SharedEndpoint>,
    channel: Channel,
    /// An idle connection does not keep its ORB alive, with its watchdog, adapters and servants.
    orb: Weak<OrbCore>,
}

/// Calls on this thread's connection, on a new one if that turns out to have been closed meanwhile.
#[inline]
pub(crate) fn call<'a>(
    request: &Request<'_>,
    arguments: Arguments<'_, 'a>,
    results: Results<'_>,
) -> Result<Outcome, Failure> {
    if let Some(mut own) = take(request) {
        let deadline = Deadline::after(request.timeout);
        match own.connection.call(request, deadline, arguments, results) {
            Err(failure) if failure.stale => {}
            answer => return kept(request, own, answer),
        }
    }
    let mut own = Own::open(request)?;
    let deadline = Deadline::after(request.timeout);
    let answer = own.connection.call(request, deadline, arguments, results);
    kept(request, own, answer)
}

/// Does something at once with this thread's connection for such calls; none if it has no such connection that is free.
#[inline]
pub(super) fn at_once<T>(
    request: &Request<'_>,
    act: impl FnOnce(&mut Connection) -> T,
) -> Option<T> {
    let mut own = take(request)?;
    let done = act(&mut own.connection);
    if own.connection.is_sound() {
        keep(own, request.orb.limits.thread_connections_max);
    }
    Some(done)
}

impl Own {
    #[cold]
    fn open(request: &Request<'_>) -> Result<Box<Self>, Failure> {
        close_abandoned();
        Ok(Box::new(Self {
            connection: Connection::open(request)?,
            endpoint: Arc::clone(&request.route.endpoint),
            channel: request.channel,
            orb: Arc::downgrade(request.orb),
        }))
    }

    /// True if the connection leads to the endpoint of the request's route, and is for such calls.
    #[inline]
    fn serves(&self, request: &Request<'_>) -> bool {
        Arc::ptr_eq(&self.endpoint, &request.route.endpoint) && self.channel == request.channel
    }

    /// True once no call can want the connection any more: its ORB is gone or shut down, or the one reference is gone that
    /// it was for.
    fn is_abandoned(&self) -> bool {
        let is_unreachable = self.endpoint.is_private && Arc::strong_count(&self.endpoint) == 1;
        is_unreachable || self.orb.upgrade().is_none_or(|orb| orb.is_stopping())
    }
}

/// Takes this thread's connection for such calls, if it has one that is not in use.
///
/// A connection in use is not in the table: a call made while another is in progress on the same thread opens one
/// more rather than mixing two requests.
#[inline]
fn take(request: &Request<'_>) -> Option<Box<Own>> {
    IDLE.try_with(|idle| {
        let mut idle = idle.borrow_mut();
        let place = idle.iter().rposition(|own| own.serves(request))?;
        Some(if place + 1 == idle.len() {
            idle.pop()?
        } else {
            idle.remove(place)
        })
    })
    // A thread that is ending and calls from a destructor has no table any more.
    .ok()?
}

/// Keeps the connection for the next call unless it failed.
#[inline]
fn kept(
    request: &Request<'_>,
    own: Box<Own>,
    answer: Result<Outcome, Failure>,
) -> Result<Outcome, Failure> {
    if own.connection.is_sound_after(&answer) {
        keep(own, request.orb.limits.thread_connections_max);
    }
    answer
}

/// Keeps a connection for the next call; the one unused longest is closed when the thread has too many, if it can be one that
/// owes its server nothing.
#[inline]
fn keep(own: Box<Own>, connections_max: usize) {
    // In a thread that is ending the connection ends with this call.
    let _ = IDLE.try_with(|idle| {
        let mut idle = idle.borrow_mut();
        if idle.len() >= connections_max && !idle.is_empty() {
            let unused = idle.iter().position(|own| own.connection.is_flushed());
            idle.remove(unused.unwrap_or(0));
        }
        idle.push(own);
    });
}

/// Closes this thread's connections that no call can want any more.
fn close_abandoned() {
    let _ = IDLE.try_with(|idle| idle.borrow_mut().retain(|own| !own.is_abandoned()));
}
