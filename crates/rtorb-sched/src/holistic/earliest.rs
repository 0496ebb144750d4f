//! The worst response of a step where the earliest deadline goes first (Spuri 1996).
//!
//! The latest job of a step need not be one that is released together with all others: every arrival within the longest busy
//! period may be the worst, as far as a count grows with it. They are looked at from the last one backwards. An arrival that
//! is earlier has a window that is not longer, so a window tells how early an arrival must be to have a longer response than
//! the longest so far: all between are passed over, as Zhang and Burns (2009) do in the demand test.

use std::collections::HashMap;

use super::Step;
use super::counts::{Place, Runs, lead_ns};
use super::fixed::fixed_point;
use super::rounds::{Budget, Subject, Worst};
use crate::limits::Limits;

/// A processor's steps: those of one period, deadline and jitter as one.
pub(super) struct DeadlineLane {
    streams: Vec<Stream>,
    blockings: Vec<Blocking>,
    /// The longest time that the processor can be busy; `None` if that is not known.
    busy_ns: Option<u64>,
}

#[derive(Clone, Copy)]
struct Stream {
    period_ns: u64,
    jitter_ns: u64,
    deadline_ns: u64,
    worst_ns: u64,
}

/// A blocking, and the first deadline of the step that it delays, from the beginning of a window.
struct Blocking {
    due_ns: i128,
    ns: u64,
}

