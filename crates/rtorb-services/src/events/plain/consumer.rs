//! A plain consumer and its queue.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rtorb::any::Any;
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
    events_max: usize,
    bytes_max: usize,
}

#[derive(Default)]
struct ConsumerQueue {
    waiting: VecDeque<(Arc<Any>, usize)>,
    bytes: usize,
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
            queue: Mutex::new(ConsumerQueue::default()),
            changed: Condvar::new(),
            events_max: config.queue_events,
            bytes_max: config.queue_bytes,
        }
    }

    pub(super) fn object(&self) -> &PushConsumer {
        &self.object
    }

    /// Queues an event. The oldest events make room.
    pub(super) fn put(&self, any: &Arc<Any>, bytes: usize) {
        let mut queue = self.queue.lock();
        if queue.ended {
            return;
        }
        self.counts.received.fetch_add(1, Ordering::Relaxed);
        while queue.waiting.len() >= self.events_max || queue.bytes + bytes > self.bytes_max {
            let oldest = queue.waiting.pop_front();
            self.counts.discarded_full.fetch_add(1, Ordering::Relaxed);
            let Some((_, bytes)) = oldest else {
                // Larger than the whole queue.
                return;
            };
            queue.bytes -= bytes;
        }
        queue.bytes += bytes;
        queue.waiting.push_back((Arc::clone(any), bytes));
        self.changed.notify_one(&self.queue);
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
            if let Some((any, bytes)) = queue.waiting.pop_front() {
                queue.bytes -= bytes;
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
        std::mem::take(&mut self.queue.lock().waiting).len() as u64
    }
}
