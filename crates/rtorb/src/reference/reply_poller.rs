//! The polling model of CORBA Messaging: a value that asks for the reply to a started call.

use super::{Call, ObjectRef, UntypedCall};
use crate::exception::{SystemException, local};
use std::time::{Duration, Instant};

/// Asks for the reply to a call that was sent (`Messaging::Poller`; CORBA 3, 22.9 and 22.10).
///
/// Generated code has a poller for each interface if it is made with `ami` of the IDL compiler: `motor.sendp_turn(90)` returns an
/// `AmiMotorPoller`, which is a `ReplyPoller` with the method `turn(timeout)`. That waits no longer than `timeout`, and returns what the
/// call returns, or else
/// * NO_RESPONSE 1 if the timeout is 0 and the reply is not there;
/// * TIMEOUT 1 if it did not come in that time, after which the call goes on;
/// * OBJECT_NOT_EXIST 5 if the reply was taken before;
/// * BAD_OPERATION, minor code `0x72746010`, if the call is one of another operation.
///
/// `None` for a timeout waits until the call ends, by its deadline at the latest. A call that could not be started has ended. Dropping
/// the poller gives the call up, as dropping a [`Call`] does.
#[must_use = "a call whose poller is dropped is given up"]
#[derive(Debug)]
pub struct ReplyPoller {
    pub(crate) call: UntypedCall,
    target: ObjectRef,
    operation: &'static str,
}

/// Reads the reply of an operation; returns `None` if it has not arrived by that time.
pub(crate) type ReadReply<T, E> = fn(&mut UntypedCall, Instant) -> Option<Result<T, E>>;

impl ReplyPoller {
    /// Support API for generated code. Not public.
    #[doc(hidden)]
    pub fn new<T, E: From<SystemException>>(
        target: &ObjectRef,
        operation: &'static str,
        started: Call<T, E>,
    ) -> Self {
        Self {
            call: started.into_untyped(),
            target: target.clone(),
            operation,
        }
    }

    /// Waits for the reply, no longer than `timeout`. Returns true if it is there.
    ///
    /// # Errors
    /// OBJECT_NOT_EXIST 5 if it was taken before.
    pub fn is_ready(
        &mut self,
        timeout: impl Into<Option<Duration>>,
    ) -> Result<bool, SystemException> {
        self.check_untaken()?;
        Ok(self.call.wait_until_ready(end_of(timeout.into())))
    }

    /// Support API for generated code. Not public.
    ///
    /// Takes the reply to a call of `operation`.
    #[doc(hidden)]
    pub fn take<T, E: From<SystemException>>(
        &mut self,
        operation: &str,
        timeout: Option<Duration>,
        read: ReadReply<T, E>,
    ) -> Result<T, E> {
        if operation != self.operation {
            return Err(local::OTHER_OPERATION.into());
        }
        self.check_untaken()?;
        //= CORBA 3 §22.10.1.1
        //# A poller that may not wait has NO_RESPONSE if the reply is missing, and one whose time is over has TIMEOUT.
        let is_immediate = timeout.is_some_and(|it| it.is_zero());
        read(&mut self.call, end_of(timeout)).unwrap_or_else(|| {
            Err(if is_immediate {
                local::NO_REPLY_YET.into()
            } else {
                local::NO_REPLY_IN_TIME.into()
            })
        })
    }

    /// Returns the object that was called.
    pub fn operation_target(&self) -> &ObjectRef {
        &self.target
    }

    /// Returns the name of the operation that was called: `turn`, or `_get_speed` for an attribute.
    pub fn operation_name(&self) -> &str {
        self.operation
    }

    //= CORBA 3 §22.9
    //# A poller that has given its reply raises OBJECT_NOT_EXIST.
    fn check_untaken(&self) -> Result<(), SystemException> {
        if self.call.is_taken() {
            return Err(local::REPLY_TAKEN);
        }
        Ok(())
    }
}

/// The time at which a wait that begins now ends.
fn end_of(timeout: Option<Duration>) -> Instant {
    let now = Instant::now();
    let longest = Duration::from_secs(LONGEST_S);
    now + timeout.map_or(longest, |it| it.min(longest))
}

/// A hundred years, in seconds.
const LONGEST_S: u64 = 100 * 365 * 24 * 60 * 60;
