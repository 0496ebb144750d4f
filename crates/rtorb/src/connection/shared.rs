//! A connection that many threads use at once. They send one after the other, and each gets its own reply.
//!
//! A thread writes its request into its own buffer, so that the lock of the stream is held for one system call; the lock
//! inherits the priority of threads that wait for it. The wait strategy says which thread reads. A thread whose reply does not come
//! in time retires the connection: the threads that wait there still get their replies, and no new request goes there. A thread that
//! could not begin to send in time leaves the connection as it is: it may merely be busy.
//!
//! With the wait strategy `connection_thread`, threads do not send: they put their requests into a queue (`queued`).

mod queued;

use super::IDLE_NS;
use super::invocation::{Arguments, Invocation};
use super::reply::{CallError, Outcome, Results, read_whole_reply};
use super::send_queue::SendQueue;
use crate::clock::monotonic_ns;
use crate::distributable::{ActiveCall, ThreadCall};
use crate::exception::SystemException;
use crate::outgoing::{self, CancelRequest, CancelSent};
use crate::recorder;
use crate::thread_state;
use crate::transport::Stream;
use crate::wait::connection_thread::{MessageInProgress, Remaining, ThreadSignal};
use crate::wait::pending_call::PendingCall;
use crate::wait::read::failed;
use crate::wait::reply_reader::ReplyReader;
use crate::wait::waiter::{CallSlot, Waiter, with_call_slot};
use crate::wait::{AwaitReply, Lead, Receipt, ReplySource, SharedWait, lock_until, wake_tasks};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::task::Waker;
use rtorb_os::set_once::SetOnce;
use rtorb_os::sync::{Condvar, Mutex, MutexGuard};
use rtorb_wire::Writer;
use rtorb_wire::connection::{ClientState, Pending, Receiver, Reply, ReplyError, Side};
use rtorb_wire::giop::Response;
use rustix::io::Errno;
use std::collections::VecDeque;
use std::sync::{Arc, Weak};

/// A connection of all client threads of a channel.
#[derive(Debug)]
pub(super) struct SharedConnection {
    stream: Stream,
    await_reply: AwaitReply,
    await_started: AwaitReply,
    /// The reader of the application's thread, if one may read replies.
    reader: Option<Arc<ReplyReader>>,
    state: ClientState,
    /// When the last call began.
    used_ns: AtomicU64,
    /// True if no more requests may be sent. `waiting` has the reason.
    is_closed: AtomicBool,
    /// Held while a message is sent.
    sending: Mutex<()>,
    waiting: Mutex<WaitingThreads>,
    /// Held by the thread that reads.
    receiver: Mutex<Receiver>,
    /// Wakes the connection's own thread, if it has one: that thread sends the queued requests, and reads.
    signal: SetOnce<Arc<ThreadSignal>>,
    /// Signalled when the queue has room again, and when the connection admits no more requests.
    room: Condvar,
}

/// The threads and tasks that wait on a connection.
#[derive(Debug)]
struct WaitingThreads {
    pending: Pending<Arc<Waiter>>,
    /// The pending requests whose threads can read, and wait to be made the leader. The first has waited longest.
    followers: VecDeque<u32>,
    /// Tasks whose calls have ended, and that are woken once the lock is free.
    woken: Vec<Waker>,
    /// True while one of the threads reads for all.
    has_leader: bool,
    /// Requests for the connection's own thread to send. Each is pending, oneways too.
    queue: SendQueue,
}

/// The most reads of one connection before a thread does something else.
const READS_MAX: usize = 16;

/// How long a cancellation waits for its turn to send, in nanoseconds.
const CANCEL_TURN_NS: u64 = 1_000_000;

/// The other requests that a connection may have when one is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Others {
    /// Any number.
    Any,
    /// None. If it has others, the request is not sent, and its thread does not wait for them.
    None,
}

/// The calling thread of a request.
struct Caller<'s> {
    request_id: u32,
    waiter: &'s Arc<Waiter>,
    deadline_ns: Option<u64>,
    others: Others,
    is_oneway: bool,
    /// Larger requests are sent in fragments.
    fragment_bytes: Option<usize>,
}

impl Caller<'_> {
    fn check_admission(&self, pending: &Pending<Arc<Waiter>>) -> Result<(), ReplyError> {
        let is_admitted = self.others == Others::Any || pending.is_empty();
        if pending.is_open() && is_admitted {
            Ok(())
        } else {
            Err(ReplyError::ClosedBefore)
        }
    }
}

