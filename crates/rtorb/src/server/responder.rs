//! Replies that servants defer: a servant returns, and any thread or task answers later.

use super::call::{OrbResponder, ServerCall};
use super::deferred_replies::{
    AwaitedReply, ReplyDestination, ReplyId, ResponseJudge, UnsentReply,
};
use super::server_core::ServerCore;
use crate::clock::monotonic_ns;
use crate::deadline;
use crate::exception::{SystemException, local};
use crate::realtime::{Priority, thread_priority};
use crate::timing::TimedUpcall;
use crate::wait::WatchError;
use core::fmt;
use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::{Context, Poll};
use rtorb_core::ReplyState;
use rtorb_wire::giop::Response;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Writes the result of a call into its reply, as a skeleton does: by [`reply`](rtorb_core::ServerCall::reply) or
/// [`raise`](rtorb_core::ServerCall::raise), or returns the system exception. It captures nothing, so that a responder needs no memory
/// for it.
pub type WriteResult<T, E> = fn(Result<T, E>, &mut ServerCall<'_>) -> Result<(), SystemException>;

/// A servant of type `S` that defers its replies: it implements a trait like `MotorDeferredServant`, which
/// `rtorb_idl::Compiler::defer_replies` generates beside `MotorServant`. Activate it as any other:
///
/// ```ignore
/// let motor: Motor = poa.activate(Deferring(MyMotor::new()))?;
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Deferring<S>(pub S);

/// The reply to one call, which its servant has deferred. Any thread or task may answer by it, once. The servant has returned, and its thread
/// serves other calls.
///
/// Dropping it answers with NO_RESPONSE, COMPLETED_MAYBE. If the [deadline](Self::deadline) of the call passes first, the ORB answers with
/// TIMEOUT, COMPLETED_MAYBE, and drops a later answer; it does not where [deadlines](crate::OrbBuilder::deadlines) are only counted. The thread that answers sends the reply, as a thread of the server would: if the
/// client does not take it at once, an event loop of the server sends the rest; with `thread_per_connection` the answering thread waits, at
/// most [`Limits::send_timeout`](crate::Limits::send_timeout).
///
/// It keeps the client's connection open, and counts as a request in progress: see
/// [`Limits::deferred_replies_max`](crate::Limits::deferred_replies_max) and
/// [`deferred_replies_per_connection_max`](crate::Limits::deferred_replies_per_connection_max).
#[must_use = "dropping it answers with NO_RESPONSE"]
pub struct Responder<T, E = SystemException> {
    reply: DeferredReply,
    write: WriteResult<T, E>,
}

impl<T, E> Responder<T, E> {
    /// Answers with the results of the call.
    ///
    /// If they cannot be encoded, the client gets that exception. If the client is gone or the deadline has passed, nothing happens, but
    /// [`Orb::deferred_replies`](crate::Orb::deferred_replies) counts it.
    pub fn reply(self, results: T) {
        self.respond(Ok(results));
    }

    /// Answers with an exception.
    pub fn raise(self, exception: impl Into<E>) {
        self.respond(Err(exception.into()));
    }

    /// Answers with what the servant of an ordinary trait would return.
    pub fn respond(mut self, result: Result<T, E>) {
        let write = self.write;
        self.reply.send(|call| write(result, call));
    }

    /// Returns the time by which the reply is needed: the deadline that came with the call, or the `@deadline` of its operation, which counts
    /// from the arrival, if that is earlier. `None` without both. A later answer is dropped, because the ORB has answered with TIMEOUT. Where
    /// [deadlines](crate::OrbBuilder::deadlines) are only counted, it is sent all the same.
    pub fn deadline(&self) -> Option<Instant> {
        Instant::now().checked_add(self.remaining()?)
    }

    /// Returns the time until the deadline, zero if that has passed; `None` without a deadline.
    pub fn remaining(&self) -> Option<Duration> {
        let at_ns = self.reply.deadline_ns;
        let left_ns = at_ns.saturating_sub(monotonic_ns());
        (at_ns != deadline::NONE_NS).then(|| Duration::from_nanos(left_ns))
    }

    /// Returns the CORBA priority with which the servant was called; `None` if the call has none.
    pub fn priority(&self) -> Option<Priority> {
        self.reply.priority
    }

    /// Returns true if nobody waits for the answer: the client has given the call up (CancelRequest), its connection has ended or broken, or
    /// the ORB has answered, with TIMEOUT because the deadline has passed or with NO_RESPONSE because it ends. Also for a call that expects no
    /// reply.
    ///
    /// A client that has only ended sending counts as gone. An answer is sent all the same, and it gets it.
    pub fn is_cancelled(&self) -> bool {
        let unsent = self.reply.unsent.as_ref();
        unsent.is_none_or(|(orb, id)| orb.deferred.is_cancelled(*id))
    }

    /// Becomes ready once [nobody waits](Self::is_cancelled) for the answer, and wakes the task that polled it last. At the deadline the
    /// watchdog wakes it.
    pub fn poll_cancelled(&self, context: &mut Context<'_>) -> Poll<()> {
        match &self.reply.unsent {
            Some((orb, id)) => orb.deferred.poll_cancelled(*id, context.waker()),
            None => Poll::Ready(()),
        }
    }

    /// Answers with the result of `work`. If nobody waits for it any more, `work` is dropped where it is.
    pub async fn answer(self, work: impl Future<Output = Result<T, E>>) {
        let mut work = pin!(work);
        let done = poll_fn(|context| match work.as_mut().poll(context) {
            Poll::Ready(result) => Poll::Ready(Some(result)),
            Poll::Pending => self.poll_cancelled(context).map(|()| None),
        });
        if let Some(result) = done.await {
            self.respond(result);
        }
    }
}

impl<T, E> fmt::Debug for Responder<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reply.fmt(f)
    }
}

