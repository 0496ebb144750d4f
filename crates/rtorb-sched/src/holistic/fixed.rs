//! The worst-case response time of a step under fixed priorities.

use super::counts::Interferer;
use super::relatives::Relation;
use super::search::{LatestJob, StepBudget, Subject, fixed_point};
use crate::stream::{Stream, StreamSet, demand_in};
use crate::task::Task;
use crate::utilisation::share;

/// The demand of the steps of some levels on their processor.
#[derive(Default)]
pub(super) struct LevelDemand {
    set: StreamSet,
    linear: LinearDemand,
}

/// A linear approximation of the demand: a slope and an offset. It only provides the start of a search.
#[derive(Clone, Copy, Default)]
struct LinearDemand {
    of_each: f64,
    at_once_ns: f64,
}

impl LevelDemand {
    pub(super) fn add(&mut self, task: &Task, jitter_ns: u64) {
        if task.worst_ns > 0 {
            self.set.add(task, jitter_ns);
            self.linear.add(task, jitter_ns, 1.0);
        }
    }

    /// Returns the job with the longest response of those analysed, and whether all candidates were analysed. The step must have
    /// been added.
    pub(super) fn worst(
        &self,
        subject: &Subject<'_>,
        budget: &mut StepBudget,
    ) -> (LatestJob, bool) {
        let search = FixedSearch::new(self, subject);
        let mut latest = LatestJob {
            arrival_ns: -i128::from(subject.own_jitter_ns()),
            window_ns: 0,
        };
        let complete = !self.set.overflowed && search.all_jobs(budget, &mut latest).is_some();
        (latest, complete)
    }
}

impl LinearDemand {
    #[expect(clippy::cast_precision_loss, reason = "about")]
    fn add(&mut self, task: &Task, jitter_ns: u64, times: f64) {
        let (execution_ns, period_ns) = share(task.arrivals(), task.worst_ns);
        let of_each = execution_ns as f64 / period_ns as f64 * times;
        self.of_each += of_each;
        self.at_once_ns += of_each * jitter_ns as f64;
    }
}

/// The search for the latest job of one step.
struct FixedSearch<'a> {
    streams: &'a [Stream],
    blocking_ns: u64,
    /// [`Task::tail_ns`] of the step.
    tail_ns: u64,
    /// The step and its relatives, with the execution time of one job of each. The streams contain all of them too, so their
    /// share is subtracted.
    family: Vec<(Interferer, u64)>,
    /// The demand without the family.
    linear: LinearDemand,
}

impl<'a> FixedSearch<'a> {
    fn new(demand: &'a LevelDemand, subject: &Subject<'_>) -> Self {
        let mut linear = demand.linear;
        let family = subject.family().map(|(index, interferer)| {
            let task = &subject.steps[index].task;
            linear.add(task, interferer.jitter_ns, -1.0);
            (interferer, task.worst_ns)
        });
        let own = &subject.steps[subject.index].task;
        Self {
            streams: &demand.set.streams,
            blocking_ns: own.blocking_ns,
            tail_ns: own.tail_ns(),
            family: family.collect(),
            linear,
        }
    }

    /// Analyses each arrival that may be the worst; `None` if the search ended early.
    fn all_jobs(&self, budget: &mut StepBudget, latest: &mut LatestJob) -> Option<()> {
        let mut arrival_ns = latest.arrival_ns;
        let mut busy_ns = None;
        loop {
            let mut window_ns = self.least_window(arrival_ns)?;
            let complete = fixed_point(&mut window_ns, budget, |window| {
                self.needed(arrival_ns, window)
            });
            let worst = LatestJob {
                arrival_ns,
                window_ns,
            };
            if worst.response_ns() > latest.response_ns() {
                *latest = worst;
            }
            complete?;
            arrival_ns = self.next_arrival(arrival_ns);
            if self.family.len() == 1 && i128::from(window_ns) <= arrival_ns {
                return Some(());
            }
            let busy_ns = match busy_ns {
                Some(known) => known,
                None => *busy_ns.insert(self.busy_period(window_ns, budget)?),
            };
            if i128::from(busy_ns) <= arrival_ns {
                return Some(());
            }
        }
    }

    /// Returns the demand of a window before the job with this arrival ends.
    fn needed(&self, arrival_ns: i128, window_ns: u64) -> Option<u64> {
        let window_ns = window_ns.checked_add(self.tail_ns)?;
        let mut sum = demand_in(self.streams, window_ns)?;
        for (interferer, worst_ns) in &self.family {
            sum -= interferer.unrelated().jobs(arrival_ns, window_ns) * worst_ns;
        }
        for (interferer, worst_ns) in &self.family {
            sum = sum.checked_add(
                interferer
                    .jobs(arrival_ns, window_ns)
                    .checked_mul(*worst_ns)?,
            )?;
        }
        sum.checked_add(self.blocking_ns)
    }

    /// Returns a lower bound of the least window.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "about"
    )]
    fn least_window(&self, arrival_ns: i128) -> Option<u64> {
        let mut base_ns = self.blocking_ns;
        let sure = |(interferer, _): &&(Interferer, u64)| interferer.relation != Relation::Stranger;
        for (interferer, worst_ns) in self.family.iter().filter(sure) {
            base_ns = base_ns.checked_add(interferer.until(arrival_ns).checked_mul(*worst_ns)?)?;
        }
        let left = 1.0 - self.linear.of_each;
        if left < LEFT_MIN {
            return Some(base_ns);
        }
        // A number of jobs is at least window plus jitter, divided by the period and times the jobs of a burst. The factor far exceeds the rounding error.
        let least = (base_ns as f64 + self.linear.at_once_ns) / left * (1.0 - 1e-6);
        Some(base_ns.max(least as u64))
    }

    /// Returns the next arrival, relative to the window's beginning, at which a number of jobs grows.
    fn next_arrival(&self, arrival_ns: i128) -> i128 {
        let next = |(interferer, _): &(Interferer, u64)| interferer.next_growth_ns(arrival_ns);
        self.family.iter().map(next).min().unwrap_or(i128::MAX)
    }

    /// Returns the length of the longest busy period of these levels, which is at least the known one.
    fn busy_period(&self, known_ns: u64, budget: &mut StepBudget) -> Option<u64> {
        let mut busy_ns = known_ns;
        fixed_point(&mut busy_ns, budget, |window| {
            demand_in(self.streams, window)?.checked_add(self.blocking_ns)
        })?;
        Some(busy_ns)
    }
}

/// If less than this share of the processor is free, the search begins at the shortest window, because rounding might matter.
const LEFT_MIN: f64 = 1e-3;
