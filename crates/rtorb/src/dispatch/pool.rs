//! A running thread pool: lanes with their own listening endpoints, connections and threads.
//!
//! A `lane` serves one priority. `work` is what its threads do, and `connection` how they share a client's connection.
//! `reading` fills the queue of a lane that buffers requests. `relief` helps a lane whose threads are all busy, and `waiting`
//! raises a thread before it is called to help. `threads` starts and joins all of these, and `endpoints` opens the listeners.

mod connection;
pub(crate) mod endpoints;
mod lane;
mod reading;
mod relief;
mod threads;
mod waiting;
mod work;

pub(crate) use super::request_queue::Buffering;
pub(crate) use lane::Lane;
pub(crate) use threads::would_wait_for_itself;

use super::DispatchError;
use crate::realtime::{Priority, ThreadpoolId};
use crate::server::ServerCore;
use crate::transport::Listener;
use core::sync::atomic::{AtomicBool, Ordering};
use relief::Relief;
use rtorb_os::sync::Mutex;
use rtorb_os::thread::{JoinHandle, ThreadConfig};
use rustix::io::Errno;
use std::sync::Arc;

/// The configuration of a pool.
#[derive(Clone, Debug)]
pub(crate) struct PoolConfig {
    pub(crate) id: ThreadpoolId,
    pub(crate) lanes: Vec<LaneConfig>,
    /// False for a pool without lanes, which has one lane here: its threads take the priority of the requests.
    pub(crate) has_lanes: bool,
    /// A lane without an idle thread borrows a thread of a less urgent lane.
    pub(crate) allow_borrowing: bool,
    /// Requests wait in the pool's queue while all threads are busy; `None`: they wait in their connections.
    pub(crate) buffering: Option<Buffering>,
}

/// The configuration of a lane.
#[derive(Clone, Debug)]
pub(crate) struct LaneConfig {
    /// The CORBA priority of its threads (of idle threads in a pool without lanes); `None`: `threads` has the policy.
    pub(crate) priority: Option<Priority>,
    pub(crate) static_threads: u32,
    pub(crate) dynamic_threads: u32,
    /// The scheduling of its threads; `priority`, if there is one, sets the policy.
    pub(crate) threads: ThreadConfig,
}

/// A running pool.
///
/// Its threads hold the ORB; it does not.
#[derive(Debug)]
pub(crate) struct Pool {
    pub(crate) config: PoolConfig,
    pub(crate) lanes: Vec<Lane>,
    /// For pools in which a lane can get help.
    relief: Option<Relief>,
    has_begun: AtomicBool,
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
            has_begun: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
            threads: Mutex::default(),
        }))
    }

    /// Starts all static threads at the first call.
    ///
    /// # Errors
    /// When the host refuses a thread or its scheduling; no thread is left running then.
    pub(crate) fn begin(self: &Arc<Self>, orb: &Arc<ServerCore>) -> Result<(), DispatchError> {
        if self.has_begun.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        threads::start(orb, self)
            .inspect_err(|_| {
                self.stop();
                self.join();
            })
            .map_err(DispatchError::Refused)
    }

    /// Makes a pool and starts its static threads.
    ///
    /// # Errors
    /// As [`open`](Self::open) and [`begin`](Self::begin).
    pub(crate) fn start(
        orb: &Arc<ServerCore>,
        config: PoolConfig,
        listeners: Vec<Vec<Listener>>,
    ) -> Result<Arc<Self>, DispatchError> {
        let pool = Self::open(orb, config, listeners)?;
        pool.begin(orb)?;
        Ok(pool)
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
        let mut threads = self.threads.lock();
        threads::join(core::mem::take(&mut *threads));
    }

    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    fn note(&self, thread: JoinHandle<Option<()>>) {
        self.threads.lock().push(thread);
    }

    /// Has the relief thread watch a lane while all its threads are busy, if the lane can get help.
    fn watch_while_busy(&self, lane: &Lane) {
        let standby = lane.standby.as_ref().filter(|standby| standby.is_relieved);
        // With a queue, the thread that fills it asks for help.
        if let (Some(relief), Some(standby), None) = (&self.relief, standby, &lane.queue) {
            relief.watch_while_busy(lane, standby);
        }
    }

    /// Asks for help for a lane with more queued requests than threads.
    fn ask_for_help(&self, lane: &Lane) {
        let standby = lane.standby.as_ref().filter(|standby| standby.is_relieved);
        if let (Some(relief), Some(standby)) = (&self.relief, standby) {
            relief.ask(standby);
        }
    }

    /// Finds help again for lanes that called a thread of this lane, when that thread woke for something else.
    fn repeat_calls(&self, lane: &Lane) {
        let borrowers = lane.standby.iter().flat_map(|standby| &standby.borrowers);
        borrowers
            .map(|&number| &self.lanes[number])
            .filter(|borrower| borrower.wants_help())
            .for_each(|borrower| self.find_help(borrower));
    }

    /// Finds help for a lane that lost a thread.
    fn find_help(&self, lane: &Lane) {
        if lane.lacks_thread() {
            self.ask_for_help(lane)
        } else {
            self.watch_while_busy(lane)
        }
    }
}
