//! Cancelled requests (CancelRequest). A request that still waits is dropped; a running servant can ask whether its request is
//! cancelled.
//!
//! A thread stores only the number of its connection, by which [`SESSIONS`] finds it. So calls whose servants do not ask pay
//! nothing.

use super::session::Session;
use crate::clock::coarse_monotonic_ns;
use core::cell::{Cell, RefCell};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use rtorb_os::sync::Mutex;
use rtorb_wire::giop::{DISTRIBUTABLE_THREAD, RequestHeader, cancelled_requests};
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

/// The last cancelled requests of one connection.
#[derive(Debug, Default)]
pub(crate) struct CancelledRequests {
    is_any: AtomicBool,
    /// The ids plus 1; 0 marks a free place.
    ids: [AtomicU64; CANCELLED_MAX],
    /// The number of cancellations that were stored: they take the places in turn, so that a new one replaces the oldest.
    stored: AtomicUsize,
}

/// The number of cancelled requests that are stored for a connection. An older cancellation has no effect.
const CANCELLED_MAX: usize = 8;

/// The connections of this process, by their numbers.
static SESSIONS: Mutex<BTreeMap<u32, Weak<Session>>> = Mutex::new(BTreeMap::new());

/// The last number of a connection. The first one is 1.
static LAST_SESSION: AtomicU32 = AtomicU32::new(0);

thread_local! {
    /// The id of the request that this thread serves, or served last.
    static REQUEST_ID: Cell<u32> = const { Cell::new(0) };
    /// The last connection that this thread looked up.
    static LAST_LOOKED_UP: RefCell<(u32, Weak<Session>)> = const { RefCell::new((0, Weak::new())) };
    /// When this thread last searched the unread bytes of a connection.
    static LOOKED_NS: Cell<u64> = const { Cell::new(0) };
}

/// The number of unread bytes that are searched for a CancelRequest.
const LOOK_BYTES: usize = 256;

impl CancelledRequests {
    /// Makes an empty store. `is_always_looked_at` has [`is_any`](Self::is_any) return true from the beginning.
    pub(super) fn new(is_always_looked_at: bool) -> Self {
        Self {
            is_any: AtomicBool::new(is_always_looked_at),
            ..Self::default()
        }
    }

    /// Returns true if a request may be cancelled, or interceptors see each request: one test serves both.
    #[inline]
    pub(super) fn is_any(&self) -> bool {
        self.is_any.load(Ordering::Relaxed)
    }

    /// Stores a cancelled request.
    #[cold]
    pub(super) fn note(&self, request_id: u32) {
        // The ids of a client are even.
        #[cfg(simulation)]
        let request_id =
            request_id ^ 2 * u32::from(rtorb_os::simulation::is_planted("cancel-misplaced"));
        if self.has(request_id) {
            return;
        }
        let place = self.stored.fetch_add(1, Ordering::Relaxed) % CANCELLED_MAX;
        self.ids[place].store(u64::from(request_id) + 1, Ordering::Relaxed);
        self.is_any.store(true, Ordering::Release);
    }

    /// Removes a request. Returns true if it was cancelled.
    #[cold]
    pub(super) fn forget(&self, request_id: u32) -> bool {
        let wanted = u64::from(request_id) + 1;
        self.ids.iter().any(|id| {
            id.compare_exchange(wanted, 0, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
        })
    }

    fn has(&self, request_id: u32) -> bool {
        let wanted = u64::from(request_id) + 1;
        self.ids
            .iter()
            .any(|id| id.load(Ordering::Relaxed) == wanted)
    }
}

impl Session {
    /// Notes that a request begins whose id may be that of a cancelled one: a client uses the id of a request again that has its reply.
    #[cold]
    pub(super) fn note_reused_id(&self, request: &RequestHeader<'_>) {
        // The watchdog may have found the cancellation of a distributable thread before its request is read.
        if request.contexts.find(DISTRIBUTABLE_THREAD).is_none() {
            self.cancelled.forget(request.request_id);
        }
    }
}

/// Returns the number of a new connection.
pub(super) fn next_number() -> u32 {
    LAST_SESSION.fetch_add(1, Ordering::Relaxed).wrapping_add(1)
}

/// Registers a connection under its number.
pub(super) fn register(session: &Arc<Session>) {
    let weak = Arc::downgrade(session);
    SESSIONS.lock().insert(session.number, weak);
}

/// Removes a connection.
pub(super) fn unregister(number: u32) {
    SESSIONS.lock().remove(&number);
}

/// Notes which request the calling thread serves.
#[inline]
pub(super) fn note_request(request_id: u32) {
    REQUEST_ID.set(request_id);
}

/// Returns true if the client has cancelled the request that the calling thread serves on the connection with that number.
///
/// If no other thread reads the connection, searches its unread bytes, at most once in a tick of the coarse clock.
pub(super) fn is_cancelled(number: u32) -> bool {
    let Some(session) = find(number) else {
        return false;
    };
    let request_id = REQUEST_ID.get();
    if session.cancelled.is_any() && session.cancelled.has(request_id) {
        return true;
    }
    let now_ns = coarse_monotonic_ns();
    if session.state.has_taken() || LOOKED_NS.replace(now_ns) == now_ns {
        return false;
    }
    let mut unread = [0; LOOK_BYTES];
    let count = session.stream.peek(&mut unread).unwrap_or(0);
    let is_cancelled = cancelled_requests(&unread[..count]).any(|id| id == request_id);
    if is_cancelled {
        session.cancelled.note(request_id);
    }
    is_cancelled
}

fn find(number: u32) -> Option<Arc<Session>> {
    LAST_LOOKED_UP.with_borrow_mut(|(last, session)| {
        if *last != number {
            let found = SESSIONS.lock().get(&number).map(Weak::clone);
            (*last, *session) = (number, found.unwrap_or_default());
        }
        session.upgrade()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_cancelled_requests_are_remembered_once_and_forgotten_once() {
        let cancelled = CancelledRequests::default();
        assert!(!cancelled.is_any() && !cancelled.forget(0));
        for id in [0, 7, u32::MAX, 7] {
            cancelled.note(id);
        }
        assert!(cancelled.is_any());
        for id in [0, 7, u32::MAX] {
            assert!(cancelled.has(id));
            assert!(cancelled.forget(id) && !cancelled.forget(id), "{id}");
        }
        // A client counts by twos.
        let noted = (0..100).map(|number| 2 * number);
        for id in noted.clone() {
            cancelled.note(id);
            assert!(cancelled.has(id));
        }
        let remembered: Vec<_> = noted.clone().filter(|id| cancelled.has(*id)).collect();
        let last: Vec<_> = noted.skip(100 - CANCELLED_MAX).collect();
        assert_eq!(remembered, last);
    }
}
