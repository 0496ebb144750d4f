//! Object references, and the invocation of their objects.

mod binding;
mod passing;
mod policies;
pub(crate) mod routes;
mod servant_call;
mod sync_scope;

use crate::clock::monotonic_ns;
use crate::connection::{
    self, Arguments, Channel, Client, ClientCore, Invocation, InvocationKind, Outcome, Results,
    Route,
};
use crate::deadline::{self, NONE_NS};
use crate::endpoint::Endpoint;
use crate::exception::{
    Cause, CompletionStatus, ExceptionKind, Phase, SystemException, inconsistent, local, oneway,
};
use crate::realtime::{Policy, Priority};
use crate::timing::OperationTiming;
use crate::wait;
use binding::{BandedPriority, Binding, Policies, invalid};
use core::fmt;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use routes::{Profile, routes};
use rtorb_os::slab::Key;
use rtorb_os::sync::Mutex;
use rtorb_wire::cdr::{Reference, ReferenceOut};
use rtorb_wire::connection::Deadline;
use rtorb_wire::giop::{AddressingMode, ReplyStatus, Response};
use rtorb_wire::ior::Ior;
use rtorb_wire::{Decode, DecodeError, Encode, EncodeError, Reader, Writer};
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::{Duration, Instant};
pub use sync_scope::SyncScope;

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
    sync_scope: SyncScope,
    /// True if the calling thread serves the requests of all routes. Such calls need no deadline.
    is_direct: bool,
    /// Where the servant is, if calls may need no request.
    servant: Option<Key>,
}

/// The timeout of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Timeout {
    /// The ORB's timeout.
    OfOrb,
    /// The reference's own timeout; `None` for no timeout.
    Own(Option<Duration>),
    /// A deadline of each call, which the server learns.
    Deadline(Duration),
    /// One deadline for all calls, which their servers learn.
    EndTime(Deadline),
    /// One deadline for all calls, which stays in this process.
    Until(Deadline),
}

/// The request of a call, without its arguments.
#[derive(Clone, Copy, Debug)]
struct Asked<'x> {
    kind: InvocationKind<'x>,
    operation: &'x str,
    response: Response,
    /// The time of the call that this request is a part of; `None` for a call that begins now.
    time: Option<CallTime>,
}

/// The deadline of a call, and whether it may have passed.
#[derive(Clone, Copy, Debug)]
struct CallTime {
    deadline: Deadline,
    /// True if the call began earlier, so the deadline may have passed.
    is_delayed: bool,
    /// The deadline that the server learns; [`NONE_NS`] if it learns none.
    expiry_ns: u64,
}

impl CallTime {
    /// The time of a call on the calling thread, which has no deadline.
    const DIRECT: Self = Self {
        deadline: Deadline::NONE,
        is_delayed: false,
        expiry_ns: NONE_NS,
    };
}

impl<'x> Asked<'x> {
    const fn operation(operation: &'x str, response: Response) -> Self {
        Self {
            kind: InvocationKind::Operation,
            operation,
            response,
            time: None,
        }
    }

    /// Returns true if the calling thread may serve the request.
    #[inline]
    fn may_be_direct(&self) -> bool {
        connection::may_be_collocated(self.kind, self.response)
    }
}

impl Timeout {
    /// Returns true if the application set a timeout, for the reference or for the ORB.
    fn is_chosen(self, core: &ClientCore) -> bool {
        match self {
            Self::OfOrb => core.is_timeout_chosen,
            Self::Own(timeout) => timeout.is_some(),
            Self::Deadline(_) | Self::EndTime(_) | Self::Until(_) => true,
        }
    }

    /// Returns the time of a call that begins now and inherits a deadline, [`NONE_NS`] for none.
    #[inline(never)]
    fn call_time(self, core: &ClientCore, inherited_ns: u64) -> CallTime {
        let now_ns = monotonic_ns();
        let (own, has_begun, is_told) = match self {
            Self::OfOrb => (Deadline::new(now_ns, core.round_trip_timeout), false, false),
            Self::Own(timeout) => (Deadline::new(now_ns, timeout), false, false),
            Self::Deadline(deadline) => (Deadline::new(now_ns, Some(deadline)), false, true),
            Self::EndTime(end) => (end, true, true),
            Self::Until(end) => (end, true, false),
        };
        let deadline = own.no_later_than(inherited_ns);
        let is_told = is_told || inherited_ns != NONE_NS;
        let at_ns = deadline.at_ns().unwrap_or(NONE_NS);
        // What is left of an inherited deadline varies from call to call: the watchdog must not look as often as the least of it.
        let has_little_left = deadline != own && at_ns < now_ns.saturating_add(LITTLE_NS);
        CallTime {
            deadline,
            is_delayed: has_begun || has_little_left,
            expiry_ns: if is_told { at_ns } else { NONE_NS },
        }
    }
}

