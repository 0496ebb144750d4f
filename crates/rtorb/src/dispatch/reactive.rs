//! One thread, that of `Orb::run`, waits for all connections and calls all servants.
//!
//! No request changes threads, and no thread waits for a lock. Requests are served in order of arrival, whatever their priority.

use super::pool::{Intake, LaneConfig, PoolConfig};
use crate::server::ServerCore;

/// A lane of one thread.
pub(super) fn config(orb: &ServerCore) -> PoolConfig {
    let lane = LaneConfig::plain(orb, "rtorb-reactor", 1);
    PoolConfig::own(vec![lane], Intake::Direct)
}
