//! What ends a call early whose distributable thread is cancelled.

use crate::clock::monotonic_ns;
use crate::outgoing::{CancelRequest, CancelSent};
use crate::wait::ReplySource;
use crate::wait::watchdog::{Wait, WatchdogBell};
use std::sync::Arc;

/// A call that is sent, and waits for its reply.
#[derive(Debug)]
pub(crate) struct ActiveCall {
    way: Way,
    cancel: CancelRequest,
}

/// How the thread of a call waits.
#[derive(Debug)]
enum Way {
    /// It reads from a connection of its own.
    Single {
        wait: Arc<Wait>,
        watchdog: WatchdogBell,
    },
    /// It waits on a connection of many threads.
    Shared(Arc<dyn ReplySource>),
}

/// How long the server of a cancelled call has to reply before the call ends without a reply, in nanoseconds.
///
/// A server of this ORB replies in the time of a message each way, so the connection remains. Another ORB may ignore CancelRequest:
/// this is what bounds the cancellation there.
pub(crate) const GRACE_NS: u64 = 50_000_000;

impl ActiveCall {
    /// A call whose thread reads its own reply.
    pub(crate) fn single(wait: &Arc<Wait>, watchdog: WatchdogBell, cancel: CancelRequest) -> Self {
        let wait = Arc::clone(wait);
        let way = Way::Single { wait, watchdog };
        Self { way, cancel }
    }

    /// A call on a connection of many threads.
    pub(crate) fn shared(source: Arc<dyn ReplySource>, cancel: CancelRequest) -> Self {
        let way = Way::Shared(source);
        Self { way, cancel }
    }

    /// Sends the server a CancelRequest. The call ends with its reply, or without one soon: after [`GRACE_NS`], or on a connection of
    /// many threads at once.
    pub(crate) fn cancel(&self) {
        match &self.way {
            Way::Single { wait, watchdog } => {
                // A server that does not take 16 bytes at once does not read either, and after a part of a message nothing else can be sent:
                // then there is no reply to wait for.
                let grace_ns = match self.cancel.send(&wait.stream) {
                    CancelSent::Whole => GRACE_NS,
                    CancelSent::Nothing | CancelSent::Part => 0,
                };
                watchdog.end_by(wait, monotonic_ns().saturating_add(grace_ns));
            }
            Way::Shared(source) => source.cancel(&self.cancel),
        }
    }
}
