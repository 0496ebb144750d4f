//! A bounded queue of encoded events for one consumer.
//!
//! It reserves all its memory when it is made. The content of one push is one entry.

use super::event::{Form, Message};
use std::collections::VecDeque;

/// A first-in, first-out queue with bounds for entries and bytes.
#[derive(Debug)]
pub(crate) struct EventQueue {
    /// A ring buffer of entries.
    bytes: Box<[u8]>,
    /// The begin of the oldest entry.
    head: usize,
    used: usize,
    entries: VecDeque<Entry>,
    entries_max: usize,
    events: u64,
}

/// An entry without its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) form: Form,
    /// The arrival time, in lanes whose order depends on it.
    pub(crate) came_ns: u64,
    bytes: usize,
}

impl EventQueue {
    pub(crate) fn new(entries_max: usize, bytes_max: usize) -> Self {
        Self {
            bytes: vec![0; bytes_max].into_boxed_slice(),
            head: 0,
            used: 0,
            entries: VecDeque::with_capacity(entries_max),
            entries_max,
            events: 0,
        }
    }

    /// True if there is room for that many bytes.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        self.entries.len() < self.entries_max && bytes <= self.bytes.len() - self.used
    }

    /// True if there would be room in the empty queue.
    pub(crate) fn could_have_room(&self, bytes: usize) -> bool {
        bytes <= self.bytes.len()
    }

    /// Adds a message. Returns false if there is no room.
    pub(crate) fn push(&mut self, message: Message<'_>, came_ns: u64) -> bool {
        let bytes = message.bytes;
        if !self.has_room(bytes.len()) {
            return false;
        }
        let begin = self.at(self.used);
        let before_the_end = bytes.len().min(self.bytes.len() - begin);
        let (first, rest) = bytes.split_at(before_the_end);
        self.bytes[begin..][..first.len()].copy_from_slice(first);
        self.bytes[..rest.len()].copy_from_slice(rest);
        self.used += bytes.len();
        self.events += u64::from(message.form.events);
        self.entries.push_back(Entry {
            form: message.form,
            came_ns,
            bytes: bytes.len(),
        });
        true
    }

    /// Takes the oldest entry and replaces the content of `into` with its bytes.
    pub(crate) fn pop(&mut self, into: &mut Vec<u8>) -> Option<Entry> {
        let bytes = self.entries.front()?.bytes;
        let before_the_end = bytes.min(self.bytes.len() - self.head);
        into.clear();
        into.extend_from_slice(&self.bytes[self.head..][..before_the_end]);
        into.extend_from_slice(&self.bytes[..bytes - before_the_end]);
        self.discard_oldest()
    }

    /// Discards the oldest entry.
    pub(crate) fn discard_oldest(&mut self) -> Option<Entry> {
        let oldest = self.entries.pop_front()?;
        self.head = self.at(oldest.bytes);
        self.used -= oldest.bytes;
        self.events -= u64::from(oldest.form.events);
        Some(oldest)
    }

    /// Discards all entries and returns the number of their events.
    pub(crate) fn clear(&mut self) -> u64 {
        self.entries.clear();
        self.used = 0;
        core::mem::take(&mut self.events)
    }

    pub(crate) fn oldest(&self) -> Option<&Entry> {
        self.entries.front()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Bytes of all entries.
    pub(crate) fn bytes(&self) -> u64 {
        self.used as u64
    }

    pub(crate) fn events(&self) -> u64 {
        self.events
    }

    /// The index `ahead` bytes behind the head.
    fn at(&self, ahead: usize) -> usize {
        match self.head + ahead {
            place if place < self.bytes.len() => place,
            place => place - self.bytes.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rtorb_instruments::heap::heap_calls;

    fn message(bytes: &[u8], events: u32) -> Message<'_> {
        let form = Form {
            events,
            ..Form::default()
        };
        Message { form, bytes }
    }

    #[derive(Clone, Debug)]
    enum Step {
        Push(Vec<u8>, u32),
        Pop,
        Discard,
        Clear,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let bytes = proptest::collection::vec(any::<u8>(), 0..40);
        let step = prop_oneof![
            6 => (bytes, 1u32..4).prop_map(|(bytes, events)| Step::Push(bytes, events)),
            3 => Just(Step::Pop),
            1 => Just(Step::Discard),
            1 => Just(Step::Clear),
        ];
        proptest::collection::vec(step, 0..200)
    }

    proptest! {
        #[test]
        fn it_is_a_queue_of_bounded_size(steps in steps(), entries_max in 1usize..6, bytes_max in 1usize..90) {
            let mut queue = EventQueue::new(entries_max, bytes_max);
            let mut model: VecDeque<(Vec<u8>, u32)> = VecDeque::new();
            let mut taken = Vec::new();
            for (number, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Push(bytes, events) => {
                        let used: usize = model.iter().map(|(bytes, _)| bytes.len()).sum();
                        let fits = model.len() < entries_max && used + bytes.len() <= bytes_max;
                        prop_assert_eq!(queue.has_room(bytes.len()), fits);
                        prop_assert_eq!(queue.push(message(&bytes, events), number as u64), fits);
                        if fits {
                            model.push_back((bytes, events));
                        }
                    }
                    Step::Pop => {
                        let popped = queue.pop(&mut taken).map(|entry| (taken.clone(), entry.form.events));
                        prop_assert_eq!(popped, model.pop_front());
                    }
                    Step::Discard => {
                        let discarded = queue.discard_oldest().map(|entry| entry.form.events);
                        prop_assert_eq!(discarded, model.pop_front().map(|(_, events)| events));
                    }
                    Step::Clear => {
                        let events: u32 = model.drain(..).map(|(_, events)| events).sum();
                        prop_assert_eq!(queue.clear(), u64::from(events));
                    }
                }
                let events: u32 = model.iter().map(|(_, events)| events).sum();
                prop_assert_eq!(queue.events(), u64::from(events));
                prop_assert_eq!(queue.is_empty(), model.is_empty());
            }
        }
    }

    #[test]
    fn all_memory_is_taken_when_it_is_made() {
        let mut queue = EventQueue::new(8, 1000);
        let mut taken = Vec::with_capacity(100);
        let ((), calls) = heap_calls(|| {
            for _ in 0..1000 {
                while queue.push(message(&[7; 100], 1), 0) {}
                while queue.pop(&mut taken).is_some() {}
            }
        });
        assert_eq!(calls, 0);
        assert!(!queue.could_have_room(1001));
    }
}
