//! The wait strategies: what a client thread does until its reply arrives.
//!
//! `read`: the thread reads from its own connection; `watchdog` ends a wait whose deadline has passed. On a connection that
//! many threads wait on, each has a `waiter`: with `reactor` a thread of the ORB reads for all, with `leader_followers` one
//! of the waiting threads does, with `connection_thread` a thread of the connection reads and sends for all. They see the
//! connection as a [`ReplySource`].
//!
//! A started call (`pending_call`) has its waiter from the `call_table`: a thread or a task may wait for it, or none until later. With
//! `leader_followers`, a thread of the application may read for all by the `reply_reader`.

pub(crate) mod call_table;
pub(crate) mod connection_thread;
pub(crate) mod leader_followers;
pub(crate) mod pending_call;
pub(crate) mod reactor;
pub(crate) mod read;
pub(crate) mod reply_reader;
pub(crate) mod waiter;
pub(crate) mod watchdog;

use crate::clock::{coarse_monotonic_ns, monotonic_ns};
use crate::endpoint::Endpoint;
use crate::exception::{Cause, ExceptionKind, Phase, SystemException, local};
use crate::outgoing::CancelRequest;
use crate::realtime::refusal;
use crate::thread_state::EndingCalls;
use crate::transport::Stream;
use connection_thread::{ConnectionThreads, MessageInProgress, Remaining, ThreadSignal};
use core::fmt::Debug;
use core::task::Waker;
use rtorb_os::Refused;
use rtorb_os::sync::{Mutex, MutexGuard};
use rtorb_wire::connection::Deadline;
use rustix::io::Errno;
use std::sync::{Arc, Weak};

/// A connection that several threads wait on, and one thread reads for all of them.
pub(crate) trait ReplySource: Debug + Send + Sync {
    /// Returns its stream, to wait until it is readable.
    fn stream(&self) -> &Stream;

    /// Receives available bytes without waiting, and delivers each reply to its thread. A peer that sends without end does not hold the
    /// calling thread.
    fn receive(&self) -> Receipt;

    /// Ends the connection because its stream failed.
    fn fail(&self, errno: Errno);

    /// Makes the sender of a request the leader, which reads for all, unless another thread is the leader or its reply is being delivered.
    fn take_lead(&self, request_id: u32) -> Lead;

    /// Makes the thread that has waited longest the leader, if any thread waits.
    fn pass_lead(&self);

    /// Notes that no thread waits for the reply to a started call any more, so that no thread is made the leader for it.
    fn step_back(&self, request_id: u32);

    /// Receives all available bytes without waiting, and delivers each reply, unless a leader does. Returns false if the connection has
    /// ended.
    fn read_for_tasks(&self) -> bool;

    /// Admits no more requests, because the server did not reply to one in time, and tells the server so. It does not wait: while another
    /// thread sends, the server is not told.
    fn expire(&self, cancel: &CancelRequest);

    /// Stops waiting for a reply. Returns false if the reply, or the reason why there is none, is being delivered.
    fn give_up(&self, request_id: u32) -> bool;

    /// Ends the wait of a request that is cancelled, and tells the server so if the calling thread may send `cancel`.
    fn cancel(&self, cancel: &CancelRequest);

    /// Sends queued requests without waiting, a bounded number of them. `message` keeps what the socket does not take.
    fn send_queued(&self, message: &mut MessageInProgress) -> Remaining;
}

/// What was received of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Receipt {
    /// All available bytes that its stream does not report.
    All,
    /// As much as one thread receives at a time. There may be bytes that the stream does not report.
    Part,
    /// Its end.
    End,
}

/// How threads wait for replies on a connection that they share.
#[derive(Debug)]
pub(crate) enum SharedWait {
    /// One thread at a time uses the connection, and reads its own reply.
    Read,
    /// A thread of the ORB reads for all.
    Reactor(reactor::Reactor),
    /// One of the waiting threads reads for all, or a thread of the application.
    LeaderFollowers(Arc<reply_reader::ReplyReader>),
    /// A thread of each connection sends and reads for all.
    ConnectionThread(ConnectionThreads),
}

/// Waits until the reply to a request is delivered to its waiter. Returns false if the deadline passed first.
pub(crate) type AwaitReply = fn(&dyn ReplySource, &waiter::Waiter, u32, Option<u64>) -> bool;

