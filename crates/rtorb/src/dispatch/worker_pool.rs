//! One I/O thread reads all requests into one queue, from which a pool of threads takes them (CORBAplus, P1 2.2.2).
//!
//! Each request changes threads once. A request of high priority waits behind all that arrived before it.

use super::pool::{Buffering, Intake, LaneConfig, PoolConfig};
use crate::server::ServerCore;

/// A lane of `threads` threads behind a queue.
pub(super) fn config(orb: &ServerCore, threads: u32) -> PoolConfig {
    let lane = LaneConfig::plain(orb, "rtorb-worker", threads);
    let buffering = Buffering {
        bounds_connections: true,
        ..Buffering::default()
    };
    PoolConfig::own(vec![lane], Intake::Queue(buffering))
}
