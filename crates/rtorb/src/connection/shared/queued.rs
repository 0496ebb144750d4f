//! A shared connection whose own thread sends: callers put their requests into its queue.
//!
//! If sending a request has not begun when the connection ends or its deadline passes, it leaves the queue, and is certainly not
//! sent.

use super::super::send_queue::{QueueBounds, QueueError, RequestProgress, SendQueue};
use super::{Caller, Others, SharedConnection, WaitingThreads, deliver_error};
use crate::limits::Limits;
use crate::wait::connection_thread::{MessageInProgress, Remaining, ThreadSignal};
use crate::wait::read::failed;
use crate::wait::waiter::Waiter;
use rtorb_wire::Writer;
use rtorb_wire::connection::ReplyError;
use rustix::io::Errno;

/// Makes the queue of a new connection.
pub(super) fn queue(limits: &Limits) -> SendQueue {
    SendQueue::new(QueueBounds {
        requests_max: limits.queued_requests_max,
        // Larger than one message, in however many fragments it is: an empty queue takes any.
        bytes_max: limits.queued_bytes_max(),
        idle_bytes_max: limits.message_bytes_max,
    })
}

/// The most requests that the connection's thread sends before it reads.
const SENDS_MAX: usize = 16;

impl SharedConnection {
    /// Gives a message to the connection's thread to send. Returns when it is in the queue; for a oneway, when it is sent.
    ///
    /// A oneway waits, because [`SyncScope::WithTransport`](crate::SyncScope) promises that the socket has taken it.
    pub(super) fn send_by_thread(
        &self,
        signal: &ThreadSignal,
        caller: &Caller<'_>,
        message: &Writer<'_>,
    ) -> Result<(), ReplyError> {
        caller.waiter.begin();
        let was_empty = self.enqueue(caller, message)?;
        if was_empty {
            signal.wake();
        }
        if !caller.is_oneway {
            return Ok(());
        }
        let (id, deadline_ns) = (caller.request_id, caller.deadline_ns);
        if !(self.await_reply)(self, caller.waiter, id, deadline_ns) {
            return Err(ReplyError::SendTimedOut);
        }
        let error = caller.waiter.delivery.lock().error;
        error.map_or(Ok(()), Err)
    }

    /// Adds a message to the queue, and waits for room until the caller's deadline. Returns true if the queue was empty: then the
    /// thread must be woken.
    fn enqueue(&self, caller: &Caller<'_>, message: &Writer<'_>) -> Result<bool, ReplyError> {
        let (id, is_oneway) = (caller.request_id, caller.is_oneway);
        let fragment_bytes = caller.fragment_bytes;
        let mut waiting = self.waiting.lock();
        loop {
            caller.check_admission(&waiting.pending)?;
            let was_empty = waiting.queue.is_empty();
            match waiting.queue.push(id, is_oneway, message, fragment_bytes) {
                Ok(()) => {
                    let added = waiting.add(caller);
                    if added.is_err() {
                        waiting.queue.give_up_newest();
                    }
                    return added.map(|()| was_empty);
                }
                Err(QueueError::NoMemory) => {
                    return Err(ReplyError::SendFailed {
                        os_error: Errno::NOMEM.raw_os_error(),
                        is_stale: false,
                    });
                }
                Err(QueueError::Full) if caller.others == Others::None => {
                    return Err(ReplyError::ClosedBefore);
                }
                Err(QueueError::Full) => {}
            }
            match caller.deadline_ns {
                None => self.room.wait(&mut waiting),
                Some(deadline_ns) => {
                    if !self.room.wait_until(&mut waiting, deadline_ns) {
                        drop(waiting);
                        self.with_waiting(|waiting| self.leave_if_stuck(waiting));
                        return Err(ReplyError::NotSent);
                    }
                }
            }
        }
    }

