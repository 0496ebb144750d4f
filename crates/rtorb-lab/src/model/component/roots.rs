//! The threads of what the clock or something outside begins.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rtorb::Orb;
use rtorb::thread::ThreadConfig;
use rtorb_os::clock::{monotonic_ns, sleep_until};
use serde::{Deserialize, Serialize};

use super::idl::model::{Behaviour, Job};
use super::servant::Performer;
use crate::contestants::event_channel::rtec::take_priority;
use crate::experiment::split_mix::SplitMix64;
use crate::model::plan::{Begins, Levels, NOBODY};
use crate::processes::barrier::Barrier;

/// When a run begins and ends, in ns of CLOCK_MONOTONIC, which all processes of the host share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Times {
    /// The first arrival of every root.
    pub(crate) start_ns: u64,
    /// No arrival from here on.
    pub(crate) end_ns: u64,
    /// No work from here on.
    pub(crate) give_up_ns: u64,
}

/// How often a root's jobs arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Released {
    pub(super) arrivals: u64,
    /// Those whose time was over before they could begin.
    pub(super) skipped: u64,
}

/// The threads, which wait for the start.
#[derive(Debug, Default)]
pub(super) struct Roots {
    numbers: Vec<u32>,
    barrier: Barrier<Times, Released>,
}

impl Roots {
    /// Starts a thread a root, each of which practises and then waits. One that is in `released` sends its jobs to that object.
    pub(super) fn spawn(
        orb: &Orb,
        performer: &Arc<Performer>,
        released: &BTreeMap<u32, Behaviour>,
    ) -> Result<Self, String> {
        let mut roots = Self::default();
        for (index, behaviour) in performer.plan.behaviours.iter().enumerate() {
            let seed = performer.plan.seed ^ u64::from(behaviour.number);
            let Some(arrivals) = Arrivals::of(behaviour.begins, seed) else {
                continue;
            };
            let root = Root {
                orb: orb.clone(),
                performer: Arc::clone(performer),
                index,
                object: released.get(&behaviour.number).cloned(),
                arrivals,
            };
            let config = ThreadConfig {
                stack_bytes: Some(STACK_BYTES),
                ..ThreadConfig::default()
            };
            let name = format!("root-{}", behaviour.number);
            roots.barrier.add(&name, &config, || root.prepare())?;
            let ready = roots.barrier.await_one();
            ready.map_err(|what| format!("{}: {what}", behaviour.name))?;
            roots.numbers.push(behaviour.number);
        }
        Ok(roots)
    }

    /// Lets them all go.
    pub(super) fn start(&self, times: Times) -> Result<(), String> {
        self.barrier.open(&times)
    }

    /// Waits for their ends.
    pub(super) fn join(&mut self) -> Result<BTreeMap<u32, Released>, String> {
        let Self { numbers, barrier } = std::mem::take(self);
        let released = numbers.into_iter().zip(barrier.join());
        released
            .map(|(number, released)| Ok((number, released.ok_or("a thread of a root panicked")?)))
            .collect()
    }
}

/// What the thread of a root has.
struct Root {
    orb: Orb,
    performer: Arc<Performer>,
    index: usize,
    /// Of one whose jobs a lane with levels serves: the object that does them.
    object: Option<Behaviour>,
    arrivals: Arrivals,
}

impl Root {
    /// Does a few jobs for practice, and returns what does those of the run.
    fn prepare(mut self) -> Result<impl FnOnce(Times) -> Released, String> {
        self.practise()?;
        Ok(move |times| self.perform_all(times))
    }

    fn practise(&self) -> Result<(), String> {
        let behaviour = &self.performer.plan.behaviours[self.index];
        let of_lane = self.performer.plan.levels.map(Levels::releasing);
        let priority = of_lane.or(behaviour.priority);
        take_priority(&self.orb, priority.ok_or("a root without a priority")?)?;
        let job = Job {
            caller: NOBODY,
            call: PRACTICE_CALL,
            number: 0,
            release: monotonic_ns(),
        };
        match &self.object {
            None => {
                self.performer.touch(self.index)?;
                (0..PRACTICE_JOBS).try_for_each(|_| self.performer.practise(self.index, &job))
            }
            Some(object) => {
                let object = object.with_end_time(Instant::now() + WARM_UP_TIMEOUT);
                (0..PRACTICE_JOBS)
                    .try_for_each(|_| object.run(&job, &[]))
                    .map_err(|exception| exception.to_string())
            }
        }
    }

    /// Does a job, or has the lane do it by its deadline; returns whether it began in time.
    fn release(&self, job: &Job) -> bool {
        match &self.object {
            Some(object) => self.performer.release(self.index, object, job, &[]),
            None => {
                self.performer.perform(self.index, job);
                true
            }
        }
    }

    /// Each job begins when it arrives, or at once if that is over; one that is far behind is left out.
    fn perform_all(&mut self, times: Times) -> Released {
        let patience_ns = self.arrivals.least_ns.saturating_mul(BACKLOG_JOBS);
        let mut released = Released::default();
        let mut release_ns = times.start_ns.saturating_add(self.arrivals.offset_ns);
        self.arrivals.note(release_ns);
        while release_ns < times.end_ns {
            if monotonic_ns() < release_ns {
                sleep_until(release_ns);
            }
            let now_ns = monotonic_ns();
            let is_late = now_ns.saturating_sub(release_ns) > patience_ns;
            let job = Job {
                caller: NOBODY,
                call: 0,
                number: released.arrivals as u32,
                release: release_ns,
            };
            if is_late || now_ns >= times.give_up_ns || !self.release(&job) {
                released.skipped += 1;
            }
            released.arrivals += 1;
            release_ns = self.arrivals.next_ns(release_ns);
        }
        released
    }
}

