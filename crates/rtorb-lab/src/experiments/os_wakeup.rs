//! `os/wakeup`: how late a periodic thread wakes, with and without load, and whether cyclictest says the same (P4 section 3).
//!
//! Our loop and cyclictest take turns in rounds of half a second: same CPU, priority and interval. First on a host that is
//! left in peace, with the CPU free to sleep and with the CPU kept awake; then the load is switched on.

use std::time::Duration;

use crate::error::LabError;
use crate::experiment::{Context, Effort, Experiment, Outcome, Parameters, Progress, is_complete};
use crate::processes::awake::Awake;
use crate::processes::load::{Load, RunningLoad};
use crate::processes::placement::Placement;
use crate::processes::probe::{self, Probe};
use crate::results::labels;
use cyclictest::Cyclictest;
use measured::{Condition, Measured, Tool};
pub use periodic_thread::Question;

mod cyclictest;
mod measured;
mod periodic_thread;

/// The experiment.
#[derive(Debug)]
pub struct OsWakeup;

impl Experiment for OsWakeup {
    fn name(&self) -> &'static str {
        "os/wakeup"
    }

    fn title(&self) -> &'static str {
        "How late a periodic thread wakes, with and without load, beside cyclictest"
    }

    fn reproduces(&self) -> &'static str {
        "P4 section 3 (cyclictest: maximum latency of the operating system)"
    }

    fn parameters(&self, effort: Effort) -> Parameters {
        let plan = Plan::of(effort);
        labels([
            ("rounds", plan.rounds.into()),
            ("samples_per_round", plan.samples.into()),
            ("samples_left_out_per_round", WARM_UP.into()),
            ("interval_us", INTERVAL_US.into()),
            ("clock", "CLOCK_MONOTONIC, absolute".into()),
            ("memory_locked", "where granted".into()),
            ("cpu_kept_awake", "in the series with cpu = awake".into()),
            ("effort", effort.name().into()),
        ])
    }

    fn varies_load(&self) -> bool {
        true
    }

    fn run(&self, context: &Context, progress: &mut dyn Progress) -> Result<Outcome, LabError> {
        let placement = context.launcher.placement;
        let plan = Plan::of(context.effort);
        let mut run = Run {
            context,
            plan,
            probe: Probe::start(&context.launcher, "wakeup probe")?,
            cyclictest: None,
            measured: Measured::default(),
            notes: Vec::new(),
        };
        let conditions = Condition::all(chosen_load(&context.load), placement.cpu.is_some());
        progress.begin(conditions.len() * plan.rounds);
        let complete = is_complete(run.all(&conditions, progress))?;
        Ok(Outcome {
            complete,
            notes: [IDLE.to_owned()].into_iter().chain(run.notes).collect(),
            ..run.measured.outcome()
        })
    }
}

/// How much is measured.
#[derive(Clone, Copy, Debug)]
struct Plan {
    rounds: usize,
    /// Of each tool, in each round of each condition.
    samples: usize,
}

impl Plan {
    fn of(effort: Effort) -> Self {
        let (rounds, samples) = match effort {
            Effort::Glance | Effort::Emulated { .. } => (1, 60),
            Effort::Quick => (4, 400),
            // 100,000 of each that are kept.
            Effort::Full => (210, 500),
        };
        Self { rounds, samples }
    }
}

/// A run in hand.
struct Run<'a> {
    context: &'a Context,
    plan: Plan,
    probe: Probe,
    cyclictest: Option<Cyclictest>,
    measured: Measured,
    notes: Vec<String>,
}

