//! An immutable lookup table: lists of subscribers by key.

use crate::events::filter::Key;
use foldhash::fast::RandomState;
use std::collections::HashMap;

/// The handle of a subscriber in its [`Subscriptions`](super::Subscriptions).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Subscriber(pub(super) u64);

/// A subscriber and its keys.
#[derive(Clone, Debug)]
pub(super) struct SubscriberEntry<T> {
    pub(super) subscriber: Subscriber,
    pub(super) urgency: i32,
    pub(super) keys: Vec<Key>,
    pub(super) value: T,
}

#[derive(Debug)]
pub(super) struct SubscriptionTable<T> {
    /// The most urgent first.
    values: Box<[T]>,
    /// Indices of `values`: all lists one behind the other, each ascending.
    places: Box<[u32]>,
    /// Subscribers with exactly this key, wildcards included.
    by_key: Lists,
    /// Subscribers with a key of this source and any type: for events of any type.
    by_source: Lists,
    /// Subscribers with a key of this type and any source: for events of any source.
    by_type: Lists,
    /// Subscribers with [`Key::ANY`].
    any: List,
    /// Subscribers with at least one key: for events of any source and type.
    everyone: List,
}

/// The hash costs a tenth of the standard one, and has a secret seed, so that a peer cannot choose keys that collide.
type Lists = HashMap<u64, List, RandomState>;

/// A range of `places`.
#[derive(Clone, Copy, Debug, Default)]
struct List {
    begin: usize,
    end: usize,
}

impl<T: Clone> SubscriptionTable<T> {
    /// Builds the table from entries in order of urgency, the most urgent first.
    pub(super) fn new(entries: &[SubscriberEntry<T>]) -> Self {
        let mut listing = Listing { places: Vec::new() };
        let by_key = listing.lists(entries, Key::packed);
        let everyone = listing.lists(entries, |_| 0);
        Self {
            any: by_key.get(&Key::ANY.packed()).copied().unwrap_or_default(),
            everyone: everyone.get(&0).copied().unwrap_or_default(),
            by_key,
            by_source: listing.lists(entries, |key| of(key.source)),
            by_type: listing.lists(entries, |key| of(key.event_type)),
            places: listing.places.into(),
            values: entries.iter().map(|entry| entry.value.clone()).collect(),
        }
    }
}

impl<T> SubscriptionTable<T> {
    #[inline]
    pub(super) fn matching(&self, event: Key) -> Matching<'_, T> {
        Matching {
            table: self,
            merged: Merged(self.lists(event)),
        }
    }

    pub(super) fn all(&self) -> &[T] {
        &self.values
    }

    /// Lists that together contain every subscriber that matches.
    fn lists(&self, event: Key) -> [&[u32]; 4] {
        let Key { source, event_type } = event;
        match (source, event_type) {
            (0, 0) => [self.list(Some(&self.everyone)), &[], &[], &[]],
            (0, _) => [
                self.list(self.by_type.get(&of(event_type))),
                self.list(self.by_type.get(&of(0))),
                &[],
                &[],
            ],
            (_, 0) => [
                self.list(self.by_source.get(&of(source))),
                self.list(self.by_source.get(&of(0))),
                &[],
                &[],
            ],
            _ => {
                let of_source = Key {
                    source,
                    event_type: 0,
                };
                let of_type = Key {
                    source: 0,
                    event_type,
                };
                [
                    self.list(self.by_key.get(&event.packed())),
                    self.list(self.by_key.get(&of_source.packed())),
                    self.list(self.by_key.get(&of_type.packed())),
                    self.list(Some(&self.any)),
                ]
            }
        }
    }

    fn list(&self, list: Option<&List>) -> &[u32] {
        list.map_or(&[], |list| &self.places[list.begin..list.end])
    }
}

/// Builds lists.
struct Listing {
    places: Vec<u32>,
}

impl Listing {
    /// Makes a list for each value of `number`.
    fn lists<T>(&mut self, entries: &[SubscriberEntry<T>], number: impl Fn(Key) -> u64) -> Lists {
        let mut pairs: Vec<(u64, u32)> = (entries.iter().zip(0_u32..))
            .flat_map(|(entry, place)| entry.keys.iter().map(move |key| (key, place)))
            .map(|(key, place)| (number(*key), place))
            .collect();
        pairs.sort_unstable();
        pairs.dedup();
        let mut lists = Lists::default();
        for group in pairs.chunk_by(|one, next| one.0 == next.0) {
            let begin = self.places.len();
            self.places.extend(group.iter().map(|(_, place)| place));
            let end = self.places.len();
            lists.insert(group[0].0, List { begin, end });
        }
        lists
    }
}

/// The subscribers of an event, the most urgent first, each once.
#[derive(Debug)]
pub struct Matching<'a, T> {
    table: &'a SubscriptionTable<T>,
    merged: Merged<'a>,
}

impl<'a, T> Matching<'a, T> {
    /// Skips the first subscribers, for which `is_skipped` is true; it is false for all behind them. The cost grows with the
    /// logarithm of their number.
    pub fn skip_first(&mut self, is_skipped: impl Fn(&T) -> bool) {
        for list in &mut self.merged.0 {
            let passed =
                list.partition_point(|&place| is_skipped(&self.table.values[place as usize]));
            *list = &list[passed..];
        }
    }

    /// The next subscriber, which stays the next.
    pub fn peek(&self) -> Option<&'a T> {
        let place = self.merged.first()?;
        Some(&self.table.values[place as usize])
    }
}

impl<'a, T> Iterator for Matching<'a, T> {
    type Item = &'a T;

    #[inline]
    fn next(&mut self) -> Option<&'a T> {
        let place = self.merged.next()?;
        Some(&self.table.values[place as usize])
    }
}

/// Merges ascending lists; each index comes once.
#[derive(Debug)]
struct Merged<'a>([&'a [u32]; 4]);

impl Merged<'_> {
    #[inline]
    fn first(&self) -> Option<u32> {
        self.0.iter().filter_map(|list| list.first()).min().copied()
    }
}

impl Iterator for Merged<'_> {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        let first = self.first()?;
        for list in &mut self.0 {
            if list.first() == Some(&first) {
                *list = &list[1..];
            }
        }
        Some(first)
    }
}

impl Key {
    fn packed(self) -> u64 {
        of(self.source) << 32 | of(self.event_type)
    }
}

/// Source or type as its bits.
fn of(number: i32) -> u64 {
    u64::from(number.cast_unsigned())
}
