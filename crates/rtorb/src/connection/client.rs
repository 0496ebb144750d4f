//! The state that all connections of one client share.

use super::bidirectional::{BidirectionalConnection, BidirectionalTable, RequestCarrier};
use super::multiplexed::Multiplexed;
use super::reply::Outcome;
use super::route::EndpointTable;
use crate::endpoint::Endpoint;
use crate::exception::{SystemException, local};
use crate::interceptors::Interceptors;
use crate::limits::Limits;
use crate::realtime::{ClientThread, RtCore};
use crate::strategies::{Collocation, ConnectionStrategy, DeadlineForm};
use crate::timing::TimingCounters;
use crate::transport::resolver::Resolver;
use crate::transport::{Securing, Stream, shared_memory};
use crate::wait::watchdog::Watchdog;
use core::any::Any;
use core::fmt::Debug;
use core::sync::atomic::{AtomicU8, Ordering};
use rtorb_wire::ByteOrder;
use rtorb_wire::cdr::CharCodeSet;
use rtorb_wire::connection::Deadline;
use rtorb_wire::giop::Version;
use rtorb_wire::ior::ListenPoint;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// The client side of an ORB: options, endpoints, and the shared state of its connections.
#[derive(Debug)]
pub(crate) struct ClientCore {
    pub(crate) limits: Limits,
    pub(crate) rt: Arc<RtCore>,
    pub(crate) timing: Arc<TimingCounters>,
    pub(crate) byte_order: ByteOrder,
    /// The native code set of `char` data: the first choice of this client, and that of its own references.
    pub(crate) native_char_code_set: CharCodeSet,
    /// Larger messages are sent in fragments.
    pub(crate) fragment_bytes: Option<usize>,
    pub(crate) max_version: Version,
    pub(crate) connect_timeout: Duration,
    /// The timeout of calls; `u64::MAX` for none.
    pub(crate) round_trip_ns: u64,
    /// True if the application chose that timeout. Then calls of the ORB's own objects have it too.
    pub(crate) is_timeout_chosen: bool,
    pub(crate) collocation: Collocation,
    pub(crate) deadline_form: DeadlineForm,
    pub(crate) shared_memory: shared_memory::Settings,
    pub(crate) securing: Securing,
    /// True if no connection over TCP is made without TLS.
    pub(crate) requires_tls: bool,
    /// True if a new connection for a band sends its priorities to the server first.
    pub(crate) binds_priority_bands: bool,
    pub(crate) sharing: Sharing,
    pub(crate) watchdog: Watchdog,
    pub(crate) resolver: Resolver,
    pub(crate) endpoints: EndpointTable,
    pub(crate) interceptors: Interceptors,
    /// The bits [`CLOSED`], [`INTERCEPTED`] and [`RECORDED`]. A call tests all of them at once.
    pub(crate) special: AtomicU8,
}

/// The bit of a client that is closed.
const CLOSED: u8 = 1;

/// The bit of an ORB with interceptors.
const INTERCEPTED: u8 = 2;

/// The bit of an ORB whose calls the recorder records.
const RECORDED: u8 = 4;

/// How client threads share connections, with the state of that strategy.
#[derive(Debug)]
pub(crate) enum Sharing {
    /// Each thread has its own connections.
    Exclusive,
    /// All threads share one connection to each endpoint.
    Multiplexed(Multiplexed),
    /// All threads share one connection to each endpoint and priority band.
    Banded(Multiplexed),
    /// All threads share one connection to each endpoint, over which its server calls back; others have their own.
    Bidirectional(BidirectionalTable),
}

/// The ORB of a client, for references and invocations.
pub(crate) trait EnclosingOrb: Debug + Send + Sync {
    /// Returns true if the calling thread is in a servant.
    fn is_in_servant(&self) -> bool;

    /// Returns true if the calling thread is in a servant of this ORB.
    fn is_in_own_servant(&self) -> bool;

    /// Returns true if a call to that endpoint would wait for the calling thread itself.
    fn would_deadlock(&self, endpoint: &Endpoint) -> bool;

    /// Returns true if the calling thread may serve requests to that endpoint of this ORB.
    fn is_collocated(&self, endpoint: &Endpoint) -> bool;

    /// Returns true if a client waits at an endpoint of this ORB that no thread serves.
    fn has_unserved_client(&self) -> bool;

    /// Serves a request on the calling thread.
    ///
    /// # Errors
    /// IMP_LIMIT if such calls are nested too deeply; the exceptions of the request.
    fn serve_here(&self, request: &mut dyn CollocatedRequest) -> Result<Outcome, SystemException>;

    /// Returns the addresses of this ORB's own pool in references; none if it does not listen yet.
    fn listen_points(&self) -> Vec<ListenPoint>;

    /// Makes the ORB's own pool serve a connection that this ORB has opened. `make` makes the caller's half.
    ///
    /// # Errors
    /// NO_RESOURCES if the pool has too many connections, or the host refuses to watch it.
    fn serve_opened(
        &self,
        stream: Stream,
        make: &mut dyn FnMut(Weak<dyn RequestCarrier>) -> BidirectionalConnection,
    ) -> Result<Arc<BidirectionalConnection>, SystemException>;

