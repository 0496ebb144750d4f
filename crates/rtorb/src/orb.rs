//! The ORB: what its references, adapters and connections share.

mod bound_keys;
mod builder;
mod config_file;
mod initial_references;
mod object_url;
mod options;
pub(crate) mod published;
mod rt_current;
mod rt_orb;
mod settings;

pub use bound_keys::ObjectKeyError;
pub use builder::{OrbBuilder, OrbError};
pub use rt_current::RtCurrent;
pub use rt_orb::RtOrb;

use crate::connection::{ClientCore, Host};
use crate::dispatch::pool::Pool;
use crate::dispatch::{self, Dispatch, DispatchError, Pools};
use crate::endpoint::Endpoint;
use crate::exception::{Cause, ExceptionKind, Phase, SystemException};
use crate::limits::Limits;
use crate::poa::object_table::ObjectTable;
use crate::poa::{Adapter, Poa};
use crate::reference::ObjectRef;
use crate::rt::RtCore;
use crate::server::{Server, is_in_servant, is_in_upcall, is_serving_own};
use crate::strategies::Strategies;
use crate::timing::{OperationCounts, Watch};
use crate::trace::trace_event;
use crate::transport::Listener;
use core::any::Any;
use core::fmt;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use initial_references::InitialReferences;
use published::Published;
use rtorb_os::sync::Mutex;
use rtorb_os::thread::ThreadConfig;
use rtorb_wire::ByteOrder;
use std::sync::{Arc, OnceLock};

/// An object request broker; cheap to clone.
///
/// A program that only calls needs nothing but [`string_to_object`](Self::string_to_object). One that serves takes the
/// root adapter, activates servants and [runs](Self::run).
#[derive(Clone, Debug)]
pub struct Orb {
    pub(crate) core: Arc<OrbCore>,
}

/// What all parts of an ORB share; fixed once built, apart from tables that have locks or counters of their own.
pub(crate) struct OrbCore {
    pub(crate) limits: Limits,
    pub(crate) strategies: Strategies,
    pub(crate) byte_order: ByteOrder,
    pub(crate) fragment_octets: Option<usize>,
    pub(crate) server_threads: ThreadConfig,
    pub(crate) rt: Arc<RtCore>,
    /// What references and connections share.
    pub(crate) client: Arc<ClientCore>,
    pub(crate) timing: Arc<Watch>,
    pub(crate) dispatch: Dispatch,
    /// The application's thread pools.
    pub(crate) pools: Pools,
    /// Tells this run of this ORB from every other in the keys of transient objects.
    pub(crate) epoch: u64,
    pub(crate) objects: ObjectTable,
    initial_references: InitialReferences,
    adapters: AtomicUsize,
    root: Arc<Adapter>,
    /// Made when the root adapter is first asked for: a client listens nowhere.
    server: OnceLock<Server>,
    opening: Mutex<()>,
    stopping: AtomicBool,
}

impl Orb {
    /// Begins to build an ORB.
    pub fn builder() -> OrbBuilder {
        OrbBuilder::default()
    }

    /// The root adapter; the ORB begins to listen when it is first asked for.
    ///
    /// # Errors
    /// INITIALIZE with the endpoint when one cannot be listened on; BAD_INV_ORDER 4 once the ORB is shut down.
    pub fn root_poa(&self) -> Result<Poa, SystemException> {
        self.core.check_running()?;
        self.core.open_server()?;
        Ok(Poa::new(self.clone(), Arc::clone(&self.core.root)))
    }

    /// The reference that a text stands for: `IOR:`, `corbaloc:`, `corbaname:` or `file://`.
    ///
    /// # Errors
    /// BAD_PARAM with the OMG's minor codes 7 to 10 (CORBA 3, 13.6.10.9) for a text that is none, or a name that is not
    /// bound; what calling the naming context of a `corbaname:` raises.
    pub fn string_to_object(&self, text: &str) -> Result<ObjectRef, SystemException> {
        object_url::resolve(self, text)
    }

    /// The reference as text: `IOR:` and hexadecimal digits.
    pub fn object_to_string(&self, object: &ObjectRef) -> String {
        object.to_string()
    }

