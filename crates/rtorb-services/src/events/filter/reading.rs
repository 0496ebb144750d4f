//! Parsing a list of dependencies into trees, in either form.

use super::error::{Needed, Problem, SubscriptionError};
use super::key::Key;
use super::kind::FilterKind;
use super::limits::FilterLimits;
use super::timeout::{NS_PER_UNIT, Recurrence, Timeout};
use super::tree::{Construct, FilterTree, Masks, Node};
use super::types;
use crate::stubs::rtec_event::rtec_base::HandleT;
use crate::stubs::rtec_event::rtec_event_channel_admin::Dependency;
use crate::stubs::rtec_event::rtec_event_comm::EventHeader;

/// The parsed list.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) trees: Vec<FilterTree>,
    pub(super) rt_infos: Vec<HandleT>,
}

/// Parses the whole list.
pub(super) fn read(
    dependencies: &[Dependency],
    kind: FilterKind,
    limits: &FilterLimits,
) -> Result<Read, SubscriptionError> {
    if dependencies.len() > limits.entries_max {
        return Err(SubscriptionError::TooManyEntries {
            entries: dependencies.len(),
            max: limits.entries_max,
        });
    }
    let mut reading = Reading {
        dependencies,
        kind,
        limits,
        at: 0,
        timeouts: 0,
        rt_infos: Vec::new(),
    };
    let trees = reading.trees()?;
    reading.rt_infos.sort_unstable();
    reading.rt_infos.dedup();
    if trees.is_empty() {
        Err(SubscriptionError::Empty)
    } else {
        Ok(Read {
            trees,
            rt_infos: reading.rt_infos,
        })
    }
}

struct Reading<'a> {
    dependencies: &'a [Dependency],
    kind: FilterKind,
    limits: &'a FilterLimits,
    at: usize,
    timeouts: usize,
    rt_infos: Vec<HandleT>,
}

/// A tree while it is parsed.
#[derive(Default)]
struct PartialTree {
    nodes: Vec<Node>,
    timeouts: Vec<Timeout>,
}

/// The position of an entry.
#[derive(Clone, Copy)]
struct Place {
    parent: usize,
    depth: usize,
    /// True inside a group.
    in_group: bool,
    below: Below,
}

/// What the designators above allow below.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Below {
    /// Anything; there are only groups above.
    Groups,
    /// No timeouts: a bitmask is above.
    Bitmask,
    /// Single events only: a negation or a logical AND is above.
    OneEvent,
}

