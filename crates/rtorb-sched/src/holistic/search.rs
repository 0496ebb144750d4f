//! The search for the latest job of one step: its subject, its budget and its result.

use super::Step;
use super::counts::{Interferer, Lag};
use super::relatives::{Relation, Relatives};

/// The job of a step with the longest response: its arrival relative to the beginning of the window, and the length of the
/// window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LatestJob {
    pub(super) arrival_ns: i128,
    pub(super) window_ns: u64,
}

impl LatestJob {
    /// `None` over 2^64 ns.
    pub(super) fn response_ns(self) -> Option<u64> {
        u64::try_from(i128::from(self.window_ns) - self.arrival_ns).ok()
    }
}

/// The step under analysis, with all others.
#[derive(Clone, Copy)]
pub(super) struct Subject<'a> {
    pub(super) index: usize,
    pub(super) steps: &'a [Step],
    pub(super) jitter_ns: &'a [u64],
    pub(super) relatives: &'a Relatives,
    /// The steps of its processor with static offsets, the most urgent first; none under fixed priorities that are less urgent.
    pub(super) phased: &'a [usize],
}

impl Subject<'_> {
    pub(super) fn own_jitter_ns(&self) -> u64 {
        self.jitter_ns[self.index]
    }

    /// Returns the steps whose arrivals are related to those of this step: itself, its relatives, and those with a lag.
    pub(super) fn family(&self) -> impl Iterator<Item = (usize, Interferer)> {
        let own = &self.steps[self.index].task;
        let itself = core::iter::once((self.index, Relation::Itself));
        let lag = |index: usize, relation| Lag::between(own, &self.steps[index].task, relation);
        let phased = self.phased.iter().map(|&index| (index, Relation::Stranger));
        let phased = phased.filter(move |&(index, relation)| {
            index != self.index && !self.relatives.contains(index) && lag(index, relation).is_some()
        });
        let all = itself.chain(self.relatives.each()).chain(phased);
        all.map(move |(index, relation)| {
            let interferer = Interferer {
                relation,
                has_later: relation.has_later(self.steps, self.index),
                arrivals: self.steps[index].task.arrivals(),
                jitter_ns: self.jitter_ns[index],
                lag: lag(index, relation),
            };
            (index, interferer)
        })
    }
}

/// The remaining evaluations of demand for one step.
#[derive(Clone, Copy)]
pub(super) struct StepBudget(pub(super) u32);

impl StepBudget {
    pub(super) fn spend(&mut self) -> Option<()> {
        self.0 = self.0.checked_sub(1)?;
        Some(())
    }
}

/// Grows a window to the least that holds its demand, from a shorter one. Returns `None` if that ended early; the window then has
/// the length reached.
pub(super) fn fixed_point(
    window_ns: &mut u64,
    budget: &mut StepBudget,
    needed: impl Fn(u64) -> Option<u64>,
) -> Option<()> {
    loop {
        budget.spend()?;
        let more = needed(*window_ns)?;
        let reached = more <= *window_ns;
        *window_ns = more;
        if reached {
            return Some(());
        }
    }
}
