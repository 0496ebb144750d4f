//! The number of jobs of each step in a window.

use super::relatives::{Relation, relatives};
use super::search::LatestJob;
use super::{FIRST_NS, SchedulingPolicy, Step, StepResponse};
use crate::arrivals::Arrivals;
use crate::task::Task;
use crate::utilisation::greatest_common_divisor;

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
    let window_ns = window.window_ns.saturating_add(own.task.tail_ns());
    let relatives = &relatives(steps, processors)[of];
    let goes_before = |index: &usize| {
        let other = &steps[*index];
        let urgent = policy == SchedulingPolicy::EarliestDeadline || other.level <= own.level;
        *index != of && other.processor == own.processor && urgent && other.task.worst_ns > 0
    };
    let jobs = |index: usize| {
        let relation = relatives.relation(index);
        let interferer = Interferer {
            relation,
            has_later: relation.has_later(steps, of),
            arrivals: steps[index].task.arrivals(),
            jitter_ns: found[index].release_ns,
            lag: Lag::between(&own.task, &steps[index].task, relation),
        };
        match policy {
            SchedulingPolicy::FixedPriority => interferer.jobs(window.arrival_ns, window_ns),
            SchedulingPolicy::EarliestDeadline => {
                let lead_ns = lead_ns(own, &steps[index]);
                interferer.jobs_due(lead_ns, window.arrival_ns, window_ns)
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

/// Returns how much later the deadline of a job of `other` is than that of a job of `own` with the same arrival, in ns; `None` if all of
/// its jobs precede it.
pub(super) fn lead_ns(own: &Step, other: &Step) -> Option<i128> {
    let lead_ns = i128::from(other.task.deadline_ns) - i128::from(own.task.deadline_ns);
    (other.task.deadline_ns != FIRST_NS).then_some(lead_ns)
}

/// A step that may run in the window of another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interferer {
    pub(super) relation: Relation,
    /// Whether its jobs that arrive after the analysed one may run before that one ends, if it is no stranger.
    pub(super) has_later: bool,
    pub(super) arrivals: Arrivals,
    pub(super) jitter_ns: u64,
    /// The relation of its arrivals to those of the analysed step, if static offsets give one.
    pub(super) lag: Option<Lag>,
}

/// How arrivals of two periodic steps with static offsets differ: by `after_ns`, plus any multiple of `modulo_ns`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lag {
    after_ns: i128,
    modulo_ns: u64,
}

impl Lag {
    /// Returns how much later than arrivals of `own` those of a stranger are; `None` if they are unrelated.
    pub(super) fn between(own: &Task, other: &Task, relation: Relation) -> Option<Self> {
        let (mine, its) = (own.phase?, other.phase?);
        let modulo_ns = greatest_common_divisor(own.period_ns, other.period_ns);
        let least_ns = own.period_ns.min(other.period_ns);
        let related = relation == Relation::Stranger && mine.clock == its.clock;
        // A finer relation excludes next to nothing, and costs a candidate for each multiple.
        let coarse = modulo_ns >= least_ns.div_ceil(CANDIDATES_MAX);
        (related && coarse).then_some(Self {
            after_ns: i128::from(its.offset_ns) - i128::from(mine.offset_ns),
            modulo_ns,
        })
    }

    /// Returns the first moment from `from_ns` on at which the other step may arrive if the analysed job arrives at `arrival_ns`.
    fn first_ns(self, from_ns: i128, arrival_ns: i128) -> i128 {
        from_ns + (arrival_ns + self.after_ns - from_ns).rem_euclid(self.modulo_ns.into())
    }

    /// Returns the first arrival of the analysed job from `from_ns` on with which the other step may arrive at `at_ns`.
    pub(super) fn coincides_ns(self, from_ns: i128, at_ns: i128) -> i128 {
        from_ns + (at_ns - self.after_ns - from_ns).rem_euclid(self.modulo_ns.into())
    }

    pub(super) fn modulo_ns(self) -> u64 {
        self.modulo_ns
    }
}

/// The maximum number of relative phases of two steps that are told apart within a period.
const CANDIDATES_MAX: u64 = 64;

impl Interferer {
    /// Returns its jobs in the window of a job with this arrival, relative to the window's beginning. Never fewer in a longer
    /// window.
    pub(super) fn jobs(&self, arrival_ns: i128, window_ns: u64) -> u64 {
        if self.relation == Relation::Stranger {
            return self.arriving_in(arrival_ns, window_ns);
        }
        let fixed = self.until(arrival_ns);
        if !self.has_later {
            return fixed;
        }
        let later = self.after(arrival_ns, window_ns);
        fixed
            .saturating_add(later)
            .min(self.arriving_in(arrival_ns, window_ns))
    }

    /// Returns its jobs whose deadline is not after that of the analysed job. `lead_ns` is how much later the deadline of a job
    /// with the same arrival is.
    pub(super) fn jobs_due(&self, lead_ns: Option<i128>, arrival_ns: i128, window_ns: u64) -> u64 {
        let Some(lead_ns) = lead_ns else {
            return self.jobs(arrival_ns, window_ns);
        };
        let due = self.arrived_until(arrival_ns, arrival_ns - lead_ns);
        match self.relation {
            Relation::Itself | Relation::After => due.min(self.until(arrival_ns)),
            // Its deadline is not later, so these are due.
            Relation::Meanwhile => self.until(arrival_ns),
            // More jobs of a predecessor run after the analysed one only if they are due with it.
            Relation::Before if lead_ns + i128::from(self.arrivals.gap_ns()) > 0 => {
                due.min(self.until(arrival_ns))
            }
            Relation::Before | Relation::Stranger => {
                due.min(self.arriving_in(arrival_ns, window_ns))
            }
        }
    }

    /// Returns the next arrival of the analysed job, relative to the window's beginning, at which the number of jobs grows.
    pub(super) fn next_growth_ns(&self, arrival_ns: i128) -> i128 {
        let first_ns = -i128::from(self.jitter_ns);
        match self.lag {
            Some(lag) => lag.coincides_ns(arrival_ns + 1, first_ns),
            None => first_ns + self.arrivals.next_growth_ns(arrival_ns - first_ns),
        }
    }

    /// Returns the same step without any relation to the analysed one. It never has fewer jobs.
    pub(super) fn unrelated(&self) -> Self {
        Self {
            relation: Relation::Stranger,
            lag: None,
            ..*self
        }
    }

    /// Jobs of a step of another transaction.
    fn arriving_in(&self, arrival_ns: i128, window_ns: u64) -> u64 {
        let span_ns = i128::from(window_ns) - self.first_arrival_ns(arrival_ns);
        u128::try_from(span_ns).map_or(0, |span_ns| self.arrivals.jobs_in(span_ns))
    }

    /// Jobs that arrive with the analysed job or before it.
    pub(super) fn until(&self, arrival_ns: i128) -> u64 {
        match self.relation {
            Relation::After => {
                let previous_ns = arrival_ns - i128::from(self.arrivals.gap_ns());
                self.arrived_until(arrival_ns, previous_ns)
            }
            // Its job of the same arrival may run, also while its jitter is still growing: what follows takes that execution off the jitter.
            Relation::Meanwhile => self.arrived_until(arrival_ns, arrival_ns).max(1),
            _ => self.arrived_until(arrival_ns, arrival_ns),
        }
    }

    /// Jobs that arrive after the analysed one.
    fn after(&self, arrival_ns: i128, window_ns: u64) -> u64 {
        let rest_ns = i128::from(window_ns) - arrival_ns;
        // The analysed job is the first of them.
        self.arrivals.jobs_until(rest_ns - 1).saturating_sub(1)
    }

    /// Jobs that can be released from the window's beginning on and arrive until then, including one at that moment.
    fn arrived_until(&self, arrival_ns: i128, until_ns: i128) -> u64 {
        self.arrivals
            .jobs_until(until_ns - self.first_arrival_ns(arrival_ns))
    }

    /// Returns the first arrival of a job that can be released from the window's beginning on.
    fn first_arrival_ns(&self, arrival_ns: i128) -> i128 {
        let first_ns = -i128::from(self.jitter_ns);
        self.lag
            .map_or(first_ns, |lag| lag.first_ns(first_ns, arrival_ns))
    }
}
