//! The worst-case response time of a step under earliest deadline first (Spuri 1996).
//!
//! The job with the longest response need not be released together with all others: every arrival within the longest busy period
//! at which a number of jobs grows may be the worst. The search visits arrivals from the last one backwards. An earlier arrival
//! has no longer window. So a window tells how early an arrival must be to have a longer response than the longest so far, and
//! the search skips all between, as Zhang and Burns (2009) do in the demand test.

use std::collections::HashMap;

use super::Step;
use super::counts::{Interferer, lead_ns};
use super::relatives::Relation;
use super::search::{Budget, LatestJob, Subject, fixed_point};
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
            let key = (task.period_ns, jitter_ns, task.deadline_ns);
            let place = *places.entry(key).or_insert_with(|| {
                streams.push(DeadlineStream {
                    jobs: Stream {
                        period_ns: task.period_ns,
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
        let mut budget = Budget(limits.steps_max);
        lane.busy_ns = lane.busy_period(&mut budget).filter(|_| !overflowed);
        lane
    }

    /// Returns the job with the longest response of those analysed, and whether all candidates were analysed. `known` is the
    /// result for jitters that were not longer: it stands unless another job has a longer response.
    pub(super) fn worst(
        &self,
        subject: &Subject<'_>,
        known: LatestJob,
        budget: &mut Budget,
    ) -> (LatestJob, bool) {
        let mut latest = known;
        let complete = DeadlineSearch::new(self, subject).all_jobs(budget, &mut latest);
        (latest, complete.is_some())
    }

    fn busy_period(&self, budget: &mut Budget) -> Option<u64> {
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
            period_ns: self.jobs.period_ns,
            jitter_ns: self.jobs.jitter_ns,
        }
    }
}

struct DeadlineSearch<'a> {
    lane: &'a DeadlineDemand,
    deadline_ns: u64,
    jitter_ns: u64,
    family: Vec<Relative>,
    /// The first arrival at which each number of jobs grows, and the period of further growth.
    growths: Vec<(i128, u64)>,
}

/// The step itself, or a relative.
#[derive(Clone, Copy)]
struct Relative {
    interferer: Interferer,
    lead_ns: i128,
    worst_ns: u64,
}

impl<'a> DeadlineSearch<'a> {
    fn new(lane: &'a DeadlineDemand, subject: &Subject<'_>) -> Self {
        let own = &subject.steps[subject.index];
        let relative = |(index, relation): (usize, Relation)| Relative {
            interferer: Interferer {
                relation,
                period_ns: own.task.period_ns,
                jitter_ns: subject.jitter_ns[index],
            },
            lead_ns: lead_ns(own, &subject.steps[index]),
            worst_ns: subject.steps[index].task.worst_ns,
        };
        let itself = core::iter::once((subject.index, Relation::Itself));
        let family: Vec<Relative> = itself
            .chain(subject.relatives.each())
            .map(relative)
            .collect();
        let strangers = lane.streams.iter().map(|stream| {
            let lead = i128::from(stream.deadline_ns) - i128::from(own.task.deadline_ns);
            (
                lead - i128::from(stream.jobs.jitter_ns),
                stream.jobs.period_ns,
            )
        });
        // The streams already contain all of them as strangers.
        let growth = |relative: &Relative| {
            let earliest = match relative.interferer.relation {
                Relation::After => i128::from(relative.interferer.period_ns),
                _ => 0,
            };
            let from = relative.lead_ns.max(earliest) - i128::from(relative.interferer.jitter_ns);
            (from, relative.interferer.period_ns)
        };
        let growths = strangers.chain(family.iter().map(growth)).collect();
        Self {
            lane,
            deadline_ns: own.task.deadline_ns,
            jitter_ns: subject.own_jitter_ns(),
            family,
            growths,
        }
    }

    /// Analyses each arrival that may be the worst; `None` if the search ended early.
    fn all_jobs(&self, budget: &mut Budget, latest: &mut LatestJob) -> Option<()> {
        let first = -i128::from(self.jitter_ns);
        self.look_at(first, budget, latest)?;
        let mut limit = i128::from(self.lane.busy_ns?);
        while let Some(arrival_ns) = self.last_growth_before(limit) {
            if arrival_ns <= first {
                break;
            }
            let window_ns = self.look_at(arrival_ns, budget, latest)?;
            limit = i128::from(window_ns) - i128::from(latest.response_ns()?);
        }
        Some(())
    }

    /// Computes the window of the job with this arrival, and keeps the job if its response is the longest.
    fn look_at(
        &self,
        arrival_ns: i128,
        budget: &mut Budget,
        latest: &mut LatestJob,
    ) -> Option<u64> {
        let due_ns = arrival_ns + i128::from(self.deadline_ns);
        let due = |stream: &DeadlineStream| {
            let interferer = stream.interferer();
            interferer.jobs_due(i128::from(stream.deadline_ns), due_ns, u64::MAX)
        };
        let jobs_due: Vec<u64> = self.lane.streams.iter().map(due).collect();
        let blocking_ns = self.lane.blocking_ns(due_ns);
        let mut window_ns = 1;
        let complete = fixed_point(&mut window_ns, budget, |window| {
            let asked_ns = self.lane.asked_ns(&jobs_due, window)?;
            self.with_family(asked_ns, arrival_ns, window)?
                .checked_add(blocking_ns)
        });
        let worst = LatestJob {
            arrival_ns,
            window_ns,
        };
        if worst.response_ns() > latest.response_ns() {
            *latest = worst;
        }
        complete.map(|()| window_ns)
    }

    /// Corrects the demand for relatives, which it counts as strangers.
    fn with_family(&self, mut asked_ns: u64, arrival_ns: i128, window_ns: u64) -> Option<u64> {
        for each in &self.family {
            let stranger = Interferer {
                relation: Relation::Stranger,
                ..each.interferer
            };
            asked_ns -= stranger.jobs_due(each.lead_ns, arrival_ns, window_ns) * each.worst_ns;
        }
        for each in &self.family {
            let jobs = each
                .interferer
                .jobs_due(each.lead_ns, arrival_ns, window_ns);
            asked_ns = asked_ns.checked_add(jobs.checked_mul(each.worst_ns)?)?;
        }
        Some(asked_ns)
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
