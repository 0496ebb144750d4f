//! The table against a list that is searched from the beginning, and readers against writers.

use super::*;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use proptest::prelude::*;
use rtorb_tests::running::until;

/// What the table must answer, found by asking everybody.
fn naive(entries: &[(i32, Vec<Key>)], event: Key) -> Vec<usize> {
    let mut places: Vec<usize> = (0..entries.len())
        .filter(|place| entries[*place].1.iter().any(|key| key.matches(event)))
        .collect();
    places.sort_by_key(|place| core::cmp::Reverse(entries[*place].0));
    places
}

fn matching(subscriptions: &Subscriptions<usize>, event: Key) -> Vec<usize> {
    subscriptions.snapshot().matching(event).copied().collect()
}

fn key(source: i32, event_type: i32) -> Key {
    Key { source, event_type }
}

fn some_key() -> impl Strategy<Value = Key> {
    (-1..4, prop_oneof![Just(0), 16..20]).prop_map(|(source, event_type)| key(source, event_type))
}

proptest! {
    #[test]
    fn answers_as_a_search_through_all(
        entries in prop::collection::vec((0..3, prop::collection::vec(some_key(), 0..6)), 0..20),
        removed in prop::collection::vec(any::<bool>(), 20),
        events in prop::collection::vec(some_key(), 1..20),
    ) {
        let subscriptions = Subscriptions::new();
        let subscribers: Vec<_> = (entries.iter().enumerate())
            .map(|(place, (urgency, keys))| subscriptions.insert(*urgency, keys, place))
            .collect();
        for event in &events {
            prop_assert_eq!(matching(&subscriptions, *event), naive(&entries, *event));
        }
        let mut left = entries;
        for (place, subscriber) in subscribers.iter().enumerate().filter(|(place, _)| removed[*place]) {
            prop_assert_eq!(subscriptions.remove(*subscriber), Some(place));
            prop_assert_eq!(subscriptions.remove(*subscriber), None);
            left[place].1.clear();
        }
        for event in &events {
            prop_assert_eq!(matching(&subscriptions, *event), naive(&left, *event));
        }
    }
}

#[test]
fn each_comes_once_however_many_keys_match() {
    let subscriptions = Subscriptions::new();
    subscriptions.insert(1, &[key(7, 16), key(7, 0), key(0, 16), Key::ANY], 0);
    assert_eq!(matching(&subscriptions, key(7, 16)), [0]);
    assert_eq!(matching(&subscriptions, key(0, 16)), [0]);
    assert_eq!(matching(&subscriptions, key(7, 0)), [0]);
    assert_eq!(matching(&subscriptions, Key::ANY), [0]);
}

#[test]
fn the_most_urgent_comes_first_then_who_came_first() {
    let subscriptions = Subscriptions::new();
    subscriptions.insert(5, &[key(0, 16)], 0);
    subscriptions.insert(9, &[key(1, 0)], 1);
    subscriptions.insert(5, &[Key::ANY], 2);
    subscriptions.insert(9, &[key(1, 16)], 3);
    assert_eq!(matching(&subscriptions, key(1, 16)), [1, 3, 0, 2]);
    assert_eq!(subscriptions.snapshot().all(), [1, 3, 0, 2]);
}

proptest! {
    #[test]
    fn those_who_are_more_urgent_can_be_left_out(
        entries in prop::collection::vec((0..4, prop::collection::vec(some_key(), 0..4)), 0..20),
        event in some_key(),
        taken in 0usize..4,
        urgency in -1..5,
    ) {
        let subscriptions = Subscriptions::new();
        for (place, (urgency, keys)) in entries.iter().enumerate() {
            subscriptions.insert(*urgency, keys, place);
        }
        let snapshot = subscriptions.snapshot();
        let mut matching = snapshot.matching(event);
        let first: Vec<usize> = matching.by_ref().take(taken).copied().collect();
        matching.skip_first(|place| entries[*place].0 > urgency);
        let next = matching.peek().copied();
        let rest: Vec<usize> = matching.copied().collect();
        let all = naive(&entries, event);
        let (expected_first, others) = all.split_at(taken.min(all.len()));
        prop_assert_eq!(first, expected_first);
        prop_assert_eq!(next, rest.first().copied());
        let others = others.iter().copied().filter(|place| entries[*place].0 <= urgency);
        prop_assert_eq!(rest, others.collect::<Vec<_>>());
    }
}

