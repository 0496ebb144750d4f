//! A call as a value: it is started, and its result is taken later.

use super::ObjectRef;
use super::untyped_call::UntypedCall;
use crate::exception::SystemException;
use crate::realtime::Priority;
use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use rtorb_wire::{DecodeError, EncodeError, Reader, Writer};
use std::time::Instant;

/// A call that was started: its request was sent, and its result is taken later, by a thread or a task.
///
/// Many calls may be in flight on one connection, each with its own deadline and, over the connection of its band, with its own
/// priority. Replies come in any order. The deadline of a call is that of its reference, and holds although nobody waits: the ORB's
/// watchdog then ends the call with TIMEOUT. A call that could not be started has ended with the exception.
///
/// It needs a connection that many calls share at once: connection strategy `multiplexed` or `banded`, with wait strategy
/// * `leader_followers`: a thread that [waits](Self::wait) reads, or a thread of the application by a
///   [`ReplyDriver`](crate::ReplyDriver);
/// * `reactor`: the ORB's reactor thread reads;
/// * `connection_thread`: the connection's own thread sends and reads.
///
/// With all others, it ends with INV_POLICY. Starting a call waits as long as sending does: for a connection if none is open
/// ([`ObjectRef::validate_connection`] opens it before), and for room in the socket.
///
/// Dropping a call gives it up: the server gets a CancelRequest (with `connection_thread` it does not), and its memory serves another
/// call. At most `Limits::started_calls_max` calls exist at a time: starting one more is refused, or waits
/// ([`OrbBuilder::full_call_table`](crate::OrbBuilder::full_call_table)).
///
/// ```no_run
/// use rtorb::{ConnectionStrategy, Orb, WaitStrategy};
/// # fn main() -> Result<(), rtorb::OrbError> {
/// let shared = ConnectionStrategy::Multiplexed { wait: WaitStrategy::LeaderFollowers };
/// let orb = Orb::builder().connection(shared).build()?;
/// let valve = orb.string_to_object("corbaloc:iiop:plant:2809/Valve")?;
/// // Without generated code: `long setting(in long wanted)`, twice at once.
/// let one = valve.start("setting", |w| w.primitive(7_i32), |r| r.primitive::<i32>());
/// let other = valve.start("setting", |w| w.primitive(8_i32), |r| r.primitive::<i32>());
/// let sum = one.wait()? + other.wait()?;
/// # let _ = sum;
/// # Ok(())
/// # }
/// ```
#[must_use = "a call that is dropped is given up"]
pub struct Call<T, E = SystemException> {
    call: UntypedCall,
    result: ReadResult<T>,
    raised: ReadRaised<E>,
}

/// Reads the results of an operation.
type ReadResult<T> = fn(&mut Reader<'_>) -> Result<T, DecodeError>;

/// Reads the user exception with that repository id; `None` if the operation does not declare it.
type ReadRaised<E> = fn(&str, &mut Reader<'_>) -> Result<Option<E>, DecodeError>;

/// Support API for generated code. Not public.
///
/// Starts the calls of an object, with the priority of the calling thread or another.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Starter<'o> {
    object: &'o ObjectRef,
    at: Option<Priority>,
}

impl ObjectRef {
    /// Starts a call of an operation that raises no user exception.
    ///
    /// Generated code calls it if it is made with `start_calls` of the IDL compiler.
    pub fn start<'a, T>(
        &self,
        operation: &str,
        arguments: impl Fn(&mut Writer<'a>) -> Result<(), EncodeError>,
        result: fn(&mut Reader<'_>) -> Result<T, DecodeError>,
    ) -> Call<T> {
        self.starter().start(operation, arguments, result)
    }

    /// Support API for generated code. Not public.
    #[doc(hidden)]
    pub const fn starter(&self) -> Starter<'_> {
        Starter {
            object: self,
            at: None,
        }
    }

    /// Support API for generated code. Not public.
    #[doc(hidden)]
    pub const fn starter_at(&self, priority: Priority) -> Starter<'_> {
        Starter {
            object: self,
            at: Some(priority),
        }
    }
}

impl Starter<'_> {
    /// Starts a call of an operation that raises no user exception.
    pub fn start<'a, T>(
        self,
        operation: &str,
        arguments: impl Fn(&mut Writer<'a>) -> Result<(), EncodeError>,
        result: fn(&mut Reader<'_>) -> Result<T, DecodeError>,
    ) -> Call<T> {
        self.start_raising(operation, arguments, result, |_, _| Ok(None))
    }

    /// Starts a call of an operation that may raise user exceptions. `raised` is as that of [`ObjectRef::invoke_raising`].
    pub fn start_raising<'a, T, E: From<SystemException>>(
        self,
        operation: &str,
        arguments: impl Fn(&mut Writer<'a>) -> Result<(), EncodeError>,
        result: fn(&mut Reader<'_>) -> Result<T, DecodeError>,
        raised: fn(&str, &mut Reader<'_>) -> Result<Option<E>, DecodeError>,
    ) -> Call<T, E> {
        Call {
            call: UntypedCall::start(self.object, self.at, operation, &arguments),
            result,
            raised,
        }
    }
}

impl<T, E: From<SystemException>> Call<T, E> {
    /// Returns true if the result is there, so that [`wait`](Self::wait) does not wait. It may be that of a moved object: then the
    /// request goes there first.
    ///
    /// It reads nothing. With wait strategy `leader_followers`, this returns false until the deadline, unless another thread reads:
    /// [`wait_until`](Self::wait_until) with a time in the past receives what has arrived.
    pub fn is_ready(&self) -> bool {
        self.call.is_ready()
    }

    /// Waits for the result.
    ///
    /// # Errors
    /// As a call that was not started before: a user exception or a system exception; TIMEOUT once the deadline has passed.
    /// NO_RESOURCES if `Limits::started_calls_max` calls existed, and the call did not wait; INV_POLICY if the strategies of the ORB do not
    /// support started calls.
    pub fn wait(self) -> Result<T, E> {
        self.call.wait(self.result, self.raised)
    }

    /// Waits for the result until `until` at the latest. Returns `None` if it is not there by then; the call goes on.
    ///
    /// The result is taken once. Afterwards this returns BAD_INV_ORDER.
    pub fn wait_until(&mut self, until: Instant) -> Option<Result<T, E>> {
        self.call.wait_until(until, self.result, self.raised)
    }

    pub(super) fn into_untyped(self) -> UntypedCall {
        self.call
    }

    /// Gives the call up, as dropping it does. The operation may be carried out all the same.
    pub fn cancel(self) {
        drop(self);
    }
}

impl<T, E: From<SystemException>> Future for Call<T, E> {
    type Output = Result<T, E>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let (result, raised) = (self.result, self.raised);
        self.call.poll(context, result, raised)
    }
}

impl<T, E> fmt::Debug for Call<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("is_ready", &self.call.is_ready())
            .finish_non_exhaustive()
    }
}
