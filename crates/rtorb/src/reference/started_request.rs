//! A started call without its types: it sends the request, follows the object if it has moved, and reads the reply.

use super::call::{CallRequest, ends_forward};
use super::recorded_call::BegunStart;
use super::route_choice::{permits_other_route, too_late};
use super::timeout::CallTime;
use super::{Inner, ObjectRef};
use crate::clock::monotonic_ns;
use crate::connection::started::{self, RETRIES_MAX, StartedCallError};
use crate::connection::{AddedContexts, Arguments, Invocation, InvocationKind, Outcome, Results};
use crate::distributable;
use crate::exception::{SystemException, local};
use crate::interceptors::{ClientInterception, Ending, OtherEnding};
use crate::realtime::Priority;
use crate::recorder::CallOutcome;
use crate::thread_state;
use crate::wait::call_table::CallPlace;
use crate::wait::pending_call::PendingCall;
use core::sync::atomic::Ordering;
use core::task::Waker;
use rtorb_wire::code_sets;
use rtorb_wire::giop::contexts::CodeSets;
use rtorb_wire::giop::{ContextBuffer, PassedRequest, ReplyStatus, Response};

/// A started call: its request was sent, or could not be.
#[derive(Debug)]
pub(super) enum StartedRequest {
    /// The request was sent.
    InFlight(InFlight),
    /// The call ended with an exception that is not taken yet.
    Failed(SystemException),
    /// The result was taken.
    Taken,
}

/// A request that was sent, and all that is needed to send it again.
#[derive(Debug)]
pub(super) struct InFlight {
    /// The reference through which the application called.
    object: ObjectRef,
    target: Target,
    call: PendingCall,
    place: CallPlace,
    time: CallTime,
    at: Option<Priority>,
    /// The most times that the request is still sent elsewhere.
    steps_left: usize,
    /// The most times that it is still sent by the same route, if its connection was closed.
    retries_left: u32,
    is_readdressed: bool,
    /// True if the request went to a location that an earlier call has found. If that fails, it goes to the original one.
    is_at_known: bool,
    /// True once its reply was read, and the request is not sent again.
    has_ended: bool,
    /// Its beginning, if the call is recorded.
    begun: Option<BegunStart>,
}

/// Where a request went.
#[derive(Debug)]
struct Target {
    /// The object, at its last known location.
    object: ObjectRef,
    /// The same with connections of the code set of the arguments, if its own have another one.
    recoded: Option<ObjectRef>,
    route: RouteStep,
}

/// A route, as one of those that a request tries one after the other.
#[derive(Clone, Copy, Debug)]
struct RouteStep {
    /// The index of the route that is tried first.
    preferred: usize,
    /// The number of the routes before this one.
    step: usize,
}

/// A request that was sent.
#[derive(Debug)]
struct SentRequest {
    call: PendingCall,
    route: RouteStep,
    /// The object at its last known location, if that is not its first.
    target: Option<ObjectRef>,
}

/// A request to be sent.
#[derive(Clone, Copy)]
struct Sending<'s, 'a> {
    kind: InvocationKind<'s>,
    operation: &'s str,
    arguments: Arguments<'s, 'a>,
    time: CallTime,
    at: Option<Priority>,
}

impl StartedRequest {
    /// Sends a request with the priority `at`, or the calling thread's.
    pub(super) fn start(
        object: &ObjectRef,
        at: Option<Priority>,
        operation: &str,
        arguments: Arguments<'_, '_>,
    ) -> Self {
        let started = if object.inner.client.core.is_recorded() {
            InFlight::start_recorded(object, at, operation, arguments)
        } else {
            InFlight::start(object, at, operation, arguments)
        };
        match started {
            Ok(in_flight) => Self::InFlight(in_flight),
            Err(exception) => Self::Failed(exception),
        }
    }