    /// Returns the server side of this ORB, a [`ServerCore`](crate::server::ServerCore), for references to its objects.
    fn server(&self) -> Arc<dyn Any + Send + Sync>;

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}

/// A request to an object of the same ORB, for its server.
pub(crate) trait CollocatedRequest {
    /// Returns the code set of `char` data in the request and its reply.
    fn char_code_set(&self) -> CharCodeSet;

    /// Writes the request into `buffer`. Returns its length.
    fn write(&mut self, buffer: &mut Vec<u8>) -> Result<usize, SystemException>;

    /// Reads the reply, a whole message.
    fn read(&mut self, reply: &[u8]) -> Result<Outcome, SystemException>;

    /// Returns the deadline of a caller that begins to wait for a deferred reply: that of the call; if it has none yet, the one that its thread
    /// inherits, or the ORB's timeout.
    fn deadline(&self) -> Deadline;

    /// Returns the exception of a caller that has waited in vain until that deadline.
    fn timed_out(&self, deadline: Deadline) -> SystemException;
}

/// The client side of an ORB, held by references. They keep their ORB alive.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    pub(crate) core: Arc<ClientCore>,
    pub(crate) host: Arc<dyn EnclosingOrb>,
}

/// The client side of an ORB, held by its server. It does not keep the ORB alive.
#[derive(Clone, Debug)]
pub(crate) struct WeakClient {
    pub(crate) core: Arc<ClientCore>,
    pub(crate) host: Weak<dyn EnclosingOrb>,
}

impl WeakClient {
    pub(crate) fn upgrade(&self) -> Option<Client> {
        Some(Client {
            core: Arc::clone(&self.core),
            host: self.host.upgrade()?,
        })
    }
}

impl Client {
    /// Returns BAD_INV_ORDER 4 once the ORB is shut down, unless a servant calls whose request is in progress.
    #[inline]
    pub(crate) fn check_open(&self) -> Result<(), SystemException> {
        if self.core.is_closed() && !self.host.is_in_own_servant() {
            return Err(local::SHUT_DOWN);
        }
        Ok(())
    }

    /// Returns the client of the references in a message, from the context of its reader; `None` outside of a call.
    pub(crate) fn of_context(context: &(dyn Any + Send + Sync)) -> Option<Self> {
        match context.downcast_ref::<Self>() {
            Some(client) => Some(client.clone()),
            None => context.downcast_ref::<WeakClient>()?.upgrade(),
        }
    }
}

impl Sharing {
    /// Makes the state of a strategy. `reader_thread` is the scheduling of the reactor and of connections' threads.
    pub(crate) fn new(strategy: ConnectionStrategy, reader_thread: ClientThread) -> Self {
        match strategy {
            ConnectionStrategy::Exclusive => Self::Exclusive,
            ConnectionStrategy::Multiplexed { wait } => {
                Self::Multiplexed(Multiplexed::new(wait, reader_thread))
            }
            ConnectionStrategy::Banded { wait } => {
                Self::Banded(Multiplexed::new(wait, reader_thread))
            }
        }
    }

    /// Returns the bidirectional connections, if the ORB has any.
    #[inline]
    pub(crate) fn bidirectional(&self) -> Option<&BidirectionalTable> {
        match self {
            Self::Bidirectional(table) => Some(table),
            Self::Exclusive | Self::Multiplexed(_) | Self::Banded(_) => None,
        }
    }
}

impl ClientCore {
    /// Returns the timeout of calls, if the application chose one.
    pub(crate) fn chosen_timeout(&self) -> Option<Duration> {
        self.is_timeout_chosen
            .then(|| Duration::from_nanos(self.round_trip_ns))
    }

    /// Refuses further calls, except those of servants whose requests are in progress.
    pub(crate) fn close(&self) {
        self.special.fetch_or(CLOSED, Ordering::SeqCst);
        self.watchdog.calls().wake_waiting();
        if let Some(bidirectional) = self.sharing.bidirectional() {
            bidirectional.close();
        }
    }

    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        self.special.load(Ordering::Relaxed) & CLOSED != 0
    }

    /// Returns true if calls have to look whether the client is closed, intercepted or recorded.
    #[inline]
    pub(crate) fn is_special(&self) -> bool {
        self.special.load(Ordering::Relaxed) != 0
    }

    /// Returns true if interceptors see the requests of the client, or of its ORB's server.
    pub(crate) fn is_intercepted(&self) -> bool {
        self.special.load(Ordering::Relaxed) & INTERCEPTED != 0
    }

    /// Returns true if the recorder records the calls of the client.
    pub(crate) fn is_recorded(&self) -> bool {
        self.special.load(Ordering::Relaxed) & RECORDED != 0
    }

    /// Returns the bits of an ORB with these interceptors.
    pub(crate) fn special(interceptors: &Interceptors, is_recorded: bool) -> AtomicU8 {
        let intercepted = if interceptors.is_empty() {
            0
        } else {
            INTERCEPTED
        };
        let recorded = if is_recorded { RECORDED } else { 0 };
        AtomicU8::new(intercepted | recorded)
    }
}
