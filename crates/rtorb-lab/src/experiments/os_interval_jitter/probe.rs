//! Tasks on one CPU, each a thread with one periodic timer, in a process of their own.

use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use rtorb_host::placement;
use rtorb_os::clock::monotonic_ns;
use rtorb_os::sched::SchedPolicy;
use rtorb_os::thread::{ThreadConfig, spawn};
use rtorb_os::timer::PeriodicTimer;
use serde::{Deserialize, Serialize};

use crate::processes::awake::Awake;
use crate::processes::computation::Computation;
use crate::processes::probe::{self, Answer};

/// Tasks that run together for some time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// The most urgent first.
    pub(super) tasks: Vec<Task>,
    /// What each task computes at a release.
    pub(super) work: Computation,
    /// The one CPU of all tasks.
    pub(super) cpu: Option<usize>,
    /// Whether they have SCHED_FIFO, each a priority of its own.
    pub(super) real_time: bool,
    /// All timers begin at one multiple of this.
    pub(super) resolution_ns: u64,
    /// How long they run.
    pub(super) duration_ns: u64,
}

/// A task with its timer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Task {
    pub(super) name: String,
    pub(super) interval_ns: u64,
    pub(super) observed: bool,
}

impl probe::Question for Question {
    const ROLE: &'static str = "probe-interval-jitter";

    /// Answers for each observed task two series: the jitter of each interval, and how late each release was.
    fn answer(&self) -> Result<Answer, String> {
        self.check()?;
        let at_most = Duration::from_nanos(self.duration_ns) + LEAD * 2;
        let _awake = Awake::keep(self.cpu, at_most);
        let mut tasks = Vec::new();
        for (place, task) in self.tasks.iter().enumerate() {
            let (say, hear) = mpsc::channel();
            let (task, work) = (task.clone(), self.work);
            let duration_ns = self.duration_ns;
            let wakes = task.room_for_wakes(duration_ns);
            let config = self.config(place);
            let name = format!("{}-{place}", task.name);
            let thread = spawn(&name, &config, move || {
                task.run(work, &hear, duration_ns, wakes)
            });
            tasks.push((say, thread.map_err(|refused| refused.to_string())?));
        }
        let scheduling = placement::obtained_by_priority("interval-jitter", std::process::id());
        let begin_ns =
            first_multiple_after(monotonic_ns() + LEAD.as_nanos() as u64, self.resolution_ns);
        for (say, _) in &tasks {
            // Who does not hear it has ended, which joining it tells.
            let _ = say.send(begin_ns);
        }
        let mut samples = Vec::new();
        for ((_, thread), task) in tasks.into_iter().zip(&self.tasks) {
            let wakes_ns = thread
                .join()
                .map_err(|_| format!("the task {} panicked", task.name))?
                .unwrap_or_default();
            if task.observed {
                samples.extend(task.jitter_and_lateness(begin_ns, &wakes_ns));
            }
        }
        Ok(Answer {
            samples,
            scheduling,
            ..Answer::default()
        })
    }
}

impl Question {
    fn check(&self) -> Result<(), String> {
        let tasks = self.tasks.len();
        if tasks > TASKS_MAX {
            return Err(format!("{tasks} tasks are more than {TASKS_MAX}"));
        }
        if self.duration_ns > DURATION_NS_MAX {
            return Err(format!("{} ns are too long", self.duration_ns));
        }
        let never = self.resolution_ns == 0 || self.tasks.iter().any(|task| task.interval_ns == 0);
        if never {
            Err("an interval of 0 never ends".to_owned())
        } else {
            Ok(())
        }
    }

    fn config(&self, place: usize) -> ThreadConfig {
        let priority = HIGHEST_PRIORITY - u8::try_from(place).unwrap_or(HIGHEST_PRIORITY - 1);
        ThreadConfig {
            policy: self.real_time.then_some(SchedPolicy::Fifo(priority)),
            affinity: self.cpu.into_iter().collect(),
            ..ThreadConfig::default()
        }
    }
}

impl Task {
    /// Room for all wake-ups, whose pages have been written to.
    fn room_for_wakes(&self, duration_ns: u64) -> Vec<u64> {
        let releases = usize::try_from(duration_ns / self.interval_ns).unwrap_or(0);
        let mut wakes = vec![1; releases + 1];
        wakes.clear();
        wakes
    }

