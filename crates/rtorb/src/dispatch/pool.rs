//! A thread pool at work: lanes with their own listening endpoints, connections and threads.
//!
//! `lane` is what belongs to one priority, `work` what its threads do, `connection` how they serve a client that several of
//! them may be told of, `reading` fills the queue of a lane that buffers requests, `relief` what helps a lane whose threads are
//! all busy, `waiting` what makes a thread urgent before it is called to do so, `threads` how all of these begin and end,
//! `endpoints` where lanes listen.

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

/// What a pool is made with.
#[derive(Clone, Debug)]
pub(crate) struct PoolConfig {
    pub(crate) id: ThreadpoolId,
    pub(crate) lanes: Vec<LaneConfig>,
    /// False for a pool whose one lane stands for a pool without lanes: its threads take the priority of what they serve.
    pub(crate) has_lanes: bool,
    /// A lane without an idle thread takes one of a less urgent lane.
    pub(crate) allow_borrowing: bool,
    /// Requests wait in the pool while all threads are busy; without it they wait in their connections.
    pub(crate) buffering: Option<Buffering>,
}

/// What a lane is made with.
#[derive(Clone, Debug)]
pub(crate) struct LaneConfig {
    /// The CORBA priority of its threads, or that of idle ones of a pool without lanes; `None` leaves it to `threads`.
    pub(crate) priority: Option<Priority>,
    pub(crate) static_threads: u32,
    pub(crate) dynamic_threads: u32,
    /// How its threads run; the policy is that of `priority` where there is one.
    pub(crate) threads: ThreadConfig,
}

/// A running pool.
///
/// Its threads hold the ORB; it does not.
#[derive(Debug)]
pub(crate) struct Pool {
    pub(crate) config: PoolConfig,
    pub(crate) lanes: Vec<Lane>,
    /// For pools in which some lane may get help.
    relief: Option<Relief>,
    has_begun: AtomicBool,
    stopping: AtomicBool,
    /// Those that were there from the beginning.
    threads: Mutex<Vec<JoinHandle<Option<()>>>>,
}

impl Pool {
    /// Makes a pool whose threads are not there yet, for lanes with these listening endpoints; they are in the order of
    /// `config.lanes`.
    ///
    /// # Errors
    /// What the host refuses; INVAL for a priority that the ORB's mapping does not know, which the caller has looked at.
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

    /// Starts all static threads, when it is called first.
    ///
    /// # Errors
    /// When the host refuses a thread or its scheduling; none is left then.
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

    /// Ends the pool: requests in progress are answered, clients are told CloseConnection, new ones are refused.
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
        // The lock is held meanwhile: whoever else waits for the same does so there.
        let mut threads = self.threads.lock();
        threads::join(core::mem::take(&mut *threads));
    }

    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    fn note(&self, thread: JoinHandle<Option<()>>) {
        self.threads.lock().push(thread);
    }

    /// Has a lane watched over while all its threads are busy, if it may get help.
    fn settle(&self, lane: &Lane) {
        let standby = lane.standby.as_ref().filter(|standby| standby.is_relieved);
        // With a queue, the thread that fills it knows, and asks.
        if let (Some(relief), Some(standby), None) = (&self.relief, standby, &lane.queue) {
            relief.settle(lane, standby);
        }
    }

    /// Asks for help for a lane in whose queue more wait than it has threads.
    fn ask_for_help(&self, lane: &Lane) {
        let standby = lane.standby.as_ref().filter(|standby| standby.is_relieved);
        if let (Some(relief), Some(standby)) = (&self.relief, standby) {
            relief.ask(standby);
        }
    }

    /// Has those looked after that still want a thread which this lane was called for, and which came for something else.
    fn pass_on_calls(&self, lane: &Lane) {
        let borrowers = lane.standby.iter().flat_map(|standby| &standby.borrowers);
        borrowers
            .map(|&number| &self.lanes[number])
            .filter(|borrower| borrower.is_wanting())
            .for_each(|borrower| self.look_after(borrower));
    }

    /// Has a lane looked at that lost a thread.
    fn look_after(&self, lane: &Lane) {
        if lane.lacks_thread() {
            self.ask_for_help(lane)
        } else {
            self.settle(lane)
        }
    }
}
