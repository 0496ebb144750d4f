//! The lookup table of a channel: from an event's source and type to its subscribers, the most urgent first, without a lock.
//!
//! Readers take a [`Snapshot`], which never changes: some loads, no lock, no heap call (except a thread's first one). A writer
//! builds a new table and publishes it. The old table is kept until no thread reads it, so a writer or
//! [`Subscriptions::free_retired`] frees it, never a reader.

mod table;

use super::filter::Key;
use arc_swap::{ArcSwap, Guard};
use rtorb_os::sync::Mutex;
use std::sync::Arc;
use table::{SubscriberEntry, SubscriptionTable};

pub use table::{Matching, Subscriber};

/// The subscribers of a channel. `T` identifies a subscriber and is cheap to clone.
#[derive(Debug)]
pub struct Subscriptions<T> {
    snapshot: ArcSwap<SubscriptionTable<T>>,
    writing: Mutex<Writing<T>>,
}

/// The state of the writers.
#[derive(Debug)]
struct Writing<T> {
    /// The most urgent first; in order of insertion among equals.
    entries: Vec<SubscriberEntry<T>>,
    next: u64,
    retired: Vec<Arc<SubscriptionTable<T>>>,
}

impl<T: Clone> Subscriptions<T> {
    /// An empty table.
    pub fn new() -> Self {
        Self {
            snapshot: ArcSwap::from_pointee(SubscriptionTable::new(&[])),
            writing: Mutex::new(Writing {
                entries: Vec::new(),
                next: 0,
                retired: Vec::new(),
            }),
        }
    }

    /// Adds a subscriber for events that match one of the keys. A greater urgency comes first. Readers see it from their next
    /// snapshot on.
    ///
    /// Builds a new table: time and memory grow with the number of keys of all subscribers.
    pub fn insert(&self, urgency: i32, keys: &[Key], value: T) -> Subscriber {
        let mut writing = self.writing.lock();
        let subscriber = Subscriber(writing.next);
        writing.next += 1;
        writing.insert(SubscriberEntry {
            subscriber,
            urgency,
            keys: keys.to_vec(),
            value,
        });
        self.publish(&mut writing);
        subscriber
    }

    /// Replaces the keys and the urgency of a subscriber. Returns false if it does not exist. Each snapshot has either the old or
    /// the new ones, so an event that matches both finds the subscriber once.
    pub fn replace(&self, subscriber: Subscriber, urgency: i32, keys: &[Key]) -> bool {
        let mut writing = self.writing.lock();
        let Some(value) = writing.take(subscriber) else {
            return false;
        };
        writing.insert(SubscriberEntry {
            subscriber,
            urgency,
            keys: keys.to_vec(),
            value,
        });
        self.publish(&mut writing);
        true
    }

    /// Gives every subscriber another urgency. Each snapshot has either all old or all new ones.
    pub fn reorder(&self, urgency: impl Fn(&T) -> i32) {
        let mut writing = self.writing.lock();
        for entry in &mut writing.entries {
            entry.urgency = urgency(&entry.value);
        }
        // Stable: equals keep their order.
        (writing.entries).sort_by_key(|entry| core::cmp::Reverse(entry.urgency));
        self.publish(&mut writing);
    }

    /// Removes a subscriber and returns its value. A reader with an older snapshot may still find it.
    pub fn remove(&self, subscriber: Subscriber) -> Option<T> {
        let mut writing = self.writing.lock();
        let value = writing.take(subscriber)?;
        self.publish(&mut writing);
        Some(value)
    }

    /// Frees the tables that no thread reads any more, and returns how many are still read. Every writer does the same.
    pub fn free_retired(&self) -> usize {
        let mut writing = self.writing.lock();
        writing.free_retired();
        writing.retired.len()
    }

    /// The current subscribers.
    #[inline]
    pub fn snapshot(&self) -> Snapshot<T> {
        Snapshot(self.snapshot.load())
    }

    fn publish(&self, writing: &mut Writing<T>) {
        let table = Arc::new(SubscriptionTable::new(&writing.entries));
        // The swap counts readers that hold the old table without a count, so its count tells whether a reader is left.
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
    /// Behind entries of the same urgency.
    fn insert(&mut self, entry: SubscriberEntry<T>) {
        let at_least = |other: &SubscriberEntry<T>| other.urgency >= entry.urgency;
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

/// The subscribers at one moment. Drop it soon: it keeps its subscribers alive.
#[derive(Debug)]
pub struct Snapshot<T>(Guard<Arc<SubscriptionTable<T>>>);

impl<T> Snapshot<T> {
    /// The subscribers with a key that matches the event's, the most urgent first, each once. The cost does not grow with the
    /// number of others.
    #[inline]
    pub fn matching(&self, event: Key) -> Matching<'_, T> {
        self.0.matching(event)
    }

    /// All subscribers, the most urgent first.
    pub fn all(&self) -> &[T] {
        self.0.all()
    }
}

#[cfg(test)]
mod tests;
