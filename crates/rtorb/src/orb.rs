//! The ORB: makes references, adapters and real-time objects, and runs the server.

mod added_lane;
mod bound_keys;
mod builder;
mod config;
mod config_file;
mod group;
mod lane_levels;
mod lane_threads;
mod object_url;
mod options;
mod ranges;
mod reply_driver;
mod reply_handlers;
mod rt_current;
mod rt_orb;
mod scheduling_current;
mod shutdown_signal;

pub use bound_keys::ObjectKeyError;
pub use builder::{OrbBuilder, OrbError};
pub use config::OrbConfig;
pub use reply_driver::ReplyDriver;
pub use reply_handlers::EndedCall;
use reply_handlers::ReplyHandlers;
pub use rt_current::RtCurrent;
pub use rt_orb::RtOrb;
pub use scheduling_current::{
    DistributableThread, DistributableThreadState, SchedulingCurrent, SegmentError, SpawnOptions,
    SpawnedThread,
};

use crate::connection::{
    BidirectionalConnection, Client, ClientCore, CollocatedRequest, EnclosingOrb, Outcome,
    RequestCarrier,
};
use crate::deadline;
use crate::dispatch::{self, DispatchError, pool};
use crate::distributable::SchedulingDiscipline;
use crate::endpoint::Endpoint;
use crate::exception::{Cause, ExceptionKind, Phase, SystemException, local};
use crate::limits::Limits;
use crate::poa::{Adapters, Poa};
use crate::realtime::PriorityMapping;
use crate::reference::{ObjectRef, PolicyCurrent};
use crate::server::{
    ConnectionCounts, DeferredReplyCounts, collocated, is_in_servant, is_in_upcall,
};
use crate::strategies::Strategies;
use crate::thread_state;
use crate::timing::{MissRatio, MissRatios, OperationCounts};
use crate::trace::trace_event;
use crate::transport::{Listener, Stream};
use crate::wait;
use crate::warning::Warning;
use core::any::Any;
use core::fmt;
use rtorb_core::Interface;
use rtorb_os::sync::Mutex;
use rtorb_wire::connection::timeout_ns;
use rtorb_wire::ior::ListenPoint;
use shutdown_signal::ShutdownSignal;
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

/// An object request broker; cheap to clone.
///
/// A client needs only [`string_to_object`](Self::string_to_object). A server takes the root adapter, activates servants and
/// [runs](Self::run) the ORB.
///
/// ```
/// # fn main() -> Result<(), rtorb::OrbError> {
/// let orb = rtorb::Orb::builder().build()?;
/// let object = orb.string_to_object("corbaloc:iiop:127.0.0.1:2809/NameService")?;
/// assert_eq!(orb.string_to_object(&orb.object_to_string(&object))?, object);
/// orb.root_poa()?; // from here on the ORB listens
/// assert_eq!(orb.endpoints().len(), 1);
/// orb.destroy()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Orb {
    pub(crate) core: Arc<OrbCore>,
}

/// The two sides of an ORB, and the names of its initial references.
pub(crate) struct OrbCore {
    pub(crate) strategies: Strategies,
    pub(crate) client: Arc<ClientCore>,
    pub(crate) adapters: Arc<Adapters>,
    /// Initial references: names and stringified references.
    initial_references: Mutex<BTreeMap<String, String>>,
    /// The calls whose replies handlers are told. They hold the ORB, until it ends.
    reply_handlers: ReplyHandlers,
    shutdown_signal: ShutdownSignal,
}

impl Orb {
    /// Returns a builder with the default options.
    pub fn builder() -> OrbBuilder {
        OrbBuilder::default()
    }

    /// Returns the context of readers of messages outside of a call: references in them belong to this ORB. Support for tools. Not public.
    #[doc(hidden)]
    pub fn reader_context(&self) -> &(dyn core::any::Any + Send + Sync) {
        &self.core.adapters.server.client
    }

