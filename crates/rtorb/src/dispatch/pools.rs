//! The application's thread pools of one ORB, and the adapters that use each.

use super::pool::endpoints::LaneEndpoints;
use super::pool::{Intake, Pool, PoolConfig};
use crate::endpoint::ListenEndpoint;
use crate::exception::{SystemException, local};
use crate::realtime::{InvalidThreadpool, ThreadpoolId};
use crate::server::bind;
use crate::transport::{Listener, Securing};
use core::fmt;
use rtorb_os::sync::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The application's pools of one ORB.
#[derive(Debug)]
pub(crate) struct Pools {
    /// The endpoints of the ORB.
    pub(crate) listen: Vec<ListenEndpoint>,
    /// The endpoints that the application set for lanes.
    lane_endpoints: LaneEndpoints,
    /// Bound on the threads of all pools, and of the ORB's own lanes.
    threads_max: usize,
    securing: Securing,
    table: Mutex<PoolTable>,
}

#[derive(Debug, Default)]
struct PoolTable {
    running: BTreeMap<ThreadpoolId, PoolEntry>,
    last_id: u32,
    /// Threads of all pools and of the ORB's own lanes, those being started included, dynamic ones too. Threads that are to end, because
    /// their lane has too many, are not.
    threads: u64,
    is_stopped: bool,
}

#[derive(Debug)]
struct PoolEntry {
    pool: Arc<Pool>,
    threads: u64,
    adapters: usize,
}

impl Pools {
    /// No pools. `own_threads` are the static threads of the ORB's own lanes, for which the bound `threads_max` has room beside it.
    pub(crate) fn new(
        listen: Vec<ListenEndpoint>,
        lane_endpoints: LaneEndpoints,
        threads_max: usize,
        own_threads: usize,
        securing: Securing,
    ) -> Self {
        Self {
            securing,
            listen,
            lane_endpoints,
            threads_max: threads_max.saturating_add(own_threads),
            table: Mutex::new(PoolTable {
                threads: own_threads as u64,
                ..PoolTable::default()
            }),
        }
    }

    /// Opens the listening endpoints of each lane of a pool.
    ///
    /// # Errors
    /// INITIALIZE with the endpoint if one cannot be listened on.
    pub(crate) fn open_endpoints(
        &self,
        config: &PoolConfig,
    ) -> Result<Vec<Vec<Listener>>, SystemException> {
        let endpoints = |lane| match config.intake {
            Intake::Routed { .. } if lane > 0 => Ok(Vec::new()),
            _ => self.open_lane(config.id, lane),
        };
        (0..config.lanes.len()).map(endpoints).collect()
    }

    /// Opens the listening endpoints of a lane.
    ///
    /// # Errors
    /// INITIALIZE with the endpoint if one cannot be listened on.
    pub(crate) fn open_lane(
        &self,
        pool: ThreadpoolId,
        lane: usize,
    ) -> Result<Vec<Listener>, SystemException> {
        self.bind(&self.lane_endpoints.of_lane(&self.listen, pool, lane)?)
    }

    /// Opens listening endpoints.
    ///
    /// # Errors
    /// INITIALIZE with the endpoint if one cannot be listened on.
    pub(crate) fn bind(
        &self,
        endpoints: &[ListenEndpoint],
    ) -> Result<Vec<Listener>, SystemException> {
        bind(endpoints, &self.securing)
    }

    /// Adds a pool that `start` starts with the id of the pool.
    ///
    /// # Errors
    /// NO_RESOURCES beyond the bound on threads; BAD_INV_ORDER 4 once the ORB is shut down; the error of `start`.
    pub(crate) fn add(
        &self,
        threads: u64,
        start: impl FnOnce(ThreadpoolId) -> Result<Arc<Pool>, SystemException>,
    ) -> Result<ThreadpoolId, SystemException> {
        let id = self.reserve(threads)?;
        // Without the lock: starting threads takes time, and adapters are made meanwhile.
        let started = start(id);
        let mut table = self.table.lock();
        let pool = match started {
            Ok(pool) if !table.is_stopped => pool,
            failed => {
                table.threads -= threads;
                drop(table);
                let pool = failed?;
                pool.stop();
                pool.join();
                return Err(local::SHUT_DOWN);
            }
        };
        let entry = PoolEntry {
            pool,
            threads,
            adapters: 0,
        };
        table.running.insert(id, entry);
        Ok(id)
    }

