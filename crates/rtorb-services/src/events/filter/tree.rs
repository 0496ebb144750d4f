//! One tree of a subscription: it evaluates events and remembers those of conjunctions.

use super::delivery::Delivery;
use super::key::Key;
use super::limits::FilterLimits;
use super::memory::{EventBytes, Memory};
use super::timeout::{Timeout, TimeoutEvent};
use crate::stubs::rtec_event::rtec_event_comm::EventHeader;

/// The construct of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Construct {
    Event(Key),
    Anything,
    MaskedType { masks: Masks, values: Masks },
    Timeout(usize),
    Conjunction(usize),
    Disjunction,
    LogicalAnd,
    Negation,
    Bitmask(Masks),
}

/// Bits of source and type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Masks {
    pub(super) source: u32,
    pub(super) event_type: u32,
}

/// An entry; its descendants are the nodes up to `end`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    pub(super) construct: Construct,
    pub(super) parent: usize,
    pub(super) end: usize,
}

#[derive(Debug)]
pub(super) struct FilterTree {
    nodes: Vec<Node>,
    /// True for each child of a conjunction whose events are there.
    given: Vec<bool>,
    conjunctions: Vec<Conjunction>,
    pub(super) timeouts: Vec<Timeout>,
    memory: Memory,
    forgotten: u64,
}

/// The progress of a conjunction.
#[derive(Debug)]
struct Conjunction {
    children: usize,
    missing: usize,
    /// Indices of the remembered events, in the order in which they came.
    events: Vec<usize>,
}

/// The effect of an event on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Ignored,
    /// A conjunction remembers it and waits for more.
    Remembered,
    Satisfied(By),
}

/// The events that satisfy a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    /// The current event.
    This,
    /// The events of this conjunction.
    Conjunction(usize),
}

/// What to push after an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Nothing,
    /// The event alone.
    Alone,
    /// The events of a conjunction: [`Tree::together`].
    Together(usize),
}

/// The current event, and its index in memory once a node remembers it.
struct Shown<'a> {
    event: EventBytes<'a>,
    place: Option<usize>,
}

impl FilterTree {
    /// Builds a tree from nodes in the order of the list, the root first.
    pub(super) fn new(nodes: Vec<Node>, timeouts: Vec<Timeout>, limits: &FilterLimits) -> Self {
        let mut tree = Self {
            given: vec![false; nodes.len()],
            nodes,
            conjunctions: Vec::new(),
            timeouts,
            memory: Memory::new(0, 0, 0),
            forgotten: 0,
        };
        for node in 0..tree.nodes.len() {
            if let Construct::Conjunction(_) = tree.nodes[node].construct {
                let children = tree.children(node).count();
                tree.nodes[node].construct = Construct::Conjunction(tree.conjunctions.len());
                tree.conjunctions.push(Conjunction {
                    children,
                    missing: children,
                    events: Vec::with_capacity(tree.nodes[node].end - node),
                });
            }
        }
        if !tree.conjunctions.is_empty() {
            // An event is remembered for a child that had none, so there are never more events than nodes.
            tree.memory = Memory::new(
                tree.nodes.len(),
                limits.remembered_bytes,
                limits.remembered_bytes_max,
            );
        }
        tree
    }

    pub(super) fn start(&mut self, now_ns: u64) {
        self.timeouts
            .iter_mut()
            .for_each(|timeout| timeout.start(now_ns));
    }

    /// Evaluates an event. The caller must call [`Tree::delivered`] after any verdict other than nothing.
    pub(super) fn accept(&mut self, event: EventBytes<'_>) -> Verdict {
        let mut shown = Shown { event, place: None };
        let outcome = self.offer(ROOT, &mut shown);
        verdict(outcome)
    }

