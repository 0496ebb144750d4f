//! Object references: what a client holds of an object, and the way from there to its server.

mod binding;
mod policies;
mod sync_scope;

use crate::connection::{self, Arguments, Ask, Channel, Failure, Outcome, Request, Results};
use crate::endpoint::Endpoint;
use crate::exception::{
    Cause, CompletionStatus, ExceptionKind, Phase, SystemException, inconsistent,
};
use crate::orb::routes::{Profile, routes};
use crate::orb::{Orb, OrbCore, SharedEndpoint};
use crate::rt::{Policy, Priority};
use crate::timing::OperationTiming;
use binding::{Binding, Choice, Policies, invalid};
use core::fmt;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use rtorb_os::sync::Mutex;
use rtorb_wire::cdr::{Reference, ReferenceOut};
use rtorb_wire::giop::{ReplyStatus, RequestPrefix, Response, Version};
use rtorb_wire::ior::Ior;
use rtorb_wire::{Decode, DecodeError, Encode, EncodeError, Reader, Writer};
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::{Duration, Instant};
pub use sync_scope::SyncScope;

/// A reference to an object, of whatever interface; cheap to clone.
///
/// Two references are equal if their IORs are: that is `is_equivalent` of the standard, which never asks the object.
#[derive(Clone)]
pub struct ObjectRef {
    inner: Arc<Inner>,
}

struct Inner {
    orb: Orb,
    ior: Ior,
    /// The reference's own policies, which go with it to where the object moves.
    overrides: Arc<[Policy]>,
    policies: Arc<Policies>,
    routes: Vec<Route>,
    /// How a call finds its connection, where that is not the same for all; an exception for policies that do not go
    /// together. None for nearly every reference.
    binding: Option<Box<Result<Binding, SystemException>>>,
    /// The route that answered last.
    preferred: AtomicUsize,
    /// True once the object was found elsewhere: the only word that a call looks at.
    is_forwarded: AtomicBool,
    forward: Mutex<Option<ObjectRef>>,
    timeout: Timeout,
    sync_scope: SyncScope,
}

/// One way to the object: an endpoint of a profile, and what that profile says.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    pub(crate) endpoint: Arc<SharedEndpoint>,
    pub(crate) version: Version,
    pub(crate) object_key: Arc<[u8]>,
    /// What each request begins with, where the version allows to make that once.
    pub(crate) prefix: Option<Arc<RequestPrefix>>,
    /// The CORBA priority of the lane behind it, where the reference tells.
    pub(crate) priority: Option<Priority>,
}

/// How long a round trip may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Timeout {
    /// As the ORB was built.
    OfOrb,
    /// This long; `None` for ever.
    Own(Option<Duration>),
}

impl ObjectRef {
    pub(crate) fn new(orb: Orb, ior: Ior) -> Self {
        Self::with_policies(orb, ior, Arc::default())
    }

    fn with_policies(orb: Orb, ior: Ior, overrides: Arc<[Policy]>) -> Self {
        let profiles = Profile::of(&ior);
        let policies = Policies::new(&orb.core, &overrides, &profiles);
        let bound = policies.wanted().and_then(|wanted| {
            let routes = routes(&orb, &profiles, &wanted);
            if routes.is_empty() && !profiles.is_empty() && !wanted.protocols.is_empty() {
                return Err(invalid(inconsistent::NO_PROTOCOL));
            }
            let binding = policies.binding(&orb.core, &routes)?;
            Ok((routes, binding))
        });
        let (routes, binding) = match bound {
            Ok((routes, binding)) => (routes, binding.map(Ok)),
            Err(exception) => (Vec::new(), Some(Err(exception))),
        };
        Self::of(Inner {
            orb,
            ior,
            overrides,
            policies: Arc::new(policies),
            routes,
            binding: binding.map(Box::new),
            preferred: AtomicUsize::new(0),
            is_forwarded: AtomicBool::new(false),
            forward: Mutex::new(None),
            timeout: Timeout::OfOrb,
            sync_scope: SyncScope::default(),
        })
    }

    fn of(inner: Inner) -> Self {
        Self {
            inner: Arc::new(inner),
        }
    }

    /// The same object with another bound on the time from sending a request to having its reply
    /// (RelativeRoundtripTimeout); `None` waits for ever.
    #[must_use]
    pub fn with_round_trip_timeout(&self, timeout: Option<Duration>) -> Self {
        Self::of(Inner {
            timeout: Timeout::Own(timeout),
            ..self.inner.copy()
        })
    }

