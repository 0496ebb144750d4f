//! Threads, listening endpoints and connections of their own for each priority (TAO, P1 2.2.2): the ORB's own thread pool,
//! for adapters that name none.
//!
//! It listens from when the ORB does, so that there are references; its threads begin when the ORB is run.

use super::pool::{LaneConfig, Pool, PoolConfig, endpoints};
use super::{DispatchError, await_connection};
use crate::exception::SystemException;
use crate::orb::OrbCore;
use crate::rt::ThreadpoolId;
use crate::server::Server;
use std::sync::Arc;

/// Opens the listening endpoints of all lanes.
///
/// # Errors
/// INITIALIZE with the endpoint when one cannot be listened on.
pub(crate) fn open(orb: &Arc<OrbCore>) -> Result<Arc<Pool>, SystemException> {
    let config = config(orb);
    let listeners = (0..config.lanes.len())
        .map(|lane| endpoints::open(&orb.lane_endpoints.of_lane(&orb.listen, config.id, lane)));
    let listeners = listeners.collect::<Result<_, _>>()?;
    // Lanes that the host has no priority for were refused by the builder.
    Pool::open(orb, config, listeners).map_err(|errno| endpoints::not_opened(None, errno))
}

/// Serves until the ORB is stopped; the calling thread waits for the others to end.
pub(super) fn run(orb: &Arc<OrbCore>, server: &Server) -> Result<(), DispatchError> {
    let Some(pool) = orb.rt.own_pool.get() else {
        return Ok(());
    };
    pool.begin(orb).inspect_err(|_| orb.stop())?;
    let mut waited = Ok(());
    while waited.is_ok() && !orb.is_stopping() {
        waited = await_connection(server);
    }
    orb.stop();
    pool.join();
    Ok(waited?)
}

fn config(orb: &OrbCore) -> PoolConfig {
    let one = LaneConfig {
        priority: None,
        static_threads: 1,
        dynamic_threads: 0,
        threads: orb.server_threads.clone(),
    };
    let lanes = orb.rt.lanes.iter().map(|lane| LaneConfig {
        priority: Some(lane.lane_priority),
        static_threads: lane.static_threads.max(1),
        dynamic_threads: lane.dynamic_threads,
        threads: orb.server_threads.clone(),
    });
    let has_lanes = !orb.rt.lanes.is_empty();
    PoolConfig {
        id: ThreadpoolId::OWN,
        lanes: match has_lanes {
            true => lanes.collect(),
            false => vec![one],
        },
        has_lanes,
        allow_borrowing: false,
        buffering: None,
    }
}
