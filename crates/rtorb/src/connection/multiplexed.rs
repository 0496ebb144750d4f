//! One connection to an endpoint for all client threads; with bands, one a band.
//!
//! A nested call that would have to wait for others there takes a connection of its thread's own, since they may wait for
//! the very upcall that makes it.
//!
//! What a thread does until its reply is there says what sharing means: by `read` it holds the connection for the whole round
//! trip, by the others many wait on it at once.

use super::failures::Attempt;
use super::reply::{Outcome, Results};
use super::request::{Arguments, Request};
use super::round_trip::Connection;
use super::shared::{Company, Shared};
use super::without_waiting::Unavailable;
use super::{Channel, Failure, exclusive, opening};
use crate::exception::{ExceptionKind, Phase, SystemException};
use crate::orb::{OrbCore, SharedEndpoint};
use crate::server::is_in_servant;
use crate::strategies::WaitStrategy;
use crate::wait::read::Deadline;
use rtorb_os::sync::{Mutex, MutexGuard};
use std::sync::{Arc, OnceLock, Weak};

/// Calls on the connection that all threads use, on a new one if that turns out to have been closed meanwhile.
pub(crate) fn call<'a>(
    request: &Request<'_>,
    arguments: Arguments<'_, 'a>,
    results: Results<'_>,
) -> Result<Outcome, Failure> {
    if request.orb.would_deadlock(&request.route.endpoint.endpoint) {
        return Err(SystemException::omg(ExceptionKind::BadInvOrder, 3).into());
    }
    let line = request.route.endpoint.lines.line(request);
    match &line.connection {
        Way::Held(connection) => call_held(request, connection, &line, (arguments, results)),
        Way::Shared(current) => {
            // The other side may serve one request of a connection at a time, and those before may wait for this upcall.
            if is_in_servant() {
                let (shared, _) = current_of(&line, current, request)?;
                return match shared.call(request, Company::None, arguments, results) {
                    Err(failure) if failure.stale => exclusive::call(request, arguments, results),
                    answer => answer,
                };
            }
            let mut left = RETRIES_MAX;
            loop {
                let (shared, is_new) = current_of(&line, current, request)?;
                match shared.call(request, Company::Any, arguments, results) {
                    Err(failure) if left > 0 && may_go_again(&failure, is_new) => left -= 1,
                    answer => return answer,
                }
            }
        }
    }
}

/// Does something at once with the connection that all threads use, if there is one that no other thread has now.
#[inline]
pub(super) fn at_once<T>(
    request: &Request<'_>,
    act: impl FnOnce(&mut Connection) -> T,
) -> Result<T, Unavailable> {
    let lines = &request.route.endpoint.lines;
    let line = lines
        .known(request.channel)
        .ok_or(Unavailable::Unconnected)?;
    let Way::Held(connection) = &line.connection else {
        return Err(Unavailable::OfAllThreads);
    };
    let mut held = connection.try_lock().ok_or(Unavailable::InUse)?;
    let own = held.as_mut().ok_or(Unavailable::Unconnected)?;
    let done = act(own);
    if !own.is_sound() {
        *held = None;
    }
    Ok(done)
}

/// How often a request goes again that found its connection closed: others close it too, when their time is over.
const RETRIES_MAX: u32 = 2;

/// True if the peer certainly did not see the request; a new connection that it closed in an orderly way says that it wants
/// none.
fn may_go_again(failure: &Failure, is_new: bool) -> bool {
    let cause = failure.exception.cause.as_ref();
    failure.stale && (!is_new || cause.is_some_and(|cause| cause.phase == Phase::Send))
}

/// The connections to one endpoint that client threads share, each with the calls that it is for.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    /// The first one, which stays and is found without a lock: nearly always it is the only one.
    first: OnceLock<Arc<Line>>,
    further: Mutex<Vec<Arc<Line>>>,
}

/// A connection that client threads share, or its place while there is none.
#[derive(Debug)]
struct Line {
    channel: Channel,
    connection: Way,
}