impl SharedWait {
    /// Returns the function that waits for a reply.
    pub(crate) fn await_reply(&self) -> AwaitReply {
        match self {
            Self::Reactor(_) | Self::ConnectionThread(_) => reactor::await_reply,
            Self::Read | Self::LeaderFollowers(_) => leader_followers::await_reply,
        }
    }

    /// Returns the function that waits for the end of a started call, and leaves the call as it is if the time passes first.
    pub(crate) fn await_started(&self) -> AwaitReply {
        match self {
            Self::Reactor(_) | Self::ConnectionThread(_) => reactor::await_started,
            Self::Read | Self::LeaderFollowers(_) => leader_followers::await_started,
        }
    }

    /// Returns the connections that a thread of the application may read.
    pub(crate) fn reply_reader(&self) -> Option<&Arc<reply_reader::ReplyReader>> {
        match self {
            Self::LeaderFollowers(reader) => Some(reader),
            _ => None,
        }
    }

    /// Adds a new connection. Returns the signal of its own thread, if it has one: that thread sends its requests.
    pub(crate) fn add(
        &self,
        source: Weak<dyn ReplySource>,
        stream: &Stream,
    ) -> Result<Option<Arc<ThreadSignal>>, WatchError> {
        match self {
            Self::Reactor(reactor) => reactor.watch(source, stream).map(|()| None),
            Self::ConnectionThread(threads) => threads.start(source, stream).map(Some),
            Self::LeaderFollowers(reader) => {
                reader.add(source)?;
                Ok(None)
            }
            Self::Read => Ok(None),
        }
    }
}

/// The reason why no thread of the ORB can watch a connection.
#[derive(Debug)]
pub(crate) enum WatchError {
    /// The host refuses a descriptor, or memory.
    Descriptor(Errno),
    /// The host refuses the thread, or its scheduling.
    Thread(Refused),
}

impl WatchError {
    /// Returns the exception of a call that is served, and whose deadline cannot be watched.
    #[cold]
    pub(crate) fn of_served(self) -> SystemException {
        match self {
            Self::Descriptor(_) => local::DESCRIPTOR_REFUSED,
            Self::Thread(refused) => refusal(refused),
        }
    }

    /// Returns the exception of a call to the endpoint that was not sent.
    #[cold]
    pub(crate) fn at(self, endpoint: &Arc<Endpoint>) -> SystemException {
        let (exception, errno) = match self {
            Self::Descriptor(errno) => (ExceptionKind::NoResources.into(), errno),
            Self::Thread(refused) => (refusal(refused), refused.errno),
        };
        exception.with_cause(Cause {
            endpoint: Some(Arc::clone(endpoint)),
            ..Cause::host(Phase::SetUp, errno)
        })
    }
}

impl From<Errno> for WatchError {
    fn from(errno: Errno) -> Self {
        Self::Descriptor(errno)
    }
}

impl From<Refused> for WatchError {
    fn from(refused: Refused) -> Self {
        Self::Thread(refused)
    }
}

/// The result of asking for the lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lead {
    /// The thread reads for all that wait.
    Taken,
    /// Another thread reads for all.
    Occupied,
    /// The reply of the thread is being delivered.
    NotNeeded,
}

/// Wakes tasks. A waker may run any code, but that does not wait for the end of a call: calls end on this thread.
pub(crate) fn wake_tasks(tasks: impl IntoIterator<Item = Waker>) {
    for task in tasks {
        let _ending = EndingCalls::begin();
        task.wake();
    }
}

/// Returns the deadline of a call that begins now. A timeout of `u64::MAX` is none.
#[inline]
pub(crate) fn deadline(timeout_ns: u64) -> Deadline {
    let now_ns = if timeout_ns < COARSE_FROM_NS {
        monotonic_ns()
    } else {
        coarse_monotonic_ns()
    };
    Deadline::after(now_ns, timeout_ns)
}

/// Locks a mutex. Returns `None` if the deadline passed first.
pub(crate) fn lock_until<T>(
    mutex: &Mutex<T>,
    deadline_ns: Option<u64>,
) -> Option<MutexGuard<'_, T>> {
    match deadline_ns {
        None => Some(mutex.lock()),
        Some(deadline_ns) => mutex.lock_until(deadline_ns),
    }
}

/// Timeouts of at least this length begin at the kernel's last tick, at most 10 ms early. They cost each call less.
const COARSE_FROM_NS: u64 = 200_000_000;
