//! The routes that a call of a reference tries, one after the other.

use super::Inner;
use super::binding::{BandedPriority, stated_marks};
use super::call::CallRequest;
use super::timeout::CallTime;
use crate::clock::monotonic_ns;
use crate::connection::{self, Arguments, Channel, Invocation, InvocationKind, Outcome, Results};
use crate::deadline::NONE_NS;
use crate::exception::{Cause, CompletionStatus, ExceptionKind, Phase, SystemException, oneway};
use crate::realtime::Priority;
use core::sync::atomic::Ordering;
use rtorb_wire::connection::Deadline;
use rtorb_wire::giop::Response;

impl Inner {
    /// Makes a oneway by the first route, without timeout and priority.
    #[inline(always)]
    pub(super) fn oneway<'x>(
        &'x self,
        operation: &'x str,
    ) -> Result<Invocation<'x>, SystemException> {
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
    pub(super) fn try_routes<'x, 'a>(
        &'x self,
        request: &CallRequest<'x>,
        time: CallTime,
        arguments: Arguments<'_, 'a>,
        results: Results<'_>,
    ) -> Result<Outcome, SystemException> {
        let mut invocation = Invocation {
            kind: request.kind,
            response: request.response,
            deadline: time.deadline,
            is_delayed: time.is_delayed,
            expiry_ns: time.expiry_ns,
            ..self.oneway(request.operation)?
        };
        let at = match invocation.kind {
            InvocationKind::Locate { at, .. } => at,
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
    pub(super) fn take_route<'x>(
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
        if !self.operations.is_empty()
            && let Some(marks) = stated_marks(self.operations, invocation)
        {
            invocation.channel.marks = Some(marks);
        }
        invocation.priority = priority.sent();
        true
    }

    /// Returns the index of the route that is `step` steps after the one that replied last.
    #[inline]
    pub(super) fn index(&self, preferred: usize, step: usize) -> usize {
        match preferred + step {
            index if index < self.routes.len() => index,
            index => index - self.routes.len(),
        }
    }

    /// Returns the priority of a call, if this reference uses it: `at`, or the calling thread's.
    #[inline(always)]
    pub(super) fn call_priority(
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

    /// Returns the priority of a started call: that of a call by a thread with the priority `at`, or by the calling thread.
    pub(super) fn started_priority(
        &self,
        at: Option<Priority>,
    ) -> Result<Option<BandedPriority>, SystemException> {
        let sent = match (at, self.binding.as_deref()) {
            (Some(own), Some(Ok(binding))) => {
                Some(binding.sent(own, &self.client.core, &self.routes)?)
            }
            _ => at,
        };
        self.call_priority(sent)
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
    pub(super) fn no_route(&self, priority: Option<BandedPriority>) -> SystemException {
        match priority {
            Some(priority) if !self.routes.is_empty() => priority.no_lane(&self.routes),
            _ => self.unusable(),
        }
    }
}

/// Returns true if another route may succeed: the operation did not run, and the request did not cause the failure.
pub(super) fn permits_other_route(exception: &SystemException) -> bool {
    let Some(cause) = &exception.cause else {
        return false;
    };
    exception.completed == CompletionStatus::No
        && match exception.kind {
            ExceptionKind::Transient | ExceptionKind::CommFailure => true,
            // A host that is switched off does not reply, so connecting times out. A process that hangs is connected to, and says nothing.
            ExceptionKind::Timeout => matches!(
                cause.phase,
                Phase::Resolve | Phase::Connect | Phase::Handshake
            ),
            // Another endpoint may have a numeric address.
            ExceptionKind::NoResources => cause.phase == Phase::Resolve,
            _ => false,
        }
}

/// Returns TIMEOUT for a call that has no time for another route; `last` is its last failure.
#[cold]
pub(super) fn too_late(last: SystemException, deadline: Deadline) -> SystemException {
    let elapsed = deadline.elapsed(monotonic_ns());
    let timeout = SystemException::omg(ExceptionKind::Timeout, 2);
    match last.cause {
        Some(cause) => timeout.with_cause(Cause { elapsed, ..cause }),
        None => timeout,
    }
}

/// Returns true if a non-blocking oneway failed because the route has no open connection. Another route may have one.
pub(super) fn is_unconnected(exception: &SystemException) -> bool {
    exception.kind == ExceptionKind::Transient && exception.minor == oneway::UNCONNECTED
}

/// The exception for a reference without a profile that this ORB supports.
pub(super) const UNUSABLE: SystemException = SystemException::omg(ExceptionKind::ImpLimit, 1);