impl WaitingThreads {
    /// Adds a request that is about to be sent.
    ///
    /// # Errors
    /// [`ReplyError::ClosedBefore`] if a request with its id is still pending: it may be sent with the next id.
    #[inline]
    fn add(&mut self, caller: &Caller<'_>) -> Result<(), ReplyError> {
        if self
            .pending
            .insert(caller.request_id, Arc::clone(caller.waiter))
        {
            Ok(())
        } else {
            Err(ReplyError::ClosedBefore)
        }
    }

    /// Removes a request that is pending no longer. Returns the thread or task that waits for its reply.
    #[inline]
    fn remove(&mut self, request_id: u32) -> Option<Arc<Waiter>> {
        if !self.followers.is_empty() {
            self.forget_follower(request_id);
        }
        self.pending.remove(request_id)
    }

    /// Makes the follower that has waited longest the leader. Returns false if there is none.
    fn lead_next(&mut self) -> bool {
        let next = self.followers.pop_front();
        let next = next.and_then(|request_id| self.pending.get(request_id));
        next.inspect(|waiter| waiter.lead()).is_some()
    }

    fn forget_follower(&mut self, request_id: u32) {
        if let Some(place) = self.followers.iter().position(|it| *it == request_id) {
            self.followers.remove(place);
        }
    }
}

/// Ends a wait without a reply. Returns the task to wake.
#[must_use]
fn deliver_error(waiter: &Waiter, why: ReplyError) -> Option<Waker> {
    waiter.deliver(|delivery| delivery.error = Some(why))
}

impl SharedConnection {
    /// Makes a connection over a stream. With the wait strategy `reactor`, the ORB's reactor reads it. With `connection_thread`,
    /// its own thread starts.
    pub(super) fn new(
        invocation: &Invocation<'_>,
        stream: Stream,
        wait: &SharedWait,
    ) -> Result<Arc<Self>, SystemException> {
        let core = invocation.core;
        let shared = Arc::new(Self {
            stream,
            await_reply: wait.await_reply(),
            await_started: wait.await_started(),
            reader: wait.reply_reader().cloned(),
            state: invocation.route.endpoint.client_state(),
            used_ns: AtomicU64::new(invocation.now_ns()),
            is_closed: AtomicBool::new(false),
            sending: Mutex::new(()),
            waiting: Mutex::new(WaitingThreads {
                pending: Pending::default(),
                followers: VecDeque::new(),
                woken: Vec::new(),
                has_leader: false,
                queue: match wait {
                    SharedWait::ConnectionThread(_) => queued::queue(&core.limits),
                    _ => SendQueue::unused(),
                },
            }),
            receiver: Mutex::new(Receiver::new(Side::Client, core.limits.receive())),
            signal: SetOnce::new(),
            room: Condvar::new(),
        });
        let source: Weak<dyn ReplySource> = Arc::<Self>::downgrade(&shared);
        let signal = wait
            .add(source, &shared.stream)
            .map_err(|unwatched| unwatched.at(&invocation.route.endpoint.endpoint))?;
        if let Some(signal) = signal {
            shared.signal.get_or_make(|| signal);
        }
        Ok(shared)
    }

