//! The filter of a consumer: the events that it gets, alone or together, and its timeouts.
//!
//! A `ConsumerQOS` is a flat list of event headers. This page defines their meaning and how TAO's channel differs (from its
//! sources and tests); `docs/reference/subscriptions.md` explains it for users.
//!
//! # Two forms
//! A list does not say which form it has. It is an option of the channel ([`FilterKind`], TAO's `-ECFiltering`).
//!
//! * **Basic** (the default, as in TAO): a conjunction, disjunction or logical AND designator begins a group, which lasts until
//!   the next of these designators. Counts in `header.source` are ignored. Groups cannot contain groups; a negation or bitmask
//!   outside of a group may have a group as its child.
//! * **Prefix**: `header.source` of such a designator is the number of its children, which may be groups.
//!
//! In both forms, one child follows a negation; one entry with masks and one child follow a bitmask; two entries with masks and
//! values follow a masked type.
//!
//! All entries outside of groups are one disjunction; each group there is a **tree** of its own. TAO reads the first tree only
//! and silently drops the rest. A global designator, which TAO's older channel has, ends a group: the entries after it are
//! outside.
//!
//! # What each construct means
//! | construct | satisfied by |
//! |---|---|
//! | event (type, source) | an event with both; 0 is any, in the entry and in the event |
//! | null | any event |
//! | masked type | an event with `type & mask == value` and `source & mask == value` |
//! | bitmask | an event with `type & mask != 0` and `source & mask != 0` that its child takes |
//! | logical AND | one event that all children take |
//! | negation | an event that its child does not take |
//! | disjunction | whichever child is satisfied first, in the order of the list; with what satisfies that child |
//! | conjunction | all children, one event (or timeout) each: all these together in one push, in the order in which they came |
//! | timeout (4) | the moment one period after connecting, once |
//! | interval timeout (5) | every period since connecting, whatever else comes |
//! | deadline timeout (6) | one period in which its tree delivered nothing |
//!
//! * A **conjunction** gives an event to its first child, in order, that has no event yet and takes it. While other children have
//!   none, further events for a child that has one are dropped: the first is kept, not the latest (as in TAO). TAO gives an event
//!   to the first child that takes it even if that child has one, so a conjunction of the same event twice, or of any event and a
//!   certain one, can never be complete there; here it can.
//! * A **disjunction** shows an event to the next children even if one child only remembers it (an incomplete conjunction). TAO
//!   does not: an alternative behind such a conjunction never sees the event.
//! * **After a delivery the whole tree is reset**: its conjunctions forget their events and its deadlines restart (as in TAO).
//!   Other trees are not affected. A single event is delivered once, even if several trees want it.
//! * The period of a timeout is `header.creation_time`, in units of 100 ns. **Its event** has the timeout's type, source 0, ttl 0
//!   and no data; `creation_time` is when it was due, `ec_recv_time` and `ec_send_time` when it was made (CLOCK_MONOTONIC in
//!   units of 100 ns). Only its own entry and the constructs around that entry see it; in TAO any entry with wildcards of that
//!   consumer sees it.
//! * **A late thread**: due timeouts come before the next event that is accepted, so a passed deadline is always reported; an
//!   event at the exact moment of a deadline is too late. Several missed timeouts become one event
//!   ([`Subscription::timeouts_missed`] counts the others), and an interval keeps its phase. A deadline of an incomplete
//!   conjunction repeats every period.
//! * Logical AND and negation check one event, so they cannot contain conjunctions or timeouts; a bitmask cannot contain
//!   timeouts. TAO accepts such lists and then delivers nothing, or something else.
//!
//! [`FilterLimits`] bounds everything. Accepting an event makes no heap call once the conjunctions have seen events of that size.
//! The filter has no threads and no clock: time is a parameter.

mod delivery;
mod error;
mod key;
mod kind;
mod limits;
mod memory;
mod reading;
mod timeout;
mod tree;
pub mod types;

pub use delivery::Delivery;
pub use error::{Needed, Problem, SubscriptionError};
pub use key::Key;
pub use kind::FilterKind;
pub use limits::FilterLimits;
pub use memory::EventBytes;

use crate::stubs::rtec_event::rtec_base::HandleT;
use crate::stubs::rtec_event::rtec_event_channel_admin::ConsumerQos;
use crate::stubs::rtec_event::rtec_event_comm::EventHeader;
use tree::{FilterTree, Verdict};

/// A subscription with the events that its conjunctions remember.
#[derive(Debug)]
pub struct Subscription {
    trees: Vec<FilterTree>,
    keys: Vec<Key>,
    rt_infos: Vec<HandleT>,
    is_plain: bool,
    timeouts: usize,
    next_timeout_ns: Option<u64>,
    timeouts_missed: u64,
}

impl Subscription {
    /// Builds a subscription from a consumer's list. Its timeouts start now.
    pub fn build(
        qos: &ConsumerQos,
        kind: FilterKind,
        limits: &FilterLimits,
        now_ns: u64,
    ) -> Result<Self, SubscriptionError> {
        let mut read = reading::read(&qos.dependencies, kind, limits)?;
        for tree in &mut read.trees {
            tree.start(now_ns);
        }
        let mut subscription = Self {
            keys: most_general(read.trees.iter().flat_map(FilterTree::keys).collect()),
            is_plain: read.trees.iter().all(FilterTree::is_plain),
            timeouts: read.trees.iter().map(|tree| tree.timeouts.len()).sum(),
            trees: read.trees,
            rt_infos: read.rt_infos,
            next_timeout_ns: None,
            timeouts_missed: 0,
        };
        subscription.find_next_timeout();
        Ok(subscription)
    }