    /// Returns the root adapter. The first call opens the listening endpoints.
    ///
    /// # Errors
    /// INITIALIZE with the endpoint if one cannot be opened; BAD_INV_ORDER 4 once the ORB is shut down.
    pub fn root_poa(&self) -> Result<Poa, SystemException> {
        self.core.adapters.server.check_running()?;
        self.core.adapters.open_server()?;
        Ok(self.root())
    }

    /// Makes a reference from its text: `IOR:`, `corbaloc:`, `corbaname:` or `file://`.
    ///
    /// A `corbaname:` calls naming contexts. The timeout of one call, that of the thread or else the ORB's (30 s by default), bounds all
    /// of these calls together. At most 8 names and files are followed.
    ///
    /// # Errors
    /// BAD_PARAM with the OMG's minor codes 7 to 10 (CORBA 3, 13.6.10.9) for a malformed text, and with codes of
    /// [this ORB](crate::exception::local) for a name that is not bound, a file that cannot be read and a circle of names;
    /// INV_OBJREF for the nil reference; the exceptions of the naming context of a `corbaname:`.
    pub fn string_to_object(&self, text: &str) -> Result<ObjectRef, SystemException> {
        object_url::resolve(self, text)
    }

    /// Makes a reference to an object of the interface `I` from its text, as [`string_to_object`](Self::string_to_object). Asks
    /// the object if the text does not state its interface.
    ///
    /// # Errors
    /// As [`string_to_object`](Self::string_to_object); BAD_PARAM if the object has another interface; the exception of the call
    /// if the object cannot be asked.
    pub fn string_to_reference<I: Interface<Object = ObjectRef>>(
        &self,
        text: &str,
    ) -> Result<I, SystemException> {
        rtorb_core::narrow(&self.string_to_object(text)?)
    }

    /// Returns the reference as text: `IOR:` and hexadecimal digits.
    pub fn object_to_string(&self, object: &ObjectRef) -> String {
        object.to_string()
    }

    /// Returns the initial reference with this name, from `-ORBInitRef` or registered.
    ///
    /// # Errors
    /// INV_OBJREF if there is none (the standard's InvalidName); as [`string_to_object`](Self::string_to_object) for the
    /// registered text.
    pub fn resolve_initial_references(&self, name: &str) -> Result<ObjectRef, SystemException> {
        object_url::resolve_initial(self, name)
    }

    /// Registers an object under a name for [`resolve_initial_references`](Self::resolve_initial_references).
    pub fn register_initial_reference(&self, name: &str, object: ObjectRef) {
        let mut references = self.core.initial_references.lock();
        references.insert(name.to_owned(), object.to_string());
    }

    /// Returns the mapping of CORBA priorities to native ones (RTCORBA::PriorityMapping).
    #[must_use]
    pub fn priority_mapping(&self) -> &dyn PriorityMapping {
        &*self.core.adapters.server.rt.mapping
    }

    /// Returns the initial reference `RTCurrent`: the priority of the calling thread.
    pub fn rt_current(&self) -> RtCurrent {
        RtCurrent::new(self.clone())
    }

    /// Returns the initial reference `RTScheduler_Current`: the distributable thread of the calling thread, whose segments `discipline`
    /// schedules.
    pub fn scheduling_current(
        &self,
        discipline: impl SchedulingDiscipline + 'static,
    ) -> SchedulingCurrent {
        SchedulingCurrent::new(self.clone(), Arc::new(discipline))
    }

    /// Returns the initial reference `PolicyCurrent`: the policies of the calls of the calling thread.
    pub fn policy_current(&self) -> PolicyCurrent {
        PolicyCurrent::new(self.client())
    }

    /// Returns the initial reference `RTORB`: the RT-CORBA side of the ORB.
    pub fn rt_orb(&self) -> RtOrb {
        RtOrb::new(self.clone())
    }