    /// Returns true if the call has ended, or its request is to be sent again.
    pub(super) fn is_ready(&self) -> bool {
        match self {
            Self::InFlight(it) => it.call.waiter.has_reply(),
            Self::Failed(_) | Self::Taken => true,
        }
    }

    /// Waits until [`is_ready`](Self::is_ready) returns true, until `until_ns` at the latest. Returns false if that passed first.
    pub(super) fn wait_until(&self, until_ns: Option<u64>) -> bool {
        match self {
            Self::InFlight(it) => it.call.wait_until(until_ns),
            Self::Failed(_) | Self::Taken => true,
        }
    }

    /// Has `waker` woken once [`is_ready`](Self::is_ready) returns true. Returns true if it does so already.
    pub(super) fn await_as_task(&self, waker: &Waker) -> bool {
        match self {
            Self::InFlight(it) => it.call.await_as_task(waker),
            Self::Failed(_) | Self::Taken => true,
        }
    }

    /// Reads the reply, once the call is ready. Returns `None` if the request was sent again instead.
    pub(super) fn take(&mut self, results: Results<'_>) -> Option<Result<(), SystemException>> {
        match core::mem::replace(self, Self::Taken) {
            Self::InFlight(mut it) => match it.end_and_record(results) {
                Ok(true) => Some(Ok(())),
                Ok(false) => {
                    *self = Self::InFlight(it);
                    None
                }
                Err(exception) => Some(Err(exception)),
            },
            Self::Failed(exception) => Some(Err(exception)),
            Self::Taken => Some(Err(local::RESULT_TAKEN)),
        }
    }
}

impl InFlight {
    /// Starts a call that is recorded.
    #[cold]
    #[inline(never)]
    fn start_recorded(
        object: &ObjectRef,
        at: Option<Priority>,
        operation: &str,
        arguments: Arguments<'_, '_>,
    ) -> Result<Self, SystemException> {
        let begun = BegunStart::now();
        let started = Self::start(object, at, operation, arguments);
        match (started, begun) {
            (Ok(mut it), begun) => {
                it.begun = begun;
                Ok(it)
            }
            (Err(exception), Some(begun)) => {
                begun.record_unsent(operation, &exception);
                Err(exception)
            }
            (refused, None) => refused,
        }
    }

    fn start(
        object: &ObjectRef,
        at: Option<Priority>,
        operation: &str,
        arguments: Arguments<'_, '_>,
    ) -> Result<Self, SystemException> {
        let client = &object.inner.client;
        let core = &client.core;
        if core.is_special() {
            client.check_open()?;
        }
        if thread_state::has_special() {
            if distributable::is_within() {
                return Err(local::START_IN_THREAD);
            }
            if let Some(object) = object.with_thread_policies() {
                return Self::start(&object, at, operation, arguments);
            }
        }
        let mut time = object.begin();
        object.check_begun(time)?;
        let mut place = match core.watchdog.calls().take_place() {
            Some(place) => place,
            None => Self::await_place(object, &mut time)?,
        };
        let sending = Sending {
            kind: InvocationKind::Operation,
            operation,
            arguments,
            time,
            at,
        };
        if core.is_intercepted() {
            return Self::start_between(object, sending, place);
        }
        let sent = Self::send_first(object, sending, &mut place)?;
        Ok(Self::of(object, sending, place, sent))
    }

    /// Waits for a place in the full table, at most until the deadline of the call.
    ///
    /// # Errors
    /// NO_RESOURCES if calls do not wait for a place, or the calling thread must not; TIMEOUT; BAD_INV_ORDER 4 if the ORB is shut down
    /// meanwhile.
    #[cold]
    #[inline(never)]
    fn await_place(object: &ObjectRef, time: &mut CallTime) -> Result<CallPlace, SystemException> {
        let client = &object.inner.client;
        let calls = client.core.watchdog.calls();
        if !calls.may_wait() {
            calls.note_refused();
            return Err(local::CALLS_FULL);
        }
        let place = calls.await_place(time.deadline.at_ns(), || client.check_open().is_ok());
        time.is_delayed = true;
        object.check_begun(*time)?;
        client.check_open()?;
        place.ok_or(local::CALLS_FULL)
    }