    /// The object that goes by `name` here: given by `-ORBInitRef` or registered.
    ///
    /// # Errors
    /// INV_OBJREF when there is none (the standard's InvalidName); what [`string_to_object`](Self::string_to_object)
    /// answers for the text that was given.
    pub fn resolve_initial_references(&self, name: &str) -> Result<ObjectRef, SystemException> {
        object_url::resolve_initial(self, name)
    }

    /// Gives an object a name for [`resolve_initial_references`](Self::resolve_initial_references).
    pub fn register_initial_reference(&self, name: &str, object: ObjectRef) {
        self.core
            .initial_references
            .register(name, object.to_string());
    }

    /// The priority of the calling thread: the initial reference `RTCurrent`.
    pub fn rt_current(&self) -> RtCurrent {
        RtCurrent::new(self.clone())
    }

    /// The RT-CORBA side of the ORB: the initial reference `RTORB`.
    pub fn rt_orb(&self) -> RtOrb {
        RtOrb::new(self.clone())
    }

    /// The names that [`resolve_initial_references`](Self::resolve_initial_references) knows.
    pub fn list_initial_services(&self) -> Vec<String> {
        self.core.initial_references.names()
    }

    /// Serves requests until [`shutdown`](Self::shutdown); what the calling thread does is a matter of the dispatch strategy.
    ///
    /// Returns at once when the ORB is shut down already.
    ///
    /// # Errors
    /// NO_RESOURCES or INTERNAL when the host refuses a thread, its scheduling or a system call.
    pub fn run(&self) -> Result<(), OrbError> {
        let served = match self.core.open_server() {
            Ok(server) => dispatch::run(&self.core, server),
            Err(_) if self.core.is_stopping() => Ok(()),
            Err(exception) => return Err(exception.into()),
        };
        // When the host refused something, this ends the pools too, which are waited for.
        self.core.stop();
        self.core.pools.join();
        // Servants often hold the ORB that holds them: with the adapters they go, and with them all the rest.
        Poa::new(self.clone(), Arc::clone(&self.core.root)).destroy();
        served.map_err(|error| match error {
            DispatchError::Refused(refused) => OrbError::Refused(refused),
            DispatchError::System(errno) => OrbError::System(
                SystemException::from(ExceptionKind::Internal)
                    .with_cause(Cause::host(Phase::Listen, errno)),
            ),
        })
    }

    /// Ends the ORB: requests in progress are answered, clients are told CloseConnection, the adapters are destroyed and
    /// [`run`](Self::run) returns.
    ///
    /// It does not wait for that, so a servant may call it. Calls through this ORB raise BAD_INV_ORDER from now on.
    pub fn shutdown(&self) {
        self.core.stop();
    }

    /// Ends the ORB as [`shutdown`](Self::shutdown) does, and waits until no thread pool of the application's serves any more
    /// (CORBA::ORB::destroy). A program that serves by such pools alone need not [run](Self::run) the ORB, and ends it so.
    ///
    /// # Errors
    /// BAD_INV_ORDER 3 in a servant of this ORB, whose thread would wait for itself.
    pub fn destroy(&self) -> Result<(), SystemException> {
        if is_in_upcall(&self.core) {
            return Err(SystemException::omg(ExceptionKind::BadInvOrder, 3));
        }
        self.core.stop();
        self.core.pools.join();
        // As at the end of `run`: servants often hold the ORB.
        Poa::new(self.clone(), Arc::clone(&self.core.root)).destroy();
        Ok(())
    }

    /// The endpoints that the ORB listens on, with the ports that it was given.
    pub fn endpoints(&self) -> Vec<Endpoint> {
        let listeners = self.core.own_listeners().into_iter();
        listeners.map(|listener| listener.bound.clone()).collect()
    }

    /// The bounds that it was built with.
    pub fn limits(&self) -> &Limits {
        &self.core.limits
    }

    /// What was counted of the operations that are annotated with their timing: of each that is served here, and of each that was
    /// called, in the order of their names. The counters are not of one moment: calls go on meanwhile.
    pub fn timing(&self) -> Vec<OperationCounts> {
        self.core.timing.snapshot()
    }

