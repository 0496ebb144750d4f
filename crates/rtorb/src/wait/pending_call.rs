//! A started call that has no reply yet. A thread or a task may wait for it; its deadline holds in any case.

use super::waiter::Waiter;
use super::{AwaitReply, ReplySource, wake_tasks};
use crate::clock::monotonic_ns;
use crate::outgoing::CancelRequest;
use core::task::Waker;
use rtorb_wire::ByteOrder;
use rtorb_wire::connection::{Deadline, ReplyError};
use rtorb_wire::giop::Version;
use std::sync::Arc;

/// A request that was sent, and the place for its reply. Its owner and the [`CallTable`](super::call_table::CallTable) share it.
#[derive(Clone, Debug)]
pub(crate) struct PendingCall {
    pub(crate) source: Arc<dyn ReplySource>,
    pub(crate) waiter: Arc<Waiter>,
    /// Waits on the calling thread, and leaves the call as it is if the time passes first.
    pub(crate) await_started: AwaitReply,
    pub(crate) request_id: u32,
    /// When the request was sent, in ticks of the recorder, and the identity of its connection; both 0 if the call is not recorded.
    pub(crate) sent: (u64, u64),
    /// The length of the request, which stays in the slot of the call.
    pub(crate) request_bytes: usize,
    /// True if the connection was opened for the request. If the server closes it, it refuses connections.
    pub(crate) is_connection_new: bool,
    pub(crate) version: Version,
    pub(crate) byte_order: ByteOrder,
    pub(crate) deadline: Deadline,
}

impl PendingCall {
    /// Waits until the call has ended: until `until_ns` at the latest, and no longer than its deadline. Returns true if it has ended.
    pub(crate) fn wait_until(&self, until_ns: Option<u64>) -> bool {
        if self.waiter.has_reply() {
            return true;
        }
        let deadline_ns = self.deadline.at_ns();
        let by_ns = match (until_ns, deadline_ns) {
            (Some(until_ns), Some(at_ns)) => Some(until_ns.min(at_ns)),
            (until_ns, at_ns) => until_ns.or(at_ns),
        };
        if (self.await_started)(&*self.source, &self.waiter, self.request_id, by_ns) {
            return true;
        }
        if !self.deadline.has_passed(monotonic_ns()) {
            return false;
        }
        self.expire();
        self.waiter.await_delivery();
        true
    }

    /// Has `waker` woken when the call ends. Returns true if it has ended already.
    pub(crate) fn await_as_task(&self, waker: &Waker) -> bool {
        self.waiter.await_as_task(waker)
    }

    /// Ends the call because its deadline has passed. Does nothing if it has ended.
    ///
    /// As with a call that a thread waits for, no new request goes over the connection: the server may be stuck. It does not wait: other
    /// calls may have the same deadline.
    #[cold]
    pub(crate) fn expire(&self) {
        if !self.source.give_up(self.request_id) {
            return;
        }
        let task = self
            .waiter
            .deliver(|delivery| delivery.error = Some(ReplyError::TimedOut));
        self.source.expire(&self.cancel_request());
        wake_tasks(task);
    }

    /// Gives the call up, and tells the server so. The memory of the call can be used again afterwards.
    #[cold]
    pub(crate) fn abandon(&self) {
        self.waiter.forget_task();
        if self.waiter.has_reply() {
            return;
        }
        self.source.cancel(&self.cancel_request());
        // It has ended the wait, unless the reply is being delivered.
        self.waiter.await_delivery();
    }

    fn cancel_request(&self) -> CancelRequest {
        CancelRequest::new(self.version, self.byte_order, self.request_id)
    }
}
