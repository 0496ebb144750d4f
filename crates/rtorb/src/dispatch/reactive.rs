//! One thread for all connections: it waits until some have requests and serves them one after the other.

use super::DispatchError;
use super::reactor::Reactor;
use crate::server::{Server, ServerCore, ThreadPriority, Workspace};
use std::sync::Arc;

/// Serves on the calling thread, with the scheduling of the server's threads, until the ORB is stopped.
pub(super) fn run(orb: &Arc<ServerCore>, server: &Server) -> Result<(), DispatchError> {
    let config = orb.rt.obtainable(&orb.server_threads);
    config.apply_here().map_err(DispatchError::Refused)?;
    let mut workspace = Workspace::new(ThreadPriority::returning());
    let mut reactor = Reactor::new(orb, server)?;
    reactor.run(orb, server, |connection| {
        connection.serve_ready(&mut workspace)
    })?;
    server.close_all();
    Ok(())
}