    /// The strategies that it was built with.
    pub fn strategies(&self) -> Strategies {
        self.core.strategies
    }

    /// A reference to an object of this ORB.
    pub(crate) fn reference(&self, published: &Published<'_>) -> ObjectRef {
        ObjectRef::new(self.host(), published::ior(&self.core, published))
    }
}

impl Orb {
    /// What its references hold.
    pub(crate) fn host(&self) -> Arc<dyn Host> {
        Arc::<OrbCore>::clone(&self.core)
    }
}

impl OrbCore {
    /// BAD_INV_ORDER 4 once the ORB is shut down.
    #[inline]
    pub(crate) fn check_running(&self) -> Result<(), SystemException> {
        match self.is_stopping() {
            true => Err(SystemException::omg(ExceptionKind::BadInvOrder, 4)),
            false => Ok(()),
        }
    }

    #[inline]
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    pub(crate) fn stop(&self) {
        trace_event!(INFO, "the ORB stops");
        self.stopping.store(true, Ordering::SeqCst);
        self.client.close();
        // Who opens the server meanwhile either has done so, or sees that it shall stop.
        let _opening = self.opening.lock();
        if let Some(server) = self.server.get() {
            server.stop();
        }
        if let Some(pool) = self.own_pool() {
            pool.stop();
        }
        self.pools.stop();
    }

    /// The pool of the dispatch strategy [`Lanes`](Dispatch::Lanes), once the ORB listens.
    pub(crate) fn own_pool(&self) -> Option<&Arc<Pool>> {
        match &self.dispatch {
            Dispatch::Lanes(lanes) => lanes.pool(),
            _ => None,
        }
    }

    /// What adapters without a pool of their own are reached by.
    pub(crate) fn own_listeners(&self) -> Vec<&Listener> {
        match (self.own_pool(), self.server.get()) {
            (Some(pool), _) => pool
                .lanes
                .iter()
                .flat_map(|lane| &lane.server.listeners)
                .collect(),
            (None, Some(server)) => server.listeners.iter().collect(),
            (None, None) => Vec::new(),
        }
    }

    /// Counts one more adapter.
    pub(crate) fn count_adapter(&self) -> Result<(), SystemException> {
        let counted =
            self.adapters
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |adapters| {
                    (adapters < self.limits.adapters_max).then_some(adapters + 1)
                });
        counted
            .map(|_| ())
            .map_err(|_| ExceptionKind::NoResources.into())
    }

    pub(crate) fn uncount_adapter(&self) {
        self.adapters.fetch_sub(1, Ordering::Relaxed);
    }

    /// What it listens with; with lanes, only the signal to stop.
    pub(crate) fn server(&self) -> Option<&Server> {
        self.server.get()
    }

    fn open_server(self: &Arc<Self>) -> Result<&Server, SystemException> {
        if let Some(server) = self.server.get() {
            return Ok(server);
        }
        // Two threads that ask at once must not both bind.
        let _opening = self.opening.lock();
        if let Some(server) = self.server.get() {
            return Ok(server);
        }
        self.check_running()?;
        let listen = match &self.dispatch {
            Dispatch::Lanes(lanes) => {
                lanes.open(self)?;
                &[][..]
            }
            _ => &self.pools.listen,
        };
        let server = published::listen(listen)?;
        Ok(self.server.get_or_init(|| server))
    }
}

impl ObjectRef {
    /// The ORB that the reference belongs to.
    pub fn orb(&self) -> Orb {
        let host: Arc<dyn Any + Send + Sync> = Arc::<dyn Host>::clone(self.host());
        let core = host.downcast().expect("only ORBs make references");
        Orb { core }
    }
}

impl Host for OrbCore {
    fn client(&self) -> &Arc<ClientCore> {
        &self.client
    }

    fn is_in_servant(&self) -> bool {
        is_in_servant()
    }

    fn would_deadlock(&self, endpoint: &Endpoint) -> bool {
        dispatch::pool::would_wait_for_itself(endpoint)
            || is_serving_own(self) && dispatch::would_deadlock(self, endpoint)
    }
}

impl fmt::Debug for OrbCore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Orb")
            .field("strategies", &self.strategies)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}