    /// Returns the names that [`resolve_initial_references`](Self::resolve_initial_references) knows.
    pub fn list_initial_services(&self) -> Vec<String> {
        let references = self.core.initial_references.lock();
        references.keys().cloned().collect()
    }

    /// Serves requests until [`shutdown`](Self::shutdown); the dispatch strategy determines what the calling thread does.
    ///
    /// Returns at once if the ORB is already shut down.
    ///
    /// # Errors
    /// [`OrbError::Refused`] if the host refuses a thread or its scheduling; INITIALIZE with the endpoint if one cannot be opened;
    /// INTERNAL if the host refuses a system call.
    pub fn run(&self) -> Result<(), OrbError> {
        self.run_with(|| Ok(()))
    }

    /// Serves as [`run`](Self::run) does, and calls `ready` on the calling thread when the threads of the dispatch strategy run:
    /// clients that get a reference from `ready` find a server. If the host refuses one of them, or the ORB is shut down before,
    /// `ready` is not called. If `ready` fails, the ORB ends, and this returns its error.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let orb = rtorb::Orb::builder().build()?;
    /// orb.run_with(|| {
    ///     println!("serving at {:?}", orb.endpoints());
    /// #   orb.shutdown();
    ///     Ok::<(), rtorb::OrbError>(())
    /// })?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As `run` and `ready`.
    pub fn run_with<E: From<OrbError>>(
        &self,
        ready: impl FnOnce() -> Result<(), E>,
    ) -> Result<(), E> {
        let (mut ready, mut failed) = (Some(ready), None);
        let server = &self.core.adapters.server;
        let served = self.serve(&mut || {
            if server.is_stopping() {
                return;
            }
            server.state.note_served();
            failed = ready.take().and_then(|ready| ready().err());
            if failed.is_some() {
                self.core.stop();
            }
        });
        failed.map_or(Ok(()), Err)?;
        Ok(served?)
    }

    fn serve(&self, ready: &mut dyn FnMut()) -> Result<(), OrbError> {
        let adapters = &self.core.adapters;
        let served = match adapters.open_server() {
            Ok(server) => dispatch::run(&adapters.dispatch, &adapters.server, server, ready),
            Err(_) if adapters.server.is_stopping() => Ok(()),
            Err(exception) => return Err(exception.into()),
        };
        // After a refusal of the host this also ends the pools, which are joined below.
        self.core.stop();
        self.core.adapters.pools.join();
        self.core.shutdown_signal.join();
        self.core.reply_handlers.close();
        // Servants often hold the ORB that holds them: destroying the adapters breaks the circle.
        self.root().destroy();
        served.map_err(|error| match error {
            DispatchError::Refused(refused) => OrbError::Refused(refused),
            DispatchError::System(errno) => OrbError::System(
                SystemException::from(ExceptionKind::Internal)
                    .with_cause(Cause::host(Phase::Listen, errno)),
            ),
        })
    }

    /// Ends the ORB: requests in progress get their replies, clients get CloseConnection, and [`run`](Self::run) returns once it has
    /// destroyed the adapters. Without `run`, [`destroy`](Self::destroy) does that.
    ///
    /// It does not wait, so a servant may call it. Later calls through this ORB raise BAD_INV_ORDER, except those of servants whose
    /// requests are in progress.
    pub fn shutdown(&self) {
        self.core.stop();
    }

    /// Ends the ORB as [`shutdown`](Self::shutdown) does, and waits until all thread pools of the application have ended
    /// (CORBA::ORB::destroy). A program whose objects are all served by such pools need not [run](Self::run) the ORB.
    ///
    /// Then it tells the reply handlers that were not told yet: the reply if it has arrived, or else BAD_INV_ORDER 4, COMPLETED_MAYBE.
    ///
    /// # Errors
    /// BAD_INV_ORDER 3 in a servant of this ORB, whose thread would wait for itself.
    pub fn destroy(&self) -> Result<(), SystemException> {
        if is_in_upcall(&self.core.adapters.server) {
            return Err(local::WOULD_DEADLOCK);
        }
        self.core.stop();
        self.core.adapters.pools.join();
        self.core.shutdown_signal.join();
        self.core.reply_handlers.close();
        // As at the end of `run`: servants often hold the ORB.
        self.root().destroy();
        Ok(())
    }

