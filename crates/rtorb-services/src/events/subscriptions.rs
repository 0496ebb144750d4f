//! Who may want an event: from its source and type to the subscribers, the most urgent first, read without a lock.
//!
//! Readers take a [`Snapshot`], which never changes: some loads, no lock, no heap call (but for a thread's very first one). Writers
//! build a new one and put it in the old one's place; the old ones are kept until nobody reads them, so that it is always a writer
//! (or [`Subscriptions::free_retired`]) that frees, never a reader.

mod table;

use super::filter::Key;
use arc_swap::{ArcSwap, Guard};
use rtorb_os::sync::Mutex;
use std::sync::Arc;
use table::{Entry, Table};

pub use table::{Matching, Subscriber};

/// The subscribers of a channel; `T` is what stands for one, cheap to clone.
#[derive(Debug)]
pub struct Subscriptions<T> {
    snapshot: ArcSwap<Table<T>>,
    writing: Mutex<Writing<T>>,
}

/// What the writers share.
#[derive(Debug)]
struct Writing<T> {
    /// The most urgent first, those of the same urgency in the order in which they came.
    entries: Vec<Entry<T>>,
    next: u64,
    retired: Vec<Arc<Table<T>>>,
}

impl<T: Clone> Subscriptions<T> {
    /// Nobody yet.
    pub fn new() -> Self {
        Self {
            snapshot: ArcSwap::from_pointee(Table::new(&[])),
            writing: Mutex::new(Writing {
                entries: Vec::new(),
                next: 0,
                retired: Vec::new(),
            }),
        }
    }

    /// Adds a subscriber that can want what matches one of the keys; a greater urgency is asked first. Readers see it from their next
    /// snapshot on.
    ///
    /// Costs a new table: time and memory in proportion to all keys of all subscribers.
    pub fn insert(&self, urgency: i32, keys: &[Key], value: T) -> Subscriber {
        let mut writing = self.writing.lock();
        let subscriber = Subscriber(writing.next);
        writing.next += 1;
        writing.insert(Entry {
            subscriber,
            urgency,
            keys: keys.to_vec(),
            value,
        });
        self.publish(&mut writing);
        subscriber
    }

    /// Gives a subscriber other keys and another urgency; false if it is not there. In each snapshot it has the former ones or
    /// these, and so an event that matches both finds it once.
    pub fn replace(&self, subscriber: Subscriber, urgency: i32, keys: &[Key]) -> bool {
        let mut writing = self.writing.lock();
        let Some(value) = writing.take(subscriber) else {
            return false;
        };
        writing.insert(Entry {
            subscriber,
            urgency,
            keys: keys.to_vec(),
            value,
        });
        self.publish(&mut writing);
        true
    }

    /// Takes a subscriber away; what stood for it, if it was there. A reader that has an older snapshot may still come to it.
    pub fn remove(&self, subscriber: Subscriber) -> Option<T> {
        let mut writing = self.writing.lock();
        let value = writing.take(subscriber)?;
        self.publish(&mut writing);
        Some(value)
    }

    /// Frees the tables that nobody reads any more; how many are still read. Every writer does so too.
    pub fn free_retired(&self) -> usize {
        let mut writing = self.writing.lock();
        writing.free_retired();
        writing.retired.len()
    }

    /// The subscribers as they are now.
    #[inline]
    pub fn snapshot(&self) -> Snapshot<T> {
        Snapshot(self.snapshot.load())
    }

    fn publish(&self, writing: &mut Writing<T>) {
        let table = Arc::new(Table::new(&writing.entries));
        // Readers that have the old one without counting are counted by the swap, so its count says whether any is left.
        let old = self.snapshot.swap(table);
        writing.retired.push(old);
        writing.free_retired();
    }
}

impl<T: Clone> Default for Subscriptions<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Writing<T> {
    /// Behind those that are as urgent.
    fn insert(&mut self, entry: Entry<T>) {
        let at_least = |other: &Entry<T>| other.urgency >= entry.urgency;
        let place = self.entries.partition_point(at_least);
        self.entries.insert(place, entry);
    }

    fn take(&mut self, subscriber: Subscriber) -> Option<T> {
        let place = (self.entries.iter()).position(|entry| entry.subscriber == subscriber)?;
        Some(self.entries.remove(place).value)
    }

    fn free_retired(&mut self) {
        self.retired.retain(|table| Arc::strong_count(table) > 1);
    }
}

/// The subscribers at one moment. Keep it no longer than it takes to ask it: what it has lives as long.
#[derive(Debug)]
pub struct Snapshot<T>(Guard<Arc<Table<T>>>);

impl<T> Snapshot<T> {
    /// Those with a key that matches the event's, the most urgent first, each once. The cost does not grow with the number of others.
    #[inline]
    pub fn matching(&self, event: Key) -> Matching<'_, T> {
        self.0.matching(event)
    }

    /// All of them, the most urgent first.
    pub fn all(&self) -> &[T] {
        self.0.all()
    }
}

#[cfg(test)]
mod tests;