    /// The ORB that the reference belongs to.
    pub fn orb(&self) -> &Orb {
        &self.inner.orb
    }

    /// What goes over the wire when the reference is passed on.
    pub fn ior(&self) -> &Ior {
        &self.inner.ior
    }

    /// The repository id of the most derived interface, as far as the reference tells; may be empty.
    pub fn type_id(&self) -> &str {
        &self.inner.ior.type_id
    }

    /// The endpoints that a call would try, in order.
    pub fn endpoints(&self) -> impl Iterator<Item = &Endpoint> {
        self.inner
            .routes
            .iter()
            .map(|route| &*route.endpoint.endpoint)
    }

    /// Asks the object whether it has the interface with that repository id (`_is_a`).
    ///
    /// # Errors
    /// When the object cannot be asked.
    pub fn is_a(&self, repository_id: &str) -> Result<bool, SystemException> {
        self.invoke("_is_a", |w| repository_id.encode(w), bool::decode)
    }

    /// Asks whether the object is gone for good (`_non_existent`).
    ///
    /// # Errors
    /// When that cannot be found out: no answer says nothing of the object.
    pub fn non_existent(&self) -> Result<bool, SystemException> {
        let ask = |operation| self.invoke(operation, |_| Ok(()), bool::decode);
        let answer = match ask("_non_existent") {
            // GIOP 1.0 and 1.1 know it by an older name; omniORB has only the new one, whatever the version.
            Err(exception) if exception.kind == ExceptionKind::BadOperation => ask("_not_existent"),
            answer => answer,
        };
        match answer {
            Err(exception) if exception.kind == ExceptionKind::ObjectNotExist => Ok(true),
            answer => answer,
        }
    }

