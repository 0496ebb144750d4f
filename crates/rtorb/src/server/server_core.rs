//! The server side of an ORB: limits, object table and listeners.

use super::buffers::Buffers;
use super::connection_counts::{ConnectionCounters, ConnectionOutcome};
use super::deferred_replies::DeferredReplies;
use super::held_requests::HeldRequests;
use super::listeners::Server;
use super::object_table::ObjectTable;
use super::servant::{AdapterActivation, ObjectAdapter};
use crate::connection::WeakClient;
use crate::endpoint::{Endpoint, InheritedSockets, ListenAddress, ListenEndpoint};
use crate::exception::{Cause, ExceptionKind, Phase, SystemException, local};
use crate::limits::Limits;
use crate::realtime::{RtCore, ThreadpoolId};
use crate::thread_state;
use crate::timing::TimingCounters;
use crate::transport::{InheritedSocketError, Listener, Securing, shared_memory};
use crate::warning::Warnings;
use core::fmt;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use rtorb_os::set_once::SetOnce;
use rtorb_os::sync::Mutex;
use rtorb_os::thread::ThreadConfig;
use rtorb_wire::ByteOrder;
use rustix::io::Errno;
use std::sync::{Arc, Weak};

/// The state that the sessions and serving threads of an ORB share.
pub(crate) struct ServerCore {
    pub(crate) limits: Limits,
    pub(crate) rt: Arc<RtCore>,
    pub(crate) timing: Arc<TimingCounters>,
    pub(crate) warnings: Arc<Warnings>,
    pub(crate) byte_order: ByteOrder,
    pub(crate) fragment_bytes: Option<usize>,
    pub(crate) server_threads: ThreadConfig,
    pub(crate) shared_memory: shared_memory::Settings,
    /// The epoch in the keys of transient objects: no other run of any ORB has it.
    pub(crate) epoch: u64,
    /// The ORB's number in the process, in the upper half.
    pub(crate) upcall: u64,
    pub(crate) objects: ObjectTable,
    /// The root adapter.
    pub(crate) root: SetOnce<Weak<dyn ObjectAdapter>>,
    /// Set by the first adapter activator.
    pub(crate) activation: SetOnce<Box<dyn AdapterActivation>>,
    pub(crate) deferred: Arc<DeferredReplies>,
    pub(crate) held: HeldRequests,
    /// Receive buffers for connections that have none.
    pub(crate) buffers: Buffers,
    /// The client of references in requests.
    pub(crate) client: WeakClient,
    pub(crate) state: ServerState,
}

/// Returns the number of a new ORB in this process, in the upper half.
pub(crate) fn next_upcall() -> u64 {
    static LAST: AtomicU32 = AtomicU32::new(0);
    u64::from(LAST.fetch_add(1, Ordering::Relaxed) + 1) << 32
}

/// The listening and stopping state of a server.
#[derive(Default)]
pub(crate) struct ServerState {
    /// The listeners, opened with the root adapter: a client does not listen.
    server: SetOnce<Server>,
    opening: Mutex<()>,
    is_stopping: AtomicBool,
    /// True once the threads of the dispatch strategy have begun to serve.
    is_served: AtomicBool,
    pub(crate) connections: ConnectionCounters,
    /// The number of requests for which a queue had no room.
    refused: AtomicU64,
    /// The number of requests that lost their places in a queue to more critical ones.
    shed: AtomicU64,
    /// The number of requests that were cancelled before they were dispatched.
    cancelled: AtomicU64,
}

impl ServerState {
    /// Notes that the threads of the dispatch strategy serve.
    pub(crate) fn note_served(&self) {
        self.is_served.store(true, Ordering::Relaxed);
    }

    /// Returns true once the threads of the dispatch strategy have begun to serve.
    pub(crate) fn is_served(&self) -> bool {
        self.is_served.load(Ordering::Relaxed)
    }

    /// Counts that strangers wait for their next period.
    pub(crate) fn note_held_back(&self) {
        self.connections.note(ConnectionOutcome::HeldBack);
    }