/// A deferred reply, of any type.
#[derive(Debug)]
struct DeferredReply {
    /// `None` for a call that expects no reply, and once it is sent.
    unsent: Option<(Arc<ServerCore>, ReplyId)>,
    deadline_ns: u64,
    priority: Option<Priority>,
}

impl DeferredReply {
    fn send(&mut self, write: impl FnOnce(&mut ServerCall<'_>) -> Result<(), SystemException>) {
        if let Some((orb, id)) = self.unsent.take() {
            orb.deferred.send(&orb, id, write);
        }
    }
}

impl Drop for DeferredReply {
    fn drop(&mut self) {
        if let Some((orb, id)) = self.unsent.take() {
            orb.deferred.drop_unanswered(&orb, id);
        }
    }
}

/// Defers the reply to a request.
pub trait DeferReply {
    /// Returns the responder that answers the call later. Read the arguments before.
    ///
    /// The rest of the skeleton sends nothing: neither a reply nor an exception. The responder of a call that expects no reply, or has
    /// been replied to, sends nothing either.
    ///
    /// # Errors
    /// TRANSIENT if [`Limits::deferred_replies_max`](crate::Limits::deferred_replies_max) replies are deferred, or
    /// [`deferred_replies_per_connection_max`](crate::Limits::deferred_replies_per_connection_max) of the connection; NO_RESOURCES or NO_PERMISSION
    /// if the host refuses the thread that watches the deadline.
    fn defer<T, E>(&mut self, write: WriteResult<T, E>)
    -> Result<Responder<T, E>, SystemException>;
}

impl DeferReply for ServerCall<'_> {
    fn defer<T, E>(
        &mut self,
        write: WriteResult<T, E>,
    ) -> Result<Responder<T, E>, SystemException> {
        let deadline_ns = deadline_ns(&self.reply.responder);
        let unsent = defer(self, deadline_ns)?;
        // What the skeleton does from here on has no reply.
        self.reply.response = Response::None;
        let reply = DeferredReply {
            unsent,
            deadline_ns,
            priority: thread_priority(),
        };
        Ok(Responder { reply, write })
    }
}

/// Returns the deadline that came with a call, or that of its operation, if that is earlier; [`NONE_NS`](deadline::NONE_NS) for none.
fn deadline_ns(responder: &OrbResponder<'_>) -> u64 {
    let timing = responder.timing.as_ref();
    let of_operation_ns = timing.map_or(deadline::NONE_NS, TimedUpcall::late_from_ns);
    deadline::inherited_ns().min(of_operation_ns)
}

/// Puts the reply to a call with that deadline into the table of its ORB; `None` if the call expects none.
fn defer(
    call: &mut ServerCall<'_>,
    deadline_ns: u64,
) -> Result<Option<(Arc<ServerCore>, ReplyId)>, SystemException> {
    let reply = &mut call.reply;
    let is_sent = reply.state == ReplyState::Sent;
    if is_sent || reply.response != Response::FromTarget {
        return Ok(None);
    }
    let responder = &mut reply.responder;
    let (orb, destination) = match responder.session {
        Some(session) => {
            let session = session.shared().ok_or(local::CONTRADICTION)?;
            (
                Arc::clone(&session.orb),
                ReplyDestination::Connection(session),
            )
        }
        None => {
            let caller = ReplyDestination::Caller(responder.scratch.caller());
            (responder.orb.shared().ok_or(local::SHUT_DOWN)?, caller)
        }
    };
    let end_ns = if orb.timing.settings.enforces_deadlines {
        deadline_ns
    } else {
        deadline::NONE_NS
    };
    let timing = responder.timing.as_ref();
    let dscp = timing.and_then(TimedUpcall::dscp);
    let judge = timing.map(|timing| ResponseJudge {
        orb: Arc::clone(&orb),
        call: timing.deferred(),
    });
    let unsent = UnsentReply {
        request_id: reply.request_id,
        version: reply.version,
        char_code_set: reply.char_code_set,
        priority: reply.priority.and_then(|data| data.try_into().ok()),
        dscp,
        state: reply.state,
        judge,
        deadline_ns: watched_ns(&orb, &destination, end_ns)?,
        destination,
    };
    let interception = &mut responder.scratch.interception;
    let added = orb.deferred.add(unsent, interception);
    let added = added.inspect_err(|_| orb.state.note_refused())?;
    if added.is_earlier {
        orb.client.core.watchdog.check_waits();
    }
    if let Some(timing) = &mut responder.timing {
        timing.note_deferred();
    }
    let id = added.id;
    responder.scratch.deferred = Some(AwaitedReply { id, end_ns });
    Ok(Some((orb, id)))
}

/// Returns when the watchdog ends a call that ends at `end_ns`, and has it do so; [`NONE_NS`](deadline::NONE_NS) if it does not. A caller in the
/// same ORB ends its call itself.
///
/// # Errors
/// NO_RESOURCES or NO_PERMISSION if the host refuses the thread that watches it.
fn watched_ns(
    orb: &ServerCore,
    destination: &ReplyDestination,
    end_ns: u64,
) -> Result<u64, SystemException> {
    let has_own_wait = matches!(destination, ReplyDestination::Caller(_));
    if end_ns == deadline::NONE_NS || has_own_wait {
        return Ok(deadline::NONE_NS);
    }
    let watched = orb.client.core.watchdog.watch_calls();
    watched.map_err(WatchError::of_served)?;
    Ok(end_ns)
}
