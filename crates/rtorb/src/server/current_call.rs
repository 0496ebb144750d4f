//! The call that a servant executes, as the servant sees it.

use super::upcall;
use crate::clock::monotonic_ns;
use crate::deadline;
use crate::distributable;
use crate::exception::{CompletionStatus, SystemException, local};
use crate::timing::is_asked_to_stop;
use core::marker::PhantomData;
use std::time::{Duration, Instant};

/// The call that the calling thread executes in a servant.
///
/// ```no_run
/// use rtorb::CurrentCall;
/// use std::time::Duration;
///
/// # fn coarse() {}
/// # fn fine() {}
/// // In a servant: do what there is time for.
/// let remaining = CurrentCall::get().and_then(|call| call.remaining());
/// if remaining.is_none_or(|remaining| remaining > Duration::from_millis(5)) {
///     fine();
/// } else {
///     coarse();
/// }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct CurrentCall {
    deadline_ns: u64,
    /// It belongs to the thread of the servant.
    thread: PhantomData<*const ()>,
}

impl CurrentCall {
    /// Returns the call that the calling thread executes; `None` if it is not in a servant.
    pub fn get() -> Option<Self> {
        upcall::is_in_servant().then(|| Self {
            deadline_ns: deadline::inherited_ns(),
            thread: PhantomData,
        })
    }

    /// Returns an error once the servant should stop: its [distributable thread](crate::rt::DistributableThread) is cancelled; its client
    /// has [given the call up](Self::is_cancelled); or it has executed longer than its `@worst_case_time`, and the ORB or the adapter
    /// has the policy [`Overrun::Stop`](crate::timing::Overrun::Stop). A servant that works long asks again and again, and returns the
    /// error.
    ///
    /// # Errors
    /// THREAD_CANCELLED, with COMPLETED_MAYBE if the client has given the call up; TIMEOUT, COMPLETED_MAYBE.
    pub fn check(&self) -> Result<(), SystemException> {
        distributable::check()?;
        if self.is_cancelled() {
            return Err(local::CALL_CANCELLED.with_completion(CompletionStatus::Maybe));
        }
        if is_asked_to_stop() {
            return Err(local::STOPPED_BY_BUDGET.with_completion(CompletionStatus::Maybe));
        }
        Ok(())
    }

    /// Returns the time by which the client needs the reply, if it has said so. Calls that the servant makes inherit it.
    pub fn deadline(&self) -> Option<Instant> {
        let remaining = self.remaining()?;
        Instant::now().checked_add(remaining)
    }

    /// Returns true if the client has given the call up (CancelRequest), and does not await its result.
    ///
    /// A call through shared memory that is served by the thread that reads does not learn of it, nor does a collocated one, nor one
    /// whose CancelRequest was received together with its request by the thread that serves it. A thread that alone reads a
    /// connection looks at most once in a tick of the coarse clock (4 ms as a rule), by one system call.
    pub fn is_cancelled(&self) -> bool {
        upcall::is_cancelled()
    }

    /// Returns the time until the deadline, zero if that has passed; `None` without a deadline.
    pub fn remaining(&self) -> Option<Duration> {
        if self.deadline_ns == deadline::NONE_NS {
            return None;
        }
        let left_ns = self.deadline_ns.saturating_sub(monotonic_ns());
        Some(Duration::from_nanos(left_ns))
    }
}
