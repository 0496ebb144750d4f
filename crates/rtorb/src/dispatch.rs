//! Which thread of a server reads requests and calls servants.
//!
//! A strategy runs until the ORB is stopped, on the thread that called `Orb::run`.

mod filter_chain;
mod lanes;
mod leader_followers;
pub(crate) mod pool;
mod pools;
mod reactive;
mod reactor;
mod request_queue;
mod stations;
mod thread_per_connection;
mod worker_pool;

pub(crate) use filter_chain::FilterChain;
pub use filter_chain::{FilteredRequest, RequestFilter};
pub(crate) use lanes::Lanes;
pub use pools::DestroyThreadpoolError;
pub(crate) use pools::Pools;

use crate::endpoint::Endpoint;
use crate::server::Server;
use crate::server::ServerCore;
use rtorb_os::Refused;
use rtorb_os::thread::JoinHandle;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use std::sync::Arc;

/// The dispatch strategy of one ORB, with what this strategy alone needs.
pub(crate) enum Dispatch {
    ThreadPerConnection,
    Reactive,
    WorkerPool { threads: usize },
    LeaderFollowers { threads: usize },
    FilterChain(Arc<FilterChain>),
    Lanes(Lanes),
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

/// Serves all connections until the ORB is stopped.
pub(crate) fn run(
    dispatch: &Dispatch,
    orb: &Arc<ServerCore>,
    server: &Server,
) -> Result<(), DispatchError> {
    match dispatch {
        Dispatch::ThreadPerConnection => thread_per_connection::run(orb, server),
        Dispatch::Reactive => reactive::run(orb, server),
        Dispatch::WorkerPool { threads } => worker_pool::run(orb, server, *threads),
        Dispatch::LeaderFollowers { threads } => leader_followers::run(orb, server, *threads),
        Dispatch::FilterChain(chain) => filter_chain::run(orb, server, chain),
        Dispatch::Lanes(lanes) => lanes::run(orb, server, lanes),
    }
}

/// True if a call from a servant to that endpoint of the same ORB would wait for the calling thread itself. For threads of a
/// pool, see [`pool::would_wait_for_itself`].
///
/// Several threads can also wait for each other, if all are in servants that call their own server. The timeouts of the calls
/// end that.
#[cold]
pub(crate) fn would_deadlock(dispatch: &Dispatch, orb: &ServerCore, endpoint: &Endpoint) -> bool {
    let threads = match dispatch {
        Dispatch::ThreadPerConnection => return false,
        // `pool::would_wait_for_itself` checks the threads of a pool.
        Dispatch::Lanes(_) => return false,
        Dispatch::Reactive => 1,
        Dispatch::WorkerPool { threads } | Dispatch::LeaderFollowers { threads } => *threads,
        Dispatch::FilterChain(chain) => chain.threads(),
    };
    let mut listeners = orb
        .server()
        .into_iter()
        .flat_map(|server| &server.listeners);
    threads == 1 && listeners.any(|listener| listener.leads_to(endpoint))
}

/// Waits until threads have ended.
fn join(threads: Vec<JoinHandle<Option<()>>>) {
    for thread in threads {
        // A panic of a servant was caught in the upcall; nothing else panics.
        let _ = thread.join();
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