/// An inherited deadline that is nearer needs the watchdog's attention.
const LITTLE_NS: u64 = 1_000_000;

impl ObjectRef {
    pub(crate) fn new(client: Client, ior: Ior) -> Self {
        Self::with_policies(client, ior, Arc::default(), Timeout::OfOrb)
    }

    fn with_policies(client: Client, ior: Ior, overrides: Arc<[Policy]>, timeout: Timeout) -> Self {
        let profiles = Profile::of(&ior);
        let policies = Policies::new(&client.core, &overrides, &profiles);
        let bound = policies.wanted().and_then(|wanted| {
            let routes = routes(&client, &profiles, &wanted);
            if routes.is_empty() && !profiles.is_empty() && !wanted.protocols.is_empty() {
                return Err(invalid(inconsistent::NO_PROTOCOL));
            }
            let binding = policies.binding(&client.core, &routes)?;
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
            sync_scope: SyncScope::default(),
            is_direct: false,
            servant: None,
        })
    }

    fn of(mut inner: Inner) -> Self {
        let is_bounded = inner.timeout.is_chosen(&inner.client.core);
        for route in &mut inner.routes {
            // A timeout cannot end a servant that runs on the calling thread.
            route.is_collocated = route.is_own && !is_bounded;
        }
        inner.is_direct = inner.routes.iter().all(|route| route.is_collocated);
        inner.servant = inner.servant_place();
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Returns a reference to the same object with another timeout of each call (RelativeRoundtripTimeout); `None` for no
    /// timeout.
    ///
    /// The timeout bounds the whole call, from its beginning to the result: resolving the host name, connecting, further endpoints,
    /// forwards, sending, waiting, and sending again. See [`OrbBuilder::round_trip_timeout`](crate::OrbBuilder::round_trip_timeout).
    #[must_use]
    //= RT-CORBA 1.2 §Invocation Timeout
    //# A client may bound the time of a call, which then fails with TIMEOUT.
    pub fn with_timeout(&self, timeout: impl Into<Option<Duration>>) -> Self {
        Self::of(Inner {
            timeout: Timeout::Own(timeout.into()),
            ..self.inner.copy()
        })
    }

    /// Returns a reference to the same object whose calls have that deadline: so long after the beginning of a call its result is
    /// useful.
    ///
    /// Like a [timeout](Self::with_timeout), which it replaces, it bounds the whole call. In addition it travels with the request: the
    /// server does not begin a call that has expired, the servant can ask [how much time is left](crate::CurrentCall::remaining), and the
    /// calls that it makes inherit that. If a call of a servant has a deadline of its own too, the earlier one counts.
    ///
    /// ```no_run
    /// # fn close(valve: &rtorb::ObjectRef) -> Result<(), rtorb::SystemException> {
    /// use std::time::Duration;
    /// valve.with_deadline(Duration::from_millis(5)).invoke("close", |_| Ok(()), |_| Ok(()))?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with_deadline(&self, deadline: Duration) -> Self {
        Self::of(Inner {
            timeout: Timeout::Deadline(deadline),
            ..self.inner.copy()
        })
    }