    /// Starts a call between the starting points of the interceptors and the sending of its request; their ending points follow with the
    /// [end](Self::end) of the call.
    #[cold]
    #[inline(never)]
    fn start_between(
        object: &ObjectRef,
        sending: Sending<'_, '_>,
        mut place: CallPlace,
    ) -> Result<Self, SystemException> {
        let mut interception = place.slot.interception.take().unwrap_or_default();
        interception.begin(sending.operation, true);
        let sent = Self::send_between(object, sending, &mut place, &mut interception);
        place.slot.interception = Some(interception);
        Ok(Self::of(object, sending, place, sent?))
    }

    /// Sends the request for the first time, between the starting points and, if it cannot be sent, the ending points.
    fn send_between(
        object: &ObjectRef,
        mut sending: Sending<'_, '_>,
        place: &mut CallPlace,
        interception: &mut ClientInterception,
    ) -> Result<SentRequest, SystemException> {
        for _ in 0..=object.inner.client.core.limits.forwards_max {
            object.start_interception(interception)?;
            let contexts = AddedContexts::of_interceptors(&interception.added, None);
            let between = Sending {
                kind: InvocationKind::WithContexts(&contexts),
                ..sending
            };
            let begun = object.check_begun(sending.time);
            match begun.and_then(|()| Self::send_first(object, between, place)) {
                Ok(sent) => return Ok(sent),
                Err(exception) => {
                    let ending = Ending::SystemException(exception);
                    object.end_interception(interception, ending)?;
                }
            }
            sending.time.is_delayed = true;
        }
        Err(object.in_circle(sending.time.deadline))
    }

    fn of(
        object: &ObjectRef,
        sending: Sending<'_, '_>,
        place: CallPlace,
        sent: SentRequest,
    ) -> Self {
        Self {
            object: object.clone(),
            is_at_known: sent.target.is_some(),
            target: Target {
                object: sent.target.unwrap_or_else(|| object.clone()),
                recoded: None,
                route: sent.route,
            },
            call: sent.call,
            place,
            time: sending.time,
            at: sending.at,
            steps_left: object.inner.client.core.limits.forwards_max,
            retries_left: RETRIES_MAX,
            is_readdressed: false,
            has_ended: false,
            begun: None,
        }
    }

    /// Sends the request for the first time, to the last known location.
    fn send_first(
        object: &ObjectRef,
        mut sending: Sending<'_, '_>,
        place: &mut CallPlace,
    ) -> Result<SentRequest, SystemException> {
        let deadline = sending.time.deadline;
        let known = object.inner.forward();
        let sent = match &known {
            Some(target) => sending.send(target, None, place),
            None => sending.send(object, None, place),
        };
        let ((call, route), target) = match (sent, known) {
            (Ok(sent), known) => (sent, known),
            // As with other calls: the original location may know a new one.
            (Err(exception), Some(_)) if ends_forward(&exception) => {
                object.forget_forward();
                sending.time.is_delayed = true;
                object.check_begun(sending.time)?;
                (sending.send(object, None, place)?, None)
            }
            (Err(exception), _) => return Err(object.ended_by(exception, deadline)),
        };
        Ok(SentRequest {
            call,
            route,
            target,
        })
    }

    /// Reads the reply, and records the call if it has ended. Returns false if the request was sent again.
    fn end_and_record(&mut self, results: Results<'_>) -> Result<bool, SystemException> {
        match self.begun {
            None => self.end(results),
            Some(begun) => self.end_recorded(begun, results),
        }
    }

