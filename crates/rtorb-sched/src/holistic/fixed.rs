//! The worst response of a step where the most urgent level goes first.

use std::collections::HashMap;

use super::counts::{Place, Runs};
use super::rounds::{Budget, Subject, Worst};
use crate::task::Task;

/// What the steps of some levels ask of their processor: those of one period and jitter as one, for their counts are the same.
#[derive(Default)]
pub(super) struct Streams {
    streams: Vec<Stream>,
    places: HashMap<(u64, u64), usize>,
    /// A sum was over 2^64 ns.
    overflowed: bool,
    share: Share,
}

struct Stream {
    period_ns: u64,
    jitter_ns: u64,
    worst_ns: u64,
}

/// What is asked for in the long run: of each ns, and at once. About: it only says where to begin a search.
#[derive(Clone, Copy, Default)]
struct Share {
    of_each: f64,
    at_once_ns: f64,
}

impl Streams {
    pub(super) fn add(&mut self, task: &Task, jitter_ns: u64) {
        if task.worst_ns == 0 {
            return;
        }
        let streams = &mut self.streams;
        let place = *self
            .places
            .entry((task.period_ns, jitter_ns))
            .or_insert_with(|| {
                streams.push(Stream {
                    period_ns: task.period_ns,
                    jitter_ns,
                    worst_ns: 0,
                });
                streams.len() - 1
            });
        let worst = &mut self.streams[place].worst_ns;
        let (sum, overflowed) = worst.overflowing_add(task.worst_ns);
        *worst = sum;
        self.overflowed |= overflowed;
        self.share.add(task, jitter_ns, 1.0);
    }

    /// The job that is latest of those that were looked at, and whether those were all. The step must have been added.
    pub(super) fn worst(&self, subject: &Subject<'_>, budget: &mut Budget) -> (Worst, bool) {
        let search = Search::new(self, subject);
        let mut latest = Worst {
            arrival_ns: -i128::from(subject.own_jitter_ns()),
            window_ns: 0,
        };
        let complete = !self.overflowed && search.all_jobs(budget, &mut latest).is_some();
        (latest, complete)
    }

    /// What arrives in a window.
    fn arriving_in(&self, window_ns: u64) -> Option<u64> {
        self.streams.iter().try_fold(0_u64, |sum, stream| {
            let jobs = window_ns
                .checked_add(stream.jitter_ns)?
                .div_ceil(stream.period_ns);
            sum.checked_add(jobs.checked_mul(stream.worst_ns)?)
        })
    }
}

impl Share {
    #[expect(clippy::cast_precision_loss, reason = "about")]
    fn add(&mut self, task: &Task, jitter_ns: u64, times: f64) {
        let of_each = task.worst_ns as f64 / task.period_ns as f64 * times;
        self.of_each += of_each;
        self.at_once_ns += of_each * jitter_ns as f64;
    }
}

/// The search for the latest job of one step.
struct Search<'a> {
    streams: &'a Streams,
    blocking_ns: u64,
    /// The step and its relatives, with what one job of each needs. All of them are among the streams too, from which they are
    /// taken away again.
    family: Vec<(Runs, u64)>,
    /// Without the family.
    share: Share,
}

impl<'a> Search<'a> {
    fn new(streams: &'a Streams, subject: &Subject<'_>) -> Self {
        let mut share = streams.share;
        let own = core::iter::once((subject.index, Place::Itself));
        let family = own.chain(subject.relatives.each());
        let family = family.map(|(index, place)| {
            let (task, jitter_ns) = (&subject.steps[index].task, subject.jitter_ns[index]);
            share.add(task, jitter_ns, -1.0);
            let runs = Runs {
                place,
                period_ns: task.period_ns,
                jitter_ns,
            };
            (runs, task.worst_ns)
        });
        Self {
            streams,
            blocking_ns: subject.steps[subject.index].task.blocking_ns,
            family: family.collect(),
            share,
        }
    }

    /// Looks at each arrival that may be the worst; `None` when the search ended early.
    fn all_jobs(&self, budget: &mut Budget, latest: &mut Worst) -> Option<()> {
        let mut arrival_ns = latest.arrival_ns;
        let mut busy_ns = None;
        loop {
            let mut window_ns = self.least_window(arrival_ns)?;
            let complete = fixed_point(&mut window_ns, budget, |window| {
                self.needed(arrival_ns, window)
            });
            let worst = Worst {
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

    /// What must be done in a window before the job ends that arrives then.
    fn needed(&self, arrival_ns: i128, window_ns: u64) -> Option<u64> {
        let mut sum = self.streams.arriving_in(window_ns)?;
        for (runs, worst_ns) in &self.family {
            let stranger = window_ns
                .checked_add(runs.jitter_ns)?
                .div_ceil(runs.period_ns);
            sum -= stranger * worst_ns;
        }
        for (runs, worst_ns) in &self.family {
            sum = sum.checked_add(runs.jobs(arrival_ns, window_ns).checked_mul(*worst_ns)?)?;
        }
        sum.checked_add(self.blocking_ns)
    }

    /// A window that the least one is not shorter than.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "about"
    )]
    fn least_window(&self, arrival_ns: i128) -> Option<u64> {
        let mut base_ns = self.blocking_ns;
        for (runs, worst_ns) in &self.family {
            base_ns = base_ns.checked_add(runs.until(arrival_ns).checked_mul(*worst_ns)?)?;
        }
        // A job begins together with others even if it needs nothing itself.
        let base_ns = base_ns.max(1);
        let left = 1.0 - self.share.of_each;
        if left < LEFT_MIN {
            return Some(base_ns);
        }
        // A count is not less than window and jitter by period. The factor is far more than rounding can do.
        let least = (base_ns as f64 + self.share.at_once_ns) / left * (1.0 - 1e-6);
        Some(base_ns.max(least as u64))
    }

    /// The next arrival, counted from the window's beginning, for which a count is larger.
    fn next_arrival(&self, arrival_ns: i128) -> i128 {
        let next = |(runs, _): &(Runs, u64)| {
            let period = i128::from(runs.period_ns);
            let since = (arrival_ns + i128::from(runs.jitter_ns)).rem_euclid(period);
            arrival_ns + period - since
        };
        self.family.iter().map(next).min().unwrap_or(i128::MAX)
    }

    /// The longest time that the processor can be busy with these levels, which is not less than what is known.
    fn busy_period(&self, known_ns: u64, budget: &mut Budget) -> Option<u64> {
        let mut busy_ns = known_ns;
        fixed_point(&mut busy_ns, budget, |window| {
            self.streams
                .arriving_in(window)?
                .checked_add(self.blocking_ns)
        })?;
        Some(busy_ns)
    }
}

/// Lets a window grow to the least that holds what it needs, from one that is not larger; `None` when that ended early, with
/// the window as far as it had come.
pub(super) fn fixed_point(
    window_ns: &mut u64,
    budget: &mut Budget,
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

/// Of a processor that is used to more than all but this, the search begins at the beginning: rounding might count.
const LEFT_MIN: f64 = 1e-3;
