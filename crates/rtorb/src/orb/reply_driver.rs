//! Reading of replies, and calls of reply handlers, by a thread of the application.

use super::Orb;
use crate::exception::{Cause, ExceptionKind, Phase, SystemException, local};
use crate::strategies::WaitStrategy;
use crate::wait::reply_reader::ReplyReader;
use core::sync::atomic::AtomicU64;
use core::task::Waker;
use rtorb_wire::connection::Deadline;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Instant;

/// Reads the replies of started calls on a thread of the application, and tells them to reply handlers: on a thread that polls tasks, or
/// on one for this alone.
///
/// With wait strategy `leader_followers`, no thread of the ORB reads: threads that wait for replies do. By a driver, the application chooses which
/// thread reads otherwise, with which priority, and when. With `reactor` and `connection_thread`, threads of the ORB read, and wake tasks; a
/// driver only tells handlers.
///
/// Several threads may run drivers: one at a time reads. Each has a clone of its own, so that it does not miss what another one has seen.
///
/// Handlers are those of `sendc_` methods, which generated code has if it is made with `ami` of the IDL compiler. A handler runs in
/// [`run_once`](Self::run_once), on its thread and with its priority, and in [`Orb::destroy`] or at the end of [`Orb::run`]. It gets the
/// results or the exception of each call once. No lock is held meanwhile: it may send calls, call and run the driver. If it panics, other
/// handlers run all the same. Without a driver no handler runs, and `Limits::started_calls_max` bounds the calls that wait for it.
///
/// A task of an async runtime reads by [`run_ready`](Self::run_ready), when the descriptor of this driver is readable; crate `rtorb-tokio` has it.
/// Choose one of the two for an ORB: a thread that waits takes the news of the descriptor away.
///
/// The deadlines of calls do not depend on it: the watchdog ends them.
///
/// ```no_run
/// use core::pin::pin;
/// use core::task::{Context, Poll};
///
/// /// Runs a future on the calling thread, which reads its replies.
/// fn block_on<F: Future>(replies: &rtorb::ReplyDriver, future: F) -> F::Output {
///     let mut future = pin!(future);
///     let waker = replies.waker();
///     loop {
///         if let Poll::Ready(done) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
///             return done;
///         }
///         replies.run_once(None);
///     }
/// }
/// # fn main() {}
/// ```
#[derive(Debug)]
pub struct ReplyDriver {
    reader: Arc<ReplyReader>,
    orb: Orb,
    /// The number of wakes of the reader that the thread of this driver has seen.
    seen: AtomicU64,
}

impl ReplyDriver {
    fn new(reader: &Arc<ReplyReader>, orb: &Orb) -> Self {
        Self {
            reader: Arc::clone(reader),
            orb: orb.clone(),
            seen: AtomicU64::new(0),
        }
    }
}

/// Makes a driver for another thread.
impl Clone for ReplyDriver {
    fn clone(&self) -> Self {
        Self::new(&self.reader, &self.orb)
    }
}

impl Orb {
    /// Returns the driver by which a thread of the application reads the replies of started calls, and tells them to handlers.
    ///
    /// # Errors
    /// INV_POLICY if the strategies of the ORB do not support started calls; NO_RESOURCES if the host refuses a descriptor.
    pub fn reply_driver(&self) -> Result<ReplyDriver, SystemException> {
        if self.core.strategies.connection.wait() == WaitStrategy::Read {
            return Err(local::START_UNSHARED);
        }
        let reader = self.core.reply_handlers.reader();
        reader.prepare().map_err(|errno| {
            let refused: SystemException = ExceptionKind::NoResources.into();
            refused.with_cause(Cause::host(Phase::SetUp, errno))
        })?;
        Ok(ReplyDriver::new(reader, self))
    }

    /// Returns the number of started calls that were refused because `Limits::started_calls_max` calls existed.
    pub fn started_calls_refused(&self) -> u64 {
        self.core.client.watchdog.calls().refused()
    }

    /// Returns the number of started calls that had to wait because `Limits::started_calls_max` calls existed
    /// ([`FullCallTable::Wait`](crate::FullCallTable::Wait)). One that waits now counts.
    pub fn started_calls_delayed(&self) -> u64 {
        self.core.client.watchdog.calls().delayed()
    }
}

impl ReplyDriver {
    /// Waits until a reply arrives, a [waker](Self::waker) of a driver of the ORB is woken, a call of a handler ends, or `until`; reads all replies
    /// that have arrived, wakes their tasks and tells their handlers. Returns false if `until` passed first. It may return true without a
    /// reply.
    pub fn run_once(&self, until: Option<Instant>) -> bool {
        let until_ns = until.and_then(|until| {
            let left = until.saturating_duration_since(Instant::now());
            Deadline::new(crate::clock::monotonic_ns(), Some(left)).at_ns()
        });
        let has_read = self.reader.read_once(&self.seen, until_ns);
        let has_told = self.orb.core.reply_handlers.tell_ended();
        has_read || has_told
    }

    /// Returns a waker for the tasks that the reading thread polls: it ends [`run_once`](Self::run_once) of all drivers of the ORB. It
    /// makes no heap call.
    pub fn waker(&self) -> Waker {
        Waker::from(Arc::clone(&self.reader))
    }

    /// Reads replies that have arrived, wakes their tasks and tells their handlers, without waiting. Returns false if there were none: from
    /// then on the descriptor becomes readable when there is something to do. So call this again until it returns false, and then wait for
    /// the descriptor.
    ///
    /// It is for an edge-triggered wait, and reads a bounded number of connections.
    pub fn run_ready(&self) -> bool {
        let has_read = self.reader.read_ready();
        let has_told = self.orb.core.reply_handlers.tell_ended();
        has_read || has_told
    }
}

/// The descriptor that is readable when [`ReplyDriver::run_ready`] has something to read. Read nothing from it yourself.
impl AsFd for ReplyDriver {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.reader
            .descriptor()
            .expect("`Orb::reply_driver` prepares the reader")
    }
}