impl DeadlineLane {
    pub(super) fn new(steps: &[Step], jitter_ns: &[u64], order: &[usize], limits: Limits) -> Self {
        let mut streams: Vec<Stream> = Vec::new();
        let mut places = HashMap::new();
        let mut overflowed = false;
        for &index in order {
            let (task, jitter_ns) = (&steps[index].task, jitter_ns[index]);
            let key = (task.period_ns, jitter_ns, task.deadline_ns);
            let place = *places.entry(key).or_insert_with(|| {
                streams.push(Stream {
                    period_ns: task.period_ns,
                    jitter_ns,
                    deadline_ns: task.deadline_ns,
                    worst_ns: 0,
                });
                streams.len() - 1
            });
            let (sum, over) = streams[place].worst_ns.overflowing_add(task.worst_ns);
            streams[place].worst_ns = sum;
            overflowed |= over;
        }
        let blocking = |&index: &usize| Blocking {
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

    /// The job that is latest of those that were looked at, and whether those were all. `known` is what was found with jitters
    /// that were not longer: it stands unless some job is later.
    pub(super) fn worst(
        &self,
        subject: &Subject<'_>,
        known: Worst,
        budget: &mut Budget,
    ) -> (Worst, bool) {
        let mut latest = known;
        let complete = Search::new(self, subject).all_jobs(budget, &mut latest);
        (latest, complete.is_some())
    }

    fn busy_period(&self, budget: &mut Budget) -> Option<u64> {
        let blocking_ns = self.blockings.iter().map(|blocking| blocking.ns).max()?;
        let mut busy_ns = 1;
        fixed_point(&mut busy_ns, budget, |window| {
            self.streams.iter().try_fold(blocking_ns, |sum, stream| {
                let jobs = stream.arriving_in(window)?;
                sum.checked_add(jobs.checked_mul(stream.worst_ns)?)
            })
        })?;
        Some(busy_ns)
    }

    /// What all ask of a window if none has more jobs than are due.
    fn asked_ns(&self, jobs_due: &[u64], window_ns: u64) -> Option<u64> {
        let mut sum: u64 = 0;
        for (stream, &due) in self.streams.iter().zip(jobs_due) {
            let jobs = stream.arriving_in(window_ns)?.min(due);
            sum = sum.checked_add(jobs.checked_mul(stream.worst_ns)?)?;
        }
        Some(sum)
    }

    /// The longest blocking of a step with a deadline until then.
    fn blocking_ns(&self, due_ns: i128) -> u64 {
        let due = self
            .blockings
            .iter()
            .filter(|blocking| blocking.due_ns <= due_ns);
        due.map(|blocking| blocking.ns).max().unwrap_or(0)
    }
}

impl Stream {
    fn arriving_in(&self, window_ns: u64) -> Option<u64> {
        Some(
            window_ns
                .checked_add(self.jitter_ns)?
                .div_ceil(self.period_ns),
        )
    }

    fn runs(&self) -> Runs {
        Runs {
            place: Place::Stranger,
            period_ns: self.period_ns,
            jitter_ns: self.jitter_ns,
        }
    }
}

struct Search<'a> {
    lane: &'a DeadlineLane,
    deadline_ns: u64,
    jitter_ns: u64,
    family: Vec<Relative>,
    /// From which arrival on, and how often then, counts grow.
    growths: Vec<(i128, u64)>,
}

/// The step itself, or another of its chain.
#[derive(Clone, Copy)]
struct Relative {
    runs: Runs,
    lead_ns: i128,
    worst_ns: u64,
}

impl<'a> Search<'a> {
    fn new(lane: &'a DeadlineLane, subject: &Subject<'_>) -> Self {
        let own = &subject.steps[subject.index];
        let relative = |(index, place): (usize, Place)| Relative {
            runs: Runs {
                place,
                period_ns: own.task.period_ns,
                jitter_ns: subject.jitter_ns[index],
            },
            lead_ns: lead_ns(own, &subject.steps[index]),
            worst_ns: subject.steps[index].task.worst_ns,
        };
        let itself = core::iter::once((subject.index, Place::Itself));
        let family: Vec<Relative> = itself
            .chain(subject.relatives.each())
            .map(relative)
            .collect();
        let strangers = lane.streams.iter().map(|stream| {
            let lead = i128::from(stream.deadline_ns) - i128::from(own.task.deadline_ns);
            (lead - i128::from(stream.jitter_ns), stream.period_ns)
        });
        // As strangers all of them are there already.
        let growth = |relative: &Relative| {
            let earliest = match relative.runs.place {
                Place::After => i128::from(relative.runs.period_ns),
                _ => 0,
            };
            let from = relative.lead_ns.max(earliest) - i128::from(relative.runs.jitter_ns);
            (from, relative.runs.period_ns)
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

    /// Looks at each arrival that may be the worst; `None` when the search ended early.
    fn all_jobs(&self, budget: &mut Budget, latest: &mut Worst) -> Option<()> {
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

    /// Finds the window of the job that arrives then, and keeps it if it is the latest.
    fn look_at(&self, arrival_ns: i128, budget: &mut Budget, latest: &mut Worst) -> Option<u64> {
        let due_ns = arrival_ns + i128::from(self.deadline_ns);
        let due = |stream: &Stream| {
            let runs = stream.runs();
            runs.jobs_due(i128::from(stream.deadline_ns), due_ns, u64::MAX)
        };
        let jobs_due: Vec<u64> = self.lane.streams.iter().map(due).collect();
        let blocking_ns = self.lane.blocking_ns(due_ns);
        let mut window_ns = 1;
        let complete = fixed_point(&mut window_ns, budget, |window| {
            let asked_ns = self.lane.asked_ns(&jobs_due, window)?;
            self.with_family(asked_ns, arrival_ns, window)?
                .checked_add(blocking_ns)
        });
        let worst = Worst {
            arrival_ns,
            window_ns,
        };
        if worst.response_ns() > latest.response_ns() {
            *latest = worst;
        }
        complete.map(|()| window_ns)
    }

    /// What is asked for when the chain's steps are no strangers, from what is asked for when they are.
    fn with_family(&self, mut asked_ns: u64, arrival_ns: i128, window_ns: u64) -> Option<u64> {
        for each in &self.family {
            let stranger = Runs {
                place: Place::Stranger,
                ..each.runs
            };
            asked_ns -= stranger.jobs_due(each.lead_ns, arrival_ns, window_ns) * each.worst_ns;
        }
        for each in &self.family {
            let jobs = each.runs.jobs_due(each.lead_ns, arrival_ns, window_ns);
            asked_ns = asked_ns.checked_add(jobs.checked_mul(each.worst_ns)?)?;
        }
        Some(asked_ns)
    }

    /// The last arrival before the limit with which a count grows.
    fn last_growth_before(&self, limit: i128) -> Option<i128> {
        let last = |&(from, period_ns): &(i128, u64)| {
            let since = limit - 1 - from;
            (since >= 0).then(|| limit - 1 - since % i128::from(period_ns))
        };
        self.growths.iter().filter_map(last).max()
    }
}