    /// Counts a request that is refused because a queue has no room.
    #[cold]
    pub(crate) fn note_refused(&self) {
        if let Some(part) = thread_state::recorder() {
            part.note_refused();
        }
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of requests that were refused because a queue had no room.
    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Counts a request that loses its place in a queue to a more critical one.
    #[cold]
    pub(crate) fn note_shed(&self) {
        if let Some(part) = thread_state::recorder() {
            part.note_shed();
        }
        self.shed.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of requests that lost their places to more critical ones.
    pub(crate) fn shed(&self) -> u64 {
        self.shed.load(Ordering::Relaxed)
    }

    /// Counts a request that was cancelled before it was dispatched.
    pub(crate) fn note_cancelled(&self) {
        self.cancelled.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of requests that were cancelled before they were dispatched.
    pub(crate) fn cancelled(&self) -> u64 {
        self.cancelled.load(Ordering::Relaxed)
    }
}

impl ServerCore {
    /// Returns the server to be kept; `None` once the application has dropped its ORB.
    #[cold]
    pub(super) fn shared(&self) -> Option<Arc<Self>> {
        let server = self.client.host.upgrade()?.server();
        server.downcast().ok()
    }

    /// Returns true if interceptors see the requests.
    pub(super) fn has_interceptors(&self) -> bool {
        !self.client.core.interceptors.server.is_empty()
    }

    /// Returns BAD_INV_ORDER 4 once the ORB is shut down.
    #[inline]
    pub(crate) fn check_running(&self) -> Result<(), SystemException> {
        if self.is_stopping() {
            return Err(local::SHUT_DOWN);
        }
        Ok(())
    }

    #[inline]
    pub(crate) fn is_stopping(&self) -> bool {
        self.state.is_stopping.load(Ordering::Relaxed)
    }

    /// Stops the threads of the dispatch strategy. Does not wait for their ends.
    pub(crate) fn stop(&self) {
        self.state.is_stopping.store(true, Ordering::SeqCst);
        // A thread that opens the server at this moment has opened it, or sees that the ORB stops.
        let opening = self.state.opening.lock();
        if let Some(server) = self.server() {
            server.stop();
        }
        drop(opening);
        self.held.close();
    }

    /// Returns the server, once open. With lanes, it has only the stop signal: each lane has listeners of its own.
    pub(crate) fn server(&self) -> Option<&Server> {
        self.state.server.get()
    }

    /// Opens the server with the listeners that `bind` opens, unless it is open.
    ///
    /// # Errors
    /// The exception of `bind`; BAD_INV_ORDER 4 once the ORB is shut down; INITIALIZE if the host refuses.
    pub(crate) fn open(
        &self,
        bind: impl FnOnce() -> Result<Vec<Listener>, SystemException>,
    ) -> Result<&Server, SystemException> {
        if let Some(server) = self.server() {
            return Ok(server);
        }
        // Of two threads at once, one binds.
        let _opening = self.state.opening.lock();
        if let Some(server) = self.server() {
            return Ok(server);
        }
        self.check_running()?;
        let server = Server::new(bind()?, ThreadpoolId::OWN, &self.limits)
            .map_err(|errno| not_opened(None, errno))?;
        Ok(self.state.server.get_or_make(|| server))
    }
}

impl fmt::Debug for ServerCore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerCore")
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// Opens listening endpoints.
///
/// # Errors
/// INITIALIZE with the endpoint if one cannot be listened on.
pub(crate) fn bind(
    endpoints: &[ListenEndpoint],
    securing: &Securing,
) -> Result<Vec<Listener>, SystemException> {
    let mut listeners = Vec::new();
    for listen in endpoints {
        match &listen.address {
            ListenAddress::Endpoint(endpoint) => {
                let listener = Listener::bind(endpoint, listen, securing);
                listeners.push(listener.map_err(|errno| not_opened(Some(endpoint), errno))?);
            }
            ListenAddress::Inherited(sockets) => {
                let inherited = Listener::inherit(sockets, listen, securing);
                listeners.extend(inherited.map_err(|error| not_inherited(sockets, &error))?);
            }
        }
    }
    Ok(listeners)
}

/// INITIALIZE with the error of the host.
pub(crate) fn not_opened(endpoint: Option<&Endpoint>, errno: Errno) -> SystemException {
    let exception = lack_of_tls(errno).unwrap_or(ExceptionKind::Initialize.into());
    exception.with_cause(Cause {
        endpoint: endpoint.cloned().map(Arc::new),
        ..Cause::host(Phase::Listen, errno)
    })
}

/// INITIALIZE with the reason why sockets of a service manager are not used.
fn not_inherited(sockets: &InheritedSockets, error: &InheritedSocketError) -> SystemException {
    let lack = match error {
        InheritedSocketError::Host(errno) => lack_of_tls(*errno),
        _ => None,
    };
    let exception = lack.unwrap_or(local::NO_INHERITED_SOCKET);
    exception.with_detail(format!("listening on {sockets}: {error}"))
}

/// The exception for an error of the secure transport of an ORB.
fn lack_of_tls(errno: Errno) -> Option<SystemException> {
    match errno {
        Errno::PROTONOSUPPORT => Some(local::NO_TLS),
        Errno::OPNOTSUPP => Some(local::NO_SERVER_CERTIFICATE),
        _ => None,
    }
}