    /// Sends a request and, if a reply is expected, waits for it.
    ///
    /// If other requests prevent sending, the call fails as if the connection had been closed before.
    pub(super) fn call<'a>(
        self: &Arc<Self>,
        invocation: &Invocation<'_>,
        others: Others,
        arguments: Arguments<'_, 'a>,
        results: Results<'_>,
    ) -> Result<Outcome, CallError> {
        with_call_slot(|slot| {
            let caller = self.caller(invocation, &slot.waiter, others);
            let mut w = invocation.writer(core::mem::take(&mut slot.out));
            let sent = self.send_request(invocation, &caller, &mut w, arguments);
            slot.out = w.into_buffer();
            sent?;
            if let Some(part) = thread_state::recorder() {
                part.note_sent(caller.request_id, self.stream.identity());
            }
            if caller.is_oneway {
                return Ok(Outcome::Done);
            }
            let is_delivered = match invocation.kind.thread() {
                Some(call) => self.await_cancellable(invocation, call, &caller),
                None => self.await_reply(&caller),
            };
            if !is_delivered {
                self.expire(&invocation.cancel_request(caller.request_id));
                return Err(ReplyError::TimedOut.into());
            }
            let delivery = caller.waiter.delivery.lock();
            if let Some(error) = delivery.error {
                return Err(error.into());
            }
            let bytes = &delivery.message[..delivery.bytes];
            read_whole_reply(invocation, caller.request_id, bytes, results)
        })
    }

    /// Sends a request, and returns the call whose reply is awaited later. Its request stays in the slot. `is_connection_new` is true if the
    /// connection was opened for it.
    pub(super) fn start<'a>(
        self: &Arc<Self>,
        invocation: &Invocation<'_>,
        is_connection_new: bool,
        slot: &mut CallSlot,
        arguments: Arguments<'_, 'a>,
    ) -> Result<PendingCall, CallError> {
        let is_recorded = invocation.core.is_recorded();
        if is_recorded {
            slot.waiter.time_delivery();
        }
        let caller = self.caller(invocation, &slot.waiter, Others::Any);
        let mut w = invocation.writer(core::mem::take(&mut slot.out));
        let sent = self.send_request(invocation, &caller, &mut w, arguments);
        let request_bytes;
        (slot.out, request_bytes) = w.finish_whole();
        sent?;
        let request_id = caller.request_id;
        let sent = if is_recorded {
            (recorder::now(), self.stream.identity())
        } else {
            (0, 0)
        };
        Ok(PendingCall {
            source: Arc::<Self>::clone(self),
            waiter: Arc::clone(&slot.waiter),
            await_started: self.await_started,
            request_id,
            sent,
            request_bytes,
            is_connection_new,
            version: invocation.route.version,
            byte_order: invocation.core.byte_order,
            deadline: invocation.deadline,
        })
    }

    /// Returns the caller of a new request, which gets the next id.
    #[inline]
    fn caller<'s>(
        &self,
        invocation: &Invocation<'_>,
        waiter: &'s Arc<Waiter>,
        others: Others,
    ) -> Caller<'s> {
        Caller {
            request_id: self.state.next_shared_request_id(),
            waiter,
            deadline_ns: invocation.deadline.at_ns(),
            others,
            is_oneway: invocation.response == Response::None,
            fragment_bytes: invocation.core.fragment_bytes,
        }
    }

    /// Writes a request, and sends it.
    #[inline]
    fn send_request<'a>(
        &self,
        invocation: &Invocation<'_>,
        caller: &Caller<'_>,
        w: &mut Writer<'a>,
        arguments: Arguments<'_, 'a>,
    ) -> Result<(), CallError> {
        let needs_code_sets = self.state.needs_code_sets();
        let written = invocation.encode(w, caller.request_id, needs_code_sets, arguments);
        written
            .map_err(|error| CallError::Exception(error.into()))
            .and_then(|()| Ok(self.send(caller, w)?))
    }

    /// Waits for the reply to a request. Returns false if the deadline passed first.
    #[inline]
    fn await_reply(&self, caller: &Caller<'_>) -> bool {
        (self.await_reply)(self, caller.waiter, caller.request_id, caller.deadline_ns)
    }

    /// Waits for the reply to a request of a distributable thread, unless that is cancelled.
    #[cold]
    fn await_cancellable(
        self: &Arc<Self>,
        invocation: &Invocation<'_>,
        call: &ThreadCall,
        caller: &Caller<'_>,
    ) -> bool {
        let cancel = invocation.cancel_request(caller.request_id);
        call.begin_wait(ActiveCall::shared(Arc::<Self>::clone(self), cancel));
        caller.waiter.set_cancellable(true);
        let is_delivered = self.await_reply(caller);
        caller.waiter.set_cancellable(false);
        call.end_wait();
        is_delivered
    }

    /// Sends a message. The sender is registered as waiting before a reply can arrive.
    fn send(&self, caller: &Caller<'_>, message: &Writer<'_>) -> Result<(), ReplyError> {
        if let Some(signal) = self.signal.get() {
            return self.send_by_thread(signal, caller, message);
        }
        let turn = self.turn_to_send(caller)?;
        self.register(caller)?;
        let (fragment_bytes, deadline_ns) = (caller.fragment_bytes, caller.deadline_ns);
        let sent = outgoing::send_by(&self.stream, message, fragment_bytes, deadline_ns);
        let Err(unsent) = sent else { return Ok(()) };
        if unsent.has_begun || unsent.errno != Errno::AGAIN {
            // Fail before another thread can send: the peer would read its message as the rest of this one.
            self.fail(unsent.errno);
        }
        drop(turn);
        if !caller.is_oneway && !self.give_up(caller.request_id) {
            caller.waiter.await_delivery();
        }
        Err(match (unsent.errno, unsent.has_begun) {
            (Errno::AGAIN, false) => ReplyError::NotSent,
            (Errno::AGAIN, true) => ReplyError::SendTimedOut,
            (errno, _) => self.state.send_failed(errno.raw_os_error()),
        })
    }

    /// Sends a CancelRequest, if the calling thread gets its `turn` to send, and the socket has room. A connection with a thread of
    /// its own sends none.
    #[cold]
    fn send_cancel<'s>(
        &'s self,
        cancel: &CancelRequest,
        turn: impl FnOnce(&'s Mutex<()>) -> Option<MutexGuard<'s, ()>>,
    ) {
        if self.signal.get().is_some() || !cancel.may_be_shared() {
            return;
        }
        if let Some(_turn) = turn(&self.sending)
            && cancel.send(&self.stream) == CancelSent::Part
        {
            self.fail(Errno::PIPE);
        }
    }

    fn turn_to_send(&self, caller: &Caller<'_>) -> Result<MutexGuard<'_, ()>, ReplyError> {
        match caller.others {
            Others::None => self.sending.try_lock().ok_or(ReplyError::ClosedBefore),
            Others::Any => lock_until(&self.sending, caller.deadline_ns).ok_or(ReplyError::NotSent),
        }
    }

    /// Returns true if no more requests can use the connection.
    pub(super) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    /// Closes the connection if the server ended it while it was idle. Returns true if it is closed now; otherwise notes that a
    /// call uses it at `now_ns`.
    #[inline]
    pub(super) fn ends_idle(&self, now_ns: u64) -> bool {
        let idle_ns = now_ns.saturating_sub(self.used_ns.load(Ordering::Relaxed));
        self.used_ns.store(now_ns, Ordering::Relaxed);
        // If a thread waits on it, that one finds the end.
        idle_ns > IDLE_NS && self.stream.has_ended() && self.close_if_unused()
    }

    /// Closes the connection unless a thread waits on it. Returns true if it is closed now.
    pub(super) fn close_if_unused(&self) -> bool {
        let mut waiting = self.waiting.lock();
        if !waiting.pending.is_empty() {
            return false;
        }
        self.end_with(&mut waiting, ReplyError::Closed);
        true
    }

    /// Changes the waiting threads and tasks, and then wakes the tasks whose calls the change has ended.
    #[cold]
    fn with_waiting<T>(&self, change: impl FnOnce(&mut WaitingThreads) -> T) -> T {
        let mut waiting = self.waiting.lock();
        let done = change(&mut waiting);
        let woken = core::mem::take(&mut waiting.woken);
        drop(waiting);
        wake_tasks(woken);
        done
    }

    /// Admits no more requests; closes the connection unless a thread waits on it.
    fn retire_with(&self, waiting: &mut WaitingThreads) {
        waiting.pending.retire();
        self.is_closed.store(true, Ordering::Release);
        // Threads that wait for room are not admitted any more.
        self.room.notify_all(&self.waiting);
        if waiting.pending.is_empty() {
            self.end_with(waiting, ReplyError::Closed);
        }
    }

    /// Ends the connection. All waiting threads get the reason.
    #[cold]
    fn end(&self, why: ReplyError) {
        self.with_waiting(|waiting| self.end_with(waiting, why));
    }

    fn end_with(&self, waiting: &mut WaitingThreads, why: ReplyError) {
        self.is_closed.store(true, Ordering::Release);
        self.stream.shut();
        self.refuse_queued(waiting);
        // Under the lock, so that a thread that gives up its request finds the reason delivered.
        waiting.followers.clear();
        let ended = waiting.pending.end(why);
        let woken = ended.filter_map(|waiter| deliver_error(&waiter, why));
        waiting.woken.extend(woken);
    }

    /// Adds a request to the pending ones before it is sent, if a thread waits for its reply.
    fn register(&self, caller: &Caller<'_>) -> Result<(), ReplyError> {
        let mut waiting = self.waiting.lock();
        caller.check_admission(&waiting.pending)?;
        if caller.is_oneway {
            return Ok(());
        }
        caller.waiter.begin();
        waiting.add(caller)
    }

    /// Receives available bytes and delivers each whole reply. Returns false if there are no bytes.
    #[inline(always)]
    fn receive_some(&self, receiver: &mut Receiver) -> Result<bool, ReplyError> {
        match self.stream.receive_now(receiver.free()) {
            Ok(0) => Err(ReplyError::Ended),
            Ok(received) => {
                receiver.advance(received);
                self.deliver(receiver)?;
                Ok(true)
            }
            Err(Errno::AGAIN | Errno::INTR) => Ok(false),
            Err(errno) => Err(failed(errno)),
        }
    }

    /// Gives the lead up: to the thread that has waited longest, if any thread waits. Returns true if no thread reads the
    /// replies of started calls now.
    fn leave_lead(&self) -> bool {
        let mut waiting = self.waiting.lock();
        waiting.has_leader = waiting.lead_next();
        !waiting.has_leader && !waiting.pending.is_empty()
    }

    /// Delivers all whole replies in the receive buffer.
    fn deliver(&self, receiver: &mut Receiver) -> Result<(), ReplyError> {
        while let Some(message) = receiver.next()? {
            let kind = message.header.message_type;
            let request_id = Reply::request_id(kind, &mut message.reader());
            let request_id = request_id.map_err(ReplyError::Malformed)?;
            self.state.note_reply(kind);
            #[cfg(simulation)]
            let request_id =
                request_id ^ u32::from(rtorb_os::simulation::is_planted("reply-swapped"));
            let waiter = self.waiting.lock().remove(request_id);
            if let Some(waiter) = waiter {
                let task = waiter.deliver(|delivery| {
                    delivery.bytes = receiver.take(&mut delivery.message);
                    delivery.error = None;
                });
                wake_tasks(task);
            }
        }
        Ok(())
    }
}

