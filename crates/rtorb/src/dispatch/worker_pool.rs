//! One I/O thread reads all requests into one queue, from which a pool of threads takes them (CORBAplus, P1 2.2.2).
//!
//! Each request changes threads once. A request of high priority waits behind all that arrived before it.

use super::DispatchError;
use super::stations::{self, Station};
use crate::server::Server;
use crate::server::ServerCore;
use std::sync::Arc;

/// Serves until the ORB is stopped; the calling thread waits for the others to end.
pub(super) fn run(
    orb: &Arc<ServerCore>,
    server: &Server,
    threads: usize,
) -> Result<(), DispatchError> {
    let config = orb.rt.obtainable(&orb.server_threads);
    let workers = Station {
        name: "rtorb-worker".to_owned(),
        threads: u32::try_from(threads).unwrap_or(u32::MAX),
        config: config.clone(),
        priority: None,
    };
    let only = Box::new(|_: &_, _: &_, _: &mut _| Ok(0));
    stations::run(orb, server, &config, &[workers], only)
}
