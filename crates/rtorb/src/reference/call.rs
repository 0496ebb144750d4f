//! Calls of the object of a reference, which follow the object when it has moved.

use super::route_choice::{UNUSABLE, permits_other_route};
use super::timeout::CallTime;
use super::{ObjectRef, SyncScope};
use crate::clock::monotonic_ns;
use crate::connection::{self, AddedContexts, Arguments, InvocationKind, Outcome, Results};
use crate::deadline::{self, DeadlineScope};
use crate::distributable::{self, ThreadCall};
use crate::exception::{Cause, CompletionStatus, ExceptionKind, Phase, SystemException, local};
use crate::thread_state;
use crate::timing::OperationTiming;
use core::sync::atomic::Ordering;
use rtorb_wire::connection::Deadline;
use rtorb_wire::giop::{ReplyStatus, Response};
use rtorb_wire::ior::Ior;
use rtorb_wire::{Decode, DecodeError, Encode, EncodeError, Reader, Writer};
use std::sync::Arc;

/// The request of a call, without its target and arguments.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallRequest<'x> {
    pub(super) kind: InvocationKind<'x>,
    pub(super) operation: &'x str,
    pub(super) response: Response,
    /// The time of the call that this request is a part of; `None` for a call that begins now.
    pub(super) time: Option<CallTime>,
}

impl<'x> CallRequest<'x> {
    pub(super) const fn operation(operation: &'x str, response: Response) -> Self {
        Self {
            kind: InvocationKind::Operation,
            operation,
            response,
            time: None,
        }
    }

    /// Returns true if the calling thread may serve the request.
    #[inline]
    pub(super) fn may_be_direct(&self) -> bool {
        connection::may_be_collocated(self.kind, self.response)
    }
}

impl ObjectRef {
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
            let is_gone = self.ask_whether_gone(InvocationKind::Operation, operation, time);
            time.is_delayed = true;
            is_gone
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
            CallRequest::operation(operation, Response::FromTarget),
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
            Some(SyncScope::None) => self.send_at_once(operation, &arguments).map(|_| ()),
            Some(SyncScope::WithTransport) | None => {
                let request = CallRequest::operation(operation, Response::None);
                self.invoke_at(request, &arguments, &mut |_, _| Ok(()))
            }
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

    /// Calls an operation without arguments that returns true if the object is gone. A LocateReply counts as false.
    pub(super) fn ask_whether_gone(
        &self,
        kind: InvocationKind<'_>,
        operation: &str,
        time: CallTime,
    ) -> Result<bool, SystemException> {
        let request = CallRequest {
            kind,
            time: Some(time),
            ..CallRequest::operation(operation, Response::FromTarget)
        };
        let mut is_gone = false;
        self.invoke_at(request, &|_| Ok(()), &mut |status, r| {
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

    /// Invokes the object: with the policies of the calling thread, and for a distributable thread, if the thread has any or runs one.
    pub(super) fn invoke_at<'a>(
        &self,
        request: CallRequest<'_>,
        arguments: Arguments<'_, 'a>,
        results: Results<'_>,
    ) -> Result<(), SystemException> {
        if thread_state::has_special()
            && matches!(request.kind, InvocationKind::Operation)
            && let Some(ended) = self.invoke_for_thread(request, arguments, results)
        {
            return ended;
        }
        self.invoke_and_follow(request, arguments, results)
    }

    /// Invokes the object as the calling thread requires; `None` if it requires nothing more.
    #[cold]
    #[inline(never)]
    fn invoke_for_thread<'a>(
        &self,
        request: CallRequest<'_>,
        arguments: Arguments<'_, 'a>,
        results: Results<'_>,
    ) -> Option<Result<(), SystemException>> {
        if let Some(object) = self.with_thread_policies() {
            let is_oneway = request.response == Response::None;
            if is_oneway && object.sync_scope() == SyncScope::None {
                let sent = object.send_at_once(request.operation, arguments);
                return Some(sent.map(|_| ()));
            }
            return Some(object.invoke_at(request, arguments, results));
        }
        let is_within = distributable::is_within();
        is_within.then(|| self.invoke_in_thread(request, arguments, results))
    }

    /// Invokes the object for the distributable thread that the calling thread runs.
    #[cold]
    fn invoke_in_thread<'a>(
        &self,
        request: CallRequest<'_>,
        arguments: Arguments<'_, 'a>,
        results: Results<'_>,
    ) -> Result<(), SystemException> {
        let order = self.inner.client.core.byte_order;
        let call = ThreadCall::begin(request.response == Response::None, order)?;
        let call = call.ok_or(local::CONTRADICTION)?;
        let _inherited = DeadlineScope::enter(call.deadline_ns());
        let mut time = request.time.unwrap_or_else(|| self.begin());
        time.deadline = ThreadCall::deadline_of_wait(time.deadline);
        let added = AddedContexts {
            thread: Some(&call),
            intercepted: None,
        };
        let request = CallRequest {
            kind: InvocationKind::WithContexts(&added),
            time: Some(time),
            ..request
        };
        let ended = self.invoke_at(request, arguments, results);
        call.end(ended)
    }

