//! Object references.
//!
//! A `call` follows the object, and `route_choice` tries its routes, which `routes` makes from the profiles of the IOR. `timeout` and
//! `policies` make references with other policies, and `binding` the rules by which these choose a connection. `servant_call` calls a
//! servant of the same ORB without a request; `thread_policies` has those of the calls of a thread; `passing` forwards requests of other
//! clients; `intercepted_call` calls interceptors before and after a call, and `recorded_call` records it; `sync_scope` is about
//! oneways. A `started_call` is a call whose result is taken later, by a `started_request`; a `reply_poller` asks for it as in CORBA Messaging.

mod binding;
mod call;
mod intercepted_call;
mod passing;
mod policies;
mod recorded_call;
mod reply_poller;
mod route_choice;
pub(crate) mod routes;
mod servant_call;
mod started_call;
mod started_request;
mod sync_scope;
mod thread_policies;
mod timeout;
mod untyped_call;

use crate::connection::{Client, Route, SharedEndpoint};
use crate::endpoint::Endpoint;
use crate::exception::{SystemException, inconsistent};
use crate::realtime::Policy;
use crate::server::LocalObject;
use crate::timing::OperationTiming;
use binding::{Binding, Policies, invalid};
use core::fmt;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
pub(crate) use reply_poller::ReadReply;
pub use reply_poller::ReplyPoller;
use routes::{Profile, routes};
use rtorb_os::sync::Mutex;
use rtorb_wire::cdr::{Reference, ReferenceOut};
use rtorb_wire::giop::AddressingMode;
use rtorb_wire::ior::Ior;
use rtorb_wire::{Decode, DecodeError, Encode, EncodeError, Reader, Writer};
pub use started_call::{Call, Starter};
use std::hash::{Hash, Hasher};
use std::sync::Arc;
pub use sync_scope::SyncScope;
pub use thread_policies::{PolicyCurrent, PolicyOverrides};
use timeout::Timeout;
pub use untyped_call::UntypedCall;

/// A reference to an object of any interface; cheap to clone.
///
/// Two references are equal if their IORs are equal. This is the standard's `is_equivalent`, which does not call the object.
///
/// ```no_run
/// use std::time::Duration;
/// # fn main() -> Result<(), rtorb::OrbError> {
/// let orb = rtorb::Orb::builder().build()?;
/// let object = orb.string_to_object("corbaloc:iiop:plant:2809/Valve")?;
/// let object = object.with_timeout(Duration::from_millis(20));
/// // Without generated code: `long setting(in long wanted)`.
/// let setting: i32 = object.invoke("setting", |w| w.primitive(7_i32), |r| r.primitive())?;
/// # let _ = setting;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ObjectRef {
    inner: Arc<Inner>,
}

struct Inner {
    client: Client,
    ior: Ior,
    /// The reference's own policies. They still apply after the object has moved.
    overrides: Arc<[Policy]>,
    policies: Arc<Policies>,
    routes: Vec<Route>,
    /// The largest number of routes to one lane, if the server has lanes.
    lane_routes: u32,
    /// The rules by which calls choose a connection, or an exception if the policies conflict. `None` if all calls use the same
    /// connection, as with nearly every reference.
    binding: Option<Box<Result<Binding, SystemException>>>,
    /// The route that replied last.
    preferred: AtomicUsize,
    /// True once the object has moved. Until then, calls read no other field about moves.
    is_forwarded: AtomicBool,
    forward: Mutex<Option<ObjectRef>>,
    timeout: Timeout,
    /// The annotated operations of its interface, if some state a network priority.
    operations: &'static [OperationTiming],
    /// The reference's own scope.
    sync_scope: Option<SyncScope>,
    /// True if it already has the policies of the calling thread.
    has_thread_policies: bool,
    /// True if the calling thread serves the requests of all routes. Such calls need no deadline.
    is_direct: bool,
    /// The object of the same ORB, if calls may need no request.
    servant: Option<LocalObject>,
}

impl ObjectRef {
    pub(crate) fn new(client: Client, ior: Ior) -> Self {
        Self::with_policies(client, ior, Arc::default(), Timeout::OfOrb, &[])
    }

    fn with_policies(
        client: Client,
        ior: Ior,
        overrides: Arc<[Policy]>,
        timeout: Timeout,
        operations: &'static [OperationTiming],
    ) -> Self {
        let profiles = Profile::of(&ior);
        let policies = Policies::new(&client.core, &overrides, &profiles);
        let bound = policies.wanted().and_then(|wanted| {
            let routes = routes(&client, &profiles, &wanted);
            if routes.is_empty() && !profiles.is_empty() && !wanted.protocols.is_empty() {
                return Err(invalid(inconsistent::NO_PROTOCOL));
            }
            let binding = policies.binding(&client.core, &routes, operations)?;
            Ok((routes, binding))
        });
        let (routes, binding) = match bound {
            Ok((routes, binding)) => (routes, binding.map(Ok)),
            Err(exception) => (Vec::new(), Some(Err(exception))),
        };
        Self::of(Inner {
            client,
            ior,
            overrides,
            policies: Arc::new(policies),
            lane_routes: lane_routes(&routes),
            routes,
            binding: binding.map(Box::new),
            preferred: AtomicUsize::new(0),
            is_forwarded: AtomicBool::new(false),
            forward: Mutex::new(None),
            timeout,
            operations,
            sync_scope: None,
            has_thread_policies: false,
            is_direct: false,
            servant: None,
        })
    }