    /// Calls an operation that raises no user exception.
    ///
    /// Generated code calls this; `arguments` may run more than once, when a request has to be sent again.
    ///
    /// # Errors
    /// A system exception, from the object, its server or this ORB.
    #[inline]
    pub fn invoke<'a, T>(
        &self,
        operation: &str,
        arguments: impl Fn(&mut Writer<'a>) -> Result<(), EncodeError>,
        result: impl FnOnce(&mut Reader<'_>) -> Result<T, DecodeError>,
    ) -> Result<T, SystemException> {
        self.invoke_raising(operation, arguments, result, |_, _| Ok(None))
    }

    /// Calls an operation that may raise user exceptions; `raised` decodes one by its repository id, or answers `None`
    /// for one that the operation does not declare, which the caller gets as UNKNOWN (CORBA 3, 4.12.4, minor 1).
    ///
    /// # Errors
    /// A user exception, or a system exception as [`invoke`](Self::invoke).
    #[inline]
    pub fn invoke_raising<'a, T, E: From<SystemException>>(
        &self,
        operation: &str,
        arguments: impl Fn(&mut Writer<'a>) -> Result<(), EncodeError>,
        result: impl FnOnce(&mut Reader<'_>) -> Result<T, DecodeError>,
        raised: impl FnOnce(&str, &mut Reader<'_>) -> Result<Option<E>, DecodeError>,
    ) -> Result<T, E> {
        let mut result = Some(result);
        let mut raised = Some(raised);
        let mut answer = None;
        self.call(
            operation,
            Response::FromTarget,
            &arguments,
            &mut |status, r| {
                answer = match (status, result.take(), raised.take()) {
                    (ReplyStatus::NoException, Some(result), _) => Some(Ok(result(r)?)),
                    (_, _, Some(raised)) => {
                        let id = r.str()?;
                        let exception = raised(&id, r)?.unwrap_or_else(|| {
                            let unknown = SystemException::omg(ExceptionKind::Unknown, 1);
                            unknown.with_completion(CompletionStatus::Yes).into()
                        });
                        Some(Err(exception))
                    }
                    _ => None,
                };
                Ok(())
            },
        )?;
        answer.unwrap_or_else(|| Err(SystemException::from(ExceptionKind::Internal).into()))
    }

    /// Sends a oneway: the answer says only whether it was handed to the transport, or with [`SyncScope::None`] whether it
    /// will be without anybody's waiting for it.
    ///
    /// # Errors
    /// When it could not be sent.
    #[inline]
    pub fn invoke_oneway<'a>(
        &self,
        operation: &str,
        arguments: impl Fn(&mut Writer<'a>) -> Result<(), EncodeError>,
    ) -> Result<(), SystemException> {
        match self.inner.sync_scope {
            SyncScope::WithTransport => {
                self.call(operation, Response::None, &arguments, &mut |_, _| Ok(()))
            }
            SyncScope::None => self.send_at_once(operation, &arguments).map(|_| ()),
        }
    }

    /// As [`invoke_oneway`](Self::invoke_oneway) with [`SyncScope::None`], whatever the reference's own is; and tells what
    /// [`flush`](Self::flush) would: true when nothing of it is left, so that nobody has to ask.
    ///
    /// # Errors
    /// As with [`SyncScope::None`].
    #[inline]
    pub fn invoke_oneway_at_once<'a>(
        &self,
        operation: &str,
        arguments: impl Fn(&mut Writer<'a>) -> Result<(), EncodeError>,
    ) -> Result<bool, SystemException> {
        self.send_at_once(operation, &arguments)
    }

    /// Does a call of an annotated operation, and counts how long it took.
    ///
    /// Generated code calls this.
    #[inline]
    pub fn timed<T>(&self, operation: &'static OperationTiming, call: impl FnOnce() -> T) -> T {
        let orb = &self.inner.orb.core;
        orb.timing.call(operation, &orb.rt, call)
    }

    /// The same reference, once its ORB has counters for annotated operations that are called through it.
    ///
    /// Generated code calls this when it makes its own reference of it, so that no call has to.
    #[must_use]
    pub fn with_timings(self, operations: &'static [OperationTiming]) -> Self {
        self.inner.orb.core.timing.prepare(operations);
        self
    }

    #[inline]
    fn call<'a>(
        &self,
        operation: &str,
        response: Response,
        arguments: Arguments<'_, 'a>,
        results: Results<'_>,
    ) -> Result<(), SystemException> {
        let question = Question {
            ask: Ask::Operation,
            operation,
            response,
            at: None,
        };
        self.ask(&question, arguments, results)
    }

    fn ask<'a>(
        &self,
        question: &Question<'_>,
        arguments: Arguments<'_, 'a>,
        results: Results<'_>,
    ) -> Result<(), SystemException> {
        let orb = &self.inner.orb.core;
        orb.check_running()?;
        let timeout = match self.inner.timeout {
            Timeout::OfOrb => orb.round_trip_timeout,
            Timeout::Own(timeout) => timeout,
        };
        let mut target = match self.inner.is_forwarded.load(Ordering::Acquire) {
            false => None,
            true => self.inner.forward.lock().clone(),
        };
        let mut was_known = target.is_some();
        let mut moving_since = None;
        for _ in 0..=orb.limits.forwards_max {
            let inner = target.as_ref().map_or(&self.inner, |target| &target.inner);
            match inner.try_routes(question, timeout, arguments, results) {
                Ok(Outcome::Done) => return Ok(()),
                Ok(Outcome::Forward(ior)) => {
                    let overrides = Arc::clone(&self.inner.overrides);
                    let next = Self::with_policies(self.inner.orb.clone(), ior, overrides);
                    if next.inner.routes.is_empty() && next.inner.binding.is_none() {
                        return Err(NO_USABLE_PROFILE);
                    }
                    was_known = false;
                    moving_since.get_or_insert_with(Instant::now);
                    *self.inner.forward.lock() = Some(next.clone());
                    self.inner.is_forwarded.store(true, Ordering::Release);
                    target = Some(next);
                }
                // The place that the object had moved to is gone: ask where it was known first. What was told just now is
                // not asked for again.
                Err(failure) if was_known && failure.ends_forward() => {
                    self.inner.is_forwarded.store(false, Ordering::Release);
                    *self.inner.forward.lock() = None;
                    target = None;
                    was_known = false;
                }
                Err(failure) => return Err(failure.exception),
            }
        }
        Err(self.too_many_forwards(moving_since))
    }

    #[cold]
    fn too_many_forwards(&self, since: Option<Instant>) -> SystemException {
        let route = self.inner.routes.first();
        SystemException::from(ExceptionKind::Transient).with_cause(Cause {
            phase: Phase::Forward,
            endpoint: route.map(|route| Arc::clone(&route.endpoint.endpoint)),
            elapsed: since.map_or(Duration::ZERO, |since| since.elapsed()),
            errno: None,
        })
    }
}

/// What is asked of an object, by whatever route.
#[derive(Clone, Copy, Debug)]
struct Question<'x> {
    ask: Ask,
    operation: &'x str,
    response: Response,
    /// The priority to ask with, where it is not the calling thread's.
    at: Option<Priority>,
}

