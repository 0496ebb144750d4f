//! An I/O thread reads all requests, and starts a thread for each one (a choice of miniCOOL, P1 2.1).
//!
//! It serves comparisons alone: starting a thread calls the heap and the kernel, and takes longer than most calls. Each thread takes the
//! priority of its request. There are at most as many as [`queued_requests_max`](crate::Limits::queued_requests_max); one more request
//! gets TRANSIENT 1.

use super::join;
use super::pool::request_room::RequestRoom;
use super::pool::{Buffering, Intake, LaneConfig, PoolConfig};
use crate::limits::Limits;
use crate::server::{ServerCore, Session, TakenRequest, ThreadPriority, Workspace};
use rtorb_os::sync::Mutex;
use rtorb_os::thread::{JoinHandle, ThreadConfig, spawn};
use std::sync::Arc;

/// A lane without threads of its own.
pub(super) fn config(orb: &ServerCore) -> PoolConfig {
    let lane = LaneConfig::plain(orb, "rtorb-request", 0);
    PoolConfig::own(vec![lane], Intake::PerRequest)
}

/// The threads of a lane, each of which serves one request and ends.
#[derive(Debug)]
pub(crate) struct RequestThreads {
    pub(crate) room: Arc<RequestRoom>,
    threads: Mutex<Vec<JoinHandle<Option<()>>>>,
}

impl RequestThreads {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            room: Arc::new(RequestRoom::new(Buffering::default(), 0, limits)),
            threads: Mutex::default(),
        }
    }

    /// Starts a thread that serves `request`, which is replaced by memory for the next one.
    ///
    /// Replies TRANSIENT 1, and counts that, if there are too many threads or the host refuses one.
    pub(crate) fn start(
        &self,
        session: &Arc<Session>,
        request: &mut TakenRequest,
        config: &ThreadConfig,
        workspace: &mut Workspace,
    ) {
        if !RequestRoom::take_place(session, request, workspace) {
            return;
        }
        let Some(queued) = self.room.admit(session, request, 0) else {
            return RequestRoom::refuse(session, request, workspace);
        };
        let room = Arc::clone(&self.room);
        let unserved = Arc::new(Mutex::new(Some(queued)));
        let serve = {
            let unserved = Arc::clone(&unserved);
            move || {
                if let Some(queued) = unserved.lock().take() {
                    room.note_taken(&queued.request);
                    room.serve(queued, &mut Workspace::new(ThreadPriority::returning()));
                }
            }
        };
        let mut threads = self.threads.lock();
        // The host may need the stacks of those that have ended.
        threads.retain(|thread| !thread.is_finished());
        match spawn("rtorb-request", config, serve) {
            Ok(thread) => threads.push(thread),
            Err(_) => {
                if let Some(queued) = unserved.lock().take() {
                    self.room.withdraw(queued, false, workspace);
                }
            }
        }
    }

    /// Waits until all requests are served.
    pub(crate) fn join(&self) {
        join(core::mem::take(&mut *self.threads.lock()));
    }
}
