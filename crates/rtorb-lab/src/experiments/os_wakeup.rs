//! `os/wakeup`: how late a periodic thread wakes, with and without load, and whether cyclictest says the same (P4 section 3).
//!
//! Our loop and cyclictest take turns in rounds of half a second: same CPU, priority and interval. First on a host that is
//! left in peace, with the CPU free to sleep and with the CPU kept awake; then the load is switched on.
//!
//! An emulated machine has our loop alone, under the one load that it was booted for. There a moment is as good as another one
//! only if it is drawn: load and tick keep their places from boot to boot, and a fixed period would meet them at the same ones.

use std::time::Duration;

use rtorb_host::placement::Placement;
use rtorb_results::labels;

use crate::error::LabError;
use crate::experiment::{Context, Effort, Experiment, Outcome, Parameters, Progress, is_complete};
use crate::processes::awake::Awake;
use crate::processes::load::{Load, RunningLoad};
use crate::processes::probe::{self, Probe};
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
        let mut parameters = labels([
            ("rounds", plan.rounds.into()),
            ("samples_per_round", plan.samples.into()),
            ("samples_left_out_per_round", plan.left_out().into()),
            ("interval_us", plan.interval_us.into()),
            ("clock", "CLOCK_MONOTONIC, absolute".into()),
            ("memory_locked", "where granted".into()),
            ("effort", effort.name().into()),
        ]);
        let others = match effort {
            Effort::Emulated { .. } => labels([
                ("priority", u32::from(PRIORITY_EMULATED).into()),
                ("moments", DRAWN.into()),
            ]),
            Effort::Glance | Effort::Quick | Effort::Full => {
                labels([("cpu_kept_awake", "in the series with cpu = awake".into())])
            }
        };
        parameters.extend(others);
        parameters
    }

    fn varies_load(&self) -> bool {
        true
    }

    fn run(&self, context: &Context, progress: &mut dyn Progress) -> Result<Outcome, LabError> {
        let plan = Plan::of(context.effort);
        let mut run = Run {
            context,
            plan,
            placement: placement(context),
            probe: Probe::start(&context.launcher, "wakeup probe")?,
            cyclictest: None,
            measured: Measured::default(),
            notes: Vec::new(),
        };
        let conditions = conditions(context);
        progress.begin(conditions.len() * plan.rounds);
        let complete = is_complete(run.all(&conditions, progress))?;
        Ok(Outcome {
            complete,
            notes: run.notes,
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
    /// From one sample to the next.
    interval_us: u64,
    /// How many of the last samples of a round are not kept.
    end: usize,
}

impl Plan {
    fn of(effort: Effort) -> Self {
        let with = |rounds, samples| Self {
            rounds,
            samples,
            interval_us: INTERVAL_US,
            end: 0,
        };
        match effort {
            Effort::Glance => with(1, 60),
            Effort::Quick => with(4, 400),
            // 100,000 of each that are kept.
            Effort::Full => with(210, 500),
            // In the last one, the end of a thread may be.
            Effort::Emulated { seeds } => Self {
                rounds: usize::from(seeds),
                samples: WARM_UP + SAMPLES_EMULATED + 1,
                interval_us: INTERVAL_US_EMULATED,
                end: 1,
            },
        }
    }

    fn left_out(&self) -> usize {
        WARM_UP + self.end
    }

    /// Without the first ones, in which caches are cold and the threads are still being looked at.
    fn kept<'a>(&self, late_ns: &'a [u64]) -> &'a [u64] {
        let end = late_ns.len().saturating_sub(self.end);
        late_ns.get(WARM_UP..end).unwrap_or_default()
    }
}

/// A run in hand.
struct Run<'a> {
    context: &'a Context,
    plan: Plan,
    placement: Placement,
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
        if self.context.effort.seeds().is_none() {
            self.notes.push(IDLE.to_owned());
            self.find_cyclictest()?;
        }
        let mut load = RunningLoad::default();
        for condition in conditions {
            let sets_load = self.context.effort.seeds().is_none();
            if sets_load && !condition.load.is_none() {
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
        self.context.begin_round(round);
        let awake = condition
            .awake
            .then(|| Awake::keep(self.placement.cpu, ROUND_MAX));
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
                Tool::Rtorb => self.ours(condition, round)?,
                Tool::Cyclictest => self.theirs(condition)?,
            }
        }
        Ok(())
    }

    fn ours(&mut self, condition: &Condition, round: usize) -> Result<(), LabError> {
        let question = Question {
            placement: self.placement,
            interval_ns: self.plan.interval_us * 1_000,
            samples: self.plan.samples,
            seed: self.context.seed(round),
        };
        let within = Duration::from_nanos(question.interval_ns * question.samples as u64);
        let mut answer = self.probe.ask(&probe::Question::Wakeup(question), within)?;
        if let Some(cyclictest) = &mut self.cyclictest {
            cyclictest.lock_memory(answer.memory_locked);
        }
        self.measured.saw(Tool::Rtorb, answer.scheduling);
        let late_ns = answer.samples.pop().unwrap_or_default();
        let kept = self.plan.kept(&late_ns);
        self.measured.add(Tool::Rtorb, condition, kept);
        let marked = self.context.add_marks(answer.marks);
        if self.context.seed(round).is_some() {
            let first = marked + WARM_UP as u64 + 1;
            self.measured.mark(condition, first, kept);
        }
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
            .add(Tool::Cyclictest, condition, self.plan.kept(&run.late_ns));
        Ok(())
    }
}

