//! How many jobs of each step run in a window.

use super::relatives::place;
use super::rounds::Worst;
use super::{Found, Policy, Step};

/// The executions of other steps in the window of one: places in `steps`, and how many jobs of each.
///
/// For a step with a bound, `found[of].window_ns` is exactly the sum of these by their worst execution times, of `own_jobs`
/// executions of the step itself, and of `blocking_ns`. For one without, it is what was found before the search ended.
///
/// # Panics
/// As [`holistic`](super::holistic()); if `found` is not the answer for these steps, or `of` is not among them.
#[must_use]
pub fn interference(
    steps: &[Step],
    processors: &[Policy],
    found: &[Found],
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
        let urgent = policy == Policy::EarliestDeadline || other.level <= own.level;
        *index != of && other.processor == own.processor && urgent && other.task.worst_ns > 0
    };
    let jobs = |index: usize| {
        let runs = Runs {
            place: place(steps, policy, of, index),
            period_ns: steps[index].task.period_ns,
            jitter_ns: jitter_ns(index),
        };
        match policy {
            Policy::FixedPriority => runs.jobs(window.arrival_ns, window.window_ns),
            Policy::EarliestDeadline => {
                let lead_ns = lead_ns(own, &steps[index]);
                runs.jobs_due(lead_ns, window.arrival_ns, window.window_ns)
            }
        }
    };
    let each = (0..steps.len()).filter(goes_before);
    let each = each.map(|index| (index, jobs(index)));
    each.filter(|&(_, jobs)| jobs > 0).collect()
}

impl Found {
    /// The job that is latest.
    fn worst(&self, period_ns: u64) -> Worst {
        let periods_ns = i128::from(self.job) * i128::from(period_ns);
        Worst {
            arrival_ns: periods_ns + i128::from(self.later_ns) - i128::from(self.jitter_ns),
            window_ns: self.window_ns,
        }
    }
}

fn least_ns(found: &Found) -> u64 {
    match found.response {
        crate::Response::Bounded { ns } => ns,
        crate::Response::Undecided { at_least_ns } => at_least_ns,
        crate::Response::Unbounded => 0,
    }
}

/// How much earlier the deadline of one's job is than that of the other's that arrives with it; in ns.
pub(super) fn lead_ns(own: &Step, other: &Step) -> i128 {
    i128::from(other.task.deadline_ns) - i128::from(own.task.deadline_ns)
}

/// How a step stands to the one whose window it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The step itself.
    Itself,
    /// Before it in its chain.
    Before,
    /// After it in its chain.
    After,
    /// Of another transaction, or of a parallel branch.
    Stranger,
}

/// A step that may run in the window of another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Runs {
    pub(super) place: Place,
    pub(super) period_ns: u64,
    pub(super) jitter_ns: u64,
}

impl Runs {
    /// Its jobs in a window of a job that arrives so long after the window begins. Never less for a longer window.
    pub(super) fn jobs(&self, arrival_ns: i128, window_ns: u64) -> u64 {
        if self.place == Place::Stranger {
            return self.arriving_in(window_ns);
        }
        let fixed = self.until(arrival_ns);
        match self.place {
            Place::Before => {
                let later = self.after(arrival_ns, window_ns);
                fixed.saturating_add(later).min(self.arriving_in(window_ns))
            }
            _ => fixed,
        }
    }

    /// The same of those whose deadline is not after that of the job whose window it is; `lead_ns` is how much later a deadline is
    /// of a job that arrives with it.
    pub(super) fn jobs_due(&self, lead_ns: i128, arrival_ns: i128, window_ns: u64) -> u64 {
        let due = self.arrived_until(arrival_ns - lead_ns);
        match self.place {
            Place::Itself | Place::After => due.min(self.until(arrival_ns)),
            // What comes before the job in its chain is followed by more of its kind only if they are due with it.
            Place::Before if lead_ns + i128::from(self.period_ns) > 0 => {
                due.min(self.until(arrival_ns))
            }
            Place::Before | Place::Stranger => due.min(self.arriving_in(window_ns)),
        }
    }

    /// Jobs of strangers.
    fn arriving_in(&self, window_ns: u64) -> u64 {
        let span = u128::from(window_ns) + u128::from(self.jitter_ns);
        clamp(span.div_ceil(u128::from(self.period_ns)))
    }

    /// Jobs with, and before, the one whose window it is.
    pub(super) fn until(&self, arrival_ns: i128) -> u64 {
        match self.place {
            Place::After => self.arrived_until(arrival_ns - i128::from(self.period_ns)),
            _ => self.arrived_until(arrival_ns),
        }
    }

    /// Jobs with later arrivals than the one whose window it is.
    fn after(&self, arrival_ns: i128, window_ns: u64) -> u64 {
        let period = i128::from(self.period_ns);
        let rest = i128::from(window_ns) - arrival_ns;
        match rest > period {
            true => clamp(((rest - 1) / period).unsigned_abs()),
            false => 0,
        }
    }

    /// Jobs that can be released from the window's beginning on and arrive until then, one at that very moment.
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