impl Run<'_> {
    fn all(
        &mut self,
        conditions: &[Condition],
        progress: &mut dyn Progress,
    ) -> Result<(), LabError> {
        self.find_cyclictest()?;
        let mut load = RunningLoad::default();
        for condition in conditions {
            if !condition.load.is_none() {
                load = match condition.load.start(self.context) {
                    Ok(load) => load,
                    Err(LabError::Interrupted) => return Err(LabError::Interrupted),
                    Err(error) => {
                        self.notes
                            .push(format!("With load, nothing was measured: {error}"));
                        continue;
                    }
                };
                self.notes
                    .push(format!("The load was made by {}.", load.generator()));
            }
            for round in 0..self.plan.rounds {
                self.round(condition, round)?;
                if let Err(error) = load.check() {
                    self.measured.forget(condition);
                    self.notes
                        .push(format!("With load, nothing was measured: {error}"));
                    break;
                }
                progress.step(&format!(
                    "{condition}, round {} of {}",
                    round + 1,
                    self.plan.rounds
                ));
            }
        }
        Ok(())
    }

    /// One that is refused its priority would not measure the same: it is left out.
    fn find_cyclictest(&mut self) -> Result<(), LabError> {
        let launcher = &self.context.launcher;
        if launcher.placement.fifo.is_none() {
            self.notes.push(NEEDS_FIFO.to_owned());
            return Ok(());
        }
        let found = Cyclictest::find(launcher.placement, INTERVAL_US, &launcher.interrupt)?;
        self.notes.push(match &found {
            Some(cyclictest) => {
                format!("Beside ours: {}.", cyclictest.described(self.plan.samples))
            }
            None => NOT_INSTALLED.to_owned(),
        });
        self.cyclictest = found;
        Ok(())
    }

    /// Each tool is the first in every other round, so that neither gains by its place.
    fn round(&mut self, condition: &Condition, round: usize) -> Result<(), LabError> {
        let placement = self.context.launcher.placement;
        let awake = condition
            .awake
            .then(|| Awake::keep(placement.cpu, ROUND_MAX));
        if awake.as_ref().is_some_and(|awake| !awake.is_kept()) {
            return Err(LabError::process(
                "os/wakeup",
                "the CPU cannot be kept awake: no thread of SCHED_IDLE is granted",
            ));
        }
        let tools = match round % 2 {
            0 => [Tool::Rtorb, Tool::Cyclictest],
            _ => [Tool::Cyclictest, Tool::Rtorb],
        };
        for tool in tools {
            match tool {
                Tool::Rtorb => self.ours(condition, placement)?,
                Tool::Cyclictest => self.theirs(condition)?,
            }
        }
        Ok(())
    }

    fn ours(&mut self, condition: &Condition, placement: Placement) -> Result<(), LabError> {
        let question = Question {
            placement,
            interval_ns: INTERVAL_US * 1_000,
            samples: self.plan.samples,
        };
        let within = Duration::from_nanos(question.interval_ns * question.samples as u64);
        let mut answer = self.probe.ask(&probe::Question::Wakeup(question), within)?;
        if let Some(cyclictest) = &mut self.cyclictest {
            cyclictest.lock_memory(answer.memory_locked);
        }
        self.measured.saw(Tool::Rtorb, answer.scheduling);
        let late_ns = answer.samples.pop().unwrap_or_default();
        self.measured.add(Tool::Rtorb, condition, kept(&late_ns));
        Ok(())
    }

    fn theirs(&mut self, condition: &Condition) -> Result<(), LabError> {
        let Some(cyclictest) = &self.cyclictest else {
            return Ok(());
        };
        let run = cyclictest.run(&self.context.launcher, self.plan.samples)?;
        self.measured
            .saw(Tool::Cyclictest, run.scheduling.into_iter().collect());
        self.measured
            .add(Tool::Cyclictest, condition, kept(&run.late_ns));
        Ok(())
    }
}

/// What the user chose, or all kinds together, as P4 has them.
fn chosen_load(load: &Load) -> Load {
    match load.is_none() {
        true => Load::mix(),
        false => load.clone(),
    }
}

/// Without the first ones, in which caches are cold and the threads are still being looked at.
fn kept(late_ns: &[u64]) -> &[u64] {
    late_ns.get(WARM_UP..).unwrap_or_default()
}

/// cyclictest's default.
const INTERVAL_US: u64 = 1_000;
const WARM_UP: usize = 20;
/// Two runs of half a second, and what a busy host may take to start them.
const ROUND_MAX: Duration = Duration::from_secs(60);

const IDLE: &str = "`cpu` = `idle`: nothing else runs there, and between two wake-ups the CPU goes idle; no deeper than into the state that \
                    /dev/cpu_dma_latency = 0 leaves it, where the laboratory may hold that. What a hypervisor does with an idle CPU \
                    it does not govern. Neither loop is given a first wake-up that differs from the others: both sleep until an \
                    absolute moment from the first one on, leave out moments that have passed, and lose as many samples at the \
                    beginning.";
const NEEDS_FIFO: &str = "Without SCHED_FIFO, cyclictest refuses to run: it was left out, and our loop ran as it could. \
                          `rtorb check` says how to get it.";
const NOT_INSTALLED: &str = "cyclictest is not installed (Debian: rt-tests): it was left out.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_run_keeps_a_hundred_thousand_samples_of_each() {
        let plan = Plan::of(Effort::Full);
        assert!(plan.rounds * (plan.samples - WARM_UP) >= 100_000);
        assert_eq!(kept(&[7; 21]), [7]);
        assert!(kept(&[7; 3]).is_empty());
    }

    #[test]
    fn there_is_always_a_load_to_compare_with() {
        assert_eq!(chosen_load(&Load::none()), Load::mix());
        assert_eq!(chosen_load(&"hog".parse().unwrap()).to_string(), "hog");
    }
}
