//! The worst-case response time of a step under earliest deadline first (Spuri 1996).
//!
//! The job with the longest response need not be released together with all others: every arrival within the longest busy period
//! at which a number of jobs grows may be the worst. The search visits arrivals from the last one backwards. An earlier arrival
//! has no longer window. So a window tells how early an arrival must be to have a longer response than the longest so far, and
//! the search skips all between, as Zhang and Burns (2009) do in the demand test.

use std::collections::HashMap;

use super::counts::{Interferer, lead_ns};
use super::relatives::Relation;
use super::search::{LatestJob, StepBudget, Subject, fixed_point};
use super::{FIRST_NS, Step};
use crate::arrivals::Arrivals;
use crate::limits::SearchLimits;
use crate::stream::Stream;

/// The demand of a processor's steps. Steps of one period, deadline and jitter are one stream.
pub(super) struct DeadlineDemand {
    streams: Vec<DeadlineStream>,
    blockings: Vec<BlockingTerm>,
    /// The length of the longest busy period; `None` if it is unknown.
    busy_ns: Option<u64>,
}

#[derive(Clone, Copy)]
struct DeadlineStream {
    jobs: Stream,
    deadline_ns: u64,
}

/// A blocking, and the first deadline of the step that it delays, relative to the beginning of a window.
struct BlockingTerm {
    due_ns: i128,
    ns: u64,
}

impl DeadlineDemand {
    pub(super) fn new(
        steps: &[Step],
        jitter_ns: &[u64],
        order: &[usize],
        limits: SearchLimits,
    ) -> Self {
        let mut streams: Vec<DeadlineStream> = Vec::new();
        let mut places = HashMap::new();
        let mut overflowed = false;
        for &index in order {
            let (task, jitter_ns) = (&steps[index].task, jitter_ns[index]);
            let key = (task.arrivals(), jitter_ns, task.deadline_ns);
            let place = *places.entry(key).or_insert_with(|| {
                streams.push(DeadlineStream {
                    jobs: Stream {
                        arrivals: task.arrivals(),
                        jitter_ns,
                        worst_ns: 0,
                    },
                    deadline_ns: task.deadline_ns,
                });
                streams.len() - 1
            });
            let worst_ns = &mut streams[place].jobs.worst_ns;
            let (sum, over) = worst_ns.overflowing_add(task.worst_ns);
            *worst_ns = sum;
            overflowed |= over;
        }
        let blocking = |&index: &usize| BlockingTerm {
            due_ns: i128::from(steps[index].task.deadline_ns) - i128::from(jitter_ns[index]),
            ns: steps[index].task.blocking_ns,
        };
        let mut lane = Self {
            streams,
            blockings: order.iter().map(blocking).collect(),
            busy_ns: None,
        };
        let mut budget = StepBudget(limits.steps_max);
        lane.busy_ns = lane.busy_period(&mut budget).filter(|_| !overflowed);
        lane
    }

    /// Returns the job with the longest response of those analysed, and whether all candidates were analysed. `known` is the
    /// result for jitters that were not longer: it stands unless another job has a longer response.
    pub(super) fn worst(
        &self,
        subject: &Subject<'_>,
        known: LatestJob,
        budget: &mut StepBudget,
    ) -> (LatestJob, bool) {
        let mut latest = known;
        let complete = DeadlineSearch::new(self, subject).all_jobs(budget, &mut latest);
        (latest, complete.is_some())
    }

    fn busy_period(&self, budget: &mut StepBudget) -> Option<u64> {
        let blocking_ns = self.blockings.iter().map(|blocking| blocking.ns).max()?;
        let mut busy_ns = 1;
        fixed_point(&mut busy_ns, budget, |window| {
            self.streams.iter().try_fold(blocking_ns, |sum, stream| {
                let jobs = stream.jobs.jobs_in(window)?;
                sum.checked_add(jobs.checked_mul(stream.jobs.worst_ns)?)
            })
        })?;
        Some(busy_ns)
    }