impl Inner {
    /// Calls by the route that answered last, and by the others while the failure permits it.
    fn try_routes<'a>(
        &self,
        question: &Question<'_>,
        timeout: Option<Duration>,
        arguments: Arguments<'_, 'a>,
        results: Results<'_>,
    ) -> Result<Outcome, Failure> {
        let choice = self.choice(question.at)?;
        let preferred = self.preferred.load(Ordering::Relaxed);
        let mut last = None;
        for step in 0..self.routes.len() {
            let index = self.index(preferred, step);
            let Some(request) = self.request(question, timeout, (&choice, index)) else {
                // Another priority's: not even when the own one fails.
                continue;
            };
            match connection::call(&request, arguments, results) {
                Err(failure) if failure.permits_other_route() => last = Some(failure),
                answer => {
                    if last.is_some() {
                        self.preferred.store(index, Ordering::Relaxed);
                    }
                    return answer;
                }
            }
        }
        Err(last.unwrap_or_else(|| self.no_route().into()))
    }

    /// The route that is tried so many steps after the one that answered last.
    #[inline]
    fn index(&self, preferred: usize, step: usize) -> usize {
        match preferred + step {
            index if index < self.routes.len() => index,
            index => index - self.routes.len(),
        }
    }

    /// What is asked by a route; none if the call may not go by it.
    #[inline(always)]
    fn request<'x>(
        &'x self,
        question: &Question<'x>,
        timeout: Option<Duration>,
        (choice, index): (&Option<Choice>, usize),
    ) -> Option<Request<'x>> {
        let route = &self.routes[index];
        let orb = &self.orb.core;
        let (priority, channel) = match choice {
            None => (None, Channel::ANY),
            Some(choice) if choice.accepts(route) => {
                (choice.priority(), choice.channel(orb, route))
            }
            Some(_) => return None,
        };
        Some(Request {
            orb,
            route,
            channel,
            ask: question.ask,
            operation: question.operation,
            response: question.response,
            timeout,
            priority,
        })
    }

    /// What a call needs of a route, where that is not the same for all.
    #[inline]
    fn choice(&self, at: Option<Priority>) -> Result<Option<Choice>, SystemException> {
        match &self.binding {
            None => Ok(None),
            Some(binding) => self.choose(binding, at).map(Some),
        }
    }

    /// The same reference once more, with the same connections and knowing of no move.
    fn copy(&self) -> Self {
        Self {
            orb: self.orb.clone(),
            ior: self.ior.clone(),
            overrides: Arc::clone(&self.overrides),
            policies: Arc::clone(&self.policies),
            routes: self.routes.clone(),
            binding: self.binding.clone(),
            preferred: AtomicUsize::new(0),
            is_forwarded: AtomicBool::new(false),
            forward: Mutex::new(None),
            timeout: self.timeout,
            sync_scope: self.sync_scope,
        }
    }

    fn choose(
        &self,
        binding: &Result<Binding, SystemException>,
        at: Option<Priority>,
    ) -> Result<Choice, SystemException> {
        match (binding, at) {
            (Ok(binding), None) => binding.choose(&self.orb.core, &self.routes),
            (Ok(binding), Some(priority)) => binding.choose_at(priority),
            (Err(exception), _) => Err(exception.clone()),
        }
    }

    #[cold]
    fn no_route(&self) -> SystemException {
        match self.routes.is_empty() {
            true => NO_USABLE_PROFILE,
            false => invalid(inconsistent::NO_LANE),
        }
    }
}

/// A reference without a profile that this ORB can use.
const NO_USABLE_PROFILE: SystemException = SystemException::omg(ExceptionKind::ImpLimit, 1);

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
        let core = r
            .context()
            .and_then(|context| context.downcast_ref::<Arc<OrbCore>>());
        let Some(core) = core else {
            return Err(DecodeError::BadTag {
                what: "a reference outside of a call",
                value: 0,
            });
        };
        Ok(Some(Self::new(
            Orb {
                core: Arc::clone(core),
            },
            ior,
        )))
    }
}