    /// Adds a lane that `start` starts to a running pool, as a pool of one lane, and returns it. Callers exclude each other for each pool.
    ///
    /// # Errors
    /// NO_RESOURCES beyond the bound on threads; BAD_PARAM beyond that on lanes; BAD_INV_ORDER 4 once the pool is stopped; the error of
    /// `start`.
    pub(crate) fn add_lane(
        &self,
        pool: &Pool,
        threads: u64,
        start: impl FnOnce() -> Result<Arc<Pool>, SystemException>,
    ) -> Result<Arc<Pool>, SystemException> {
        self.table.lock().count_threads(threads, self.threads_max)?;
        let added = start().and_then(|lane| {
            pool.add(&lane).inspect_err(|_| {
                lane.stop();
                lane.join();
            })?;
            Ok(lane)
        });
        let mut table = self.table.lock();
        match table.running.get_mut(&pool.config.id) {
            Some(entry) if added.is_ok() => entry.threads += threads,
            // The ORB's own pool has no entry, and lasts as long as the ORB.
            _ if added.is_ok() && pool.config.id == ThreadpoolId::OWN => {}
            _ => table.threads -= threads,
        }
        added
    }

    /// Counts the threads of a pool of which `change` makes `before` to `after`. Callers exclude each other for each pool.
    ///
    /// # Errors
    /// NO_RESOURCES beyond the bound on threads; BAD_INV_ORDER 4 once the ORB is shut down; the error of `change`.
    pub(crate) fn change_threads(
        &self,
        pool: ThreadpoolId,
        before: u32,
        after: u32,
        change: impl FnOnce() -> Result<(), SystemException>,
    ) -> Result<(), SystemException> {
        let added = u64::from(after.saturating_sub(before));
        self.table.lock().count_threads(added, self.threads_max)?;
        let changed = change();
        let ended = u64::from(before.saturating_sub(after));
        let mut table = self.table.lock();
        let entry = table.running.get_mut(&pool);
        // The ORB's own pool has no entry. The threads of one that was destroyed meanwhile are subtracted already.
        if changed.is_err() || entry.is_none() && pool != ThreadpoolId::OWN {
            table.threads -= added;
            return changed;
        }
        if let Some(entry) = entry {
            entry.threads = entry.threads + added - ended;
        }
        table.threads -= ended;
        changed
    }

    /// Returns a running pool of the application.
    pub(crate) fn running(&self, id: ThreadpoolId) -> Option<Arc<Pool>> {
        let table = self.table.lock();
        Some(Arc::clone(&table.running.get(&id)?.pool))
    }

    /// Ends a pool that no adapter uses, and waits until it has ended.
    //= RT-CORBA 1.2 §Threadpools
    //# A pool is destroyed when no adapter uses it any longer.
    pub(crate) fn destroy(&self, id: ThreadpoolId) -> Result<(), DestroyThreadpoolError> {
        let pool = self.remove(id)?;
        pool.stop();
        pool.join();
        Ok(())
    }

    /// Returns the pool, and counts one more adapter that uses it. [`give_back`](Self::give_back) counts the adapter off.
    pub(crate) fn lend(&self, id: ThreadpoolId) -> Option<Arc<Pool>> {
        let mut table = self.table.lock();
        let entry = table.running.get_mut(&id)?;
        entry.adapters += 1;
        Some(Arc::clone(&entry.pool))
    }

    pub(crate) fn give_back(&self, id: ThreadpoolId) {
        if let Some(entry) = self.table.lock().running.get_mut(&id) {
            entry.adapters -= 1;
        }
    }

    /// Stops all pools, and refuses new ones. Does not wait.
    pub(crate) fn stop(&self) {
        let pools = {
            let mut table = self.table.lock();
            table.is_stopped = true;
            table.all()
        };
        pools.iter().for_each(|pool| pool.stop());
    }