/// From one arrival to the next.
#[derive(Clone, Debug)]
struct Arrivals {
    least_ns: u64,
    /// So much longer at most.
    more_ns: u64,
    /// The first arrival, after the start.
    offset_ns: u64,
    numbers: SplitMix64,
    window_ns: u64,
    /// The latest arrivals, as many as a window may have; none without a burst.
    latest_ns: VecDeque<u64>,
    latest_max: usize,
}

impl Arrivals {
    /// Returns the arrivals of a root; `None` of a behaviour that is called.
    fn of(begins: Begins, seed: u64) -> Option<Self> {
        let (least_ns, more_ns, offset_ns, burst) = match begins {
            Begins::Periodic {
                period_ns,
                offset_ns,
            } => (period_ns, 0, offset_ns, None),
            Begins::Sporadic {
                gap_ns,
                more_ns,
                burst,
            } => (gap_ns, more_ns, 0, burst),
            Begins::TwoWay | Begins::OneWay | Begins::Event => return None,
        };
        let latest_max = burst.map_or(0, |burst| burst.jobs as usize);
        Some(Self {
            least_ns: least_ns.max(1),
            more_ns,
            offset_ns,
            numbers: SplitMix64::seeded(seed),
            window_ns: burst.map_or(0, |burst| burst.window_ns),
            latest_ns: VecDeque::with_capacity(latest_max),
            latest_max,
        })
    }

    /// Records an arrival.
    fn note(&mut self, release_ns: u64) {
        if self.latest_max > 0 {
            if self.latest_ns.len() == self.latest_max {
                self.latest_ns.pop_front();
            }
            self.latest_ns.push_back(release_ns);
        }
    }

    /// Returns the next arrival, and records it.
    fn next_ns(&mut self, release_ns: u64) -> u64 {
        let mut next_ns = release_ns.saturating_add(self.next_gap_ns());
        if self.latest_max > 0 && self.latest_ns.len() == self.latest_max {
            let full_ns = self.latest_ns.front().copied().unwrap_or(0);
            let earliest_ns = full_ns.saturating_add(self.window_ns);
            // Half of the bursts begin as late as to depend on none before: gaps that a window has once made longer would stay so.
            next_ns = if next_ns < earliest_ns && self.numbers.draw_below(2) == 1 {
                release_ns.saturating_add(self.window_ns)
            } else {
                next_ns.max(earliest_ns)
            };
        }
        self.note(next_ns);
        next_ns
    }

    /// Half of them as short as may be: what is bounded is the worst.
    fn next_gap_ns(&mut self) -> u64 {
        let more_ns = match self.numbers.draw_below(2) {
            0 => 0,
            _ => self.numbers.draw_below(self.more_ns.saturating_add(1)),
        };
        self.least_ns.saturating_add(more_ns)
    }
}

const STACK_BYTES: usize = 512 << 10;
const PRACTICE_JOBS: usize = 3;
/// A root's job has call 0: this is none.
const PRACTICE_CALL: u32 = 1;
/// Periods by which a job may be late and still begin.
const BACKLOG_JOBS: u64 = 8;
const WARM_UP_TIMEOUT: Duration = Duration::from_secs(8);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::plan::BurstLimit;

    #[test]
    fn gaps_are_never_shorter_and_often_as_short_as_may_be() {
        let sporadic = Begins::Sporadic {
            gap_ns: 1_000,
            more_ns: 500,
            burst: None,
        };
        let mut arrivals = Arrivals::of(sporadic, 7).expect("a root");
        let gaps: Vec<u64> = (0..1_000).map(|_| arrivals.next_gap_ns()).collect();
        assert!(gaps.iter().all(|gap| (1_000..=1_500).contains(gap)));
        assert!(gaps.iter().filter(|gap| **gap == 1_000).count() > 400);
        assert!(gaps.iter().any(|gap| *gap > 1_400));
        let periodic = Begins::Periodic {
            period_ns: 1_000,
            offset_ns: 300,
        };
        let mut periodic = Arrivals::of(periodic, 7).expect("a root");
        assert_eq!(periodic.offset_ns, 300);
        assert!((0..100).all(|_| periodic.next_gap_ns() == 1_000));
        assert!(Arrivals::of(Begins::TwoWay, 7).is_none());
    }

    #[test]
    fn a_window_has_no_more_arrivals_than_its_burst() {
        let sporadic = Begins::Sporadic {
            gap_ns: 100,
            more_ns: 50,
            burst: Some(BurstLimit {
                jobs: 3,
                window_ns: 1_000,
            }),
        };
        let mut arrivals = Arrivals::of(sporadic, 7).expect("a root");
        arrivals.note(0);
        let next = |last: &u64| Some(arrivals.next_ns(*last));
        let all: Vec<u64> = core::iter::successors(Some(0), next).take(300).collect();
        assert!(all.windows(2).all(|pair| pair[1] - pair[0] >= 100));
        assert!(all.windows(4).all(|four| four[3] - four[0] >= 1_000));
        let dense = all.windows(3).filter(|three| three[2] - three[0] == 200);
        assert!(dense.count() > 10, "bursts happen");
    }
}