    #[cold]
    #[inline(never)]
    fn end_recorded(
        &mut self,
        begun: BegunStart,
        results: Results<'_>,
    ) -> Result<bool, SystemException> {
        let mut outcome = CallOutcome::Done;
        let ended = self.end(&mut |status, r| {
            if status == ReplyStatus::UserException {
                outcome = CallOutcome::UserException;
            }
            results(status, r)
        });
        let outcome = match &ended {
            Ok(false) => return ended,
            Ok(true) => outcome,
            Err(exception) => CallOutcome::of(exception.kind),
        };
        let sent = self.place.slot.out.get(..self.call.request_bytes);
        if let Some(Ok(request)) = sent.map(|sent| PassedRequest::parse(sent, None)) {
            begun.record(request.request().operation, outcome, &self.call);
        }
        ended
    }

    /// Reads the reply. Returns false if the request was sent again.
    fn end(&mut self, results: Results<'_>) -> Result<bool, SystemException> {
        self.has_ended = true;
        if let Some(mut interception) = self.place.slot.interception.take() {
            let ended = self.end_between(&mut interception, results);
            self.place.slot.interception = Some(interception);
            return ended;
        }
        let read = started::read(&self.reading()?, &self.call, results);
        self.end_by(read)
    }

    /// Reads the reply, and calls the ending points of the interceptors. Returns false if the request was sent again.
    #[cold]
    #[inline(never)]
    fn end_between(
        &mut self,
        interception: &mut ClientInterception,
        results: Results<'_>,
    ) -> Result<bool, SystemException> {
        let ClientInterception {
            added, received, ..
        } = &mut *interception;
        let contexts = AddedContexts::of_interceptors(added, None);
        let invocation = Invocation {
            kind: InvocationKind::WithContexts(&contexts),
            ..self.reading()?
        };
        let read = started::read(&invocation, &self.call, &mut |status, r| {
            received.read(status, r, results)
        });
        let mut ending = match (read, contexts.forward()) {
            (_, Some(ior)) => Ending::Other(OtherEnding::Forward(*ior)),
            (Ok(Outcome::Done), None) => received.ending(),
            (read, None) => match self.end_by(read) {
                // The interceptors do not see that it is sent again to the same location.
                Ok(has_ended) => return Ok(has_ended),
                Err(exception) => Ending::SystemException(exception),
            },
        };
        while !self.object.end_interception(interception, ending)? {
            self.object.start_interception(interception)?;
            let known = self.object.inner.forward();
            self.is_at_known = known.is_some();
            let target = known.unwrap_or_else(|| self.object.clone());
            let mut sent = self.send_again(target, Some(&interception.added));
            if let Err(exception) = &sent
                && self.leaves_known(exception)
            {
                let original = self.back_to_original();
                sent = self.send_again(original, Some(&interception.added));
            }
            match sent {
                Ok(()) => return Ok(false),
                Err(exception) if self.steps_left == 0 => {
                    let ending = Ending::SystemException(exception);
                    self.object.end_interception(interception, ending)?;
                    return Err(self.object.in_circle(self.time.deadline));
                }
                Err(exception) => ending = Ending::SystemException(exception),
            }
        }
        Ok(true)
    }

