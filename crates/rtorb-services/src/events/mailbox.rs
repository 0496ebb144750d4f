//! The keeper's mailbox: the way in which other threads give it work.

use super::wake_signal::WakeSignal;
use rtorb_os::sync::Mutex;
use std::collections::VecDeque;

/// A bounded queue of items for one thread, and the signal that wakes it.
#[derive(Debug)]
pub(crate) struct Mailbox<T> {
    items: Mutex<VecDeque<T>>,
    signal: WakeSignal,
}

impl<T> Mailbox<T> {
    /// Reserves memory for `items_max` items. Callers never post more.
    pub(crate) fn new(items_max: usize) -> Self {
        Self {
            items: Mutex::new(VecDeque::with_capacity(items_max)),
            signal: WakeSignal::default(),
        }
    }

    /// Adds an item and wakes the thread, unless it is to end.
    pub(crate) fn post(&self, item: T) {
        let mut items = self.items.lock();
        if self.is_stopping() {
            return;
        }
        items.push_back(item);
        drop(items);
        self.signal.wake();
    }

    /// Takes the oldest item.
    pub(crate) fn take(&self) -> Option<T> {
        self.items.lock().pop_front()
    }

    /// What the thread sleeps on.
    pub(crate) fn signal(&self) -> &WakeSignal {
        &self.signal
    }

    /// Asks the thread to end after the work in progress. Forgets the items, which may hold the mailbox.
    pub(crate) fn stop(&self) {
        self.signal.stop();
        let items = core::mem::take(&mut *self.items.lock());
        drop(items);
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.signal.is_stopping()
    }
}
