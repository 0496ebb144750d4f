//! A plain consumer and its queue.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use rtorb::any::Any;
use rtorb_os::bounded_queue::BoundedQueue;
use rtorb_os::clock::monotonic_ns;
use rtorb_os::sync::{Condvar, Mutex};

use super::config::PlainConfig;
use super::counts::PlainCounts;
use crate::stubs::cos_event::cos_event_comm::PushConsumer;

/// A connected plain consumer.
pub(super) struct QueuedConsumer {
    object: PushConsumer,
    counts: Arc<PlainCounts>,
    queue: Mutex<ConsumerQueue>,
    changed: Condvar,
}

struct ConsumerQueue {
    waiting: BoundedQueue<Arc<Any>>,
    ended: bool,
}

/// The next work of a consumer's thread.
pub(super) enum ConsumerWork {
    Push(Arc<Any>),
    Ask,
    End,
}

impl QueuedConsumer {
    pub(super) fn new(
        config: &PlainConfig,
        counts: &Arc<PlainCounts>,
        object: &PushConsumer,
    ) -> Self {
        Self {
            object: object.with_timeout(config.push_timeout),
            counts: Arc::clone(counts),
            queue: Mutex::new(ConsumerQueue {
                waiting: BoundedQueue::new(config.queue_events, config.queue_bytes),
                ended: false,
            }),
            changed: Condvar::new(),
        }
    }

    pub(super) fn object(&self) -> &PushConsumer {
        &self.object
    }

    /// Queues an event. The oldest events make room, unless it is larger than the queue.
    pub(super) fn put(&self, any: &Arc<Any>, bytes: usize) {
        let mut queue = self.queue.lock();
        if queue.ended {
            return;
        }
        self.counts.received.fetch_add(1, Ordering::Relaxed);
        let discard = |_| {
            self.counts.discarded_full.fetch_add(1, Ordering::Relaxed);
        };
        if queue.waiting.push_over(Arc::clone(any), bytes, discard) {
            self.changed.notify_one(&self.queue);
        }
    }

    /// Ends its thread after the push in progress.
    pub(super) fn end(&self) {
        self.queue.lock().ended = true;
        self.changed.notify_all(&self.queue);
    }

    pub(super) fn has_ended(&self) -> bool {
        self.queue.lock().ended
    }

    pub(super) fn next(&self, ask_ns: u64) -> ConsumerWork {
        let mut queue = self.queue.lock();
        loop {
            if queue.ended {
                return ConsumerWork::End;
            }
            if let Some(any) = queue.waiting.pop() {
                return ConsumerWork::Push(any);
            }
            if monotonic_ns() >= ask_ns {
                return ConsumerWork::Ask;
            }
            self.changed.wait_until(&mut queue, ask_ns);
        }
    }

    /// Removes the events that waited at the end and returns their number.
    pub(super) fn left(&self) -> u64 {
        self.queue.lock().waiting.drain(usize::MAX).len() as u64
    }
}
