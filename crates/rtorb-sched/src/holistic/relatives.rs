//! Which steps of its own transaction share a step's processor: what comes before it in its chain, and what after.

use super::counts::Place;
use super::{Policy, Step};

/// The relatives of a step that may run in its window, on the same processor.
#[derive(Clone, Debug, Default)]
pub(crate) struct Relatives {
    /// Between the root and the step, the nearest first.
    pub(crate) before: Vec<usize>,
    /// All that its end leads to.
    pub(crate) after: Vec<usize>,
}

impl Relatives {
    pub(crate) fn is_empty(&self) -> bool {
        self.before.is_empty() && self.after.is_empty()
    }

    pub(super) fn each(&self) -> impl Iterator<Item = (usize, Place)> {
        let before = self.before.iter().map(|&index| (index, Place::Before));
        before.chain(self.after.iter().map(|&index| (index, Place::After)))
    }
}

/// The relatives of every step.
///
/// # Panics
/// If steps follow each other in a circle, or follow one that is not there.
pub(super) fn relatives(steps: &[Step], processors: &[Policy]) -> Vec<Relatives> {
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

/// How a step stands to another that runs on the same processor and may go before it.
pub(super) fn place(steps: &[Step], policy: Policy, of: usize, other: usize) -> Place {
    let follows = |later: usize, earlier: usize| {
        let before = |index: &usize| steps[*index].after;
        let mut chain = core::iter::successors(Some(later), before)
            .take(steps.len())
            .skip(1);
        counts(steps, policy, of, other) && chain.any(|index| index == earlier)
    };
    match other {
        _ if of == other => Place::Itself,
        _ if follows(of, other) => Place::Before,
        _ if follows(other, of) => Place::After,
        _ => Place::Stranger,
    }
}

/// Whether a relative may go before a step. One of another period would be a stranger: chains keep their rate.
fn counts(steps: &[Step], policy: Policy, index: usize, relative: usize) -> bool {
    let (step, relative) = (&steps[index], &steps[relative]);
    let urgent = policy == Policy::EarliestDeadline || relative.level <= step.level;
    urgent
        && relative.processor == step.processor
        && relative.transaction == step.transaction
        && relative.task.period_ns == step.task.period_ns
}