    /// Waits until all stopped pools have ended.
    pub(crate) fn join(&self) {
        let pools = self.table.lock().all();
        pools.iter().for_each(|pool| pool.join());
    }

    fn remove(&self, id: ThreadpoolId) -> Result<Arc<Pool>, DestroyThreadpoolError> {
        let mut table = self.table.lock();
        let entry = table.running.get(&id).ok_or(InvalidThreadpool { id })?;
        if entry.adapters > 0 {
            return Err(local::POOL_IN_USE.into());
        }
        let entry = table.running.remove(&id).ok_or(InvalidThreadpool { id })?;
        table.threads -= entry.threads;
        Ok(entry.pool)
    }

    fn reserve(&self, threads: u64) -> Result<ThreadpoolId, SystemException> {
        let mut table = self.table.lock();
        if table.last_id == u32::MAX {
            return Err(local::POOL_THREADS_FULL);
        }
        table.count_threads(threads, self.threads_max)?;
        table.last_id += 1;
        Ok(ThreadpoolId(table.last_id))
    }
}

impl PoolTable {
    /// Counts threads that will be started.
    ///
    /// # Errors
    /// NO_RESOURCES beyond `threads_max`; BAD_INV_ORDER 4 once the ORB is shut down.
    fn count_threads(&mut self, threads: u64, threads_max: usize) -> Result<(), SystemException> {
        if self.is_stopped {
            return Err(local::SHUT_DOWN);
        }
        let threads = self.threads + threads;
        if threads > threads_max as u64 {
            return Err(local::POOL_THREADS_FULL);
        }
        self.threads = threads;
        Ok(())
    }

    fn all(&self) -> Vec<Arc<Pool>> {
        let pools = self.running.values();
        pools.map(|entry| Arc::clone(&entry.pool)).collect()
    }
}

/// Why a pool was not destroyed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DestroyThreadpoolError {
    /// The ORB has no such pool.
    InvalidThreadpool(InvalidThreadpool),
    /// It cannot be destroyed now.
    System(SystemException),
}

impl From<InvalidThreadpool> for DestroyThreadpoolError {
    fn from(invalid: InvalidThreadpool) -> Self {
        Self::InvalidThreadpool(invalid)
    }
}

impl From<SystemException> for DestroyThreadpoolError {
    fn from(exception: SystemException) -> Self {
        Self::System(exception)
    }
}

impl fmt::Display for DestroyThreadpoolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidThreadpool(invalid) => invalid.fmt(f),
            Self::System(exception) => {
                write!(
                    f,
                    "{exception}: destroy the adapters that use it first, and not in a servant"
                )
            }
        }
    }
}

impl std::error::Error for DestroyThreadpoolError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::InvalidThreadpool(_) => None,
            Self::System(exception) => exception.source(),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::realtime::{LanedThreadpool, Priority, ThreadpoolLane};
    use crate::{Limits, Orb};

    #[test]
    fn the_threads_of_a_pool_that_is_destroyed_while_they_change_are_counted_off_once() {
        let limits = Limits::with(|limits| limits.pool_threads_max = 8);
        let orb = Orb::builder().limits(limits).build().expect("an ORB");
        let pool_of = |static_threads| {
            orb.rt_orb().create_threadpool_with_lanes(LanedThreadpool {
                lanes: vec![ThreadpoolLane {
                    lane_priority: Priority::MIN,
                    static_threads,
                    ..ThreadpoolLane::default()
                }],
                ..LanedThreadpool::default()
            })
        };
        let pools = &orb.core.adapters.pools;
        let own = pools.table.lock().threads;
        for (before, after) in [(1, 7), (8, 1), (4, 4)] {
            let pool = pool_of(before).expect("there is room");
            let changed = pools.change_threads(pool, before, after, || {
                assert_eq!(pools.destroy(pool), Ok(()));
                Ok(())
            });
            assert_eq!(changed, Ok(()));
            assert_eq!(pools.table.lock().threads, own, "{before} to {after}");
        }
        orb.destroy().expect("it serves nothing");
    }
}
