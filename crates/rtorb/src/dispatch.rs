//! Which thread of a server reads requests and calls servants.
//!
//! A strategy runs until the ORB is stopped, on the thread that called `Orb::run`.

pub(crate) mod pool;
mod reactive;
mod reactor;
mod thread_per_connection;

use crate::orb::OrbCore;
use crate::server::Server;
use crate::strategies::DispatchStrategy;
use rtorb_os::Refused;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use std::sync::Arc;

/// Why serving ended early.
#[derive(Debug)]
pub(crate) enum DispatchError {
    /// The host refused a thread or its scheduling.
    Refused(Refused),
    /// A system call failed.
    System(Errno),
}

impl From<Errno> for DispatchError {
    fn from(errno: Errno) -> Self {
        Self::System(errno)
    }
}

/// Serves all connections until the ORB is stopped.
pub(crate) fn run(orb: &Arc<OrbCore>, server: &Server) -> Result<(), DispatchError> {
    match orb.strategies.dispatch {
        DispatchStrategy::ThreadPerConnection => thread_per_connection::run(orb, server),
        DispatchStrategy::Reactive => reactive::run(orb, server),
        // TODO(issue 3)
        _ => thread_per_connection::run(orb, server),
    }
}

/// Waits until a connection can be accepted, or the ORB shall stop.
fn await_connection(server: &Server) -> Result<(), Errno> {
    let mut interests = Vec::with_capacity(server.listeners.len() + 1);
    interests.push(PollFd::from_borrowed_fd(
        server.stop_signal(),
        PollFlags::IN,
    ));
    interests.extend(
        server
            .listeners
            .iter()
            .map(|listener| PollFd::new(&listener.socket, PollFlags::IN)),
    );
    match poll(&mut interests, None) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(errno) => Err(errno),
    }
}