/// In an emulated machine the one that it was booted for.
fn conditions(context: &Context) -> Vec<Condition> {
    match context.effort {
        Effort::Emulated { .. } => vec![Condition {
            load: context.load.clone(),
            awake: false,
        }],
        Effort::Glance | Effort::Quick | Effort::Full => Condition::all(
            chosen_load(&context.load),
            context.launcher.placement.cpu.is_some(),
        ),
    }
}

fn placement(context: &Context) -> Placement {
    let placement = context.launcher.placement;
    match context.effort {
        Effort::Emulated { .. } => Placement {
            fifo: placement.fifo.map(|_| PRIORITY_EMULATED),
            ..placement
        },
        Effort::Glance | Effort::Quick | Effort::Full => placement,
    }
}

/// What the user chose, or all kinds together, as P4 has them.
fn chosen_load(load: &Load) -> Load {
    if load.is_none() {
        Load::mix()
    } else {
        load.clone()
    }
}

/// cyclictest's default.
const INTERVAL_US: u64 = 1_000;
const WARM_UP: usize = 20;
/// That are kept, of each seed: with fewer, the largest of a seed says little of the kernel.
const SAMPLES_EMULATED: usize = 2_000;
/// As long as few of a kernel's paths are; a longer one adds nothing but time in which nobody looks.
const INTERVAL_US_EMULATED: u64 = 200;
/// Above the threads in which PREEMPT_RT handles interrupts, which have 50: what they do is not urgent to this thread.
const PRIORITY_EMULATED: u8 = 90;
const DRAWN: &str =
    "each from the seed of its round, evenly between 0.5 and 1.5 intervals after the last wake-up";
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
    use crate::processes::interrupt::Interrupt;

    #[test]
    fn a_full_run_keeps_a_hundred_thousand_samples_of_each() {
        let plan = Plan::of(Effort::Full);
        assert!(plan.rounds * (plan.samples - WARM_UP) >= 100_000);
        assert_eq!(plan.kept(&[7; 21]), [7]);
        assert!(plan.kept(&[7; 3]).is_empty());
    }

    #[test]
    fn an_emulated_machine_has_a_round_a_seed_of_two_thousand_samples() {
        let plan = Plan::of(Effort::Emulated { seeds: 4 });
        assert_eq!(plan.rounds, 4);
        let mut late_ns = vec![7; plan.samples];
        late_ns[WARM_UP - 1] = 9;
        *late_ns.last_mut().unwrap() = 9;
        assert_eq!(plan.kept(&late_ns), [7; 2_000]);
        assert!(plan.kept(&[7; WARM_UP]).is_empty());
        // Of virtual time, which is most of what a boot costs.
        let busy_us = plan.rounds as u64 * plan.samples as u64 * plan.interval_us;
        assert!(busy_us < 2_100_000, "{busy_us}");
    }

    #[test]
    fn an_emulated_machine_has_the_load_that_it_was_booted_for() {
        for load in ["none", "hog"] {
            let effort = Effort::Emulated { seeds: 1 };
            let mut context = Context::new(effort, "/bin/false".into(), Interrupt::new()).unwrap();
            context.load = load.parse().unwrap();
            let conditions = conditions(&context);
            assert_eq!(conditions.len(), 1);
            assert_eq!(conditions[0].load, context.load);
            let fifo = context.launcher.placement.fifo;
            assert_eq!(placement(&context).fifo, fifo.map(|_| 90));
        }
    }

    #[test]
    fn there_is_always_a_load_to_compare_with() {
        assert_eq!(chosen_load(&Load::none()), Load::mix());
        assert_eq!(chosen_load(&"hog".parse().unwrap()).to_string(), "hog");
    }
}
