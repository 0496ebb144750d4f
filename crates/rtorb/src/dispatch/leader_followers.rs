//! A pool of threads. The leader waits for all connections. It makes another thread the leader before it calls the servant
//! (miniCOOL, P1 2.2.2).
//!
//! No request changes threads. The leader takes the next request, whatever its priority. If all threads are in servants, an
//! urgent request waits until one of them is done.

use super::pool::{Intake, LaneConfig, PoolConfig};
use crate::server::ServerCore;

/// A lane of `threads` threads, one of which leads.
pub(super) fn config(orb: &ServerCore, threads: u32) -> PoolConfig {
    let lane = LaneConfig::plain(orb, "rtorb-lf", threads);
    PoolConfig::own(vec![lane], Intake::Leader)
}