    /// Returns a reference to the same object whose calls all end by `end`: for several calls that are one step to the application,
    /// or a deadline that counts from an earlier release.
    ///
    /// A call after `end` fails with TIMEOUT. Like [`with_deadline`](Self::with_deadline), the servers learn it.
    ///
    /// ```no_run
    /// # fn open(one: &rtorb::ObjectRef, other: &rtorb::ObjectRef) -> Result<(), rtorb::SystemException> {
    /// use std::time::{Duration, Instant};
    /// let end = Instant::now() + Duration::from_millis(20);
    /// for valve in [one, other] {
    ///     valve.with_end_time(end).invoke("open", |_| Ok(()), |_| Ok(()))?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with_end_time(&self, end: Instant) -> Self {
        let left = end.saturating_duration_since(Instant::now());
        Self::of(Inner {
            timeout: Timeout::EndTime(Deadline::new(monotonic_ns(), Some(left))),
            ..self.inner.copy()
        })
    }

    /// Returns a reference to the same object whose calls all end by `end`, of which no server learns.
    pub(crate) fn with_end(&self, end: Deadline) -> Self {
        Self::of(Inner {
            timeout: Timeout::Until(end),
            ..self.inner.copy()
        })
    }

    /// Returns the timeout that the application set for calls through this reference: the reference's own or its deadline, the time left until its
    /// [end time](Self::with_end_time), or the ORB's. `None` if it set none, or no timeout.
    pub fn chosen_timeout(&self) -> Option<Duration> {
        let core = &self.inner.client.core;
        match self.inner.timeout {
            Timeout::OfOrb => core.chosen_timeout(),
            Timeout::Own(timeout) => timeout,
            Timeout::Deadline(deadline) => Some(deadline),
            Timeout::EndTime(deadline) | Timeout::Until(deadline) => {
                let left_ns = deadline.at_ns()?.saturating_sub(monotonic_ns());
                Some(Duration::from_nanos(left_ns))
            }
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

    /// Asks the object whether it has the interface with that repository id (`_is_a`).
    ///
    /// # Errors
    /// A system exception if the call fails.
    pub fn is_a(&self, repository_id: &str) -> Result<bool, SystemException> {
        self.invoke("_is_a", |w| repository_id.encode(w), bool::decode)
    }

    /// Asks whether the object is gone for good (`_non_existent`).
    ///
    /// # Errors
    /// A system exception if the server cannot be reached: the object may still exist.
    pub fn non_existent(&self) -> Result<bool, SystemException> {
        let mut time = self.begin();
        let mut ask = |operation| {
            let asked = self.ask_whether_gone(InvocationKind::Operation, operation, time);
            time.is_delayed = true;
            asked
        };
        let reply = match ask("_non_existent") {
            // GIOP 1.0 and 1.1 use the older name. omniORB has only the new one in all versions.
            Err(exception) if exception.kind == ExceptionKind::BadOperation => ask("_not_existent"),
            reply => reply,
        };
        match reply {
            Err(exception) if exception.kind == ExceptionKind::ObjectNotExist => Ok(true),
            reply => reply,
        }
    }

    /// Calls an operation that raises no user exception.
    ///
    /// Generated code calls this. `arguments` runs again if the request has to be sent again.
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

    /// Calls an operation that may raise user exceptions.
    ///
    /// `raised` decodes an exception by its repository id. If the operation does not declare the exception, it returns `None`, and the
    /// caller gets UNKNOWN (CORBA 3, 4.12.4, minor 1).
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
        let mut reply = None;
        self.invoke_at(
            Asked::operation(operation, Response::FromTarget),
            &arguments,
            &mut |status, r| {
                reply = match (status, result.take(), raised.take()) {
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
        reply.unwrap_or_else(|| Err(local::CONTRADICTION.into()))
    }

    /// Sends a oneway. `Ok` means that the transport has taken it; with [`SyncScope::None`], that the connection sends it without
    /// blocking a thread.
    ///
    /// # Errors
    /// A system exception if it could not be sent.
    #[inline]
    pub fn invoke_oneway<'a>(
        &self,
        operation: &str,
        arguments: impl Fn(&mut Writer<'a>) -> Result<(), EncodeError>,
    ) -> Result<(), SystemException> {
        match self.inner.sync_scope {
            SyncScope::WithTransport => {
                let asked = Asked::operation(operation, Response::None);
                self.invoke_at(asked, &arguments, &mut |_, _| Ok(()))
            }
            SyncScope::None => self.send_at_once(operation, &arguments).map(|_| ()),
        }
    }

    /// Sends a oneway as [`invoke_oneway`](Self::invoke_oneway) does with [`SyncScope::None`], independent of the reference's own
    /// scope. Returns true if the transport has taken all of it, as [`flush`](Self::flush) does.
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

    /// Support API for generated code. Not public.
    ///
    /// Calls an annotated operation, and counts how long it takes.
    #[doc(hidden)]
    #[inline]
    pub fn timed<T>(&self, operation: &'static OperationTiming, call: impl FnOnce() -> T) -> T {
        let core = &self.inner.client.core;
        core.timing.call(operation, &core.rt, call)
    }

    /// Returns the time of a call that begins now.
    #[inline]
    fn begin(&self) -> CallTime {
        let core = &self.inner.client.core;
        let inherited_ns = deadline::inherited_ns();
        let timeout = match self.inner.timeout {
            Timeout::OfOrb if inherited_ns == NONE_NS => core.round_trip_timeout,
            Timeout::Own(timeout) if inherited_ns == NONE_NS => timeout,
            timeout => return timeout.call_time(core, inherited_ns),
        };
        CallTime {
            deadline: wait::deadline(timeout),
            is_delayed: false,
            expiry_ns: NONE_NS,
        }
    }

    /// Returns the deadline of a oneway that waits for nothing, which its server learns; [`NONE_NS`] for none.
    #[inline]
    fn expiry_ns(&self) -> u64 {
        let inherited_ns = deadline::inherited_ns();
        match self.inner.timeout {
            Timeout::OfOrb | Timeout::Own(_) if inherited_ns == NONE_NS => NONE_NS,
            timeout => {
                let core = &self.inner.client.core;
                timeout.call_time(core, inherited_ns).expiry_ns
            }
        }
    }

    /// Calls an operation without arguments that returns true if the object is gone. A LocateReply counts as false.
    fn ask_whether_gone(
        &self,
        kind: InvocationKind<'_>,
        operation: &str,
        time: CallTime,
    ) -> Result<bool, SystemException> {
        let asked = Asked {
            kind,
            time: Some(time),
            ..Asked::operation(operation, Response::FromTarget)
        };
        let mut is_gone = false;
        self.invoke_at(asked, &|_| Ok(()), &mut |status, r| {
            if status != ReplyStatus::NoException {
                return Err(DecodeError::BadTag {
                    what: "the status of a reply",
                    value: status as u32,
                });
            }
            is_gone = bool::decode(r)?;
            Ok(())
        })?;
        Ok(is_gone)
    }

    /// Invokes the object, and follows it if it has moved. One deadline bounds all requests.
    fn invoke_at<'a>(
        &self,
        asked: Asked<'_>,
        arguments: Arguments<'_, 'a>,
        results: Results<'_>,
    ) -> Result<(), SystemException> {
        let core = &self.inner.client.core;
        core.check_open()?;
        let mut is_readdressed = false;
        let mut target = self.inner.forward();
        let mut time = match asked.time {
            Some(time) => time,
            None if self.inner.is_direct && target.is_none() && asked.may_be_direct() => {
                CallTime::DIRECT
            }
            None => self.begin(),
        };
        if time.is_delayed && time.deadline.has_passed(monotonic_ns()) {
            let late = SystemException::omg(ExceptionKind::Timeout, 2);
            return Err(self.not_followed(late, Phase::Send, time.deadline));
        }
        let mut was_known = target.is_some();
        let mut steps_left = core.limits.forwards_max;
        loop {
            let inner = target.as_ref().map_or(&self.inner, |target| &target.inner);
            let invocation = Invocation {
                kind: asked.kind,
                response: asked.response,
                deadline: time.deadline,
                is_delayed: time.is_delayed,
                expiry_ns: time.expiry_ns,
                ..inner.oneway(asked.operation)?
            };
            let ended = inner.try_routes(invocation, arguments, results);
            match ended {
                Ok(Outcome::Done) => return Ok(()),
                //= GIOP 1.2 §15.6
                //# A client sends a forwarded request again to the reference of the reply.
                Ok(Outcome::Forward(ior)) => {
                    target = Some(self.forwarded_to(*ior)?);
                    was_known = false;
                }
                Ok(Outcome::Readdress(mode)) if !is_readdressed => {
                    is_readdressed = true;
                    steps_left = steps_left.saturating_add(1);
                    let next = inner.readdressed(mode);
                    self.follow(&next);
                    target = Some(next);
                }
                Ok(Outcome::Readdress(_)) => {
                    let exception = ExceptionKind::NoImplement.into();
                    return Err(self.not_followed(exception, Phase::AwaitReply, time.deadline));
                }
                // The forwarded location failed: the original one may know a new location.
                Err(exception) if was_known && ends_forward(&exception) => {
                    self.inner.is_forwarded.store(false, Ordering::Release);
                    *self.inner.forward.lock() = None;
                    target = None;
                    was_known = false;
                }
                Err(exception) if exception.kind == ExceptionKind::Timeout => {
                    return Err(self.timed_out(exception));
                }
                Err(exception) => return Err(exception),
            }
            if time.deadline == Deadline::NONE {
                time = self.begin();
            }
            time.is_delayed = true;
            let exception = if time.deadline.has_passed(monotonic_ns()) {
                SystemException::omg(ExceptionKind::Timeout, 2)
            } else if steps_left == 0 {
                ExceptionKind::Transient.into()
            } else {
                steps_left -= 1;
                continue;
            };
            return Err(self.not_followed(exception, Phase::Forward, time.deadline));
        }
    }

    /// Makes the reference of the object's new location, and sends later calls there.
    #[cold]
    fn forwarded_to(&self, ior: Ior) -> Result<Self, SystemException> {
        let overrides = Arc::clone(&self.inner.overrides);
        let client = self.inner.client.clone();
        let next = Self::with_policies(client, ior, overrides, self.inner.timeout);
        if next.inner.routes.is_empty() && next.inner.binding.is_none() {
            return Err(UNUSABLE);
        }
        self.follow(&next);
        Ok(next)
    }

    /// Adds the likely cause to a timeout: a callback from the server waits for this ORB, which no thread runs.
    #[cold]
    fn timed_out(&self, mut exception: SystemException) -> SystemException {
        if !self.inner.client.host.has_unserved_client() {
            return exception;
        }
        match &mut exception.cause {
            Some(cause) if cause.phase == Phase::AwaitReply => cause.phase = Phase::AwaitUnserved,
            Some(_) => {}
            // The timeout was the server's.
            None => return self.not_followed(exception, Phase::AwaitUnserved, Deadline::NONE),
        }
        exception
    }

    /// Sends later calls by that reference.
    #[cold]
    fn follow(&self, next: &Self) {
        *self.inner.forward.lock() = Some(next.clone());
        self.inner.is_forwarded.store(true, Ordering::Release);
    }

    /// Returns the exception of a call that does not follow its object any further.
    #[cold]
    fn not_followed(
        &self,
        exception: SystemException,
        phase: Phase,
        deadline: Deadline,
    ) -> SystemException {
        let route = self.inner.routes.first();
        exception.with_cause(Cause {
            phase,
            endpoint: route.map(|route| Arc::clone(&route.endpoint.endpoint)),
            elapsed: deadline.elapsed(monotonic_ns()),
            errno: None,
        })
    }
}

impl Inner {
    /// Makes a oneway by the first route, without timeout and priority.
    #[inline(always)]
    fn oneway<'x>(&'x self, operation: &'x str) -> Result<Invocation<'x>, SystemException> {
        let Some(route) = self.routes.first() else {
            return Err(self.unusable());
        };
        Ok(Invocation {
            core: &self.client.core,
            client: &self.client,
            kind: InvocationKind::Operation,
            operation,
            response: Response::None,
            deadline: Deadline::NONE,
            is_delayed: false,
            expiry_ns: NONE_NS,
            route,
            routes_left: 1,
            channel: Channel::ANY,
            priority: None,
        })
    }

    /// Invokes by the route that replied last, and then by the other routes if the failure permits it.
    // Always inlined, so that the invocation is not copied.
    #[inline(always)]
    fn try_routes<'x, 'a>(
        &'x self,
        mut invocation: Invocation<'x>,
        arguments: Arguments<'_, 'a>,
        results: Results<'_>,
    ) -> Result<Outcome, SystemException> {
        let at = match invocation.kind {
            InvocationKind::Locate { at } => at,
            _ => None,
        };
        let priority = self.call_priority(at)?;
        let preferred = self.preferred.load(Ordering::Relaxed);
        let mut last = None;
        for step in 0..self.routes.len() {
            if !self.take_route(&mut invocation, priority.as_ref(), preferred, step) {
                // The route belongs to another priority, so it is never tried.
                continue;
            }
            match connection::call(&invocation, arguments, results) {
                Err(exception) if permits_other_route(&exception) => {
                    if invocation.deadline.has_passed(monotonic_ns()) {
                        return Err(too_late(exception, invocation.deadline));
                    }
                    invocation.is_delayed = true;
                    last = Some(exception);
                }
                ended => {
                    if last.is_some() {
                        let index = self.index(preferred, step);
                        self.preferred.store(index, Ordering::Relaxed);
                    }
                    return ended;
                }
            }
        }
        Err(last.unwrap_or_else(|| self.no_route(priority)))
    }

    /// Sets the route of an invocation. Returns false if the invocation may not use it.
    #[inline(always)]
    fn take_route<'x>(
        &'x self,
        invocation: &mut Invocation<'x>,
        priority: Option<&BandedPriority>,
        preferred: usize,
        step: usize,
    ) -> bool {
        let index = self.index(preferred, step);
        let route = &self.routes[index];
        invocation.route = route;
        invocation.routes_left = match route.priority {
            None => (self.routes.len() - step) as u32,
            Some(_) => self.lane_routes,
        };
        let Some(priority) = priority else {
            return true;
        };
        if !priority.accepts(route) {
            return false;
        }
        invocation.channel = priority.channel(&self.client.core, route);
        invocation.priority = priority.sent();
        true
    }

    /// Returns the index of the route that is `step` steps after the one that replied last.
    #[inline]
    fn index(&self, preferred: usize, step: usize) -> usize {
        match preferred + step {
            index if index < self.routes.len() => index,
            index => index - self.routes.len(),
        }
    }

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
            sync_scope: self.sync_scope,
            is_direct: self.is_direct,
            servant: self.servant,
        }
    }

    /// Returns the priority of a call, if this reference uses it: `at`, or the calling thread's.
    #[inline(always)]
    fn call_priority(
        &self,
        at: Option<Priority>,
    ) -> Result<Option<BandedPriority>, SystemException> {
        let Some(binding) = self.binding.as_deref() else {
            return Ok(None);
        };
        let binding = binding.as_ref().map_err(Clone::clone)?;
        let priority = match at {
            None => binding.of_caller(&self.client.core, &self.routes)?,
            Some(priority) => binding.at(priority)?,
        };
        Ok(Some(priority))
    }

    /// Returns the exception for a reference without routes.
    #[cold]
    fn unusable(&self) -> SystemException {
        match self.binding.as_deref() {
            Some(Err(exception)) => exception.clone(),
            _ => UNUSABLE,
        }
    }

    #[cold]
    fn no_route(&self, priority: Option<BandedPriority>) -> SystemException {
        match priority {
            Some(priority) if !self.routes.is_empty() => priority.no_lane(&self.routes),
            _ => self.unusable(),
        }
    }
}