#[test]
fn all_urgencies_change_at_once_and_equals_keep_their_order() {
    let subscriptions = Subscriptions::new();
    for (place, urgency) in [5, 9, 5, 9].into_iter().enumerate() {
        subscriptions.insert(urgency, &[Key::ANY], place);
    }
    let before = subscriptions.snapshot();
    subscriptions.reorder(|place| if *place < 2 { 3 } else { 7 });
    assert_eq!(before.all(), [1, 3, 0, 2]);
    assert_eq!(matching(&subscriptions, key(1, 16)), [3, 2, 1, 0]);
}

#[test]
fn nobody_without_keys_is_asked() {
    let subscriptions = Subscriptions::new();
    subscriptions.insert(5, &[], 0);
    assert!(matching(&subscriptions, Key::ANY).is_empty());
    assert_eq!(subscriptions.snapshot().all(), [0]);
}

/// Tells when it is freed, and on which thread.
struct Freed<'a> {
    by_reader: &'a AtomicUsize,
    alive: &'a AtomicUsize,
    reader: std::thread::ThreadId,
}

impl Drop for Freed<'_> {
    fn drop(&mut self) {
        self.alive.fetch_sub(1, Ordering::Relaxed);
        if std::thread::current().id() == self.reader {
            self.by_reader.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[test]
fn a_reader_sees_whole_states_and_never_frees() {
    let [by_reader, alive, reads] = [(); 3].map(|()| AtomicUsize::new(0));
    let subscriptions = Subscriptions::<Arc<Freed<'_>>>::new();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (subscriptions, done, by_reader, alive) = (&subscriptions, &done, &by_reader, &alive);
        let reads = &reads;
        let reader = scope.spawn(move || {
            while !done.load(Ordering::Acquire) {
                let snapshot = subscriptions.snapshot();
                // One of source 1 and one of source 2 come and go together, in this order.
                let ones = snapshot.matching(key(1, 16)).count();
                let twos = snapshot.matching(key(2, 16)).count();
                assert!(ones == twos || ones == twos + 1, "{ones} and {twos}");
                assert_eq!(snapshot.matching(Key::ANY).count(), ones + twos);
                reads.fetch_add(1, Ordering::Relaxed);
            }
        });
        let reading = reader.thread().id();
        for change in 0..3_000 {
            // On a busy host too, it reads between changes.
            if change % 1_000 == 0 {
                let before = reads.load(Ordering::Relaxed);
                until("the reader reads", || {
                    (reads.load(Ordering::Relaxed) > before).then_some(())
                });
            }
            let made = || {
                alive.fetch_add(1, Ordering::Relaxed);
                Arc::new(Freed {
                    by_reader,
                    alive,
                    reader: reading,
                })
            };
            let one = subscriptions.insert(1, &[key(1, 16)], made());
            let two = subscriptions.insert(1, &[key(2, 0)], made());
            drop(subscriptions.remove(two));
            drop(subscriptions.remove(one));
        }
        done.store(true, Ordering::Release);
        reader.join().expect("no assertion fails");
    });
    assert_eq!(subscriptions.free_retired(), 0);
    assert_eq!(alive.load(Ordering::Relaxed), 0, "all are freed");
    assert_eq!(by_reader.load(Ordering::Relaxed), 0, "none by the reader");
}

#[test]
fn what_is_read_is_kept() {
    let subscriptions = Subscriptions::new();
    let value = Arc::new(());
    let subscriber = subscriptions.insert(1, &[Key::ANY], value.clone());
    let snapshot = subscriptions.snapshot();
    drop(subscriptions.remove(subscriber));
    assert_eq!(subscriptions.free_retired(), 1);
    assert_eq!(snapshot.matching(key(1, 16)).count(), 1);
    assert_eq!(subscriptions.snapshot().matching(key(1, 16)).count(), 0);
    drop(snapshot);
    assert_eq!(subscriptions.free_retired(), 0);
    assert_eq!(Arc::strong_count(&value), 1);
}
