//! The parts of distributable threads that run in this process, and their cancellation.

use super::active_call::ActiveCall;
use super::thread_id::ThreadId;
use core::sync::atomic::{AtomicBool, Ordering};
use rtorb_os::sync::Mutex;
use std::sync::Arc;

/// The part of a distributable thread that runs on one thread of this process.
#[derive(Debug)]
pub(crate) struct Visit {
    pub(crate) id: ThreadId,
    /// The request that brought the thread to this process; `None` where the thread began.
    pub(super) origin: Option<Origin>,
    is_cancelled: AtomicBool,
    /// The call that waits for its reply.
    calling: Mutex<Option<ActiveCall>>,
}

/// A visit that this process knows. Dropping it ends the visit.
#[derive(Debug)]
pub(super) struct RunningVisit(pub(super) Arc<Visit>);

impl Drop for RunningVisit {
    fn drop(&mut self) {
        let mut visits = VISITS.lock();
        if let Some(place) = visits.iter().position(|it| Arc::ptr_eq(it, &self.0)) {
            visits.swap_remove(place);
        }
    }
}

/// A request, by its connection and its id there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    /// The address of the session, which lives as long as its requests are served.
    pub(crate) session: usize,
    pub(crate) request_id: u32,
}

/// All visits of this process: at most one for each thread, and one for each collocated call in progress.
static VISITS: Mutex<Vec<Arc<Visit>>> = Mutex::new(Vec::new());

impl Visit {
    /// Makes a visit, and makes it known to this process.
    pub(super) fn begin(id: ThreadId, origin: Option<Origin>) -> RunningVisit {
        let visit = Arc::new(Self {
            id,
            origin,
            is_cancelled: AtomicBool::new(false),
            calling: Mutex::new(None),
        });
        VISITS.lock().push(Arc::clone(&visit));
        RunningVisit(visit)
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::Acquire)
    }

    /// Cancels the visit, and the call that it waits for.
    pub(crate) fn cancel(&self) {
        // The lock keeps the connection of the call from being used for another one meanwhile.
        let calling = self.calling.lock();
        if !self.is_cancelled.swap(true, Ordering::AcqRel)
            && let Some(call) = &*calling
        {
            call.cancel();
        }
    }

    /// Notes a call that is sent. It is cancelled at once if the visit is cancelled.
    pub(super) fn begin_call(&self, call: ActiveCall) {
        let mut calling = self.calling.lock();
        if self.is_cancelled() {
            call.cancel();
        }
        *calling = Some(call);
    }

    /// Notes that the call has its reply, or gets none.
    pub(super) fn end_call(&self) {
        *self.calling.lock() = None;
    }
}

/// Returns true if the thread has a visit in this process.
pub(crate) fn is_known(id: ThreadId) -> bool {
    VISITS.lock().iter().any(|visit| visit.id == id)
}

/// Returns true if a visit of the thread is cancelled; `None` if the thread has none here.
pub(crate) fn is_cancelled(id: ThreadId) -> Option<bool> {
    let visits = VISITS.lock();
    let mut of_thread = visits.iter().filter(|visit| visit.id == id).peekable();
    of_thread.peek()?;
    Some(of_thread.any(|visit| visit.is_cancelled()))
}

/// Cancels all visits of a thread; returns false if it has none here.
pub(crate) fn cancel(id: ThreadId) -> bool {
    let of_thread = visits_where(|visit| visit.id == id);
    of_thread.iter().for_each(|visit| visit.cancel());
    !of_thread.is_empty()
}

/// Cancels the visit of the thread that a request brought here, if the request is being served.
///
/// Other visits of the thread in this process are where it came from, or get cancellations of their own from its calls.
pub(crate) fn cancel_request(origin: Origin) {
    visits_of(origin).iter().for_each(|visit| visit.cancel());
}

/// Returns the visit of the thread that a request brought here, to be cancelled later.
pub(crate) fn visits_of(origin: Origin) -> Vec<Arc<Visit>> {
    visits_where(|visit| visit.origin == Some(origin))
}

/// Cancels all visits that requests of a connection began: its client is gone.
///
/// A visit may have its reply already, and the client have closed the connection for that reason. So this cancels the visit, and not
/// its thread, which goes on elsewhere.
pub(crate) fn cancel_all_of(session: usize) {
    let meant = visits_where(|visit| visit.origin.is_some_and(|origin| origin.session == session));
    meant.iter().for_each(|visit| visit.cancel());
}

/// Returns visits, so that they are cancelled without the lock of all visits: a cancellation sends.
fn visits_where(is_meant: impl Fn(&Visit) -> bool) -> Vec<Arc<Visit>> {
    let visits = VISITS.lock();
    let meant = visits.iter().filter(|visit| is_meant(visit));
    meant.cloned().collect()
}
