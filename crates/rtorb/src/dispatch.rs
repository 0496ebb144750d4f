//! Which thread of a server reads requests and calls servants.
//!
//! A strategy runs until the ORB is stopped, on the thread that called `Orb::run`.

mod filter_chain;
mod lanes;
mod leader_followers;
mod own_pool;
pub(crate) mod pool;
mod pools;
mod reactive;
mod serve;
mod thread_per_connection;
mod thread_per_request;
mod worker_pool;

pub(crate) use filter_chain::FilterChain;
pub use filter_chain::{FilteredRequest, RequestFilter};
pub(crate) use own_pool::{OwnPool, Structure};
pub use pools::DestroyThreadpoolError;
pub(crate) use pools::Pools;

use crate::server::Server;
use crate::server::ServerCore;
use rtorb_os::Refused;
use rtorb_os::thread::JoinHandle;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::time::Timespec;
use std::sync::Arc;

/// The dispatch strategy of one ORB.
pub(crate) enum Dispatch {
    ThreadPerConnection,
    Pool(OwnPool),
}

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

impl From<Refused> for DispatchError {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused)
    }
}

/// Serves all connections until the ORB is stopped. Calls `ready` when the threads run that serve from the beginning.
pub(crate) fn run(
    dispatch: &Dispatch,
    orb: &Arc<ServerCore>,
    server: &Server,
    ready: &mut dyn FnMut(),
) -> Result<(), DispatchError> {
    match dispatch {
        Dispatch::ThreadPerConnection => thread_per_connection::run(orb, server, ready),
        Dispatch::Pool(own) => own.run(orb, server, ready),
    }
}

/// Waits until threads have ended.
fn join(threads: Vec<JoinHandle<Option<()>>>) {
    for thread in threads {
        // A panic of a servant was caught in the upcall; nothing else panics.
        let _ = thread.join();
    }
}

/// Waits until a connection can be accepted, or the ORB shall stop.
fn await_connection(server: &Server, timeout: Option<&Timespec>) -> Result<(), Errno> {
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
    match poll(&mut interests, timeout) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(errno) => Err(errno),
    }
}