    /// Makes the event of a timeout and evaluates it at the nodes above its entry.
    pub(super) fn fire(&mut self, timeout: usize, now_ns: u64) -> (TimeoutEvent, u64, Verdict) {
        let (event, missed) = self.timeouts[timeout].fire(now_ns);
        let mut shown = Shown {
            event: EventBytes {
                header: &event.header,
                bytes: &event.bytes,
            },
            place: None,
        };
        let mut node = self.timeouts[timeout].node;
        let mut outcome = Outcome::Satisfied(By::This);
        while node != ROOT {
            let Outcome::Satisfied(by) = outcome else {
                break;
            };
            let parent = self.nodes[node].parent;
            if let Construct::Conjunction(conjunction) = self.nodes[parent].construct {
                outcome = if self.given[node] {
                    Outcome::Ignored
                } else {
                    self.give(conjunction, node, by, &mut shown)
                };
            }
            node = parent;
        }
        (event, missed, verdict(outcome))
    }

    /// Resets the tree: conjunctions forget, deadlines restart.
    pub(super) fn delivered(&mut self, now_ns: u64) {
        if !self.conjunctions.is_empty() {
            self.given.fill(false);
            self.memory.clear();
            for conjunction in &mut self.conjunctions {
                conjunction.missing = conjunction.children;
                conjunction.events.clear();
            }
        }
        for timeout in &mut self.timeouts {
            timeout.delivered(now_ns);
        }
    }

    /// The events of a complete conjunction.
    pub(super) fn together(&self, conjunction: usize) -> Delivery<'_> {
        Delivery::together(&self.memory, &self.conjunctions[conjunction].events)
    }

    /// The time and the index of the first timeout.
    pub(super) fn first_due(&self) -> Option<(u64, usize)> {
        (self.timeouts.iter().enumerate())
            .filter_map(|(index, timeout)| Some((timeout.due_ns()?, index)))
            .min()
    }

    /// Events for which there was no memory.
    pub(super) fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// True if the keys are the whole tree: a disjunction of events.
    pub(super) fn is_plain(&self) -> bool {
        self.nodes.iter().all(|node| {
            matches!(
                node.construct,
                Construct::Event(_) | Construct::Anything | Construct::Disjunction
            )
        })
    }

    /// The keys of the tree: every event that it does not ignore matches one.
    pub(super) fn keys(&self) -> Vec<Key> {
        self.keys_of(ROOT)
    }

    fn offer(&mut self, node: usize, shown: &mut Shown<'_>) -> Outcome {
        match self.nodes[node].construct {
            Construct::Timeout(_) => Outcome::Ignored,
            Construct::Disjunction => self.offer_disjunction(node, shown),
            Construct::Conjunction(conjunction) => self.offer_conjunction(node, conjunction, shown),
            Construct::Bitmask(masks) => {
                if masks.meets(shown.event.header) {
                    self.offer(node + 1, shown)
                } else {
                    Outcome::Ignored
                }
            }
            _ => {
                if self.takes(node, shown.event.header) {
                    Outcome::Satisfied(By::This)
                } else {
                    Outcome::Ignored
                }
            }
        }
    }

    /// The first satisfied child satisfies it. A child that only remembers the event does not hide it from the next children.
    fn offer_disjunction(&mut self, node: usize, shown: &mut Shown<'_>) -> Outcome {
        let mut outcome = Outcome::Ignored;
        let mut child = node + 1;
        while child < self.nodes[node].end {
            match self.offer(child, shown) {
                Outcome::Ignored => {}
                Outcome::Remembered => outcome = Outcome::Remembered,
                satisfied @ Outcome::Satisfied(_) => return satisfied,
            }
            child = self.nodes[child].end;
        }
        outcome
    }

    /// The event goes to the first child that has none and takes it.
    fn offer_conjunction(
        &mut self,
        node: usize,
        conjunction: usize,
        shown: &mut Shown<'_>,
    ) -> Outcome {
        let mut child = node + 1;
        while child < self.nodes[node].end {
            if !self.given[child] {
                match self.offer(child, shown) {
                    Outcome::Ignored => {}
                    Outcome::Remembered => return Outcome::Remembered,
                    Outcome::Satisfied(by) => return self.give(conjunction, child, by, shown),
                }
            }
            child = self.nodes[child].end;
        }
        Outcome::Ignored
    }

    /// Notes a satisfied child. Its events are kept until all children are satisfied.
    fn give(&mut self, conjunction: usize, child: usize, by: By, shown: &mut Shown<'_>) -> Outcome {
        match by {
            By::This => {
                let place = match shown.place {
                    Some(place) => Some(place),
                    None => self.memory.remember(shown.event),
                };
                let Some(place) = place else {
                    self.forgotten += 1;
                    return Outcome::Ignored;
                };
                shown.place = Some(place);
                self.conjunctions[conjunction].events.push(place);
            }
            By::Conjunction(inner) => {
                // The list is in prefix order, so the inner conjunction is behind the outer one.
                let (outer, behind) = self.conjunctions.split_at_mut(conjunction + 1);
                let events = &behind[inner - conjunction - 1].events;
                outer[conjunction].events.extend_from_slice(events);
            }
        }
        self.given[child] = true;
        let conjunction_state = &mut self.conjunctions[conjunction];
        conjunction_state.missing -= 1;
        match conjunction_state.missing {
            0 => Outcome::Satisfied(By::Conjunction(conjunction)),
            _ => Outcome::Remembered,
        }
    }

    /// True if the event alone satisfies the node.
    fn takes(&self, node: usize, header: &EventHeader) -> bool {
        match self.nodes[node].construct {
            Construct::Event(key) => key.matches(Key::of(header)),
            Construct::Anything => true,
            Construct::MaskedType { masks, values } => masks.cut(header) == values,
            Construct::Disjunction => self.children(node).any(|child| self.takes(child, header)),
            Construct::LogicalAnd => self.children(node).all(|child| self.takes(child, header)),
            Construct::Negation => !self.takes(node + 1, header),
            Construct::Bitmask(masks) => masks.meets(header) && self.takes(node + 1, header),
            // They never occur where one event is checked.
            Construct::Timeout(_) | Construct::Conjunction(_) => false,
        }
    }

    fn keys_of(&self, node: usize) -> Vec<Key> {
        match self.nodes[node].construct {
            Construct::Event(key) => vec![key],
            Construct::Anything | Construct::Negation => vec![Key::ANY],
            Construct::MaskedType { masks, values } => vec![masks.key(values)],
            Construct::Timeout(_) => Vec::new(),
            Construct::Bitmask(_) => self.keys_of(node + 1),
            Construct::Conjunction(_) | Construct::Disjunction => self
                .children(node)
                .flat_map(|child| self.keys_of(child))
                .collect(),
            // All children must take the event, so the keys of any child are enough: take those of the most selective one.
            Construct::LogicalAnd => (self.children(node).map(|child| self.keys_of(child)))
                .min_by_key(|keys| (keys.contains(&Key::ANY), keys.len()))
                .unwrap_or_default(),
        }
    }

    fn children(&self, node: usize) -> impl Iterator<Item = usize> + use<'_> {
        let end = self.nodes[node].end;
        let mut child = node + 1;
        core::iter::from_fn(move || {
            let this = (child < end).then_some(child)?;
            child = self.nodes[this].end;
            Some(this)
        })
    }
}

