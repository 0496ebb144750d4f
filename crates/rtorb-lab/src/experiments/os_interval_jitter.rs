//! `os/interval-jitter`: how far the intervals of periodic tasks deviate from their length, by number of timers, pattern of
//! intervals and priority (P3 section 4.2, Table 3, Figures 6 to 13).
//!
//! All tasks run on one CPU, each a thread with one timer and a priority of its own. The timers begin together, on a multiple of
//! the clock resolution, and every interval is a multiple of it: so they expire together, as those of a kernel that looks at
//! its timers once a tick. The jitter of an interval is |actual - nominal| length, measured by the task when it wakes.

use std::time::Duration;

use rtorb_results::labels;

use crate::error::LabError;
use crate::experiment::{Context, Effort, Experiment, Outcome, Parameters, Progress, is_complete};
use crate::processes::computation::Computation;
use crate::processes::probe::{Probe, Question};
use measured::Measured;
use plan::{Configuration, Pattern};

mod conclusions;
mod measured;
mod plan;
pub mod probe;

/// The experiment.
#[derive(Debug)]
pub struct OsIntervalJitter;

impl Experiment for OsIntervalJitter {
    fn name(&self) -> &'static str {
        "os/interval-jitter"
    }

    fn title(&self) -> &'static str {
        "How far the intervals of periodic tasks deviate: by number of timers, pattern and priority"
    }

    fn reproduces(&self) -> &'static str {
        "P3 Table 3, Figures 6 to 13"
    }

    fn parameters(&self, effort: Effort) -> Parameters {
        let plan = Plan::of(effort);
        let timers: Vec<String> = plan.timers.iter().map(usize::to_string).collect();
        let resolutions: Vec<String> = plan.resolutions_us.iter().map(u64::to_string).collect();
        labels([
            ("rounds", plan.rounds.into()),
            ("releases_per_round", plan.releases.into()),
            (
                "alone_ms_per_round_max",
                (plan.alone_ns_max / 1_000_000).into(),
            ),
            ("timers", timers.join(", ").into()),
            ("resolutions_us", resolutions.join(", ").into()),
            ("intervals_harmonic", "2, 4, 8, 16 resolutions".into()),
            ("intervals_non_harmonic", "2, 5, 7, 9 resolutions".into()),
            ("interval_of_observed", INTERVAL_OF_OBSERVED.into()),
            (
                "timers_begin",
                "together, on a multiple of the resolution".into(),
            ),
            ("work_us", (WORK.as_micros() as u64).into()),
            ("warm_up_intervals", probe::WARM_UP.into()),
            (
                "priority_highest",
                u32::from(probe::HIGHEST_PRIORITY).into(),
            ),
            ("cpu_kept_awake", effort.seeds().is_none().into()),
            ("effort", effort.name().into()),
        ])
    }

    fn run(&self, context: &Context, progress: &mut dyn Progress) -> Result<Outcome, LabError> {
        let mut measured = Measured::default();
        let plan = Plan::of(context.effort);
        let complete = is_complete(measure(context, &plan, &mut measured, progress))?;
        Ok(measured.outcome(complete))
    }
}

/// Every round has all configurations once, so that none has the quiet hour of the host for itself.
fn measure(
    context: &Context,
    plan: &Plan,
    measured: &mut Measured,
    progress: &mut dyn Progress,
) -> Result<(), LabError> {
    let configurations = plan.configurations();
    progress.begin(plan.rounds * configurations.len() + 1);
    let mut asked = Probe::start(&context.launcher, "interval-jitter")?;
    let work = asked.calibrate(WORK)?;
    progress.step("the tasks' work is calibrated");
    for round in 0..plan.rounds {
        context.begin_round(round);
        for configuration in &configurations {
            if context.interrupted() {
                return Err(LabError::Interrupted);
            }
            let question = plan.question(context, *configuration, work);
            let within = Duration::from_nanos(question.duration_ns);
            let answer = asked.ask(&Question::IntervalJitter(question), within)?;
            measured.add(*configuration, answer);
            progress.step(&format!(
                "round {} of {}: {} timers, {}",
                round + 1,
                plan.rounds,
                configuration.timers,
                configuration.pattern.label().replace('_', "-"),
            ));
        }
    }
    Ok(())
}

/// How much is measured.
#[derive(Clone, Debug)]
struct Plan {
    rounds: usize,
    resolutions_us: &'static [u64],
    timers: &'static [usize],
    /// Of a task with the shortest interval, in a round.
    releases: u64,
    /// Intervals of a task alone, in resolutions.
    alone: &'static [u64],
    /// How long one with a long interval runs in a round.
    alone_ns_max: u64,
}