    /// Invokes the object, and follows it if it has moved. One deadline bounds all requests.
    #[inline(always)]
    fn invoke_and_follow<'a>(
        &self,
        request: CallRequest<'_>,
        arguments: Arguments<'_, 'a>,
        results: Results<'_>,
    ) -> Result<(), SystemException> {
        if self.inner.client.core.is_special()
            && let Some(ended) = self.invoke_specially(request, arguments, results)
        {
            return ended;
        }
        self.follow_object(request, arguments, results)
    }

    /// Invokes the object at its location, and follows it.
    #[inline(always)]
    pub(super) fn follow_object<'a>(
        &self,
        request: CallRequest<'_>,
        arguments: Arguments<'_, 'a>,
        results: Results<'_>,
    ) -> Result<(), SystemException> {
        let core = &self.inner.client.core;
        let mut is_readdressed = false;
        let mut target = self.inner.forward();
        let mut time = match request.time {
            Some(time) if time.has_clock() || target.is_none() => time,
            None if self.inner.is_direct && target.is_none() && request.may_be_direct() => {
                CallTime::DIRECT
            }
            _ => self.begin(),
        };
        self.check_begun(time)?;
        let mut was_known = target.is_some();
        let mut steps_left = core.limits.forwards_max;
        loop {
            let inner = target.as_ref().map_or(&self.inner, |target| &target.inner);
            match inner.try_routes(&request, time, arguments, results) {
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
                    return Err(self.not_readdressed(time.deadline));
                }
                // The forwarded location failed: the original one may know a new location.
                Err(exception) if was_known && ends_forward(&exception) => {
                    self.forget_forward();
                    target = None;
                    was_known = false;
                }
                Err(exception) => return Err(self.ended_by(exception, time.deadline)),
            }
            time = self.begun_before(time);
            if time.deadline.has_passed(monotonic_ns()) {
                let late = SystemException::omg(ExceptionKind::Timeout, 2);
                return Err(self.not_followed(late, Phase::Forward, time.deadline));
            }
            if steps_left == 0 {
                return Err(self.in_circle(time.deadline));
            }
            steps_left -= 1;
        }
    }

    /// Returns TIMEOUT, COMPLETED_NO, if the deadline of a call that began earlier has passed.
    #[inline(always)]
    pub(super) fn check_begun(&self, time: CallTime) -> Result<(), SystemException> {
        if time.is_delayed && time.deadline.has_passed(monotonic_ns()) {
            let late = SystemException::omg(ExceptionKind::Timeout, 2);
            return Err(self.not_followed(late, Phase::Send, time.deadline));
        }
        Ok(())
    }

    /// Returns the time of a call that goes on elsewhere. One that the calling thread has served gets its deadline now: the one until which it
    /// has waited for the servant, if it has.
    #[cold]
    pub(super) fn begun_before(&self, mut time: CallTime) -> CallTime {
        if !time.has_clock() {
            time = self.begin();
            let end_of_wait = deadline::take_end_of_wait();
            if end_of_wait != Deadline::NONE {
                time.deadline = end_of_wait;
            }
        }
        time.is_delayed = true;
        time
    }

    /// Makes the reference of the object's new location, and sends later calls there.
    #[cold]
    pub(super) fn forwarded_to(&self, ior: Ior) -> Result<Self, SystemException> {
        let overrides = Arc::clone(&self.inner.overrides);
        let client = self.inner.client.clone();
        let (timeout, operations) = (self.inner.timeout, self.inner.operations);
        let next = Self::with_policies(client, ior, overrides, timeout, operations);
        if next.inner.routes.is_empty() && next.inner.binding.is_none() {
            return Err(UNUSABLE);
        }
        self.follow(&next);
        Ok(next)
    }

    /// Adds to a timeout what ended the call, if that was a deadline, and the likely cause: a callback from the server waits for this
    /// ORB, which no thread runs.
    #[cold]
    fn timed_out(&self, exception: SystemException, deadline: Deadline) -> SystemException {
        let mut exception = match exception.cause {
            Some(_) => self.say_deadline(exception, deadline),
            None => exception,
        };
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

    /// Sends later calls to the original location.
    #[cold]
    pub(super) fn forget_forward(&self) {
        self.inner.is_forwarded.store(false, Ordering::Release);
        *self.inner.forward.lock() = None;
    }

    /// Returns the exception of a call that has failed.
    pub(super) fn ended_by(
        &self,
        exception: SystemException,
        deadline: Deadline,
    ) -> SystemException {
        match exception.kind {
            ExceptionKind::Timeout => self.timed_out(exception, deadline),
            _ => exception,
        }
    }

    /// Sends later calls by that reference.
    #[cold]
    pub(super) fn follow(&self, next: &Self) {
        *self.inner.forward.lock() = Some(next.clone());
        self.inner.is_forwarded.store(true, Ordering::Release);
    }

    /// Returns the exception of a call that was forwarded too often.
    #[cold]
    pub(super) fn in_circle(&self, deadline: Deadline) -> SystemException {
        self.not_followed(ExceptionKind::Transient.into(), Phase::Forward, deadline)
    }

    /// Returns the exception of a call whose server is content with no form of address.
    #[cold]
    pub(super) fn not_readdressed(&self, deadline: Deadline) -> SystemException {
        let refused = ExceptionKind::NoImplement.into();
        self.not_followed(refused, Phase::AwaitReply, deadline)
    }

    /// Returns the exception of a call that does not follow its object any further.
    #[cold]
    pub(super) fn not_followed(
        &self,
        exception: SystemException,
        phase: Phase,
        deadline: Deadline,
    ) -> SystemException {
        let route = self.inner.routes.first();
        let exception = exception.with_cause(Cause {
            phase,
            endpoint: route.map(|route| Arc::clone(&route.endpoint.endpoint)),
            elapsed: deadline.elapsed(monotonic_ns()),
            errno: None,
        });
        self.say_deadline(exception, deadline)
    }

    /// Adds to the TIMEOUT of this client that the call's deadline has passed, if that and no timeout ended the call.
    fn say_deadline(&self, exception: SystemException, deadline: Deadline) -> SystemException {
        let is_timeout = exception.kind == ExceptionKind::Timeout;
        if is_timeout && self.is_by_deadline(deadline) && deadline.has_passed(monotonic_ns()) {
            return exception.with_detail("the deadline of the call passed");
        }
        exception
    }
}

/// Returns true if the forwarded location of an object is no longer valid.
//= GIOP 1.2 §15.4.3.2
//# When the place that a forward names fails, the client goes back to the original reference.
pub(super) fn ends_forward(exception: &SystemException) -> bool {
    let is_gone = exception.kind == ExceptionKind::ObjectNotExist
        && exception.completed == CompletionStatus::No;
    is_gone || permits_other_route(exception)
}
