//! A running pool: its lanes and threads.

use super::borrowing::Relief;
use super::config::{Intake, PoolConfig};
use super::lane::Lane;
use crate::server::ServerCore;
use crate::transport::Listener;
use core::sync::atomic::{AtomicBool, Ordering};
use rtorb_os::Refused;
use rtorb_os::sync::Mutex;
use rtorb_os::thread::JoinHandle;
use rustix::io::Errno;
use std::sync::Arc;

/// A running pool.
///
/// Its threads hold the ORB; it does not.
#[derive(Debug)]
pub(crate) struct Pool {
    pub(crate) config: PoolConfig,
    pub(crate) lanes: Vec<Lane>,
    /// For pools in which a lane can get help.
    pub(crate) relief: Option<Relief>,
    /// Whether the host allowed the static threads, once they were started.
    pub(crate) begun: Mutex<Option<Result<(), Refused>>>,
    stopping: AtomicBool,
    /// The static threads.
    threads: Mutex<Vec<JoinHandle<Option<()>>>>,
}

impl Pool {
    /// Makes a pool without threads. `listeners` has the listening endpoints of each lane, in the order of `config.lanes`.
    ///
    /// # Errors
    /// What the host refuses; INVAL for a priority outside the ORB's mapping, which the caller has excluded.
    pub(crate) fn open(
        orb: &Arc<ServerCore>,
        config: PoolConfig,
        listeners: Vec<Vec<Listener>>,
    ) -> Result<Arc<Self>, Errno> {
        assert_eq!(config.lanes.len(), listeners.len(), "listeners a lane");
        let lanes = listeners.into_iter().enumerate();
        let lanes: Result<Vec<_>, _> = lanes
            .map(|(number, listeners)| Lane::open(orb, &config, number, listeners))
            .collect();
        let lanes = lanes?;
        Ok(Arc::new(Self {
            relief: Relief::of(&lanes)?,
            config,
            lanes,
            begun: Mutex::default(),
            stopping: AtomicBool::new(false),
            threads: Mutex::default(),
        }))
    }

    /// Stops the pool: requests in progress get their replies, clients get CloseConnection, new clients are refused.
    ///
    /// It does not wait for that.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        self.lanes.iter().for_each(Lane::stop);
        if let Some(relief) = &self.relief {
            relief.ring();
        }
    }

    /// Waits until all threads have ended, after [`stop`](Self::stop). None of them may call this.
    pub(crate) fn join(&self) {
        // The lock is held meanwhile, so that another caller waits too.
        for thread in self.threads.lock().drain(..) {
            // A panic was reported when it happened.
            let _ = thread.join();
        }
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    pub(crate) fn note(&self, thread: JoinHandle<Option<()>>) {
        self.threads.lock().push(thread);
    }

    /// The lanes whose threads serve the clients of a lane together. The first one counts them.
    pub(super) fn served_with<'p>(&'p self, lane: &'p Lane) -> &'p [Lane] {
        match self.config.intake {
            Intake::Routed { .. } => &self.lanes,
            _ => core::slice::from_ref(lane),
        }
    }

    /// Counts a thread that no longer serves a lane. The last one that serves its clients sends them CloseConnection.
    pub(crate) fn leave(&self, lane: &Lane) {
        let served = self.served_with(lane);
        if served[0].leave() {
            served[0].close();
            // Requests hold the ORB, which may hold the pool.
            served.iter().for_each(Lane::drop_requests);
        }
    }

    /// True if a call of a lane's servant to the lane itself would wait for that servant.
    pub(crate) fn serves_one_at_a_time(&self, lane: &Lane) -> bool {
        self.served_with(lane).len() == 1 && lane.serves_one_at_a_time()
    }
}
