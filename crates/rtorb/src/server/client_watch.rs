//! Watches the clients of distributable threads, which may cancel requests while no thread reads their connections.

use super::session::Session;
use crate::distributable::{self, Origin};
use crate::wait::watchdog::WatchedClient;
use core::ptr;
use rtorb_os::sync::Mutex;
use rtorb_wire::giop::cancelled_requests;

/// The state of watching the client of a connection.
#[derive(Debug, Default)]
pub(super) struct ClientWatches(Mutex<WatchState>);

#[derive(Debug, Default)]
struct WatchState {
    /// The client's number at the watchdog, once registered.
    number: Option<u32>,
    /// The number of requests of distributable threads that are being served.
    served: u32,
}

/// The number of unread bytes that are searched for a CancelRequest.
const PEEKED_BYTES: usize = 4 << 10;

/// Has the client of a request watched until it is dropped.
#[derive(Debug)]
pub(super) struct ClientWatch<'s>(&'s Session);

impl Session {
    /// Returns the identity of a request of this connection in the process.
    pub(super) fn origin(&self, request_id: u32) -> Origin {
        Origin {
            session: ptr::from_ref(self).addr(),
            request_id,
        }
    }

    /// Cancels a request. One that waits is dropped when its turn comes; the distributable thread of one that is being served is
    /// cancelled.
    #[cold]
    pub(super) fn cancel(&self, request_id: u32) {
        // Noted first: a thread that begins the request meanwhile is found here, or finds the note.
        self.cancelled.note(request_id);
        distributable::cancel_request(self.origin(request_id));
    }

    /// Has the watchdog search for cancellations while the calling thread serves a request and does not read.
    ///
    /// It does not search shared memory, nor what is sealed: there, a cancellation is found when a thread reads the connection.
    //= RT-CORBA 1.2 §Distributable Threads
    //# A cancellation reaches a distributable thread wherever it is, also within a call.
    pub(super) fn watch_client(&self) -> ClientWatch<'_> {
        let watchdog = &self.orb.client.core.watchdog;
        let mut state = self.client_watches.0.lock();
        state.served += 1;
        if self.stream.shows_unread_bytes() && state.served == 1 {
            if state.number.is_none() {
                // If the host refuses, cancellations are found when a thread reads the connection.
                state.number = watchdog.add_client(self.as_watched(), &self.stream).ok();
            }
            if let Some(number) = state.number {
                watchdog.begin_look(number, &self.stream);
            }
        }
        ClientWatch(self)
    }
}

impl Drop for ClientWatch<'_> {
    fn drop(&mut self) {
        let session = self.0;
        let mut state = session.client_watches.0.lock();
        state.served -= 1;
        if let Some(number) = state.number.filter(|_| state.served == 0) {
            let watchdog = &session.orb.client.core.watchdog;
            watchdog.end_look(number, &session.stream);
        }
    }
}

/// Finds a CancelRequest that is not received yet, and stands behind whole messages. One that was received together with its
/// request is found when a thread reads on, or when the client ends the connection.
impl WatchedClient for Session {
    fn look(&self) {
        // While this is locked, no request that is served ends, and so none whose cancellation is noted here.
        let watches = self.client_watches.0.lock();
        if watches.served == 0 {
            return;
        }
        let mut bytes = [0; PEEKED_BYTES];
        match self.stream.peek(&mut bytes) {
            // The client is gone: its distributable threads end.
            Ok(0) => {
                drop(watches);
                distributable::cancel_all_of(ptr::from_ref(self).addr());
            }
            Ok(count) => {
                let ids = cancelled_requests(&bytes[..count]);
                // Found before one ends: the client may use its id again.
                let meant: Vec<_> = ids
                    .flat_map(|id| {
                        self.cancelled.note(id);
                        distributable::visits_of(self.origin(id))
                    })
                    .collect();
                // Not meanwhile: a cancellation sends.
                drop(watches);
                meant.iter().for_each(|visit| visit.cancel());
            }
            Err(_) => {}
        }
    }
}