impl Plan {
    fn of(effort: Effort) -> Self {
        match effort {
            Effort::Emulated { seeds } => Self {
                rounds: usize::from(seeds),
                resolutions_us: &[500],
                timers: &[1, 5, 10],
                releases: 40,
                alone: &[1, 4],
                alone_ns_max: 60_000_000,
            },
            Effort::Glance => Self {
                rounds: 1,
                resolutions_us: &[500],
                timers: &[1, 2, 5],
                releases: 20,
                alone: &[1, 4],
                alone_ns_max: 20_000_000,
            },
            Effort::Quick => Self {
                rounds: 3,
                resolutions_us: &[500, 1_000],
                timers: &[1, 2, 5, 10, 20],
                releases: 100,
                alone: &[1, 4, 16],
                alone_ns_max: 150_000_000,
            },
            // 10,000 samples of each observed task; of long intervals what a second a round has room for.
            Effort::Full => Self {
                rounds: 21,
                resolutions_us: &[500, 1_000],
                timers: &[1, 2, 5, 10, 15, 20],
                releases: 500,
                alone: &[1, 2, 4, 8, 16, 32],
                alone_ns_max: 1_000_000_000,
            },
        }
    }

    fn configurations(&self) -> Vec<Configuration> {
        let mut all = Vec::new();
        for &resolution_us in self.resolutions_us {
            for &timers in self.timers {
                all.extend(Pattern::TOGETHER.map(|pattern| Configuration {
                    pattern,
                    resolution_us,
                    timers,
                }));
            }
            all.extend(self.alone.iter().map(|multiple| Configuration {
                pattern: Pattern::Alone(*multiple),
                resolution_us,
                timers: 1,
            }));
        }
        all
    }

    fn question(
        &self,
        context: &Context,
        configuration: Configuration,
        work: Computation,
    ) -> probe::Question {
        let duration_ns = self.releases * configuration.shortest_interval_ns();
        probe::Question {
            tasks: configuration.tasks(),
            work,
            cpu: context.launcher.placement.cpu,
            real_time: context.launcher.placement.fifo.is_some(),
            resolution_ns: configuration.resolution_us * 1_000,
            duration_ns: match configuration.pattern {
                Pattern::Alone(_) => duration_ns.min(self.alone_ns_max),
                Pattern::Harmonic | Pattern::NonHarmonic => duration_ns,
            },
        }
    }
}

/// What a small control task computes at each release.
const WORK: Duration = Duration::from_micros(20);

const INTERVAL_OF_OBSERVED: &str = "2 resolutions, so that the observed tasks differ in priority alone; of two tasks, the more \
                                    urgent one has 4 (harmonic) or 5 (non-harmonic)";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_paper_has_its_factors_and_samples() {
        let plan = Plan::of(Effort::Full);
        assert_eq!(plan.timers, [1, 2, 5, 10, 15, 20]);
        assert_eq!(plan.resolutions_us, [500, 1_000]);
        let lost = 1 + probe::WARM_UP as u64;
        assert!(plan.rounds as u64 * (plan.releases - lost) >= 10_000);
    }

    #[test]
    fn nobody_waits_long_for_the_next_step() {
        for effort in [
            Effort::Glance,
            Effort::Quick,
            Effort::Full,
            Effort::Emulated { seeds: 4 },
        ] {
            let plan = Plan::of(effort);
            for configuration in plan.configurations() {
                let together_ns = plan.releases * configuration.shortest_interval_ns();
                let is_alone = matches!(configuration.pattern, Pattern::Alone(_));
                assert!(is_alone || together_ns <= 1_000_000_000);
            }
            assert!(plan.alone_ns_max <= 1_000_000_000);
        }
    }

    #[test]
    fn a_quick_run_takes_less_than_its_share() {
        let of_plan = |plan: &Plan| {
            let of = |configuration: &Configuration| {
                let ns = plan.releases * configuration.shortest_interval_ns();
                match configuration.pattern {
                    Pattern::Alone(_) => ns.min(plan.alone_ns_max),
                    Pattern::Harmonic | Pattern::NonHarmonic => ns,
                }
            };
            let ns: u64 = plan.configurations().iter().map(of).sum();
            plan.rounds as u64 * ns
        };
        assert!(of_plan(&Plan::of(Effort::Quick)) < 13_000_000_000);
        assert!(of_plan(&Plan::of(Effort::Emulated { seeds: 4 })) < 1_500_000_000);
    }
}