    /// Runs an operation of several calls within the timeout of one call, that of the [thread](Self::policy_current) or else the ORB's, of
    /// which no server learns.
    ///
    /// See [`ObjectRef::within_timeout`].
    pub fn within_timeout<T>(&self, operation: impl FnOnce() -> T) -> T {
        let of_thread = thread_state::has_special()
            .then(|| self.policy_current().overrides().timeout())
            .flatten();
        let timeout_ns = of_thread.map_or(self.core.client.round_trip_ns, timeout_ns);
        deadline::with_timeout(wait::deadline(timeout_ns), operation)
    }

    /// Returns the endpoints that the ORB listens on, with the actual ports.
    pub fn endpoints(&self) -> Vec<Endpoint> {
        let listeners = self.core.adapters.own_listeners().into_iter();
        listeners.map(|listener| listener.bound.clone()).collect()
    }

    /// Returns the ORB's limits.
    pub fn limits(&self) -> &Limits {
        &self.core.client.limits
    }

    /// Returns the counters of annotated operations, sorted by name: one for each operation that this ORB serves, and one for each that it
    /// has called. They are not an atomic snapshot: calls continue while they are read.
    pub fn timing(&self) -> Vec<OperationCounts> {
        self.core.client.timing.snapshot()
    }

    /// Replaces how many calls of operations may be late (`@statistical`) while calls go on. Operations that are not named have the ratios of
    /// their annotations. Late calls before a change do not count for the new ratio.
    ///
    /// # Errors
    /// BAD_PARAM for a ratio that is not [countable](crate::timing::MissRatio::is_countable).
    pub fn set_miss_ratios(&self, ratios: MissRatios) -> Result<(), SystemException> {
        let is_wrong = |ratio: &Option<MissRatio>| ratio.is_some_and(|it| !it.is_countable());
        if let Some((operation, _)) = ratios.iter().find(|(_, ratio)| is_wrong(ratio)) {
            let what = format_args!("the late calls of {operation}");
            return Err(local::WRONG_NUMBER.with_detail(what));
        }
        self.core.client.timing.set_miss_ratios(ratios);
        Ok(())
    }

    /// Gives a warning to the hook of the builder and to `tracing`: for services that run on this ORB.
    pub fn warn(&self, warning: &Warning) {
        self.core.adapters.server.warnings.warn(warning);
    }

    /// Returns the counters of the server's connections: how many were accepted, and how many a limit refused or ended. They are not an
    /// atomic snapshot.
    pub fn connection_counts(&self) -> ConnectionCounts {
        self.core.adapters.server.state.connections.snapshot()
    }

    /// Returns the number of requests that this ORB has refused with TRANSIENT 1, because the queue of their threads was full, or with
    /// TRANSIENT, minor code `0x7274601b`, because as many waited as their operation allows (`@queue`), or with minor code `0x7274601c`
    /// or `0x7274601e`, because as many replies were deferred as its limits allow.
    pub fn requests_refused(&self) -> u64 {
        self.core.adapters.server.state.refused()
    }

    /// Returns the number of requests that waited in a full queue and gave their places to more critical ones (`@criticality`). Each was
    /// refused with TRANSIENT.
    pub fn requests_shed(&self) -> u64 {
        self.core.adapters.server.state.shed()
    }

    /// Returns the number of requests whose deadline had passed before a servant was called. Each was refused with TIMEOUT, or served
    /// if [`deadlines`](OrbBuilder::deadlines) are only counted.
    pub fn requests_expired(&self) -> u64 {
        self.core.client.timing.expired()
    }

