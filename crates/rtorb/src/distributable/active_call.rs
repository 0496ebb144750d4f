//! What ends a call early whose distributable thread is cancelled.

use crate::clock::monotonic_ns;
use crate::wait::ReplySource;
use crate::wait::watchdog::{Wait, WatchdogBell};
use rtorb_wire::giop::{self, Version};
use rtorb_wire::{ByteOrder, Writer};
use std::sync::Arc;

/// A call that is sent, and waits for its reply.
#[derive(Debug)]
pub(crate) struct ActiveCall {
    way: Way,
    request_id: u32,
    /// The CancelRequest of the call.
    cancel_request: [u8; CANCEL_REQUEST_BYTES],
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

/// A message header, and the id of a request.
const CANCEL_REQUEST_BYTES: usize = giop::HEADER_BYTES + 4;

/// How long the server of a cancelled call has to reply before the call ends without a reply, in nanoseconds.
///
/// A server of this ORB replies in the time of a message each way, so the connection remains. Another ORB may ignore CancelRequest:
/// this is what bounds the cancellation there.
pub(crate) const GRACE_NS: u64 = 50_000_000;

impl ActiveCall {
    /// A call whose thread reads its own reply.
    pub(crate) fn single(
        wait: &Arc<Wait>,
        watchdog: WatchdogBell,
        request_id: u32,
        form: (Version, ByteOrder),
    ) -> Self {
        let wait = Arc::clone(wait);
        Self::new(Way::Single { wait, watchdog }, request_id, form)
    }

    /// A call on a connection of many threads.
    pub(crate) fn shared(
        source: Arc<dyn ReplySource>,
        request_id: u32,
        form: (Version, ByteOrder),
    ) -> Self {
        Self::new(Way::Shared(source), request_id, form)
    }

    fn new(way: Way, request_id: u32, (version, order): (Version, ByteOrder)) -> Self {
        let mut w = Writer::new(Vec::new(), CANCEL_REQUEST_BYTES).with_order(order);
        let written = giop::write_cancel_request(&mut w, version, request_id);
        debug_assert!(written.is_ok(), "it has room");
        let mut cancel_request = [0; CANCEL_REQUEST_BYTES];
        cancel_request.copy_from_slice(&w.to_bytes());
        Self {
            way,
            request_id,
            cancel_request,
        }
    }

    /// Sends the server a CancelRequest. The call ends with its reply, or without one soon: after [`GRACE_NS`], or on a connection of
    /// many threads at once.
    pub(crate) fn cancel(&self) {
        match &self.way {
            Way::Single { wait, watchdog } => {
                let sent = wait.stream.send_message_now(&self.cancel_request, &[]);
                // A part of it cannot be taken back, and whoever does not take 16 bytes does not read.
                let grace_ns = match sent {
                    Ok(CANCEL_REQUEST_BYTES) => GRACE_NS,
                    _ => 0,
                };
                watchdog.end_by(wait, monotonic_ns().saturating_add(grace_ns));
            }
            Way::Shared(source) => source.cancel(self.request_id, &self.cancel_request),
        }
    }
}