    /// Ends the call with what was read. Returns false if the request was sent again instead.
    fn end_by(&mut self, read: Result<Outcome, StartedCallError>) -> Result<bool, SystemException> {
        let sent = match read {
            Ok(Outcome::Done) => return Ok(true),
            Ok(Outcome::Forward(ior)) => {
                self.is_at_known = false;
                let next = self.object.forwarded_to(*ior)?;
                self.send_again(next, None)
            }
            Ok(Outcome::Readdress(mode)) if !self.is_readdressed => {
                self.is_readdressed = true;
                // It is no forward.
                self.steps_left = self.steps_left.saturating_add(1);
                let next = self.target.object.inner.readdressed(mode);
                self.object.follow(&next);
                self.send_again(next, None)
            }
            Ok(Outcome::Readdress(_)) => {
                return Err(self.object.not_readdressed(self.time.deadline));
            }
            Err(StartedCallError::Stale(exception)) if self.retries_left > 0 => {
                self.retries_left -= 1;
                self.go_on(self.target.route, exception)
            }
            Err(StartedCallError::Stale(exception) | StartedCallError::Exception(exception))
                if permits_other_route(&exception) && self.has_later_route() =>
            {
                self.retries_left = RETRIES_MAX;
                self.go_on(self.target.route.next(), exception)
            }
            Err(StartedCallError::Stale(exception) | StartedCallError::Exception(exception)) => {
                Err(exception)
            }
        };
        match sent {
            Ok(()) => Ok(false),
            Err(exception) if self.leaves_known(&exception) => {
                let original = self.back_to_original();
                self.send_again(original, None)?;
                Ok(false)
            }
            Err(exception) => Err(self.object.ended_by(exception, self.time.deadline)),
        }
    }

    /// Returns true if the location has a route after this one, and there is time for it.
    fn has_later_route(&self) -> bool {
        let Target { object, route, .. } = &self.target;
        let is_late = || self.time.deadline.has_passed(monotonic_ns());
        route.step + 1 < object.inner.routes.len() && !is_late()
    }

    /// Returns true if the request goes to the original location next, because the known one has failed.
    fn leaves_known(&self, exception: &SystemException) -> bool {
        self.is_at_known && ends_forward(exception)
    }

    /// Forgets the known location, and returns the object at its original one.
    #[cold]
    fn back_to_original(&mut self) -> ObjectRef {
        self.is_at_known = false;
        self.object.forget_forward();
        self.object.clone()
    }

    /// Sends the request again to `target`, whose routes and connection may be others. The contexts `added` replace those that interceptors
    /// have added before.
    #[cold]
    fn send_again(
        &mut self,
        target: ObjectRef,
        added: Option<&ContextBuffer>,
    ) -> Result<(), SystemException> {
        if self.steps_left == 0 {
            return Err(self.object.in_circle(self.time.deadline));
        }
        self.steps_left -= 1;
        self.retries_left = RETRIES_MAX;
        self.send_by(target, None, added)
    }

    /// Sends the request again to the same location, by `route` or one after it. `last` is the failure of the call so far.
    #[cold]
    fn go_on(&mut self, route: RouteStep, last: SystemException) -> Result<(), SystemException> {
        let target = self.target.object.clone();
        self.send_by(target, Some((route, last)), None)
    }

    /// Sends the request again, by its first route or as [`go_on`](Self::go_on) does.
    #[cold]
    fn send_by(
        &mut self,
        target: ObjectRef,
        from: Option<(RouteStep, SystemException)>,
        added: Option<&ContextBuffer>,
    ) -> Result<(), SystemException> {
        self.time.is_delayed = true;
        self.object.check_begun(self.time)?;
        // The reply has the code set of the arguments too.
        let recoded = target.inner.in_code_set_of(&self.reading()?.route.endpoint);
        let mut sent = core::mem::take(&mut self.place.slot.out);
        sent.truncate(self.call.request_bytes);
        match self.send_bytes(&sent, recoded.as_ref().unwrap_or(&target), from, added) {
            Ok((call, route)) => {
                self.call = call;
                self.has_ended = false;
                if let Some(recoded) = &recoded {
                    let preferred = recoded.inner.preferred.load(Ordering::Relaxed);
                    target.inner.preferred.store(preferred, Ordering::Relaxed);
                }
                self.target = Target {
                    object: target,
                    recoded,
                    route,
                };
                Ok(())
            }
            Err(exception) => {
                // An interceptor may forward the request once more.
                self.place.slot.out = sent;
                Err(exception)
            }
        }
    }