    /// Handles due timeouts and then an event. Calls `deliver` for each push to the consumer.
    pub fn accept(
        &mut self,
        header: &EventHeader,
        bytes: &[u8],
        now_ns: u64,
        deliver: &mut dyn FnMut(Delivery<'_>),
    ) {
        self.expire(now_ns, deliver);
        let event = EventBytes { header, bytes };
        let mut is_delivered = false;
        let mut is_set_back = false;
        for tree in &mut self.trees {
            match tree.accept(event) {
                Verdict::Nothing => continue,
                Verdict::Alone if is_delivered => {}
                Verdict::Alone => {
                    is_delivered = true;
                    deliver(Delivery::one(event));
                }
                Verdict::Together(conjunction) => deliver(tree.together(conjunction)),
            }
            tree.delivered(now_ns);
            is_set_back = true;
        }
        if is_set_back && self.timeouts > 0 {
            self.find_next_timeout();
        }
    }

    /// Delivers the timeouts that are due at `now_ns` or before, each once, in the order of their times.
    pub fn expire(&mut self, now_ns: u64, deliver: &mut dyn FnMut(Delivery<'_>)) {
        if self.next_timeout_ns.is_none_or(|next_ns| now_ns < next_ns) {
            return;
        }
        // A timeout that has fired is due later.
        for _ in 0..self.timeouts {
            let Some((_, tree, timeout)) = self.first_due().filter(|due| due.0 <= now_ns) else {
                break;
            };
            let tree = &mut self.trees[tree];
            let (event, missed, verdict) = tree.fire(timeout, now_ns);
            self.timeouts_missed += missed;
            match verdict {
                Verdict::Nothing => continue,
                Verdict::Alone => deliver(Delivery::one(EventBytes {
                    header: &event.header,
                    bytes: &event.bytes,
                })),
                Verdict::Together(conjunction) => deliver(tree.together(conjunction)),
            }
            tree.delivered(now_ns);
        }
        self.find_next_timeout();
    }

    /// The keys of the subscription: every event that [`Subscription::accept`] does not ignore matches one of them. No key covers
    /// another. A subscription to timeouts only has none.
    pub fn keys(&self) -> &[Key] {
        &self.keys
    }

    /// True if the keys are the whole subscription: each event that matches one is delivered alone, and no other event is.
    /// Calling [`Subscription::accept`] is not necessary then.
    pub fn is_plain(&self) -> bool {
        self.is_plain
    }

    /// True if one of the keys matches.
    pub fn wants(&self, event: Key) -> bool {
        self.keys.iter().any(|key| key.matches(event))
    }

    /// The next time at which [`Subscription::expire`] has something to do.
    pub fn next_timeout_ns(&self) -> Option<u64> {
        self.next_timeout_ns
    }

    /// The different `rt_info` of the entries for events and timeouts, ascending; designators do not count.
    pub fn rt_infos(&self) -> &[HandleT] {
        &self.rt_infos
    }

    /// Timeouts that were missed because the thread was late.
    pub fn timeouts_missed(&self) -> u64 {
        self.timeouts_missed
    }

    /// Events that a conjunction could not remember because of [`FilterLimits::remembered_bytes_max`].
    pub fn forgotten(&self) -> u64 {
        self.trees.iter().map(FilterTree::forgotten).sum()
    }

    fn find_next_timeout(&mut self) {
        self.next_timeout_ns = self.first_due().map(|(due_ns, _, _)| due_ns);
    }

    /// The time, the tree and the index of the first timeout.
    fn first_due(&self) -> Option<(u64, usize, usize)> {
        (self.trees.iter().enumerate())
            .filter_map(|(index, tree)| {
                tree.first_due()
                    .map(|(due_ns, timeout)| (due_ns, index, timeout))
            })
            .min()
    }
}

/// The keys that no other covers, ascending.
fn most_general(mut keys: Vec<Key>) -> Vec<Key> {
    keys.sort_unstable();
    keys.dedup();
    let is_covered = |key: &Key| key.wider().any(|wider| keys.binary_search(&wider).is_ok());
    keys.iter()
        .copied()
        .filter(|key| !is_covered(key))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_key() -> impl Strategy<Value = Key> {
        (-1..4, 0..4).prop_map(|(source, event_type)| Key { source, event_type })
    }

    proptest! {
        #[test]
        fn the_most_general_keys_match_what_all_match(
            keys in prop::collection::vec(any_key(), 0..12),
            events in prop::collection::vec(any_key(), 1..12),
        ) {
            let general = most_general(keys.clone());
            for event in events {
                let matches = |keys: &[Key]| keys.iter().any(|key| key.matches(event));
                prop_assert_eq!(matches(&keys), matches(&general), "{:?}", event);
            }
            for (place, key) in general.iter().enumerate() {
                let mut fewer = general.clone();
                fewer.remove(place);
                // A source or type that nobody else names shows that each is needed.
                let event = Key {
                    source: if key.source == 0 { 77 } else { key.source },
                    event_type: if key.event_type == 0 { 77 } else { key.event_type },
                };
                prop_assert!(!fewer.iter().any(|other| other.matches(event)), "{:?}", key);
            }
        }
    }
}
