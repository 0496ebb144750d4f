//! The keeper's mailbox: the way in which other threads give it work.

use super::wake_signal::WakeSignal;
use rtorb_os::bounded_queue::BoundedQueue;
use rtorb_os::sync::Mutex;

/// A bounded queue of items for one thread, and the signal that wakes it.
#[derive(Debug)]
pub(crate) struct Mailbox<T> {
    items: Mutex<BoundedQueue<T>>,
    signal: WakeSignal,
}

impl<T> Mailbox<T> {
    /// Reserves memory for `items_max` items. Callers never post more.
    pub(crate) fn new(items_max: usize) -> Self {
        Self {
            items: Mutex::new(BoundedQueue::new(items_max, usize::MAX).with_memory()),
            signal: WakeSignal::default(),
        }
    }

    /// Adds an item and wakes the thread, unless it is to end.
    pub(crate) fn post(&self, item: T) {
        let mut items = self.items.lock();
        if self.is_stopping() {
            return;
        }
        let refused = items.push(item, 0).err();
        drop(items);
        debug_assert!(refused.is_none(), "no caller posts more than the bound");
        self.signal.wake();
    }

    /// Takes the oldest item.
    pub(crate) fn take(&self) -> Option<T> {
        self.items.lock().pop()
    }

    /// What the thread sleeps on.
    pub(crate) fn signal(&self) -> &WakeSignal {
        &self.signal
    }

    /// Asks the thread to end after the work in progress. Forgets the items, which may hold the mailbox.
    pub(crate) fn stop(&self) {
        self.signal.stop();
        let items: Vec<T> = self.items.lock().drain(usize::MAX).collect();
        drop(items);
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.signal.is_stopping()
    }
}
