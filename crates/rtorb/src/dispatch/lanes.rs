//! The ORB's own thread pool, for adapters that name none: each priority has threads, listening endpoints and connections of
//! its own (TAO, P1 2.2.2).
//!
//! The pool listens as soon as the ORB does, so that references can be made. Its threads begin when the ORB is run.

use super::pool::{LaneConfig, Pool, PoolConfig};
use super::{DispatchError, Pools, await_connection};
use crate::exception::SystemException;
use crate::realtime::{ThreadpoolId, ThreadpoolLane};
use crate::server::{Server, ServerCore, not_opened};
use std::sync::{Arc, OnceLock};

/// The lanes of the ORB's own pool, and the pool once the ORB listens.
pub(crate) struct Lanes {
    /// If it is empty, there is one lane with the scheduling of the server's threads.
    lanes: Vec<ThreadpoolLane>,
    pool: OnceLock<Arc<Pool>>,
}

impl Lanes {
    pub(crate) fn new(lanes: Vec<ThreadpoolLane>) -> Self {
        Self {
            lanes,
            pool: OnceLock::new(),
        }
    }

    /// The pool, once it is [open](Self::open).
    pub(crate) fn pool(&self) -> Option<&Arc<Pool>> {
        self.pool.get()
    }

    /// Opens the listening endpoints of all lanes. Callers exclude each other.
    ///
    /// # Errors
    /// INITIALIZE with the endpoint if one cannot be listened on.
    pub(crate) fn open(&self, orb: &Arc<ServerCore>, pools: &Pools) -> Result<(), SystemException> {
        let config = self.config(orb);
        let listeners = pools.open_endpoints(config.id, config.lanes.len())?;
        // The builder has refused lanes without a native priority on this host.
        let pool = Pool::open(orb, config, listeners).map_err(|errno| not_opened(None, errno))?;
        self.pool.get_or_init(|| pool);
        Ok(())
    }

    fn config(&self, orb: &ServerCore) -> PoolConfig {
        let has_lanes = !self.lanes.is_empty();
        let lane = |priority, static_threads, dynamic_threads| LaneConfig {
            priority,
            static_threads,
            dynamic_threads,
            threads: orb.server_threads.clone(),
        };
        let lanes = self.lanes.iter().map(|of| {
            let static_threads = of.static_threads.max(1);
            lane(Some(of.lane_priority), static_threads, of.dynamic_threads)
        });
        PoolConfig {
            id: ThreadpoolId::OWN,
            lanes: if has_lanes {
                lanes.collect()
            } else {
                vec![lane(None, 1, 0)]
            },
            has_lanes,
            allow_borrowing: false,
            buffering: None,
        }
    }
}

/// Serves until the ORB is stopped; the calling thread waits for the others to end.
pub(super) fn run(
    orb: &Arc<ServerCore>,
    server: &Server,
    lanes: &Lanes,
) -> Result<(), DispatchError> {
    let Some(pool) = lanes.pool() else {
        return Ok(());
    };
    pool.begin(orb).inspect_err(|_| orb.stop())?;
    let mut waited = Ok(());
    while waited.is_ok() && !orb.is_stopping() {
        waited = await_connection(server);
    }
    orb.stop();
    pool.stop();
    pool.join();
    Ok(waited?)
}
