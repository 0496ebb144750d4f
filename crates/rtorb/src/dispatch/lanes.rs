//! Lanes of threads: each priority has threads, listening endpoints and connections of its own (TAO, P1 2.2.2).

use super::pool::{Intake, LaneConfig, PoolConfig};
use crate::realtime::{ThreadpoolId, ThreadpoolLane};
use crate::server::ServerCore;

/// The lanes; without any there is one lane with the scheduling of the server's threads.
pub(super) fn config(orb: &ServerCore, lanes: &[ThreadpoolLane]) -> PoolConfig {
    let name = |number| LaneConfig::name(ThreadpoolId::OWN, number);
    let configs = (0..)
        .zip(lanes)
        .map(|(number, lane)| LaneConfig::of_lane(name(number), lane, orb.server_threads.clone()));
    let configs = if lanes.is_empty() {
        vec![LaneConfig::plain(orb, &name(0), 1)]
    } else {
        configs.collect()
    };
    PoolConfig {
        has_lanes: !lanes.is_empty(),
        ..PoolConfig::own(configs, Intake::Direct)
    }
}