    /// Returns the number of requests that their clients had cancelled before a servant was called. They were dropped.
    pub fn requests_cancelled(&self) -> u64 {
        self.core.adapters.server.state.cancelled()
    }

    /// Returns the counters of the replies that servants have deferred ([`Responder`](crate::Responder)).
    pub fn deferred_replies(&self) -> DeferredReplyCounts {
        self.core.adapters.server.deferred.snapshot()
    }

    /// Returns the ORB's strategies.
    pub fn strategies(&self) -> Strategies {
        self.core.strategies
    }

    /// Returns the client side, which references hold.
    fn client(&self) -> Client {
        Client {
            core: Arc::clone(&self.core.client),
            host: Arc::clone(&self.core) as Arc<dyn EnclosingOrb>,
        }
    }

    fn root(&self) -> Poa {
        let adapters = &self.core.adapters;
        Poa::new(
            self.client(),
            Arc::clone(adapters),
            Arc::clone(&adapters.root),
        )
    }
}

impl OrbCore {
    pub(crate) fn stop(&self) {
        trace_event!(INFO, "the ORB stops");
        self.client.close();
        self.adapters.stop();
        self.shutdown_signal.cancel();
    }
}

impl EnclosingOrb for OrbCore {
    fn is_in_servant(&self) -> bool {
        is_in_servant()
    }

    fn is_in_own_servant(&self) -> bool {
        is_in_upcall(&self.adapters.server)
    }

    fn would_deadlock(&self, endpoint: &Endpoint) -> bool {
        pool::would_wait_for_itself(endpoint)
    }

    fn is_collocated(&self, endpoint: &Endpoint) -> bool {
        self.adapters.leads_to_no_pool(endpoint)
    }

    fn has_unserved_client(&self) -> bool {
        let mut listeners = self.adapters.own_listeners().into_iter();
        // An ORB that listens also opens bidirectional connections, which its I/O thread would read.
        let is_bidirectional = self.client.sharing.bidirectional().is_some();
        let opens_some = is_bidirectional && self.adapters.own_pool().is_some();
        !self.adapters.server.state.is_served()
            && (opens_some || listeners.any(Listener::has_client))
    }

    fn listen_points(&self) -> Vec<ListenPoint> {
        let pool = self.adapters.own_pool().into_iter();
        let listeners = pool.flat_map(|pool| &pool.lanes[0].server.listeners);
        let published = listeners.flat_map(|listener| listener.published());
        let points = published.filter_map(|endpoint| match endpoint {
            Endpoint::Tcp { host, port } => Some(ListenPoint {
                host: host.clone(),
                port: *port,
            }),
            _ => None,
        });
        points.collect()
    }

    fn serve_opened(
        &self,
        stream: Stream,
        make: &mut dyn FnMut(Weak<dyn RequestCarrier>) -> BidirectionalConnection,
    ) -> Result<Arc<BidirectionalConnection>, SystemException> {
        let pool = self.adapters.own_pool().ok_or(local::SHUT_DOWN)?;
        pool.lanes[0].serve_opened(&self.adapters.server, stream, make)
    }

    fn serve_here(&self, request: &mut dyn CollocatedRequest) -> Result<Outcome, SystemException> {
        collocated::serve(&self.adapters.server, request)
    }

    fn server(&self) -> Arc<dyn Any + Send + Sync> {
        Arc::clone(&self.adapters.server) as Arc<dyn Any + Send + Sync>
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

impl ObjectRef {
    /// Returns the ORB that the reference belongs to.
    pub fn orb(&self) -> Orb {
        let host = Arc::clone(&self.client().host).into_any();
        let core = host
            .downcast()
            .expect("the host of every reference is an `OrbCore`");
        Orb { core }
    }
}

impl fmt::Debug for OrbCore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Orb")
            .field("strategies", &self.strategies)
            .field("limits", &self.client.limits)
            .finish_non_exhaustive()
    }
}
