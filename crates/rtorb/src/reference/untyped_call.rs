//! A started call whose types are known only at run time.

use super::ObjectRef;
use super::started_request::StartedRequest;
use crate::connection::Arguments;
use crate::exception::{CompletionStatus, ExceptionKind, SystemException, local};
use crate::realtime::Priority;
use core::task::{Context, Poll, Waker};
use rtorb_wire::connection::Deadline;
use rtorb_wire::giop::ReplyStatus;
use rtorb_wire::{DecodeError, EncodeError, Reader, Writer};
use std::time::Instant;

/// A [`Call`](crate::Call) of an operation whose types are known only at run time: each method that takes the result gets the functions
/// that read it, as [`ObjectRef::invoke_raising`] does.
#[must_use = "a call that is dropped is given up"]
#[derive(Debug)]
pub struct UntypedCall {
    request: StartedRequest,
}

impl ObjectRef {
    /// Starts a call. The functions that read its result are given when it is taken.
    pub fn start_untyped<'a>(
        &self,
        operation: &str,
        arguments: impl Fn(&mut Writer<'a>) -> Result<(), EncodeError>,
    ) -> UntypedCall {
        UntypedCall::start(self, None, operation, &arguments)
    }
}

impl UntypedCall {
    /// Starts a call with the priority `at`, or the calling thread's.
    pub(super) fn start(
        object: &ObjectRef,
        at: Option<Priority>,
        operation: &str,
        arguments: Arguments<'_, '_>,
    ) -> Self {
        Self {
            request: StartedRequest::start(object, at, operation, arguments),
        }
    }

    /// Makes a call that has ended with an exception.
    pub(crate) fn failed(exception: SystemException) -> Self {
        Self {
            request: StartedRequest::Failed(exception),
        }
    }

    /// As [`Call::is_ready`](crate::Call::is_ready).
    pub fn is_ready(&self) -> bool {
        self.request.is_ready()
    }

    /// Has `waker` woken once [`is_ready`](Self::is_ready) returns true. Returns true if it does so already.
    pub(crate) fn await_as_task(&self, waker: &Waker) -> bool {
        self.request.await_as_task(waker)
    }

    /// Returns true if the result was taken.
    pub(super) fn is_taken(&self) -> bool {
        matches!(self.request, StartedRequest::Taken)
    }

    /// Returns the exception of a call that could not be started; `None` if it was, or the exception was taken.
    pub(crate) fn refusal(&self) -> Option<SystemException> {
        match &self.request {
            StartedRequest::Failed(exception) => Some(exception.clone()),
            StartedRequest::InFlight(_) | StartedRequest::Taken => None,
        }
    }

    /// Waits until [`is_ready`](Self::is_ready) returns true, until `until` at the latest. Returns false if that passed first. If it is
    /// in the past, this receives what has arrived, unless another thread receives.
    pub fn wait_until_ready(&mut self, until: Instant) -> bool {
        let left = until.saturating_duration_since(Instant::now());
        let until_ns = Deadline::new(crate::clock::monotonic_ns(), Some(left)).at_ns();
        self.request.wait_until(until_ns)
    }

    /// As [`Call::wait`](crate::Call::wait).
    ///
    /// # Errors
    /// As [`Call::wait`](crate::Call::wait).
    pub fn wait<T, E: From<SystemException>>(
        mut self,
        mut result: impl FnMut(&mut Reader<'_>) -> Result<T, DecodeError>,
        mut raised: impl FnMut(&str, &mut Reader<'_>) -> Result<Option<E>, DecodeError>,
    ) -> Result<T, E> {
        loop {
            self.request.wait_until(None);
            if let Some(result) = self.take(&mut result, &mut raised) {
                return result;
            }
        }
    }

    /// As [`Call::wait_until`](crate::Call::wait_until).
    pub fn wait_until<T, E: From<SystemException>>(
        &mut self,
        until: Instant,
        mut result: impl FnMut(&mut Reader<'_>) -> Result<T, DecodeError>,
        mut raised: impl FnMut(&str, &mut Reader<'_>) -> Result<Option<E>, DecodeError>,
    ) -> Option<Result<T, E>> {
        while self.wait_until_ready(until) {
            let taken = self.take(&mut result, &mut raised);
            if taken.is_some() {
                return taken;
            }
        }
        None
    }

    /// Polls the call as a [`Future`].
    pub fn poll<T, E: From<SystemException>>(
        &mut self,
        context: &mut Context<'_>,
        mut result: impl FnMut(&mut Reader<'_>) -> Result<T, DecodeError>,
        mut raised: impl FnMut(&str, &mut Reader<'_>) -> Result<Option<E>, DecodeError>,
    ) -> Poll<Result<T, E>> {
        while self.request.await_as_task(context.waker()) {
            if let Some(result) = self.take(&mut result, &mut raised) {
                return Poll::Ready(result);
            }
        }
        Poll::Pending
    }

    /// Reads the reply; `None` if the request was sent again instead.
    fn take<T, E: From<SystemException>>(
        &mut self,
        result: &mut impl FnMut(&mut Reader<'_>) -> Result<T, DecodeError>,
        raised: &mut impl FnMut(&str, &mut Reader<'_>) -> Result<Option<E>, DecodeError>,
    ) -> Option<Result<T, E>> {
        let mut reply = None;
        let ended = self.request.take(&mut |status, r| {
            reply = Some(match status {
                ReplyStatus::NoException => Ok(result(r)?),
                _ => {
                    let id = r.str()?;
                    Err(raised(&id, r)?.unwrap_or_else(|| {
                        let unknown = SystemException::omg(ExceptionKind::Unknown, 1);
                        unknown.with_completion(CompletionStatus::Yes).into()
                    }))
                }
            });
            Ok(())
        })?;
        Some(match ended {
            Ok(()) => reply.unwrap_or_else(|| Err(local::CONTRADICTION.into())),
            Err(exception) => Err(exception.into()),
        })
    }
}
