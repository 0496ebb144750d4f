//! The blocking of a segment by less urgent ones that hold a resource.
//!
//! Sections do not nest. Under fixed priorities, a resource R may block a segment if a segment of the same or a higher priority
//! ever locks R:
//!
//! * inheritance: at most one section of each less urgent segment, and at most one of each resource; the lesser sum counts (Sha,
//!   Rajkumar and Lehoczky 1990, theorems 3 and 6);
//! * ceiling: a single section, the longest, because no second one can begin below a ceiling (Sha, Rajkumar and Lehoczky 1990,
//!   theorem 12; Baker 1991 for ceilings that are taken with the lock, as in POSIX).
//!
//! A job whose budget is enforced by demotion goes on below all others, as does what it waits for. So a section of it may block each
//! segment, as one of a less urgent segment does, and the whole job counts as preemption too, because the next one may begin its section
//! above the segment.
//!
//! A segment suspends itself only at its end, so each section counts once, whichever job of a busy period is analysed. One
//! processor may have both kinds; their terms add up.
//!
//! Under earliest deadline first, urgency depends on the moment. A segment can block another only if its deadline may be later
//! although it began before: if its relative deadline is longer than the other's minus the other's jitter (Baker's preemption
//! levels, with jitter). A segment that another segment releases may have any jitter, so all segments may block it. Another
//! segment whose relative deadline minus jitter is not longer must lock the resource (Baker's ceiling). The analysis adds the
//! blocking of earlier jobs in the busy period.

use std::collections::BTreeSet;

use super::super::composition::{Composition, sum_ns};
use super::super::system::{Locking, Section, System, Trigger};
use super::goals::Goals;
use crate::holistic::SchedulingPolicy;

/// A section that may block a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockingSection {
    /// The segment that holds the resource.
    pub(super) holder: usize,
    /// The resource.
    pub(super) resource: usize,
    /// The longest length of the section.
    pub(super) ns: u64,
}

/// The sections of all segments, by processor and by resource.
pub(super) struct Lockers<'a> {
    composition: &'a Composition,
    system: &'a System,
    goals: &'a Goals,
    on_processor: Vec<Vec<BlockingSection>>,
    /// The segments that lock each resource.
    of_resource: Vec<Vec<usize>>,
    /// The behaviours that may go on below all others, in the jobs of each.
    demoted: Vec<BTreeSet<usize>>,
}

/// The level of each segment; 0 is the most urgent.
pub(super) type Levels<'a> = &'a dyn Fn(usize) -> u32;

impl<'a> Lockers<'a> {
    pub(super) fn new(system: &'a System, composition: &'a Composition, goals: &'a Goals) -> Self {
        let mut on_processor = vec![vec![]; composition.processors.len()];
        let mut of_resource = vec![vec![]; system.resources.len()];
        for (index, segment) in composition.segments.iter().enumerate() {
            let mut mine: Vec<BlockingSection> = vec![];
            for (_, section) in &segment.sections {
                let (resource, ns) = (section.resource, section.length_ns);
                match mine.iter_mut().find(|wait| wait.resource == resource) {
                    Some(wait) => wait.ns = wait.ns.max(ns),
                    None => mine.push(BlockingSection {
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
            composition,
            system,
            goals,
            on_processor,
            of_resource,
            demoted: system.demoted(),
        }
    }

    /// Returns how many locks of a segment may be contended. A lock with a ceiling is always free.
    pub(super) fn contended(&self, segment: usize) -> u64 {
        let contended = |resource: usize| {
            let by_others = |&locker: &usize| locker != segment;
            self.system.resources[resource].locking == Locking::Inheritance
                && self.of_resource[resource].iter().any(by_others)
        };
        let sections = self.composition.segments[segment].sections.iter();
        sections
            .filter(|(_, section)| contended(section.resource))
            .count() as u64
    }

    /// Returns the sections that block a segment in the worst case; their sum is its blocking.
    pub(super) fn waits(&self, segment: usize, level: Levels<'_>) -> Vec<BlockingSection> {
        let processor = self.composition.segments[segment].processor;
        let all = &self.on_processor[processor];
        if all.is_empty() {
            return vec![];
        }
        let fixed =
            self.composition.processors[processor].scheduling == SchedulingPolicy::FixedPriority;
        let may = |wait: &&BlockingSection| {
            if fixed {
                self.below(segment, wait, level)
            } else {
                self.may_be_later(segment, wait)
            }
        };
        let of = |locking: Locking| -> Vec<BlockingSection> {
            let kind =
                |wait: &&BlockingSection| self.system.resources[wait.resource].locking == locking;
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

    /// Returns whether a less urgent segment holds a resource that an equally or more urgent one locks. A job that was demoted is less
    /// urgent than all others but the next one of its thread, which comes later. The next one of a called behaviour may have another thread.
    fn below(&self, segment: usize, wait: &BlockingSection, level: Levels<'_>) -> bool {
        let mine = level(segment);
        let owner = |segment: usize| self.composition.segments[segment].priority_of;
        let is_demoted = || {
            let mut sections = self.composition.segments[wait.holder].sections.iter();
            let may_be = |(behaviour, section): &(usize, Section)| {
                section.resource == wait.resource
                    && self.demoted[owner(wait.holder)].contains(behaviour)
            };
            owner(wait.holder) != owner(segment) && sections.any(may_be)
        };
        let is_called = |owner: usize| self.system.behaviours[owner].trigger == Trigger::Called;
        let wants = |&locker: &usize| {
            let is_later = owner(locker) == owner(wait.holder) && !is_called(owner(locker));
            level(locker) <= mine && !is_later
        };
        (level(wait.holder) > mine || is_demoted())
            && self.of_resource[wait.resource].iter().any(wants)
    }

    /// Returns whether the section may block the segment under earliest deadline first.
    fn may_be_later(&self, segment: usize, wait: &BlockingSection) -> bool {
        let segments = &self.composition.segments;
        let deadline = |of: usize| self.goals.owners[self.goals.owner_of[of]].deadline_ns;
        // A segment that another one releases may arrive at any time before its deadline.
        let least = |of: usize| match segments[of].after {
            Some(_) => 0,
            None => deadline(of).saturating_sub(sum_ns(&segments[of].jitter)),
        };
        let wants = |&locker: &usize| locker != wait.holder && least(locker) <= deadline(segment);
        wait.holder != segment
            && deadline(wait.holder) > least(segment)
            && self.of_resource[wait.resource].iter().any(wants)
    }
}

/// Returns the longest section of each key.
fn longest_of_each(
    mut waits: Vec<BlockingSection>,
    key: impl Fn(&BlockingSection) -> usize,
) -> Vec<BlockingSection> {
    waits.sort_by_key(|wait| (key(wait), core::cmp::Reverse(wait.ns)));
    waits.dedup_by_key(|wait| key(wait));
    waits
}

fn lesser(one: Vec<BlockingSection>, other: Vec<BlockingSection>) -> Vec<BlockingSection> {
    let total = |waits: &[BlockingSection]| {
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