/// Returns true if another route may succeed: the operation did not run, and the request did not cause the failure.
fn permits_other_route(exception: &SystemException) -> bool {
    let Some(cause) = &exception.cause else {
        return false;
    };
    exception.completed == CompletionStatus::No
        && match exception.kind {
            ExceptionKind::Transient | ExceptionKind::CommFailure => true,
            // A host that is switched off does not reply, so connecting times out.
            ExceptionKind::Timeout => matches!(cause.phase, Phase::Resolve | Phase::Connect),
            _ => false,
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

/// Returns TIMEOUT for a call that has no time for another route; `last` is its last failure.
#[cold]
fn too_late(last: SystemException, deadline: Deadline) -> SystemException {
    let elapsed = deadline.elapsed(monotonic_ns());
    let timeout = SystemException::omg(ExceptionKind::Timeout, 2);
    match last.cause {
        Some(cause) => timeout.with_cause(Cause { elapsed, ..cause }),
        None => timeout,
    }
}

/// Returns true if the forwarded location of an object is no longer valid.
//= GIOP 1.2 §15.4.3.2
//# When the place that a forward names fails, the client goes back to the original reference.
fn ends_forward(exception: &SystemException) -> bool {
    let is_gone = exception.kind == ExceptionKind::ObjectNotExist
        && exception.completed == CompletionStatus::No;
    is_gone || permits_other_route(exception)
}

/// Returns true if a non-blocking oneway failed because the route has no open connection. Another route may have one.
fn is_unconnected(exception: &SystemException) -> bool {
    exception.kind == ExceptionKind::Transient && exception.minor == oneway::UNCONNECTED
}

/// The exception for a reference without a profile that this ORB supports.
const UNUSABLE: SystemException = SystemException::omg(ExceptionKind::ImpLimit, 1);

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