impl Reading<'_> {
    /// Entries outside of groups are one disjunction; each group is a tree of its own.
    fn trees(&mut self) -> Result<Vec<FilterTree>, SubscriptionError> {
        let mut loose = PartialTree::default();
        loose.nodes.push(Node {
            construct: Construct::Disjunction,
            parent: 0,
            end: 1,
        });
        let mut groups = Vec::new();
        while let Some(header) = self.header(self.at) {
            if header.r#type == types::GLOBAL {
                self.at += 1;
            } else if types::begins_group(header.r#type) {
                let mut draft = PartialTree::default();
                self.entry(&mut draft, Place::OUTSIDE)?;
                groups.push(draft);
            } else {
                self.entry(&mut loose, Place::OUTSIDE)?;
                loose.nodes[0].end = loose.nodes.len();
            }
        }
        let loose = (loose.nodes.len() > 1).then_some(loose);
        let drafts: Vec<PartialTree> = loose.into_iter().chain(groups).collect();
        let remembering = drafts
            .iter()
            .filter(|draft| draft.remembers())
            .count()
            .max(1);
        let share = FilterLimits {
            remembered_bytes: self.limits.remembered_bytes / remembering,
            remembered_bytes_max: self.limits.remembered_bytes_max / remembering,
            ..*self.limits
        };
        Ok((drafts.into_iter())
            .map(|draft| FilterTree::new(draft.nodes, draft.timeouts, &share))
            .collect())
    }

    /// Parses one entry with its operands and children.
    fn entry(&mut self, draft: &mut PartialTree, place: Place) -> Result<(), SubscriptionError> {
        let entry = self.at;
        let header = self.dependencies[entry].event.header;
        if place.depth > self.limits.depth_max {
            return Err(self.wrong(
                entry,
                Problem::TooDeep {
                    max: self.limits.depth_max,
                },
            ));
        }
        self.at += 1;
        match header.r#type {
            types::CONJUNCTION | types::DISJUNCTION | types::LOGICAL_AND => {
                self.group(draft, place, entry)
            }
            types::NEGATION => self.only_child(draft, place, entry, Construct::Negation),
            types::BITMASK => {
                let masks = self.operand(entry, Needed::Masks)?;
                self.only_child(draft, place, entry, Construct::Bitmask(masks))
            }
            types::MASKED_TYPE => {
                let masks = self.operand(entry, Needed::Masks)?;
                let values = self.operand(entry, Needed::Values)?;
                self.leaf(draft, place, entry, Construct::MaskedType { masks, values });
                Ok(())
            }
            types::NULL => {
                self.leaf(draft, place, entry, Construct::Anything);
                Ok(())
            }
            types::TIMEOUT | types::INTERVAL_TIMEOUT | types::DEADLINE_TIMEOUT => {
                self.timeout(draft, place, entry)
            }
            types::GLOBAL => Err(self.wrong(entry, Problem::GlobalInside)),
            RESERVED => Err(self.wrong(entry, Problem::Reserved)),
            _ => {
                self.leaf(draft, place, entry, Construct::Event(Key::of(&header)));
                Ok(())
            }
        }
    }

    fn group(
        &mut self,
        draft: &mut PartialTree,
        place: Place,
        entry: usize,
    ) -> Result<(), SubscriptionError> {
        if self.kind == FilterKind::Basic && place.in_group {
            return Err(self.wrong(entry, Problem::Nested));
        }
        let construct = match self.dependencies[entry].event.header.r#type {
            types::CONJUNCTION => Construct::Conjunction(0),
            types::DISJUNCTION => Construct::Disjunction,
            _ => Construct::LogicalAnd,
        };
        let below = match construct {
            Construct::Conjunction(_) if place.below == Below::OneEvent => {
                return Err(self.wrong(entry, Problem::OneEvent));
            }
            Construct::LogicalAnd => Below::OneEvent,
            _ => place.below,
        };
        let node = draft.open(construct, place.parent);
        let inside = Place {
            parent: node,
            depth: place.depth + 1,
            in_group: true,
            below,
        };
        match self.kind {
            FilterKind::Basic => {
                while self.header(self.at).is_some_and(|next| !ends_group(next)) {
                    self.entry(draft, inside)?;
                }
                if draft.nodes.len() == node + 1 {
                    return Err(self.wrong(entry, Problem::NoChildren { prefix: false }));
                }
            }
            FilterKind::Prefix => {
                for _ in 0..self.said_children(entry)? {
                    if self.header(self.at).is_none() {
                        return Err(self.children_missing(entry));
                    }
                    self.entry(draft, inside)?;
                }
            }
        }
        draft.close(node);
        Ok(())
    }

    fn said_children(&self, entry: usize) -> Result<u32, SubscriptionError> {
        let said = self.dependencies[entry].event.header.source.cast_unsigned();
        if said == 0 {
            return Err(self.wrong(entry, Problem::NoChildren { prefix: true }));
        }
        // Refused before parsing, so that a wrong count costs nothing.
        if said as usize > self.dependencies.len() - entry - 1 {
            return Err(self.children_missing(entry));
        }
        Ok(said)
    }

    fn children_missing(&self, entry: usize) -> SubscriptionError {
        self.wrong(
            entry,
            Problem::ChildrenMissing {
                said: self.dependencies[entry].event.header.source.cast_unsigned(),
                left: self.dependencies.len() - entry - 1,
            },
        )
    }

    /// A negation or a bitmask with the child that follows.
    fn only_child(
        &mut self,
        draft: &mut PartialTree,
        place: Place,
        entry: usize,
        construct: Construct,
    ) -> Result<(), SubscriptionError> {
        if self.header(self.at).is_none() {
            return Err(self.wrong(
                entry,
                Problem::Ends {
                    needed: Needed::Child,
                },
            ));
        }
        let below = match construct {
            Construct::Bitmask(_) if place.below == Below::Groups => Below::Bitmask,
            Construct::Bitmask(_) => place.below,
            _ => Below::OneEvent,
        };
        let node = draft.open(construct, place.parent);
        self.entry(
            draft,
            Place {
                parent: node,
                depth: place.depth + 1,
                below,
                ..place
            },
        )?;
        draft.close(node);
        Ok(())
    }

    fn timeout(
        &mut self,
        draft: &mut PartialTree,
        place: Place,
        entry: usize,
    ) -> Result<(), SubscriptionError> {
        if place.below != Below::Groups {
            return Err(self.wrong(entry, Problem::OneEvent));
        }
        if self.timeouts == self.limits.timeouts_max {
            return Err(self.wrong(
                entry,
                Problem::TooManyTimeouts {
                    max: self.limits.timeouts_max,
                },
            ));
        }
        self.timeouts += 1;
        let header = self.dependencies[entry].event.header;
        let recurrence = match header.r#type {
            types::TIMEOUT => Recurrence::Once,
            types::INTERVAL_TIMEOUT => Recurrence::Interval,
            _ => Recurrence::Deadline,
        };
        let period_ns = self.period_ns(entry, header.creation_time)?;
        let construct = Construct::Timeout(draft.timeouts.len());
        let node = self.leaf(draft, place, entry, construct);
        draft
            .timeouts
            .push(Timeout::new(recurrence, period_ns, node));
        Ok(())
    }

    fn period_ns(&self, entry: usize, units: u64) -> Result<u64, SubscriptionError> {
        let (min, max) = (self.limits.period_ns_min, self.limits.period_ns_max);
        (units.checked_mul(NS_PER_UNIT))
            .filter(|period_ns| *period_ns > 0 && (min..=max).contains(period_ns))
            .ok_or_else(|| {
                self.wrong(
                    entry,
                    Problem::Period {
                        units,
                        min: min.div_ceil(NS_PER_UNIT).max(1),
                        max: max / NS_PER_UNIT,
                    },
                )
            })
    }

    /// Takes the next entry as an operand: only its source and type count.
    fn operand(&mut self, entry: usize, needed: Needed) -> Result<Masks, SubscriptionError> {
        let header =
            (self.header(self.at)).ok_or_else(|| self.wrong(entry, Problem::Ends { needed }))?;
        let masks = Masks::of(header);
        self.at += 1;
        Ok(masks)
    }

    /// An entry for events or timeouts; its `rt_info` counts.
    fn leaf(
        &mut self,
        draft: &mut PartialTree,
        place: Place,
        entry: usize,
        construct: Construct,
    ) -> usize {
        self.rt_infos.push(self.dependencies[entry].rt_info);
        let node = draft.open(construct, place.parent);
        draft.close(node);
        node
    }

    fn header(&self, at: usize) -> Option<&EventHeader> {
        Some(&self.dependencies.get(at)?.event.header)
    }

    fn wrong(&self, entry: usize, problem: Problem) -> SubscriptionError {
        SubscriptionError::Entry {
            entry,
            event_type: self.dependencies[entry].event.header.r#type,
            problem,
        }
    }
}

impl PartialTree {
    fn open(&mut self, construct: Construct, parent: usize) -> usize {
        let node = self.nodes.len();
        self.nodes.push(Node {
            construct,
            parent,
            end: node + 1,
        });
        node
    }

    fn close(&mut self, node: usize) {
        self.nodes[node].end = self.nodes.len();
    }

    fn remembers(&self) -> bool {
        (self.nodes.iter()).any(|node| matches!(node.construct, Construct::Conjunction(_)))
    }
}

impl Place {
    const OUTSIDE: Self = Self {
        parent: 0,
        depth: 1,
        in_group: false,
        below: Below::Groups,
    };
}

fn ends_group(header: &EventHeader) -> bool {
    header.r#type == types::GLOBAL || types::begins_group(header.r#type)
}

const RESERVED: i32 = 15;
