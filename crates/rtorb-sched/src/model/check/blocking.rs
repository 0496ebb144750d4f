//! How long a segment waits for less urgent ones that hold what it, or somebody as urgent, may want.
//!
//! Sections do not nest. With fixed priorities, where R may keep a segment waiting if one as urgent or more ever locks it:
//!
//! * inheritance: one section of each less urgent segment at most, and one of each resource: the lesser sum (Sha, Rajkumar and Lehoczky
//!   1990, theorems 3 and 6);
//! * ceiling: a single section, the longest, for no second one can begin below a ceiling (Sha, Rajkumar and Lehoczky 1990, theorem 12;
//!   Baker 1991 for ceilings that are taken with the lock, as POSIX has them).
//!
//! A segment suspends itself only at its end, so each is counted once, whichever job of a busy period it is. Both kinds may be on one
//! processor: the two are added.
//!
//! Under earliest deadline first, who is less urgent is a matter of moments. A segment can keep another waiting only if its deadline may
//! be later although it began before: if its relative deadline is longer than the other's less that one's jitter (Baker's preemption
//! levels, with jitter). What is released by another segment may be late by anything, so all may keep it waiting. The resource must be
//! one that somebody else locks whose relative deadline, less its jitter, is not longer (Baker's ceiling). What a job waited for that
//! came before in a busy period, the analysis adds.

use super::super::composed::Composed;
use super::super::system::{Locking, Scheduling, System};
use super::goals::Goals;
use super::steps::sum;

/// A section that may keep a segment waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wait {
    /// Who holds it.
    pub(super) holder: usize,
    /// What.
    pub(super) resource: usize,
    /// How long at most.
    pub(super) ns: u64,
}

/// Who locks what, for how long at most, on each processor.
pub(super) struct Lockers<'a> {
    composed: &'a Composed,
    system: &'a System,
    goals: &'a Goals,
    on_processor: Vec<Vec<Wait>>,
    /// Who locks each resource.
    of_resource: Vec<Vec<usize>>,
}

/// The levels of segments as blocking looks at them: 0 is the most urgent.
pub(super) type Levels<'a> = &'a dyn Fn(usize) -> u32;

impl<'a> Lockers<'a> {
    pub(super) fn new(system: &'a System, composed: &'a Composed, goals: &'a Goals) -> Self {
        let mut on_processor = vec![vec![]; composed.processors.len()];
        let mut of_resource = vec![vec![]; system.resources.len()];
        for (index, segment) in composed.segments.iter().enumerate() {
            let mut mine: Vec<Wait> = vec![];
            for (_, section) in &segment.sections {
                let (resource, ns) = (section.resource, section.length_ns);
                match mine.iter_mut().find(|wait| wait.resource == resource) {
                    Some(wait) => wait.ns = wait.ns.max(ns),
                    None => mine.push(Wait {
                        holder: index,
                        resource,
                        ns,
                    }),
                }
            }
            mine.iter()
                .for_each(|wait| of_resource[wait.resource].push(index));
            on_processor[segment.processor].extend(mine);
        }
        Self {
            composed,
            system,
            goals,
            on_processor,
            of_resource,
        }
    }

    /// How many locks of a segment another may hold when it wants them. With a ceiling none: whoever runs finds it free.
    pub(super) fn contended(&self, segment: usize) -> u64 {
        let contended = |resource: usize| {
            let by_others = |&locker: &usize| locker != segment;
            self.system.resources[resource].locking == Locking::Inheritance
                && self.of_resource[resource].iter().any(by_others)
        };
        let sections = self.composed.segments[segment].sections.iter();
        sections
            .filter(|(_, section)| contended(section.resource))
            .count() as u64
    }

    /// The sections that keep a segment waiting at worst; their sum is its blocking.
    pub(super) fn waits(&self, segment: usize, level: Levels<'_>) -> Vec<Wait> {
        let processor = self.composed.segments[segment].processor;
        let all = &self.on_processor[processor];
        if all.is_empty() {
            return vec![];
        }
        let fixed = self.composed.processors[processor].scheduling == Scheduling::FixedPriority;
        let may = |wait: &&Wait| match fixed {
            true => self.below(segment, wait, level),
            false => self.may_be_later(segment, wait),
        };
        let of = |locking: Locking| -> Vec<Wait> {
            let kind = |wait: &&Wait| self.system.resources[wait.resource].locking == locking;
            all.iter().filter(kind).filter(may).copied().collect()
        };
        let mut waits = lesser(
            longest_of_each(of(Locking::Inheritance), |wait| wait.holder),
            longest_of_each(of(Locking::Inheritance), |wait| wait.resource),
        );
        waits.extend(of(Locking::Ceiling).into_iter().max_by_key(|wait| wait.ns));
        waits.retain(|wait| wait.ns > 0);
        waits
    }

    /// Whether a less urgent one holds what one as urgent may want.
    fn below(&self, segment: usize, wait: &Wait, level: Levels<'_>) -> bool {
        let mine = level(segment);
        let wants = |&locker: &usize| level(locker) <= mine;
        level(wait.holder) > mine && self.of_resource[wait.resource].iter().any(wants)
    }

    /// The same where the earliest deadline goes first.
    fn may_be_later(&self, segment: usize, wait: &Wait) -> bool {
        let segments = &self.composed.segments;
        let deadline = |of: usize| self.goals.owners[self.goals.owner_of[of]].deadline_ns;
        // What another segment releases may come at any time before its deadline.
        let least = |of: usize| match segments[of].after {
            Some(_) => 0,
            None => deadline(of).saturating_sub(sum(&segments[of].jitter)),
        };
        let wants = |&locker: &usize| locker != wait.holder && least(locker) <= deadline(segment);
        wait.holder != segment
            && deadline(wait.holder) > least(segment)
            && self.of_resource[wait.resource].iter().any(wants)
    }
}

/// The longest of those with one key.
fn longest_of_each(mut waits: Vec<Wait>, key: impl Fn(&Wait) -> usize) -> Vec<Wait> {
    waits.sort_by_key(|wait| (key(wait), core::cmp::Reverse(wait.ns)));
    waits.dedup_by_key(|wait| key(wait));
    waits
}

fn lesser(one: Vec<Wait>, other: Vec<Wait>) -> Vec<Wait> {
    let total = |waits: &[Wait]| {
        waits
            .iter()
            .fold(0, |sum: u64, wait| sum.saturating_add(wait.ns))
    };
    if total(&other) < total(&one) {
        other
    } else {
        one
    }
}
