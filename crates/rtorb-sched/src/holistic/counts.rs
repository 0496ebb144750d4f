//! The number of jobs of each step in a window.

use super::relatives::{Relation, relation};
use super::search::LatestJob;
use super::{SchedulingPolicy, Step, StepResponse};

/// Returns the interference in the window of a step: indices into `steps`, and the number of jobs of each.
///
/// For a step with a bound, `found[of].window_ns` is exactly the sum of these jobs' worst-case execution times, of `own_jobs`
/// executions of the step itself, and of `blocking_ns`. For a step without one, it is what the search reached.
///
/// # Panics
/// As [`holistic`](super::holistic()); if `found` is not the result for these steps, or `of` is out of range.
#[must_use]
pub fn interference(
    steps: &[Step],
    processors: &[SchedulingPolicy],
    found: &[StepResponse],
    of: usize,
) -> Vec<(usize, u64)> {
    let own = &steps[of];
    let policy = processors[own.processor];
    let window = found[of].worst(own.task.period_ns);
    let jitter_ns = |index: usize| {
        let before_ns = steps[index]
            .after
            .map_or(0, |before| least_ns(&found[before]));
        let delayed_ns = before_ns.saturating_add(steps[index].delay_ns);
        delayed_ns.saturating_add(steps[index].task.jitter_ns)
    };
    let goes_before = |index: &usize| {
        let other = &steps[*index];
        let urgent = policy == SchedulingPolicy::EarliestDeadline || other.level <= own.level;
        *index != of && other.processor == own.processor && urgent && other.task.worst_ns > 0
    };
    let jobs = |index: usize| {
        let interferer = Interferer {
            relation: relation(steps, policy, of, index),
            period_ns: steps[index].task.period_ns,
            jitter_ns: jitter_ns(index),
        };
        match policy {
            SchedulingPolicy::FixedPriority => interferer.jobs(window.arrival_ns, window.window_ns),
            SchedulingPolicy::EarliestDeadline => {
                let lead_ns = lead_ns(own, &steps[index]);
                interferer.jobs_due(lead_ns, window.arrival_ns, window.window_ns)
            }
        }
    };
    let each = (0..steps.len()).filter(goes_before);
    let each = each.map(|index| (index, jobs(index)));
    each.filter(|&(_, jobs)| jobs > 0).collect()
}

impl StepResponse {
    /// Returns the job with the longest response.
    fn worst(&self, period_ns: u64) -> LatestJob {
        let periods_ns = i128::from(self.job) * i128::from(period_ns);
        LatestJob {
            arrival_ns: periods_ns + i128::from(self.later_ns) - i128::from(self.jitter_ns),
            window_ns: self.window_ns,
        }
    }
}

fn least_ns(found: &StepResponse) -> u64 {
    match found.response {
        crate::Response::Bounded { ns } => ns,
        crate::Response::Undecided { at_least_ns } => at_least_ns,
        crate::Response::Unbounded => 0,
    }
}

/// Returns how much later the deadline of a job of `other` is than that of a job of `own` with the same arrival, in ns.
pub(super) fn lead_ns(own: &Step, other: &Step) -> i128 {
    i128::from(other.task.deadline_ns) - i128::from(own.task.deadline_ns)
}

/// A step that may run in the window of another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interferer {
    pub(super) relation: Relation,
    pub(super) period_ns: u64,
    pub(super) jitter_ns: u64,
}

impl Interferer {
    /// Returns its jobs in the window of a job with this arrival, relative to the window's beginning. Never fewer in a longer
    /// window.
    pub(super) fn jobs(&self, arrival_ns: i128, window_ns: u64) -> u64 {
        if self.relation == Relation::Stranger {
            return self.arriving_in(window_ns);
        }
        let fixed = self.until(arrival_ns);
        match self.relation {
            Relation::Before => {
                let later = self.after(arrival_ns, window_ns);
                fixed.saturating_add(later).min(self.arriving_in(window_ns))
            }
            _ => fixed,
        }
    }

    /// Returns its jobs whose deadline is not after that of the analysed job. `lead_ns` is how much later the deadline of a job
    /// with the same arrival is.
    pub(super) fn jobs_due(&self, lead_ns: i128, arrival_ns: i128, window_ns: u64) -> u64 {
        let due = self.arrived_until(arrival_ns - lead_ns);
        match self.relation {
            Relation::Itself | Relation::After => due.min(self.until(arrival_ns)),
            // More jobs of a predecessor run after the analysed one only if they are due with it.
            Relation::Before if lead_ns + i128::from(self.period_ns) > 0 => {
                due.min(self.until(arrival_ns))
            }
            Relation::Before | Relation::Stranger => due.min(self.arriving_in(window_ns)),
        }
    }

    /// Jobs of a step of another transaction.
    fn arriving_in(&self, window_ns: u64) -> u64 {
        let span = u128::from(window_ns) + u128::from(self.jitter_ns);
        clamp(span.div_ceil(u128::from(self.period_ns)))
    }

    /// Jobs that arrive with the analysed job or before it.
    pub(super) fn until(&self, arrival_ns: i128) -> u64 {
        match self.relation {
            Relation::After => self.arrived_until(arrival_ns - i128::from(self.period_ns)),
            _ => self.arrived_until(arrival_ns),
        }
    }

    /// Jobs that arrive after the analysed one.
    fn after(&self, arrival_ns: i128, window_ns: u64) -> u64 {
        let period = i128::from(self.period_ns);
        let rest = i128::from(window_ns) - arrival_ns;
        if rest > period {
            clamp(((rest - 1) / period).unsigned_abs())
        } else {
            0
        }
    }

    /// Jobs that can be released from the window's beginning on and arrive until then, including one at that moment.
    fn arrived_until(&self, arrival_ns: i128) -> u64 {
        let since = arrival_ns + i128::from(self.jitter_ns);
        match u128::try_from(since) {
            Ok(since) => clamp(since / u128::from(self.period_ns) + 1),
            Err(_) => 0,
        }
    }
}

fn clamp(jobs: u128) -> u64 {
    u64::try_from(jobs).unwrap_or(u64::MAX)
}