#[derive(Debug)]
enum Way {
    /// One thread at a time has it, from sending to having the reply.
    Held(Mutex<Option<Box<Connection>>>),
    /// Many wait on it at once; the lock is held to look it up, and while it is opened.
    Shared(Mutex<Option<Arc<Shared>>>),
}

impl Lines {
    /// The line for such calls, if there ever was one.
    #[inline]
    fn known(&self, channel: Channel) -> Option<Arc<Line>> {
        let first = self.first.get()?;
        if first.channel == channel {
            return Some(Arc::clone(first));
        }
        let further = self.further.lock();
        let known = further.iter().find(|line| line.channel == channel);
        known.map(Arc::clone)
    }

    #[inline]
    fn line(&self, request: &Request<'_>) -> Arc<Line> {
        let first = self.first.get_or_init(|| Line::of(request));
        match first.channel == request.channel {
            true => Arc::clone(first),
            false => self.further_line(request),
        }
    }

    fn further_line(&self, request: &Request<'_>) -> Arc<Line> {
        let mut further = self.further.lock();
        let known = further.iter().find(|line| line.channel == request.channel);
        if let Some(line) = known {
            return Arc::clone(line);
        }
        if further.len() >= request.orb.limits.shared_connections_max {
            further.retain(|line| Arc::strong_count(line) > 1 || line.is_open());
        }
        let line = Line::of(request);
        further.push(Arc::clone(&line));
        line
    }
}

impl Line {
    /// A place for the connection of such calls, without one yet.
    fn of(request: &Request<'_>) -> Arc<Self> {
        Arc::new(Self {
            channel: request.channel,
            connection: match request.orb.strategies.connection.wait() {
                WaitStrategy::Read => Way::Held(Mutex::default()),
                WaitStrategy::Reactor | WaitStrategy::LeaderFollowers => {
                    Way::Shared(Mutex::default())
                }
            },
        })
    }

    /// As [`close_unless_used`](Self::close_unless_used), but never one with part of a oneway left to send.
    fn close_if_flushed(&self) -> bool {
        match &self.connection {
            Way::Held(connection) => connection.try_lock().is_some_and(|mut held| {
                let is_flushed = held.as_ref().is_none_or(|own| own.is_flushed());
                if is_flushed {
                    *held = None;
                }
                is_flushed
            }),
            Way::Shared(_) => self.close_unless_used(),
        }
    }

    /// Closes the connection unless a call is in progress on it; true if there is none now.
    fn close_unless_used(&self) -> bool {
        match &self.connection {
            Way::Held(connection) => connection.try_lock().map(|mut held| held.take()).is_some(),
            Way::Shared(current) => current.try_lock().is_some_and(|mut current| {
                let is_closed = current
                    .as_ref()
                    .is_none_or(|shared| shared.close_unless_used());
                if is_closed {
                    *current = None;
                }
                is_closed
            }),
        }
    }

    fn is_open(&self) -> bool {
        match &self.connection {
            Way::Held(connection) => connection.try_lock().is_none_or(|held| held.is_some()),
            Way::Shared(current) => current
                .try_lock()
                .is_none_or(|current| current.as_ref().is_some_and(|shared| !shared.is_over())),
        }
    }
}

/// The lines of one ORB that are open.
#[derive(Debug, Default)]
pub(crate) struct OpenLines {
    open: Mutex<Vec<OpenLine>>,
}

#[derive(Debug)]
struct OpenLine {
    line: Weak<Line>,
    /// What keeps it when no reference is left that leads there; one reference's own goes with the reference.
    _endpoint: Option<Arc<SharedEndpoint>>,
}

impl OpenLines {
    /// Notes a line that is about to be opened; when there are too many, one that nobody uses is closed for it.
    fn note(&self, orb: &OrbCore, endpoint: &Arc<SharedEndpoint>, line: &Arc<Line>) -> bool {
        let mut open = self.open.lock();
        open.retain(|other| {
            let other = other.line.upgrade();
            other.is_some_and(|other| !Arc::ptr_eq(&other, line) && other.is_open())
        });
        if open.len() >= orb.limits.shared_connections_max {
            let close_one = |close: fn(&Line) -> bool| {
                open.iter().position(|other| {
                    let line = other.line.upgrade();
                    line.is_none_or(|line| close(&line))
                })
            };
            let closed = close_one(Line::close_if_flushed);
            match closed.or_else(|| close_one(Line::close_unless_used)) {
                Some(place) => drop(open.remove(place)),
                None => return false,
            }
        }
        open.push(OpenLine {
            line: Arc::downgrade(line),
            _endpoint: (!endpoint.is_private).then(|| Arc::clone(endpoint)),
        });
        true
    }
}