impl Masks {
    pub(super) fn of(header: &EventHeader) -> Self {
        Self {
            source: header.source.cast_unsigned(),
            event_type: header.r#type.cast_unsigned(),
        }
    }

    /// True if source and type each have a bit of their mask.
    fn meets(self, header: &EventHeader) -> bool {
        let cut = self.cut(header);
        cut.source != 0 && cut.event_type != 0
    }

    fn cut(self, header: &EventHeader) -> Self {
        let event = Self::of(header);
        Self {
            source: event.source & self.source,
            event_type: event.event_type & self.event_type,
        }
    }

    /// The key that all events with these masks and values share: a value where the mask has all bits.
    fn key(self, values: Self) -> Key {
        let known = |mask: u32, value: u32| match mask {
            u32::MAX => value.cast_signed(),
            _ => 0,
        };
        Key {
            source: known(self.source, values.source),
            event_type: known(self.event_type, values.event_type),
        }
    }
}

fn verdict(outcome: Outcome) -> Verdict {
    match outcome {
        Outcome::Ignored | Outcome::Remembered => Verdict::Nothing,
        Outcome::Satisfied(By::This) => Verdict::Alone,
        Outcome::Satisfied(By::Conjunction(conjunction)) => Verdict::Together(conjunction),
    }
}

const ROOT: usize = 0;
