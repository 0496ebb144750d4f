//! The predecessors and successors of a step on its own processor.

use super::{SchedulingPolicy, Step};

/// The relatives of a step that may run in its window, on the same processor.
#[derive(Clone, Debug, Default)]
pub(crate) struct Relatives {
    /// The predecessors, the nearest first.
    pub(crate) before: Vec<usize>,
    /// All direct and indirect successors.
    pub(crate) after: Vec<usize>,
}

impl Relatives {
    pub(crate) fn is_empty(&self) -> bool {
        self.before.is_empty() && self.after.is_empty()
    }

    pub(super) fn contains(&self, index: usize) -> bool {
        self.before.contains(&index) || self.after.contains(&index)
    }

    pub(super) fn each(&self) -> impl Iterator<Item = (usize, Relation)> {
        let before = self.before.iter().map(|&index| (index, Relation::Before));
        before.chain(self.after.iter().map(|&index| (index, Relation::After)))
    }
}

/// The relation of a step to the step whose window is analysed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relation {
    /// The step itself.
    Itself,
    /// Precedes it in its chain.
    Before,
    /// Follows it in its chain.
    After,
    /// Of another transaction, or of a parallel branch.
    Stranger,
}

/// Returns the relatives of every step.
///
/// # Panics
/// If the order of steps has a cycle or names a missing step.
pub(super) fn relatives(steps: &[Step], processors: &[SchedulingPolicy]) -> Vec<Relatives> {
    let mut all = vec![Relatives::default(); steps.len()];
    for (index, step) in steps.iter().enumerate() {
        let mut next = step.after;
        for _ in 0..=steps.len() {
            let Some(earlier) = next else { break };
            let policy = processors[step.processor];
            if counts(steps, policy, index, earlier) {
                all[index].before.push(earlier);
            }
            if counts(steps, policy, earlier, index) {
                all[earlier].after.push(index);
            }
            next = steps[earlier].after;
        }
        assert!(next.is_none(), "step {index} follows itself");
    }
    all
}

/// Returns the relation of `other` to `of`; both run on the same processor.
pub(super) fn relation(
    steps: &[Step],
    policy: SchedulingPolicy,
    of: usize,
    other: usize,
) -> Relation {
    let follows = |later: usize, earlier: usize| {
        let before = |index: &usize| steps[*index].after;
        let mut chain = core::iter::successors(Some(later), before)
            .take(steps.len())
            .skip(1);
        counts(steps, policy, of, other) && chain.any(|index| index == earlier)
    };
    match other {
        _ if of == other => Relation::Itself,
        _ if follows(of, other) => Relation::Before,
        _ if follows(other, of) => Relation::After,
        _ => Relation::Stranger,
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