/// The connection of a line, opened if there is none, and whether it was opened just now.
fn current_of(
    line: &Arc<Line>,
    current: &Mutex<Option<Arc<Shared>>>,
    request: &Request<'_>,
) -> Result<(Arc<Shared>, bool), Failure> {
    let mut current = looked_up(current, request)?;
    if let Some(shared) = current.as_ref().filter(|shared| !shared.is_over()) {
        return Ok((Arc::clone(shared), false));
    }
    *current = None;
    note_opening(request, line)?;
    let stream = opening::open(request)?;
    let shared = Shared::new(request, stream)?;
    opening::bind_band(request, |bind, results| {
        shared.call(bind, Company::Any, &|_| Ok(()), results)
    })?;
    *current = Some(Arc::clone(&shared));
    Ok((shared, true))
}

/// The lock of a line's connection. Somebody may be opening it: a thread waits for that as long as it would for itself.
fn looked_up<'l, T>(
    current: &'l Mutex<T>,
    request: &Request<'_>,
) -> Result<MutexGuard<'l, T>, Failure> {
    if let Some(current) = current.try_lock() {
        return Ok(current);
    }
    let deadline = Deadline::after(Some(request.orb.connect_timeout));
    let held = deadline
        .at_ns()
        .and_then(|deadline_ns| current.lock_until(deadline_ns));
    held.ok_or_else(|| {
        let exception = SystemException::omg(ExceptionKind::Timeout, 2);
        let endpoint = &request.route.endpoint.endpoint;
        Attempt::unproved(endpoint, deadline).failure(exception, Phase::Connect, None)
    })
}

fn note_opening(request: &Request<'_>, line: &Arc<Line>) -> Result<(), Failure> {
    let endpoint = &request.route.endpoint;
    match request.orb.open_lines.note(request.orb, endpoint, line) {
        true => Ok(()),
        false => Err(SystemException::from(ExceptionKind::NoResources).into()),
    }
}

/// Calls while holding the connection; the time until it can be held counts.
fn call_held<'a>(
    request: &Request<'_>,
    connection: &Mutex<Option<Box<Connection>>>,
    line: &Arc<Line>,
    (arguments, results): (Arguments<'_, 'a>, Results<'_>),
) -> Result<Outcome, Failure> {
    let deadline = Deadline::after(request.timeout);
    let held = match (connection.try_lock(), deadline.at_ns()) {
        (Some(held), _) => Some(held),
        // Whoever holds it may wait for this very upcall.
        (None, _) if is_in_servant() => {
            return exclusive::call(request, arguments, results);
        }
        (None, None) => Some(connection.lock()),
        (None, Some(deadline_ns)) => connection.lock_until(deadline_ns),
    };
    let Some(mut held) = held else {
        let endpoint = &request.route.endpoint.endpoint;
        return Err(Attempt::unproved(endpoint, deadline).not_sent_in_time());
    };
    if let Some(mut own) = held.take() {
        match own.call(request, deadline, arguments, results) {
            Err(failure) if failure.stale => {}
            answer => return kept(&mut held, own, answer),
        }
    }
    note_opening(request, line)?;
    let mut own = Box::new(Connection::open(request)?);
    let deadline = Deadline::after(request.timeout);
    let answer = own.call(request, deadline, arguments, results);
    kept(&mut held, own, answer)
}

/// Leaves the connection to the next caller unless it failed.
fn kept(
    held: &mut Option<Box<Connection>>,
    own: Box<Connection>,
    answer: Result<Outcome, Failure>,
) -> Result<Outcome, Failure> {
    if own.is_sound_after(&answer) {
        *held = Some(own);
    }
    answer
}