impl ReplySource for SharedConnection {
    fn stream(&self) -> &Stream {
        &self.stream
    }

    fn receive(&self) -> Receipt {
        let mut receiver = self.receiver.lock();
        for _ in 0..READS_MAX {
            if let Err(error) = self.receive_some(&mut receiver) {
                self.end(error);
                return Receipt::End;
            }
            if !self.stream.holds_unreported_bytes() {
                return Receipt::All;
            }
        }
        Receipt::Part
    }

    #[cold]
    fn fail(&self, errno: Errno) {
        self.end(failed(errno));
    }

    fn take_lead(&self, request_id: u32) -> Lead {
        let waiting = &mut *self.waiting.lock();
        if waiting.pending.get(request_id).is_none() {
            Lead::NotNeeded
        } else if waiting.has_leader {
            waiting.followers.push_back(request_id);
            Lead::Occupied
        } else {
            waiting.has_leader = true;
            Lead::Taken
        }
    }

    fn pass_lead(&self) {
        #[cfg(simulation)]
        if rtorb_os::simulation::is_planted("lead-kept") {
            return;
        }
        if self.leave_lead()
            && let Some(reader) = &self.reader
        {
            reader.note_left();
        }
    }

    fn step_back(&self, request_id: u32) {
        self.waiting.lock().forget_follower(request_id);
    }

