//! A running pool: its lanes and threads.

use super::borrowing::LaneHelper;
use super::config::{Intake, LaneConfig, PoolConfig};
use super::lane::Lane;
use crate::exception::{SystemException, local};
use crate::realtime::Priority;
use crate::server::ServerCore;
use crate::transport::Listener;
use core::sync::atomic::{AtomicBool, Ordering};
use rtorb_os::Refused;
use rtorb_os::set_once::SetOnce;
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
    pub(crate) helper: Option<LaneHelper>,
    /// Whether the host allowed the static threads, once they were started.
    pub(crate) begun: Mutex<Option<Result<(), Refused>>>,
    stopping: AtomicBool,
    /// The lanes that were added while it ran, each as a pool of one lane with the id of this one.
    added: Box<[SetOnce<Arc<Self>>]>,
    /// Held while a lane is added, or gets more or fewer threads.
    pub(crate) growing: Mutex<()>,
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
        let added_max = if config.has_lanes { ADDED_LANES_MAX } else { 0 };
        Ok(Arc::new(Self {
            helper: LaneHelper::of(&lanes)?,
            config,
            added: (0..added_max).map(|_| SetOnce::new()).collect(),
            growing: Mutex::default(),
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
        if let Some(helper) = &self.helper {
            helper.ring();
        }
        self.added().for_each(|added| added.stop());
    }

    /// Waits until all threads have ended, after [`stop`](Self::stop). None of them may call this.
    pub(crate) fn join(&self) {
        // A lane or a thread that is being added is stopped too.
        drop(self.growing.lock());
        self.added().for_each(|added| added.join());
        // The lock is held meanwhile, so that another caller waits too.
        for thread in self.threads.lock().drain(..) {
            // A panic was reported when it happened.
            let _ = thread.join();
        }
    }

    /// Adds a lane that runs, as a pool of one lane with the id of this one. Callers exclude each other by `growing`.
    ///
    /// # Errors
    /// BAD_INV_ORDER 4 if the pool is stopped; BAD_PARAM if it has no room for another lane. The lane runs on then.
    pub(crate) fn add(&self, lane: &Arc<Self>) -> Result<(), SystemException> {
        let place = self.added.iter().find(|place| place.get().is_none());
        let place = place.ok_or_else(|| local::WRONG_LANES.with_detail(self.no_room()))?;
        if self.is_stopping() {
            return Err(local::SHUT_DOWN);
        }
        place.get_or_make(|| Arc::clone(lane));
        // A pool that is stopped meanwhile has not stopped this lane.
        if self.stopping.load(Ordering::SeqCst) {
            lane.stop();
        }
        Ok(())
    }

    /// Its lanes, with those that were added.
    pub(crate) fn all_lanes(&self) -> impl Iterator<Item = &Lane> {
        let added = self.added().flat_map(|added| &added.lanes);
        self.lanes.iter().chain(added)
    }

    /// The configurations of all lanes, in the order of [`all_lanes`](Self::all_lanes).
    pub(crate) fn all_configs(&self) -> impl Iterator<Item = &LaneConfig> {
        let added = self.added().flat_map(|added| &added.config.lanes);
        self.config.lanes.iter().chain(added)
    }

    /// The reason why no other lane is added to a full pool, in words.
    fn no_room(&self) -> String {
        let added = self.added.len();
        format!("{added} lanes were added to the pool, which has room for no more")
    }

    fn added(&self) -> impl Iterator<Item = &Arc<Self>> {
        self.added.iter().map_while(SetOnce::get)
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    pub(crate) fn note(&self, thread: JoinHandle<Option<()>>) {
        self.threads.lock().push(thread);
    }

    /// As [`note`](Self::note), for a thread that was added later. Forgets those that have ended.
    pub(super) fn note_added(&self, thread: JoinHandle<Option<()>>) {
        let mut threads = self.threads.lock();
        threads.retain(|thread| !thread.is_finished());
        threads.push(thread);
    }

    /// Returns the running pool of a lane with that priority, this one or one that was added, and the lane.
    pub(crate) fn find(self: &Arc<Self>, priority: Priority) -> Option<(&Arc<Self>, &Lane)> {
        let mut pools = core::iter::once(self).chain(self.added());
        pools.find_map(|pool| {
            let mut lanes = pool.lanes.iter();
            Some((pool, lanes.find(|lane| lane.priority == Some(priority))?))
        })
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

/// The most lanes that are added to a pool: a host has no more native priorities.
const ADDED_LANES_MAX: usize = 99;
