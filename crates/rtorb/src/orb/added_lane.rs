//! A lane that is added to a thread pool while the pool serves.

use super::config::check_lanes;
use super::lane_levels::{check_levels, check_reserved_cpus};
use super::rt_orb::RtOrb;
use crate::dispatch::pool::{Intake, LaneConfig, Pool, PoolConfig};
use crate::exception::{SystemException, local};
use crate::poa::goes_by;
use crate::realtime::{InvalidThreadpool, Priority, ThreadpoolId, ThreadpoolLane, of_mapping};
use crate::transport::{ConnectionOptions, Listener};
use std::sync::Arc;

impl RtOrb {
    /// Adds a lane to a pool that serves, or with `None` to the ORB's own lanes. Its listening endpoints, connections and threads are its
    /// own, and the other lanes do not notice it.
    ///
    /// References that are made from now on lead to it. Objects move to it by
    /// [`Poa::change_priority`](crate::Poa::change_priority). A client that selects the lane by its own priority (CLIENT_PROPAGATED)
    /// needs a new reference. A lane stays until its pool ends, because references lead to its endpoints.
    ///
    /// # Errors
    /// BAD_PARAM for an unknown pool, for one without lanes, without threads, with borrowing or with request filters, and for a lane that
    /// [`create_threadpool_with_lanes`](Self::create_threadpool_with_lanes) would refuse beside the others, and if 99 lanes were added to the
    /// pool before; otherwise as that method.
    pub fn add_lane(
        &self,
        pool: Option<ThreadpoolId>,
        lane: ThreadpoolLane,
    ) -> Result<(), SystemException> {
        let core = &self.orb.core.adapters;
        let pool = self.growing_pool(pool)?;
        let _one = pool.growing.lock();
        let config = self.added(&pool, &lane);
        let config = config.map_err(|reason| local::WRONG_LANES.with_detail(reason))?;
        let threads = u64::from(lane.static_threads) + u64::from(lane.dynamic_threads);
        let added = core.pools.add_lane(&pool, threads, || {
            let number = pool.all_lanes().count();
            let listeners = core.pools.open_lane(pool.config.id, number)?;
            self.begin(config, vec![listeners])
        })?;
        for listener in added.lanes.iter().flat_map(|lane| &lane.server.listeners) {
            self.set_options(&pool, lane.lane_priority, listener);
        }
        Ok(())
    }

    /// Returns the lanes of a pool, or with `None` the ORB's own, with the [present](Self::change_lane_threads) number of their static
    /// threads. Those that were [added](Self::add_lane) come last.
    pub fn lanes(&self, pool: Option<ThreadpoolId>) -> Vec<ThreadpoolLane> {
        let pool = self.pool(pool);
        pool.iter().flat_map(|pool| lanes(pool)).collect()
    }

    /// Returns a pool, or with `None` the ORB's own.
    fn pool(&self, id: Option<ThreadpoolId>) -> Option<Arc<Pool>> {
        let core = &self.orb.core.adapters;
        match id {
            Some(id) => core.pools.running(id),
            None => core.own_pool().map(Arc::clone),
        }
    }

    /// Returns a pool that serves and whose lanes may change, or with `None` the ORB's own.
    pub(super) fn growing_pool(
        &self,
        id: Option<ThreadpoolId>,
    ) -> Result<Arc<Pool>, SystemException> {
        self.orb.core.adapters.server.check_running()?;
        let none = || {
            id.map_or_else(
                || NO_LANES.to_owned(),
                |id| InvalidThreadpool { id }.to_string(),
            )
        };
        let pool = self.pool(id).ok_or_else(none);
        let pool = pool.and_then(|pool| check_growing(&pool).map(|()| pool));
        pool.map_err(|reason| local::WRONG_LANES.with_detail(reason))
    }

    /// The configuration of the lane as a pool of its own; in words, why it cannot be added.
    fn added(&self, pool: &Pool, added: &ThreadpoolLane) -> Result<PoolConfig, String> {
        let server = &self.orb.core.adapters.server;
        let first = pool.config.lanes.first().ok_or(NO_LANES)?;
        let intake = match &pool.config.intake {
            Intake::Direct => Intake::Direct,
            Intake::Queue(buffering) => Intake::Queue(*buffering),
            Intake::Leader | Intake::Routed { .. } | Intake::PerRequest => {
                return Err(NO_LANES.to_owned());
            }
        };
        let mut all = lanes(pool);
        let name = LaneConfig::name(pool.config.id, all.len());
        all.push(*added);
        check_lanes(&all)?;
        check_reserved_cpus(&all, &server.server_threads)?;
        check_levels(&all, &*server.rt.mapping)?;
        let native = server.rt.to_native(added.lane_priority);
        native.map_err(|_| of_mapping(&server.rt, added.lane_priority))?;
        Ok(PoolConfig {
            id: pool.config.id,
            lanes: vec![LaneConfig::of_lane(name, added, first.threads.clone())],
            has_lanes: true,
            allow_borrowing: false,
            intake,
        })
    }

    /// Gives new connections of a listener of the added lane the options that those of the other lanes have. An adapter that is made
    /// from now on does it itself.
    fn set_options(&self, pool: &Pool, priority: Priority, listener: &Listener) {
        let mut known = pool
            .all_lanes()
            .flat_map(|lane| &lane.server.listeners)
            .filter_map(Listener::options);
        let Some(options) = known.find(|known| goes_by(&listener.bound, known.protocol)) else {
            return;
        };
        let rt = &self.orb.core.adapters.server.rt;
        // If the host refuses, it has refused the same to no other lane: the connections have the defaults.
        let _ = listener.set_options(ConnectionOptions {
            protocol: options.protocol,
            marks: options.marks.map(|_| rt.network_priority(priority)),
        });
    }
}

/// Checks that a pool serves, and that its lanes may change; returns in words why they may not.
fn check_growing(pool: &Pool) -> Result<(), String> {
    if !pool.config.has_lanes {
        return Err(NO_LANES.to_owned());
    }
    if pool.config.allow_borrowing {
        return Err(
            "the lanes of the pool borrow threads: their number is fixed, and so is that of the threads"
                .to_owned(),
        );
    }
    if !matches!(*pool.begun.lock(), Some(Ok(()))) {
        return Err("the pool does not serve yet: run the ORB first".to_owned());
    }
    Ok(())
}

/// The lanes of a pool that have a priority.
pub(super) fn lanes(pool: &Pool) -> Vec<ThreadpoolLane> {
    let lanes = pool.all_lanes().zip(pool.all_configs());
    let lanes = lanes.filter_map(|(lane, config)| {
        Some(ThreadpoolLane {
            lane_priority: config.priority?,
            static_threads: lane.count.wanted(),
            dynamic_threads: config.dynamic_threads,
            order: config.order,
            reservation: config.reservation,
        })
    });
    lanes.collect()
}

const NO_LANES: &str = "the pool has no lanes that clients choose";
