//! `os/ready-queue`: whether the switch from one task to another takes longer when more tasks are ready, and when the clock is
//! finer (P3 section 4.2, Tables 4 and 5).
//!
//! Configurations take turns within a round, and each round asks a probe of its own, so that a drift of the machine is in all
//! of them alike.

use std::time::Duration;

use crate::error::LabError;
use crate::experiment::{Context, Effort, Experiment, Outcome, Parameters, Progress, is_complete};
use crate::processes::awake::Awake;
use crate::processes::probe::{Probe, Question as ProbeQuestion};
use crate::results::labels;
use measured::{Configuration, Measured};
use probe::{CLOCK, INTERFERENCE, PERIOD_NS, Question, TASK_1, TASK_1_WORK_NS, TASK_2, WARM_UP};

mod measured;
pub mod probe;

/// The experiment.
#[derive(Debug)]
pub struct OsReadyQueue;

impl Experiment for OsReadyQueue {
    fn name(&self) -> &'static str {
        "os/ready-queue"
    }

    fn title(&self) -> &'static str {
        "How long the switch from one task to a more urgent one takes while others are ready"
    }

    fn reproduces(&self) -> &'static str {
        "P3 Tables 4 and 5, Figures 14 to 16, section 5.3 (context switch against ready tasks and clock resolution)"
    }

    fn parameters(&self, effort: Effort) -> Parameters {
        let plan = Plan::of(effort);
        labels([
            ("rounds", plan.rounds.into()),
            ("samples_per_round", plan.periods.into()),
            ("warm_up", WARM_UP.into()),
            ("ready_tasks", "2, 5, 10, 15, 20".into()),
            ("resolution_us", "500, 1000".into()),
            ("period_us", (PERIOD_NS / 1_000).into()),
            ("task_1_work_us", (TASK_1_WORK_NS / 1_000).into()),
            ("interference_work_us", 0u32.into()),
            ("priority_clock", u32::from(CLOCK).into()),
            ("priority_task_1", u32::from(TASK_1).into()),
            ("priority_task_2", u32::from(TASK_2).into()),
            ("priority_interference", u32::from(INTERFERENCE).into()),
            ("clock", THE_CLOCK.into()),
            ("cpu_kept_awake", effort.seeds().is_none().into()),
            ("effort", effort.name().into()),
        ])
    }

    fn run(&self, context: &Context, progress: &mut dyn Progress) -> Result<Outcome, LabError> {
        if context.launcher.placement.fifo.is_none() {
            return Ok(Outcome {
                complete: true,
                notes: vec![NEEDS_FIFO.to_owned()],
                ..Outcome::default()
            });
        }
        let plan = Plan::of(context.effort);
        progress.begin(plan.rounds * Configuration::all().count());
        let mut measured = Measured::default();
        let done = measure(context, plan, &mut measured, progress);
        Ok(Outcome {
            complete: is_complete(done)?,
            ..measured.outcome()
        })
    }
}

fn measure(
    context: &Context,
    plan: Plan,
    measured: &mut Measured,
    progress: &mut dyn Progress,
) -> Result<(), LabError> {
    let within = Duration::from_nanos(PERIOD_NS * u64::from(plan.periods + WARM_UP));
    // One for all: where others want the CPU too, it takes long to end.
    let _awake = Awake::keep(context.launcher.placement.cpu, AWAKE_AT_MOST);
    for round in 0..plan.rounds {
        context.begin_round(round);
        let mut probe = Probe::start(&context.launcher, "os/ready-queue")?;
        for configuration in Configuration::all() {
            let question = Question {
                tasks: configuration.tasks,
                resolution_us: configuration.resolution_us,
                periods: plan.periods,
            };
            let answer = probe.ask(&ProbeQuestion::ReadyQueue(question), within)?;
            measured.add(round, configuration, &answer);
            progress.step(&format!(
                "{} tasks, {} us resolution, round {} of {}",
                configuration.tasks,
                configuration.resolution_us,
                round + 1,
                plan.rounds
            ));
        }
    }
    Ok(())
}

/// How much to measure.
#[derive(Clone, Copy, Debug)]
struct Plan {
    rounds: usize,
    /// Of each configuration in a round.
    periods: u32,
}

impl Plan {
    fn of(effort: Effort) -> Self {
        let (rounds, periods) = match effort {
            Effort::Glance => (1, 20),
            Effort::Emulated { seeds } => (usize::from(seeds), 30),
            Effort::Quick => (7, 60),
            Effort::Full => (20, 500),
        };
        Self { rounds, periods }
    }
}

const THE_CLOCK: &str = "the most urgent thread on the same CPU sleeps until each tick (clock_nanosleep, absolute) and at every \
                         whole period makes task 1 and all interference tasks ready at once (futex)";
/// Far longer than a full run takes.
const AWAKE_AT_MOST: Duration = Duration::from_secs(1_000);
const NEEDS_FIFO: &str = "Nothing was measured: without SCHED_FIFO there are no priorities, and no tasks that stay in the ready \
                          queue because a more urgent one runs. `rtorb check` says how to get it.";