    /// Sends a request that was sent before, to `target`. Returns the route.
    #[cold]
    fn send_bytes(
        &mut self,
        sent: &[u8],
        target: &ObjectRef,
        from: Option<(RouteStep, SystemException)>,
        added: Option<&ContextBuffer>,
    ) -> Result<(PendingCall, RouteStep), SystemException> {
        let endpoint = &self.reading()?.route.endpoint;
        let code_sets = endpoint.names_code_sets.then(|| CodeSets {
            char_data: endpoint.char_code_set.registry(),
            wchar_data: code_sets::UTF_16,
        });
        let request = PassedRequest::parse(sent, code_sets).map_err(|_| local::CONTRADICTION)?;
        let request = match added {
            Some(added) => request.with_contexts(added),
            None => request,
        };
        let sending = Sending {
            kind: InvocationKind::SentAgain(&request),
            operation: "",
            arguments: &|_| Ok(()),
            time: self.time,
            at: self.at,
        };
        sending.send(target, from, &mut self.place)
    }

    /// The invocation for reading its reply.
    fn reading(&self) -> Result<Invocation<'_>, SystemException> {
        let Target {
            object,
            recoded,
            route,
        } = &self.target;
        let inner = &recoded.as_ref().unwrap_or(object).inner;
        let mut invocation = inner.oneway("")?;
        invocation.response = Response::FromTarget;
        invocation.deadline = self.time.deadline;
        invocation.is_delayed = true;
        if let Some(route) = inner.routes.get(route.index(inner)) {
            invocation.route = route;
        }
        Ok(invocation)
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if self.has_ended {
            return;
        }
        self.call.abandon();
        if let Some(interception) = &mut self.place.slot.interception {
            let abandoned = Ending::Other(OtherEnding::Abandoned);
            let _ = self.object.end_interception(interception, abandoned);
        }
    }
}

impl RouteStep {
    /// Returns the route that replied last.
    fn first(inner: &Inner) -> Self {
        Self {
            preferred: inner.preferred.load(Ordering::Relaxed),
            step: 0,
        }
    }

    const fn next(self) -> Self {
        Self {
            step: self.step + 1,
            ..self
        }
    }

    fn index(self, inner: &Inner) -> usize {
        inner.index(self.preferred, self.step)
    }
}

impl Sending<'_, '_> {
    /// Sends the request by the route that replied last, or by another if the failure permits it. Returns the route. `from` is the first
    /// one to try instead, and the failure of those before.
    fn send(
        &self,
        object: &ObjectRef,
        from: Option<(RouteStep, SystemException)>,
        place: &mut CallPlace,
    ) -> Result<(PendingCall, RouteStep), SystemException> {
        let inner: &Inner = &object.inner;
        let request = CallRequest::operation(self.operation, Response::FromTarget);
        let mut invocation = Invocation {
            kind: self.kind,
            response: request.response,
            deadline: self.time.deadline,
            is_delayed: self.time.is_delayed,
            expiry_ns: self.time.expiry_ns,
            ..inner.oneway(self.operation)?
        };
        let priority = inner.started_priority(self.at)?;
        let (first, mut last) = match from {
            None => (RouteStep::first(inner), None),
            Some((route, last)) => (route, Some(last)),
        };
        let preferred = first.preferred;
        for step in first.step..inner.routes.len() {
            if !inner.take_route(&mut invocation, priority.as_ref(), preferred, step) {
                continue;
            }
            match started::start(&invocation, place, self.arguments) {
                Ok(call) => {
                    let route = RouteStep { preferred, step };
                    if last.is_some() {
                        inner.preferred.store(route.index(inner), Ordering::Relaxed);
                    }
                    return Ok((call, route));
                }
                Err(exception) if permits_other_route(&exception) => {
                    if invocation.deadline.has_passed(monotonic_ns()) {
                        return Err(too_late(exception, invocation.deadline));
                    }
                    invocation.is_delayed = true;
                    last = Some(exception);
                }
                Err(exception) => return Err(exception),
            }
        }
        Err(last.unwrap_or_else(|| inner.no_route(priority)))
    }
}