    fn read_for_tasks(&self) -> bool {
        if core::mem::replace(&mut self.waiting.lock().has_leader, true) {
            return true;
        }
        let mut receiver = self.receiver.lock();
        let mut reads_left = READS_MAX;
        let ended = loop {
            match self.receive_some(&mut receiver) {
                Ok(true) if reads_left > 0 => reads_left -= 1,
                Ok(has_more) => break Ok(has_more || self.stream.holds_unreported_bytes()),
                Err(error) => break Err(error),
            }
        };
        drop(receiver);
        if let Err(error) = ended {
            self.end(error);
        }
        self.leave_lead();
        if let (Ok(true), Some(reader)) = (ended, &self.reader) {
            reader.note_left();
        }
        ended.is_ok()
    }

    #[cold]
    fn expire(&self, cancel: &CancelRequest) {
        self.send_cancel(cancel, Mutex::try_lock);
        // If the server is stuck with this request, later requests on this connection would be stuck too.
        self.with_waiting(|waiting| self.retire_with(waiting));
    }

    fn give_up(&self, request_id: u32) -> bool {
        self.with_waiting(|waiting| match waiting.remove(request_id) {
            Some(waiter) => !self.give_up_queued(waiting, request_id, &waiter),
            None => false,
        })
    }

    #[cold]
    fn cancel(&self, cancel: &CancelRequest) {
        // A thread that the server keeps waiting must not hold the canceller up.
        let turn_by_ns = Some(monotonic_ns().saturating_add(CANCEL_TURN_NS));
        self.send_cancel(cancel, |sending| lock_until(sending, turn_by_ns));
        // The reply to a request that is not pending any more is dropped.
        self.with_waiting(|waiting| {
            if let Some(waiter) = waiting.remove(cancel.request_id) {
                let why = self.withdraw_queued(waiting, cancel.request_id);
                let task = deliver_error(&waiter, why);
                waiting.woken.extend(task);
            }
        });
    }

    fn send_queued(&self, message: &mut MessageInProgress) -> Remaining {
        self.send_some(message)
    }
}

impl Drop for SharedConnection {
    fn drop(&mut self) {
        if let Some(signal) = self.signal.get() {
            signal.end();
        }
    }
}
