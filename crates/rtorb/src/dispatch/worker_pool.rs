//! One I/O thread reads all requests into one queue, from which a pool of threads takes them (CORBAplus, P1 2.2.2).
//!
//! Each request changes threads once, and one of high priority waits behind all that came before it.

use super::DispatchError;
use super::stations::{self, Station};
use crate::orb::OrbCore;
use crate::server::Server;
use std::sync::Arc;

/// Serves until the ORB is stopped; the calling thread waits for the others to end.
pub(super) fn run(orb: &Arc<OrbCore>, server: &Server) -> Result<(), DispatchError> {
    let workers = Station {
        name: "rtorb-worker".to_owned(),
        threads: orb.pool_threads,
        config: orb.rt.obtainable(&orb.server_threads),
        priority: None,
    };
    stations::run(orb, server, &[workers], Box::new(|_, _, _| Ok(0)))
}
