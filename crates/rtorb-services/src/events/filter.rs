//! A consumer's subscription: which events it gets, alone or together with others, and which timeouts.
//!
//! A `ConsumerQOS` is a flat list of event headers. What they mean, and what TAO's channel makes of them (from its sources and
//! tests; the fact sheet has the types), is stated here once; `docs/events.md` has it for users.
//!
//! # Two forms
//! Nothing in a list says which form it has: it is an option of the channel ([`FilterKind`], TAO's `-ECFiltering`).
//!
//! * **Basic** (the default, as in TAO): a conjunction, disjunction or logical AND designator begins a group, and what follows
//!   belongs to it until the next of these designators. Counts in `header.source` are not looked at. There are no groups in groups;
//!   a negation or bitmask outside of a group may have a group as its child.
//! * **Prefix**: `header.source` of such a designator is the number of its children, which may be groups themselves.
//!
//! In both, a negation has one child, which follows it; a bitmask has one more entry (its masks) and then its child; a masked type
//! has two more entries (masks, values).
//!
//! What stands outside of all groups is together one disjunction; each group there is a **tree** of its own. TAO reads the first
//! tree alone and drops the rest without a word. A global designator, which TAO's older channel has, ends a group: what follows it
//! stands outside.
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
//! * A **conjunction** gives an event to its first child, in order, that has nothing yet and takes it. While others are missing,
//!   a further event of a child that has one is dropped: the first one is kept, not the latest (as in TAO). TAO gives it to the
//!   first child that takes it whether or not that has one, so that a conjunction of the same event twice, or of any event and a
//!   certain one, could never be satisfied; here it can.
//! * A **disjunction** shows an event to the children after one that only remembers it (a conjunction that waits for more). TAO
//!   does not: an alternative behind such a conjunction would never be seen.
//! * **After a delivery the whole tree is set back**: all its conjunctions forget, its deadlines begin anew (as in TAO). Other trees
//!   go on. An event alone is delivered once, even if several trees have it.
//! * The period of a timeout is `header.creation_time`, in units of 100 ns. **Its event** has the timeout's type, source 0, ttl 0, no
//!   data; `creation_time` is when it was due, `ec_recv_time` and `ec_send_time` when it was made (CLOCK_MONOTONIC in units of
//!   100 ns). It is seen by its own entry alone and what stands above it; in TAO any entry with wildcards of that consumer sees it.
//! * **A late thread**: what was due comes before the event that is accepted next, so a deadline that has passed is always told;
//!   an event at the very moment of a deadline is too late. Moments that went by unseen are coalesced into one event
//!   ([`Subscription::timeouts_missed`] counts the rest), and an interval keeps its phase. A deadline that is kept by an incomplete
//!   conjunction goes on every period.
//! * Logical AND and negation look at one event, so no conjunction and no timeout may stand below them; a bitmask lets no timeout
//!   through. TAO accepts these lists, and never delivers what they ask for, or something else.
//!
//! Everything is bounded by [`FilterLimits`]. Accepting an event makes no heap call once the conjunctions have seen events of that
//! size. There are no threads here and no clock: time is a parameter.

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
pub use memory::EventOctets;

use crate::stubs::rtec_event::rtec_base::HandleT;
use crate::stubs::rtec_event::rtec_event_channel_admin::ConsumerQos;
use crate::stubs::rtec_event::rtec_event_comm::EventHeader;
use tree::{Tree, Verdict};

/// What a consumer waits for, and what it has of that so far.
#[derive(Debug)]
pub struct Subscription {
    trees: Vec<Tree>,
    keys: Vec<Key>,
    rt_infos: Vec<HandleT>,
    is_plain: bool,
    timeouts: usize,
    next_timeout_ns: Option<u64>,
    timeouts_missed: u64,
}

impl Subscription {
    /// Reads the consumer's list; its timeouts begin to count now.
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
            keys: most_general(read.trees.iter().flat_map(Tree::keys).collect()),
            is_plain: read.trees.iter().all(Tree::is_plain),
            timeouts: read.trees.iter().map(|tree| tree.timeouts.len()).sum(),
            trees: read.trees,
            rt_infos: read.rt_infos,
            next_timeout_ns: None,
            timeouts_missed: 0,
        };
        subscription.find_next_timeout();
        Ok(subscription)
    }

    /// Shows an event to the subscription, after the timeouts that were due before it; `deliver` is called for each push that the
    /// consumer is to get now.
    pub fn accept(
        &mut self,
        header: &EventHeader,
        octets: &[u8],
        now_ns: u64,
        deliver: &mut dyn FnMut(Delivery<'_>),
    ) {
        self.expire(now_ns, deliver);
        let event = EventOctets { header, octets };
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

    /// Delivers the timeouts that are due at `now_ns` or before, each once, in the order in which they were due.
    pub fn expire(&mut self, now_ns: u64, deliver: &mut dyn FnMut(Delivery<'_>)) {
        if self.next_timeout_ns.is_none_or(|next_ns| now_ns < next_ns) {
            return;
        }
        // Each is due in the future once it has fired.
        for _ in 0..self.timeouts {
            let Some((_, tree, timeout)) = self.first_due().filter(|due| due.0 <= now_ns) else {
                break;
            };
            let tree = &mut self.trees[tree];
            let (event, missed, verdict) = tree.fire(timeout, now_ns);
            self.timeouts_missed += missed;
            match verdict {
                Verdict::Nothing => continue,
                Verdict::Alone => deliver(Delivery::one(EventOctets {
                    header: &event.header,
                    octets: &event.octets,
                })),
                Verdict::Together(conjunction) => deliver(tree.together(conjunction)),
            }
            tree.delivered(now_ns);
        }
        self.find_next_timeout();
    }

    /// The sources and types that can matter: every event that [`Subscription::accept`] does not ignore matches one of them. None
    /// covers another; a subscription to timeouts alone has none.
    pub fn keys(&self) -> &[Key] {
        &self.keys
    }

    /// Whether the keys say all: an event that matches one of them is delivered, alone, and no other is. Then nobody needs to ask
    /// [`Subscription::accept`].
    pub fn is_plain(&self) -> bool {
        self.is_plain
    }

    /// Whether a key matches that event's.
    pub fn wants(&self, event: Key) -> bool {
        self.keys.iter().any(|key| key.matches(event))
    }

    /// When [`Subscription::expire`] has something to do next.
    pub fn next_timeout_ns(&self) -> Option<u64> {
        self.next_timeout_ns
    }

    /// The `rt_info` of each entry that waits for something, each once, ascending; those of designators are not looked at.
    pub fn rt_infos(&self) -> &[HandleT] {
        &self.rt_infos
    }

    /// Moments of timeouts that went by unseen because the thread was late.
    pub fn timeouts_missed(&self) -> u64 {
        self.timeouts_missed
    }

    /// Events that a conjunction should have remembered and could not, for [`FilterLimits::remembered_octets_max`].
    pub fn forgotten(&self) -> u64 {
        self.trees.iter().map(Tree::forgotten).sum()
    }

    fn find_next_timeout(&mut self) {
        self.next_timeout_ns = self.first_due().map(|(due_ns, _, _)| due_ns);
    }

    /// When, which tree, which of its timeouts.
    fn first_due(&self) -> Option<(u64, usize, usize)> {
        (self.trees.iter().enumerate())
            .filter_map(|(index, tree)| {
                tree.first_due()
                    .map(|(due_ns, timeout)| (due_ns, index, timeout))
            })
            .min()
    }
}

/// Without those that another covers; ascending.
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
