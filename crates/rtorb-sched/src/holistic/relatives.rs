//! The predecessors and successors of a step on its own processor.

use super::{Begins, SchedulingPolicy, Step};

/// The relatives of a step that may run in its window, on the same processor.
#[derive(Clone, Debug, Default)]
pub(crate) struct Relatives {
    /// The predecessors, the nearest first.
    pub(crate) before: Vec<usize>,
    /// All direct and indirect successors that wait for its end.
    pub(crate) after: Vec<usize>,
    /// The other successors.
    pub(crate) meanwhile: Vec<usize>,
}

impl Relatives {
    pub(crate) fn is_empty(&self) -> bool {
        self.each().next().is_none()
    }

    pub(crate) fn contains(&self, index: usize) -> bool {
        self.relation(index) != Relation::Stranger
    }

    /// Returns the relation of another step to the one that has these relatives.
    pub(super) fn relation(&self, index: usize) -> Relation {
        let found = self.each().find(|&(relative, _)| relative == index);
        found.map_or(Relation::Stranger, |(_, relation)| relation)
    }

    /// Returns the steps, of `follower` and those that follow it, that may run before the end of the step that has these relatives. Then its
    /// response has at least one job of each, which is no part of the time until the follower is released.
    pub(crate) fn overlapping(
        &self,
        steps: &[Step],
        follower: usize,
    ) -> impl Iterator<Item = usize> {
        let meanwhile = self.meanwhile.iter().copied();
        meanwhile.filter(move |&step| follows(steps, follower, step))
    }

    pub(super) fn each(&self) -> impl Iterator<Item = (usize, Relation)> {
        let lists = [
            (&self.before, Relation::Before),
            (&self.after, Relation::After),
            (&self.meanwhile, Relation::Meanwhile),
        ];
        lists
            .into_iter()
            .flat_map(|(list, relation)| list.iter().map(move |&index| (index, relation)))
    }
}

/// The relation of a step to the step whose window is analysed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relation {
    /// The step itself.
    Itself,
    /// Precedes it in its chain.
    Before,
    /// Follows it in its chain, after its end.
    After,
    /// Follows it in its chain, but may run before its end.
    Meanwhile,
    /// Of another transaction, or of a parallel branch.
    Stranger,
}

impl Relation {
    /// Returns whether jobs of the related step that arrive after the analysed one of the step `own` may run before that one ends.
    pub(super) fn has_later(self, steps: &[Step], own: usize) -> bool {
        steps[own].may_be_overtaken || self == Self::Before && !keeps_thread(steps, own)
    }
}

/// Returns whether the thread of a step's root performs no later job before the step has ended.
fn keeps_thread(steps: &[Step], step: usize) -> bool {
    let before = |index: &usize| steps[*index].after;
    let mut way = core::iter::successors(Some(step), before).take(steps.len());
    way.any(|index| {
        let done = steps[index].thread_until;
        done.is_some_and(|done| follows(steps, step, done))
    })
}

/// Returns the relatives of every step.
///
/// # Panics
/// If the order of steps has a cycle or names a missing step.
pub(crate) fn relatives(steps: &[Step], processors: &[SchedulingPolicy]) -> Vec<Relatives> {
    let mut all = vec![Relatives::default(); steps.len()];
    for (index, step) in steps.iter().enumerate() {
        let (mut next, mut first) = (step.after, index);
        for _ in 0..=steps.len() {
            let Some(earlier) = next else { break };
            let policy = processors[step.processor];
            if counts(steps, policy, index, earlier) {
                all[index].before.push(earlier);
            }
            if counts(steps, policy, earlier, index) {
                let relatives = &mut all[earlier];
                if waits(steps, policy, (earlier, first), index) {
                    relatives.after.push(index);
                } else {
                    relatives.meanwhile.push(index);
                }
            }
            (next, first) = (steps[earlier].after, earlier);
        }
        assert!(next.is_none(), "step {index} follows itself");
    }
    all
}

/// Returns whether a step is another one, or follows it.
fn follows(steps: &[Step], earlier: usize, step: usize) -> bool {
    let before = |index: &usize| steps[*index].after;
    let mut way = core::iter::successors(Some(step), before).take(steps.len());
    way.any(|index| index == earlier)
}

/// Returns whether a successor of a step waits for its end. `first` is the step on the way to it that the step releases: the others
/// begin later than that one.
fn waits(
    steps: &[Step],
    policy: SchedulingPolicy,
    (step, first): (usize, usize),
    successor: usize,
) -> bool {
    let rank = |index: usize| match policy {
        SchedulingPolicy::FixedPriority => u64::from(steps[index].level),
        SchedulingPolicy::EarliestDeadline => steps[index].task.deadline_ns,
    };
    match steps[first].begins {
        Begins::AtEnd => true,
        Begins::Meanwhile => rank(successor) >= rank(step),
        Begins::MeanwhileIfAsUrgent => rank(successor) > rank(step),
    }
}

/// Returns whether a relative may delay a step. A relative of another period counts as a stranger: a chain has one rate.
fn counts(steps: &[Step], policy: SchedulingPolicy, index: usize, relative: usize) -> bool {
    let (step, relative) = (&steps[index], &steps[relative]);
    let urgent = policy == SchedulingPolicy::EarliestDeadline || relative.level <= step.level;
    urgent
        && relative.processor == step.processor
        && relative.transaction == step.transaction
        && relative.task.period_ns == step.task.period_ns
}