    /// No release is left out, however late it is: then every interval has the same nominal length.
    fn run(
        &self,
        work: Computation,
        begin: &Receiver<u64>,
        duration_ns: u64,
        mut wakes_ns: Vec<u64>,
    ) -> Vec<u64> {
        let Ok(begin_ns) = begin.recv() else {
            return wakes_ns;
        };
        let mut timer = PeriodicTimer::starting_at(begin_ns, self.interval_ns);
        while timer.next_ns() < begin_ns + duration_ns {
            let release = timer.wait_each();
            wakes_ns.push(release.scheduled_ns + release.lateness_ns);
            work.run();
        }
        wakes_ns
    }

    /// The first releases, in which caches and branch predictors learn, are left out.
    fn jitter_and_lateness(&self, begin_ns: u64, wakes_ns: &[u64]) -> [Vec<u64>; 2] {
        let jitter = wakes_ns.windows(2).skip(WARM_UP).map(|pair| {
            let actual_ns = pair[1].saturating_sub(pair[0]);
            actual_ns.abs_diff(self.interval_ns)
        });
        let releases_ns = (0u64..).map(|index| begin_ns + index * self.interval_ns);
        let pairs = wakes_ns.iter().zip(releases_ns);
        let lateness = pairs
            .skip(WARM_UP + 1)
            .map(|(wake_ns, release_ns)| wake_ns.saturating_sub(release_ns));
        [jitter.collect(), lateness.collect()]
    }
}

fn first_multiple_after(ns: u64, resolution_ns: u64) -> u64 {
    (ns / resolution_ns + 1) * resolution_ns
}

/// Below the process's main thread, which waits for the tasks.
pub(super) const HIGHEST_PRIORITY: u8 = 45;
/// P3's most; each has a priority of its own.
pub(super) const TASKS_MAX: usize = 20;
const DURATION_NS_MAX: u64 = 10_000_000_000;
/// Intervals.
pub(super) const WARM_UP: usize = 3;
/// From when the beginning is told to the beginning.
const LEAD: Duration = Duration::from_millis(3);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::processes::probe::Question as _;

    fn task(name: &str, interval_ns: u64) -> Task {
        Task {
            name: name.to_owned(),
            interval_ns,
            observed: name != "other",
        }
    }

    fn question(duration_ns: u64) -> Question {
        Question {
            tasks: vec![
                task("highest", 1_000_000),
                task("other", 2_000_000),
                task("lowest", 500_000),
            ],
            work: Computation { steps: 100 },
            cpu: rtorb_os::sched::current_affinity().last().copied(),
            real_time: false,
            resolution_ns: 500_000,
            duration_ns,
        }
    }

    #[test]
    fn every_release_of_the_observed_tasks_is_answered() {
        let answer = question(10_000_000).answer().unwrap();
        let counts: Vec<_> = answer.samples.iter().map(Vec::len).collect();
        let intervals = |releases: usize| releases - 1 - WARM_UP;
        let (of_highest, of_lowest) = (intervals(10), intervals(20));
        assert_eq!(counts, [of_highest, of_highest, of_lowest, of_lowest]);
        assert!(!answer.scheduling.is_empty());
    }

    #[test]
    fn jitter_is_the_deviation_of_an_interval_and_lateness_that_of_a_release() {
        let of = task("highest", 100);
        let mut wakes: Vec<u64> = (0..WARM_UP as u64)
            .map(|index| 1_000 + index * 100)
            .collect();
        let next = 1_000 + WARM_UP as u64 * 100;
        wakes.extend([next + 7, next + 100 + 2, next + 200 + 12]);
        assert_eq!(
            of.jitter_and_lateness(1_000, &wakes),
            [vec![5, 10], vec![2, 12]]
        );
    }

    #[test]
    fn what_would_never_end_is_refused() {
        assert!(
            question(60_000_000_000)
                .answer()
                .unwrap_err()
                .contains("long")
        );
        let mut endless = question(1);
        endless.tasks[0].interval_ns = 0;
        assert!(endless.answer().unwrap_err().contains("never ends"));
        let mut many = question(1);
        many.tasks = vec![task("other", 1_000); TASKS_MAX + 1];
        assert!(many.answer().unwrap_err().contains("21 tasks"));
    }

    #[test]
    fn timers_begin_on_the_grid() {
        assert_eq!(first_multiple_after(1_001, 500), 1_500);
        assert_eq!(first_multiple_after(1_500, 500), 2_000);
    }
}