    fn of(mut inner: Inner) -> Self {
        let core = &inner.client.core;
        let is_bounded = inner.timeout.is_chosen(core);
        // A call with a deadline of its own is not collocated.
        let timeout_ns = inner.timeout.of_calls(core).unwrap_or(u64::MAX);
        for route in &mut inner.routes {
            // A timeout cannot end a servant that runs on the calling thread.
            route.is_collocated = route.is_own && !is_bounded;
            route.timeout_ns = timeout_ns;
        }
        inner.is_direct = inner.routes.iter().all(|route| route.is_collocated);
        inner.servant = inner.find_servant();
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Returns the client side of its ORB.
    pub(crate) fn client(&self) -> &Client {
        &self.inner.client
    }

    /// Returns the IOR, which is sent when the reference is an argument or a result.
    pub fn ior(&self) -> &Ior {
        &self.inner.ior
    }

    /// Returns the repository id of the most derived interface; empty if the reference does not contain it.
    pub fn type_id(&self) -> &str {
        &self.inner.ior.type_id
    }

    /// Returns the endpoints that a call tries, in order.
    pub fn endpoints(&self) -> impl Iterator<Item = &Endpoint> {
        self.inner
            .routes
            .iter()
            .map(|route| &*route.endpoint.endpoint)
    }
}

impl Inner {
    /// Returns the reference of the object's new location, if it has moved.
    #[inline]
    fn forward(&self) -> Option<ObjectRef> {
        if !self.is_forwarded.load(Ordering::Acquire) {
            return None;
        }
        self.forward.lock().clone()
    }

    /// Returns the same reference, with requests that contain this form of the target address.
    #[cold]
    fn readdressed(&self, mode: AddressingMode) -> ObjectRef {
        let mut inner = self.copy();
        for route in &mut inner.routes {
            route.readdress(mode, &self.ior);
        }
        ObjectRef::of(inner)
    }

    /// Returns the same reference, with connections of the code set of `endpoint`; `None` if it has them.
    #[cold]
    fn in_code_set_of(&self, endpoint: &SharedEndpoint) -> Option<ObjectRef> {
        let (char_code_set, names) = (endpoint.char_code_set, endpoint.names_code_sets);
        let agrees =
            |it: &SharedEndpoint| it.char_code_set == char_code_set && it.names_code_sets == names;
        if self.routes.iter().all(|route| agrees(&route.endpoint)) {
            return None;
        }
        let mut inner = self.copy();
        inner.preferred = AtomicUsize::new(self.preferred.load(Ordering::Relaxed));
        for Route { endpoint, .. } in &mut inner.routes {
            if agrees(endpoint) {
                continue;
            }
            let key = endpoint.key_with(char_code_set, names);
            *endpoint = if endpoint.is_private {
                Arc::new(SharedEndpoint::new(&key, true))
            } else {
                self.client.core.endpoints.share(key)
            };
        }
        Some(ObjectRef::of(inner))
    }

    /// Copies the reference, with the same connections, but without its new location.
    fn copy(&self) -> Self {
        Self {
            client: self.client.clone(),
            ior: self.ior.clone(),
            overrides: Arc::clone(&self.overrides),
            policies: Arc::clone(&self.policies),
            routes: self.routes.clone(),
            lane_routes: self.lane_routes,
            binding: self.binding.clone(),
            preferred: AtomicUsize::new(0),
            is_forwarded: AtomicBool::new(false),
            forward: Mutex::new(None),
            timeout: self.timeout,
            operations: self.operations,
            sync_scope: self.sync_scope,
            has_thread_policies: false,
            is_direct: self.is_direct,
            servant: None,
        }
    }
}

/// Returns the largest number of routes to one lane.
fn lane_routes(routes: &[Route]) -> u32 {
    let lanes = routes.iter().filter(|route| route.priority.is_some());
    let sizes = lanes.map(|lane| {
        routes
            .iter()
            .filter(|route| route.priority == lane.priority)
    });
    sizes.map(|lane| lane.count() as u32).max().unwrap_or(1)
}

impl PartialEq for ObjectRef {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner) || self.inner.ior == other.inner.ior
    }
}

impl Eq for ObjectRef {}

impl Hash for ObjectRef {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.inner.ior.hash(state);
    }
}

impl fmt::Debug for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectRef")
            .field("type_id", &self.type_id())
            .field(
                "endpoints",
                &self
                    .endpoints()
                    .map(ToString::to_string)
                    .collect::<Vec<_>>(),
            )
            .finish_non_exhaustive()
    }
}

/// The stringified reference: `IOR:` and hexadecimal digits.
impl fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.ior.fmt(f)
    }
}

impl ReferenceOut for ObjectRef {
    fn encode_ior<'a>(&'a self, w: &mut Writer<'a>) -> Result<(), EncodeError> {
        self.inner.ior.encode(w)
    }
}

impl Reference for ObjectRef {
    fn decode_ior(r: &mut Reader<'_>) -> Result<Option<Self>, DecodeError> {
        let ior = Ior::decode(r)?;
        if ior.is_nil() {
            return Ok(None);
        }
        let client = r.context().and_then(Client::of_context);
        let Some(client) = client else {
            return Err(DecodeError::BadTag {
                what: "a reference outside of a call",
                value: 0,
            });
        };
        Ok(Some(Self::new(client, ior)))
    }
}
