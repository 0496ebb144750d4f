//! A private connection a thread: found without a lock, used without waiting for another thread.

use super::Connection;
use crate::endpoint::Endpoint;
use crate::exception::{Cause, ExceptionKind, Phase, SystemException};
use crate::orb::OrbCore;
use crate::reference::Route;
use crate::transport::{tcp, unix};
use core::cell::RefCell;
use rustix::io::Errno;
use std::sync::Arc;
use std::time::Instant;

thread_local! {
    /// This thread's idle connections, the one used last at the end.
    #[expect(clippy::vec_box, reason = "each call takes one out and puts it back: a pointer moves, not a connection")]
    static IDLE: RefCell<Vec<Box<Connection>>> = const { RefCell::new(Vec::new()) };
}

/// Takes this thread's connection to the route's endpoint, if it has one that is not in use.
///
/// A connection in use is not in the table: a call made while another is in progress on the same thread opens one
/// more rather than mixing two requests.
#[inline]
pub(crate) fn take(route: &Route) -> Option<Box<Connection>> {
    IDLE.try_with(|idle| {
        let mut idle = idle.borrow_mut();
        let place = idle
            .iter()
            .rposition(|connection| connection.serves(route))?;
        Some(if place + 1 == idle.len() {
            idle.pop()?
        } else {
            idle.remove(place)
        })
    })
    // A thread that is ending and calls from a destructor has no table any more.
    .ok()?
}

/// Keeps a connection for the next call; the one unused longest is closed when the thread has too many.
#[inline]
pub(crate) fn keep(connection: Box<Connection>, connections_max: usize) {
    // In a thread that is ending the connection ends with this call.
    let _ = IDLE.try_with(|idle| {
        let mut idle = idle.borrow_mut();
        if idle.len() >= connections_max && !idle.is_empty() {
            idle.remove(0);
        }
        idle.push(connection);
    });
}

/// Closes this thread's connections that no call can want any more.
fn close_abandoned() {
    let _ = IDLE.try_with(|idle| {
        idle.borrow_mut()
            .retain(|connection| !connection.is_abandoned())
    });
}

/// Opens a connection to the route's endpoint.
pub(crate) fn open(orb: &Arc<OrbCore>, route: &Route) -> Result<Box<Connection>, SystemException> {
    if orb.would_deadlock(&route.endpoint.endpoint) {
        return Err(SystemException::omg(ExceptionKind::BadInvOrder, 3));
    }
    close_abandoned();
    let begun = Instant::now();
    let opened = match &*route.endpoint.endpoint {
        Endpoint::Tcp { host, port } => tcp::connect(host, *port, orb.connect_timeout),
        Endpoint::Unix { path } => {
            unix::connect(path, orb.connect_timeout).map_err(|errno| (Phase::Connect, errno))
        }
    };
    match opened {
        Ok(stream) => Ok(Box::new(Connection::new(orb, route, stream))),
        Err((phase, errno)) => Err(refused(errno).with_cause(Cause {
            phase,
            endpoint: Some(Arc::clone(&route.endpoint.endpoint)),
            elapsed: begun.elapsed(),
            errno: Some(errno),
        })),
    }
}

fn refused(errno: Errno) -> SystemException {
    match errno {
        // RelativeRoundtripTimeout covers connecting too; its code is the OMG's 2, the request never began.
        Errno::TIMEDOUT | Errno::AGAIN | Errno::INPROGRESS => {
            SystemException::omg(ExceptionKind::Timeout, 2)
        }
        Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM => {
            ExceptionKind::NoResources.into()
        }
        _ => SystemException::omg(ExceptionKind::Transient, 2),
    }
}
