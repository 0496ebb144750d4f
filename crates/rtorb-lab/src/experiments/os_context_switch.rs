//! `os/context-switch`: how long the operating system takes to stop one thread and go on with another, in the three ways of P0
//! and P2, on one CPU.
//!
//! Each run asks a probe of its own, which takes the tests in turns. A run's figure is the median of its rounds' medians;
//! how far the figures of the runs are apart says what any of them is worth.

use std::time::Duration;

use rtorb_results::{PublishedRow, labels};

use crate::error::LabError;
use crate::experiment::{Context, Effort, Experiment, Outcome, Parameters, Progress, is_complete};
use crate::processes::probe::{Probe, Question as ProbeQuestion};
use measured::Measured;
use probe::{HIGH, LOW, Question, Test, WARM_UP, YIELDS};

mod measured;
pub mod probe;
pub(super) mod published;

/// The experiment.
#[derive(Debug)]
pub struct OsContextSwitch;

impl Experiment for OsContextSwitch {
    fn name(&self) -> &'static str {
        "os/context-switch"
    }

    fn title(&self) -> &'static str {
        "How long the operating system takes to stop one thread and go on with another, on one CPU"
    }

    fn reproduces(&self) -> &'static str {
        "P0 Table 1, P2 Table 1 (context switch overhead)"
    }

    fn parameters(&self, effort: Effort) -> Parameters {
        let plan = Plan::of(effort);
        labels([
            ("runs", plan.runs.into()),
            ("rounds", plan.rounds.into()),
            ("samples_per_round", plan.samples.into()),
            ("warm_up", WARM_UP.into()),
            ("yields_per_sample", (2 * YIELDS).into()),
            ("priority_low", u32::from(LOW).into()),
            ("priority_high", u32::from(HIGH).into()),
            ("process", "each run has one of its own".into()),
            (
                "suspend_resume",
                "futex(2), since Linux suspends no single thread".into(),
            ),
            ("effort", effort.name().into()),
        ])
    }

    fn run(&self, context: &Context, progress: &mut dyn Progress) -> Result<Outcome, LabError> {
        let plan = Plan::of(context.effort);
        progress.begin(plan.runs * plan.rounds);
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
    for run in 0..plan.runs {
        let mut probe = Probe::start(&context.launcher, "os/context-switch")?;
        context.begin_round(run);
        for round in 0..plan.rounds {
            for test in Test::ALL {
                let question = Question {
                    test,
                    samples: plan.samples,
                    fifo: context.launcher.placement.fifo.is_some(),
                };
                let answer = probe.ask(&ProbeQuestion::ContextSwitch(question), WITHIN)?;
                context.add_marks(answer.marks);
                measured.add(run, test, &answer);
                std::thread::sleep(PAUSE);
            }
            progress.step(&format!(
                "run {} of {}, round {} of {}",
                run + 1,
                plan.runs,
                round + 1,
                plan.rounds
            ));
        }
    }
    Ok(())
}

/// How much to measure.
/// The rows of P0 Table 1 and P2 Table 1, for a table whose columns are the tests.
#[must_use]
pub fn published_rows() -> Vec<PublishedRow> {
    let column = |test| labels([("test", measured::label(test).into())]);
    let tables = [&published::P0, &published::P2].into_iter();
    tables.flat_map(|table| table.rows(column)).collect()
}

#[derive(Clone, Copy, Debug)]
struct Plan {
    runs: usize,
    /// Of each run.
    rounds: usize,
    /// Of each test in a round.
    samples: usize,
}

impl Plan {
    fn of(effort: Effort) -> Self {
        let (runs, rounds, samples) = match effort {
            Effort::Glance => (2, 1, 50),
            // A seed is a run of one round: how far they are apart is what a seed changes.
            Effort::Emulated { seeds } => (usize::from(seeds), 1, 100),
            Effort::Quick => (measured::RUNS_JUDGED, 15, 400),
            Effort::Full => (measured::RUNS_JUDGED, 25, 1_000),
        };
        Self {
            runs,
            rounds,
            samples,
        }
    }
}

/// A question takes a second at most.
const WITHIN: Duration = Duration::from_secs(1);
/// Leaves the CPU to others between questions, so that real-time throttling never has a reason.
const PAUSE: Duration = Duration::from_millis(2);
