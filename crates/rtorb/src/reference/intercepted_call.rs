//! Calls of an ORB with interceptors, of one that records its calls, or of one that is closed.

use super::ObjectRef;
use super::call::CallRequest;
use super::timeout::CallTime;
use crate::connection::{AddedContexts, Arguments, Invocation, InvocationKind, Results};
use crate::exception::{ExceptionKind, SystemException};
use crate::interceptors::{ClientInterception, Ending, OtherEnding};
use crate::thread_state;
use rtorb_wire::connection::Deadline;
use rtorb_wire::giop::Response;
use rtorb_wire::ior::Ior;

impl ObjectRef {
    /// Invokes the object between the interceptors, and records the call. Returns `None` if neither has to do with the request, or both have
    /// seen it: then it is invoked as any other.
    #[inline(never)]
    pub(super) fn invoke_specially<'a>(
        &self,
        request: CallRequest<'_>,
        arguments: Arguments<'_, 'a>,
        results: Results<'_>,
    ) -> Option<Result<(), SystemException>> {
        let client = &self.inner.client;
        if let Err(exception) = client.check_open() {
            return Some(Err(exception));
        }
        if !is_seen(request.kind) {
            return None;
        }
        if client.core.is_recorded()
            && let Some(part) = thread_state::enter_recorder()
        {
            return Some(self.invoke_recorded(part, request, arguments, results));
        }
        let is_intercepted = client.core.is_intercepted();
        is_intercepted.then(|| self.invoke_intercepted(request, arguments, results))
    }

    /// Invokes the object between the interceptors.
    #[cold]
    pub(super) fn invoke_intercepted<'a>(
        &self,
        request: CallRequest<'_>,
        arguments: Arguments<'_, 'a>,
        results: Results<'_>,
    ) -> Result<(), SystemException> {
        let expects_reply = request.response != Response::None;
        let mut interception = ClientInterception::of(request.operation, expects_reply);
        let ended = self.invoke_between(&mut interception, &request, arguments, results);
        interception.keep();
        ended
    }

    /// Invokes the object at each location to which it is forwarded, each time between the starting and the ending points.
    fn invoke_between<'a>(
        &self,
        interception: &mut ClientInterception,
        request: &CallRequest<'_>,
        arguments: Arguments<'_, 'a>,
        results: Results<'_>,
    ) -> Result<(), SystemException> {
        let mut time = match request.time {
            Some(time) => time,
            // Where the object is, is known only once the starting points have been called.
            None if self.inner.is_direct && request.may_be_direct() => CallTime::DIRECT,
            None => self.begin(),
        };
        let mut steps_left = self.inner.client.core.limits.forwards_max;
        loop {
            self.start_interception(interception)?;
            let ClientInterception {
                added, received, ..
            } = &mut *interception;
            let contexts = AddedContexts::of_interceptors(added, request.kind.thread());
            let request = CallRequest {
                kind: InvocationKind::WithContexts(&contexts),
                time: Some(time),
                ..*request
            };
            let ended = self.invoke_at(request, arguments, &mut |status, r| {
                received.read(status, r, results)
            });
            let ending = match (ended, contexts.forward()) {
                (_, Some(ior)) => Ending::Other(OtherEnding::Forward(*ior)),
                (Ok(()), None) if request.response == Response::None => {
                    Ending::Other(OtherEnding::NoReply)
                }
                (Ok(()), None) => received.ending(),
                (Err(exception), None) => Ending::SystemException(exception),
            };
            if self.end_interception(interception, ending)? {
                return Ok(());
            }
            time = self.begun_before(time);
            if steps_left == 0 {
                return Err(self.in_circle(time.deadline));
            }
            steps_left -= 1;
        }
    }

    /// Calls the starting points, again and again while an interceptor forwards the request.
    ///
    /// # Errors
    /// The exception that one of them raises.
    pub(super) fn start_interception(
        &self,
        interception: &mut ClientInterception,
    ) -> Result<(), SystemException> {
        let core = &self.inner.client.core;
        for _ in 0..=core.limits.forwards_max {
            let interceptors = &core.interceptors.client;
            let Err(ending) = self.with_location(|ior| interception.start(interceptors, ior))
            else {
                return Ok(());
            };
            self.end_interception(interception, ending)?;
        }
        Err(self.in_circle(Deadline::NONE))
    }

    /// Calls the ending points. Returns false if the request is to be sent again, to another location.
    ///
    /// # Errors
    /// The exception of the call.
    pub(super) fn end_interception(
        &self,
        interception: &mut ClientInterception,
        ending: Ending,
    ) -> Result<bool, SystemException> {
        let interceptors = &self.inner.client.core.interceptors.client;
        match self.with_location(|ior| interception.end(interceptors, ior, ending)) {
            Ending::SystemException(exception) => Err(exception),
            Ending::Other(OtherEnding::Forward(ior)) => self.forwarded_to(ior).map(|_| false),
            Ending::Results | Ending::UserException | Ending::Other(_) => Ok(true),
        }
    }

    /// Calls `see` with the reference of the object's last known location.
    fn with_location<T>(&self, see: impl FnOnce(&Ior) -> T) -> T {
        let forward = self.inner.forward();
        let inner = forward.as_ref().map_or(&self.inner, |it| &it.inner);
        see(&inner.ior)
    }

    /// Sends a oneway that waits for nothing, between the interceptors.
    #[cold]
    pub(super) fn at_once_between<T>(
        &self,
        operation: &str,
        kind: InvocationKind<'_>,
        expiry_ns: u64,
        act: &mut dyn FnMut(&Invocation<'_>) -> Result<T, SystemException>,
    ) -> Result<T, SystemException> {
        let mut interception = ClientInterception::of(operation, false);
        self.start_interception(&mut interception)?;
        let contexts = AddedContexts::of_interceptors(&interception.added, kind.thread());
        let kind = InvocationKind::WithContexts(&contexts);
        let (ending, sent) = match self.at_once(operation, kind, expiry_ns, &mut |invocation| {
            act(invocation)
        }) {
            Ok(sent) => (Ending::Other(OtherEnding::NoReply), Some(sent)),
            Err(exception) => (Ending::SystemException(exception), None),
        };
        let has_ended = self.end_interception(&mut interception, ending);
        interception.keep();
        match (has_ended?, sent) {
            (true, Some(sent)) => Ok(sent),
            _ => {
                let forwarded = SystemException::from(ExceptionKind::Transient);
                Err(forwarded.with_detail("an interceptor forwards it: the next one goes there"))
            }
        }
    }
}

/// Returns true if interceptors see requests of this kind, and have not seen the request yet.
pub(super) fn is_seen(kind: InvocationKind<'_>) -> bool {
    match kind {
        InvocationKind::Operation => true,
        InvocationKind::WithContexts(added) => added.intercepted.is_none(),
        InvocationKind::Locate { .. }
        | InvocationKind::BindBand
        | InvocationKind::Passed(_)
        | InvocationKind::SentAgain(_) => false,
    }
}