    /// Returns the demand of a window if no stream has more jobs than are due.
    fn asked_ns(&self, jobs_due: &[u64], window_ns: u64) -> Option<u64> {
        let mut sum: u64 = 0;
        for (stream, &due) in self.streams.iter().zip(jobs_due) {
            let jobs = stream.jobs.jobs_in(window_ns)?.min(due);
            sum = sum.checked_add(jobs.checked_mul(stream.jobs.worst_ns)?)?;
        }
        Some(sum)
    }

    /// Returns the longest blocking of a step with a deadline until then.
    fn blocking_ns(&self, due_ns: i128) -> u64 {
        let due = self
            .blockings
            .iter()
            .filter(|blocking| blocking.due_ns <= due_ns);
        due.map(|blocking| blocking.ns).max().unwrap_or(0)
    }
}

impl DeadlineStream {
    fn interferer(&self) -> Interferer {
        Interferer {
            relation: Relation::Stranger,
            has_later: false,
            arrivals: self.jobs.arrivals,
            jitter_ns: self.jobs.jitter_ns,
            lag: None,
        }
    }
}

struct DeadlineSearch<'a> {
    lane: &'a DeadlineDemand,
    deadline_ns: u64,
    jitter_ns: u64,
    /// [`Task::tail_ns`](crate::Task::tail_ns) of the step.
    tail_ns: u64,
    /// The step, its relatives, and then the steps with a lag.
    family: Vec<Relative>,
    /// The number of steps before those with a lag.
    related: usize,
    /// The first arrival at which each number of jobs grows, and the period of further growth.
    growths: Vec<(i128, u64)>,
}

/// The step itself, or a relative.
#[derive(Clone, Copy)]
struct Relative {
    interferer: Interferer,
    lead_ns: Option<i128>,
    worst_ns: u64,
}

impl<'a> DeadlineSearch<'a> {
    fn new(lane: &'a DeadlineDemand, subject: &Subject<'_>) -> Self {
        let own = &subject.steps[subject.index];
        let relative = |(index, interferer): (usize, Interferer)| Relative {
            interferer,
            lead_ns: lead_ns(own, &subject.steps[index]),
            worst_ns: subject.steps[index].task.worst_ns,
        };
        let family: Vec<Relative> = subject.family().map(relative).collect();
        let mut search = Self {
            lane,
            deadline_ns: own.task.deadline_ns,
            jitter_ns: subject.own_jitter_ns(),
            tail_ns: own.task.tail_ns(),
            related: 1 + subject.relatives.each().count(),
            family,
            growths: Vec::new(),
        };
        search.growths = search.all_growths();
        search
    }

    /// Returns the arrivals at which each number of jobs grows first, and after which period it grows again.
    fn all_growths(&self) -> Vec<(i128, u64)> {
        let mut growths = Vec::new();
        let mut add = |from_ns: i128, arrivals: &Arrivals| {
            let each = arrivals.growths_ns();
            growths.extend(each.map(|at_ns| (from_ns + i128::from(at_ns), arrivals.period_ns)));
        };
        let streams = self.lane.streams.iter();
        // The others are as many at each arrival.
        for stream in streams.filter(|stream| stream.deadline_ns != FIRST_NS) {
            let lead_ns = i128::from(stream.deadline_ns) - i128::from(self.deadline_ns);
            let from_ns = lead_ns - i128::from(stream.jobs.jitter_ns);
            add(from_ns, &stream.jobs.arrivals);
        }
        // The streams already contain all of them as strangers.
        for relative in &self.family {
            let interferer = &relative.interferer;
            let earliest_ns = match interferer.relation {
                Relation::After => i128::from(interferer.arrivals.gap_ns()),
                _ => 0,
            };
            let released_ns = -i128::from(interferer.jitter_ns);
            add(
                relative.lead_ns.unwrap_or(0).max(earliest_ns) + released_ns,
                &interferer.arrivals,
            );
        }
        let lags = self.family.iter().filter_map(|relative| {
            let lag = relative.interferer.lag?;
            let released_ns = -i128::from(relative.interferer.jitter_ns);
            let first_ns = lag.coincides_ns(-i128::from(self.jitter_ns), released_ns);
            Some((first_ns, lag.modulo_ns()))
        });
        growths.extend(lags);
        growths
    }

