//! The ORB: what its references, adapters and connections share.

mod bound_keys;
mod builder;
mod config_file;
mod initial_references;
mod object_url;
mod options;
mod rt_current;
mod rt_orb;
mod settings;

pub use bound_keys::ObjectKeyError;
pub use builder::{OrbBuilder, OrbError};
pub use rt_current::RtCurrent;
pub use rt_orb::RtOrb;

use crate::connection::{Client, ClientCore, Host};
use crate::dispatch::{self, DispatchError};
use crate::endpoint::Endpoint;
use crate::exception::{Cause, ExceptionKind, Phase, SystemException};
use crate::limits::Limits;
use crate::poa::{Adapters, Poa};
use crate::reference::ObjectRef;
use crate::server::{is_in_servant, is_in_upcall, is_serving_own};
use crate::strategies::Strategies;
use crate::timing::OperationCounts;
use crate::trace::trace_event;
use core::any::Any;
use core::fmt;
use initial_references::InitialReferences;
use std::sync::Arc;

/// An object request broker; cheap to clone.
///
/// A client needs [`string_to_object`](Self::string_to_object) alone. A server takes the root adapter, activates servants and
/// [runs](Self::run).
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
    initial_references: InitialReferences,
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
        self.core.adapters.open_server()?;
        Ok(self.root())
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
        let adapters = &self.core.adapters;
        let served = match adapters.open_server() {
            Ok(server) => adapters.run(server),
            Err(_) if self.core.is_stopping() => Ok(()),
            Err(exception) => return Err(exception.into()),
        };
        // When the host refused something, this ends the pools too, which are waited for.
        self.core.stop();
        self.core.adapters.pools.join();
        // Servants often hold the ORB that holds them: with the adapters they go, and with them all the rest.
        self.root().destroy();
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
        if is_in_upcall(&self.core.adapters.server) {
            return Err(SystemException::omg(ExceptionKind::BadInvOrder, 3));
        }
        self.core.stop();
        self.core.adapters.pools.join();
        // As at the end of `run`: servants often hold the ORB.
        self.root().destroy();
        Ok(())
    }

    /// The endpoints that the ORB listens on, with the ports that it was given.
    pub fn endpoints(&self) -> Vec<Endpoint> {
        let listeners = self.core.adapters.own_listeners().into_iter();
        listeners.map(|listener| listener.bound.clone()).collect()
    }

    /// The bounds that it was built with.
    pub fn limits(&self) -> &Limits {
        &self.core.client.limits
    }

    /// What was counted of the operations that are annotated with their timing: of each that is served here, and of each that was
    /// called, in the order of their names. The counters are not of one moment: calls go on meanwhile.
    pub fn timing(&self) -> Vec<OperationCounts> {
        self.core.client.timing.snapshot()
    }

    /// The strategies that it was built with.
    pub fn strategies(&self) -> Strategies {
        self.core.strategies
    }

    /// The client side, for a reference.
    fn client(&self) -> Client {
        Client {
            core: Arc::clone(&self.core.client),
            host: Arc::clone(&self.core) as Arc<dyn Host>,
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
    /// BAD_INV_ORDER 4 once the ORB is shut down.
    #[inline]
    pub(crate) fn check_running(&self) -> Result<(), SystemException> {
        self.adapters.server.check_running()
    }

    #[inline]
    pub(crate) fn is_stopping(&self) -> bool {
        self.adapters.server.is_stopping()
    }

    pub(crate) fn stop(&self) {
        trace_event!(INFO, "the ORB stops");
        self.client.close();
        self.adapters.stop();
    }
}

impl Host for OrbCore {
    fn is_in_servant(&self) -> bool {
        is_in_servant()
    }

    fn would_deadlock(&self, endpoint: &Endpoint) -> bool {
        let Adapters {
            dispatch, server, ..
        } = &*self.adapters;
        dispatch::pool::would_wait_for_itself(endpoint)
            || is_serving_own(server) && dispatch::would_deadlock(dispatch, server, endpoint)
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

impl ObjectRef {
    /// The ORB that the reference belongs to.
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