    /// Sends requests of the queue until it is empty, the socket takes no more, or the thread must read.
    pub(super) fn send_some(&self, message: &mut MessageInProgress) -> Remaining {
        for _ in 0..SENDS_MAX {
            if message.is_sent() && !self.waiting.lock().queue.begin(message) {
                return Remaining::Nothing;
            }
            match self.stream.send_message_now(message.unsent(), &[]) {
                Ok(sent) => message.advance(sent),
                Err(errno) => {
                    self.fail_sending(errno);
                    return Remaining::End;
                }
            }
            if !message.is_sent() {
                self.waiting.lock().queue.postpone(message.has_begun());
                if !message.has_begun() {
                    message.clear();
                }
                return Remaining::Requests;
            }
            if self.finish_sending() {
                return Remaining::Nothing;
            }
        }
        Remaining::Requests
    }

    /// Removes the request that is sent whole from the queue, and ends the wait of a oneway. Returns true if the queue is empty.
    fn finish_sending(&self) -> bool {
        let mut waiting = self.waiting.lock();
        let sent = waiting.queue.finish();
        if let Some(sent) = sent.filter(|sent| sent.is_oneway) {
            let waiter = waiting.remove(sent.request_id);
            if let Some(waiter) = waiter {
                // A thread waits for it: only calls with a reply are started.
                let _ = waiter.deliver(|delivery| delivery.error = None);
            }
        }
        self.room.notify_all(&self.waiting);
        waiting.queue.is_empty()
    }

    /// Ends the connection because the socket failed while a request was sent.
    #[cold]
    fn fail_sending(&self, errno: Errno) {
        self.with_waiting(|waiting| {
            let begun = waiting.queue.finish();
            if let Some(waiter) = begun.and_then(|begun| waiting.remove(begun.request_id)) {
                let why = self.state.send_failed(errno.raw_os_error());
                let task = deliver_error(&waiter, why);
                waiting.woken.extend(task);
            }
            self.end_with(waiting, failed(errno));
        });
    }

    /// Removes all requests whose sending has not begun, when the connection ends or is stuck. Their threads may send them on
    /// another one.
    pub(super) fn refuse_queued(&self, waiting: &mut WaitingThreads) {
        while let Some(unsent) = waiting.queue.give_up_newest() {
            if let Some(waiter) = waiting.remove(unsent.request_id) {
                let task = deliver_error(&waiter, ReplyError::ClosedBefore);
                waiting.woken.extend(task);
            }
        }
        self.room.notify_all(&self.waiting);
    }

    /// Removes a request that is cancelled from the queue, unless its sending has begun. Returns the reason why it has no reply.
    #[cold]
    pub(super) fn withdraw_queued(
        &self,
        waiting: &mut WaitingThreads,
        request_id: u32,
    ) -> ReplyError {
        if waiting.queue.give_up(request_id) != Some(RequestProgress::Unsent) {
            return ReplyError::TimedOut;
        }
        self.room.notify_all(&self.waiting);
        ReplyError::NotSent
    }

    /// Ends the connection if it is stuck in a request that nobody awaits: a part of the request is sent, and the socket takes no more. No
    /// deadline of that request ends the connection any more.
    #[cold]
    fn leave_if_stuck(&self, waiting: &mut WaitingThreads) {
        let stuck = waiting.queue.stuck();
        if stuck.is_some_and(|id| waiting.pending.get(id).is_none()) {
            self.refuse_queued(waiting);
            self.retire_with(waiting);
        }
    }

    /// Gives up a request whose deadline has passed, if it is still in the queue, and ends its wait. Returns false if it is sent.
    pub(super) fn give_up_queued(
        &self,
        waiting: &mut WaitingThreads,
        request_id: u32,
        waiter: &Waiter,
    ) -> bool {
        match waiting.queue.give_up(request_id) {
            None => return false,
            Some(RequestProgress::Unsent) => {
                self.leave_if_stuck(waiting);
                self.room.notify_all(&self.waiting);
                let task = deliver_error(waiter, ReplyError::NotSent);
                waiting.woken.extend(task);
            }
            Some(progress) => {
                if progress == RequestProgress::Stuck {
                    // The peer takes no bytes: the requests behind this one would wait for that too.
                    self.refuse_queued(waiting);
                }
                self.retire_with(waiting);
                let task = deliver_error(waiter, ReplyError::SendTimedOut);
                waiting.woken.extend(task);
            }
        }
        true
    }
}