    /// Analyses each arrival that may be the worst; `None` if the search ended early.
    fn all_jobs(&self, budget: &mut StepBudget, latest: &mut LatestJob) -> Option<()> {
        let first = -i128::from(self.jitter_ns);
        self.look_at(first, budget, latest)?;
        let mut limit = i128::from(self.lane.busy_ns?);
        while let Some(arrival_ns) = self.last_growth_before(limit) {
            if arrival_ns <= first {
                break;
            }
            let window_ns = self.look_at(arrival_ns, budget, latest)?;
            // With lags, an earlier arrival may have a longer window than this one, but none longer than without them.
            let longest_ns = match self.family.len() {
                all if all == self.related => window_ns,
                _ => {
                    let family = &self.family[..self.related];
                    let mut longest_ns = window_ns;
                    self.fill_window(&mut longest_ns, arrival_ns, family, budget)?;
                    longest_ns
                }
            };
            // The later ones have been visited, so each step goes back even where a lag lets the longest window end later.
            limit = arrival_ns.min(i128::from(longest_ns) - i128::from(latest.response_ns()?));
        }
        Some(())
    }

    /// Computes the window of the job with this arrival, and keeps the job if its response is the longest.
    fn look_at(
        &self,
        arrival_ns: i128,
        budget: &mut StepBudget,
        latest: &mut LatestJob,
    ) -> Option<u64> {
        let mut window_ns = 1 - self.tail_ns;
        let complete = self.fill_window(&mut window_ns, arrival_ns, &self.family, budget);
        let worst = LatestJob {
            arrival_ns,
            window_ns,
        };
        if worst.response_ns() > latest.response_ns() {
            *latest = worst;
        }
        complete.map(|()| window_ns)
    }

    /// Grows a window to the demand of the job with this arrival. `None` if that ended early.
    fn fill_window(
        &self,
        window_ns: &mut u64,
        arrival_ns: i128,
        family: &[Relative],
        budget: &mut StepBudget,
    ) -> Option<()> {
        let due_ns = arrival_ns + i128::from(self.deadline_ns);
        let due = |stream: &DeadlineStream| match stream.deadline_ns {
            FIRST_NS => u64::MAX,
            deadline_ns => {
                let lead_ns = Some(i128::from(deadline_ns));
                stream.interferer().jobs_due(lead_ns, due_ns, u64::MAX)
            }
        };
        let jobs_due: Vec<u64> = self.lane.streams.iter().map(due).collect();
        let blocking_ns = self.lane.blocking_ns(due_ns);
        fixed_point(window_ns, budget, |window| {
            let window = window.checked_add(self.tail_ns)?;
            let asked_ns = self.lane.asked_ns(&jobs_due, window)?;
            with_family(family, asked_ns, arrival_ns, window)?.checked_add(blocking_ns)
        })
    }

    /// Returns the last arrival before the limit at which a number of jobs grows.
    fn last_growth_before(&self, limit: i128) -> Option<i128> {
        let last = |&(from, period_ns): &(i128, u64)| {
            let since = limit - 1 - from;
            (since >= 0).then(|| limit - 1 - since % i128::from(period_ns))
        };
        self.growths.iter().filter_map(last).max()
    }
}

/// Corrects the demand for steps whose arrivals are related, which it counts as unrelated.
fn with_family(
    family: &[Relative],
    mut asked_ns: u64,
    arrival_ns: i128,
    window_ns: u64,
) -> Option<u64> {
    for each in family {
        let unrelated = each.interferer.unrelated();
        asked_ns -= unrelated.jobs_due(each.lead_ns, arrival_ns, window_ns) * each.worst_ns;
    }
    for each in family {
        let jobs = each
            .interferer
            .jobs_due(each.lead_ns, arrival_ns, window_ns);
        asked_ns = asked_ns.checked_add(jobs.checked_mul(each.worst_ns)?)?;
    }
    Some(asked_ns)
}
