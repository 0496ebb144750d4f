//! Requests that wait for a thread to serve them.

use super::spare_requests::SpareRequests;
use crate::exception::{ExceptionKind, SystemException};
use crate::limits::Limits;
use crate::server::{Session, TakenRequest, Workspace};
use core::sync::atomic::{AtomicUsize, Ordering};
use rtorb_os::ring::{PushError, Ring};
use std::sync::Arc;

/// A bounded queue of requests, and memory for those that it holds.
#[derive(Debug)]
pub(super) struct RequestQueue {
    waiting: Ring<Waiting>,
    waiting_octets: AtomicUsize,
    octets_max: usize,
    pub(super) spare: SpareRequests,
}

#[derive(Debug)]
struct Waiting {
    session: Arc<Session>,
    request: TakenRequest,
}

/// What a request is answered with for which there is no room (as CORBA 3 says of requests that are discarded).
pub(super) const NO_ROOM: SystemException = SystemException::omg(ExceptionKind::Transient, 1);

impl RequestQueue {
    /// An empty queue, served by that many threads.
    pub(super) fn new(limits: &Limits, threads: usize) -> Self {
        // One for each that waits or is served, and one for whoever reads.
        let waiting = limits.queued_requests() as usize;
        let requests = waiting.saturating_add(threads).saturating_add(1);
        Self {
            waiting: Ring::new(waiting),
            waiting_octets: AtomicUsize::new(0),
            octets_max: limits.queued_octets_max(),
            spare: SpareRequests::new(requests),
        }
    }

    /// Adds a request behind the others.
    ///
    /// # Errors
    /// The request back, when there is no room for it.
    pub(super) fn put(
        &self,
        session: &Arc<Session>,
        request: TakenRequest,
    ) -> Result<(), TakenRequest> {
        let octets = request.octets();
        let before = self.waiting_octets.fetch_add(octets, Ordering::Relaxed);
        if before.saturating_add(octets) > self.octets_max {
            self.waiting_octets.fetch_sub(octets, Ordering::Relaxed);
            return Err(request);
        }
        let session = Arc::clone(session);
        let pushed = self.waiting.push(Waiting { session, request });
        pushed.map_err(|refused| {
            self.waiting_octets.fetch_sub(octets, Ordering::Relaxed);
            let (PushError::Full(waiting) | PushError::Closed(waiting)) = refused;
            waiting.request
        })
    }

    /// Serves requests on the calling thread until the queue is closed and empty.
    pub(super) fn serve(&self, workspace: &mut Workspace) {
        while let Ok(Waiting { session, request }) = self.waiting.pop_until(None) {
            self.waiting_octets
                .fetch_sub(request.octets(), Ordering::Relaxed);
            // A client that could not be answered has no connection any more, which who reads it is told.
            let _ = request.serve(&session, workspace);
            self.spare.keep(request);
        }
    }

    /// Lets the threads end that serve, when they have served all that waits.
    pub(super) fn close(&self) {
        self.waiting.close();
    }
}
