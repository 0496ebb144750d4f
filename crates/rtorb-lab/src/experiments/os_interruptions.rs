//! `os/interruptions`: what the kernel's tick, other interrupts, the firmware and a hypervisor take from the most urgent thread of a
//! CPU, and what the interrupt takes that releases a less urgent one.
//!
//! The thread reads the clock without pause. Where that took long and no other thread ran, the CPU was taken by something that no
//! priority stands against: in a response-time analysis, interference of the highest priority. Half of the rounds are so; in the
//! others less urgent threads sleep until moments that are known, whose interrupts are found by them.

use std::time::Duration;

use rtorb_host::description::{kernel_tick_hz, stolen_ms};
use rtorb_results::labels;

use crate::error::LabError;
use crate::experiment::{Context, Effort, Experiment, Outcome, Parameters, Progress, is_complete};
use crate::processes::probe::{Probe, Question as ProbeQuestion};
use measured::{Measured, Surroundings};
use probe::{Question, Seen};

mod conclusions;
mod kinds;
mod measured;
pub mod probe;
mod ticks;

/// The experiment.
#[derive(Debug)]
pub struct OsInterruptions;

impl Experiment for OsInterruptions {
    fn name(&self) -> &'static str {
        "os/interruptions"
    }

    fn title(&self) -> &'static str {
        "What ticks, other interrupts, firmware and a hypervisor take from the most urgent thread of a CPU"
    }

    fn reproduces(&self) -> &'static str {
        "P3 section 4.2 (the tick as a task of the highest priority), seen by whom it interrupts"
    }

    fn parameters(&self, effort: Effort) -> Parameters {
        let plan = Plan::of(effort);
        labels([
            ("rounds", plan.rounds.into()),
            ("round_ms", (plan.round_ns / 1_000_000).into()),
            ("rounds_are", ROUNDS_ARE.into()),
            ("releases_per_round", RELEASES.into()),
            ("gap_ns_min", STEP_NS_MAX.into()),
            ("rest_ms", (REST.as_millis() as u64).into()),
            (
                "rest_ms_under_load",
                plan.round_ns.div_euclid(1_000_000).into(),
            ),
            ("clock", "CLOCK_MONOTONIC, read without pause".into()),
            (
                "switches",
                "getrusage(2), RUSAGE_THREAD, after each gap".into(),
            ),
            ("effort", effort.name().into()),
        ])
    }

    fn run(&self, context: &Context, progress: &mut dyn Progress) -> Result<Outcome, LabError> {
        let plan = Plan::of(context.effort);
        progress.begin(plan.rounds);
        let cpu = context.launcher.placement.cpu;
        let stolen_before_ms = stolen_ms(cpu);
        let mut measured = Measured::default();
        let complete = is_complete(measure(context, plan, &mut measured, progress))?;
        let stolen = stolen_ms(cpu).zip(stolen_before_ms);
        let surroundings = Surroundings {
            // An emulated machine is one whose time stands still while it does not run.
            virtual_machine: context.effort.seeds().is_none() && context.host.is_virtual_machine(),
            tick_hz: kernel_tick_hz(&context.host.kernel_release),
            stolen_ms: stolen.map(|(after, before)| after.saturating_sub(before)),
        };
        Ok(Outcome {
            complete,
            ..measured.outcome(&surroundings)
        })
    }
}

fn measure(
    context: &Context,
    plan: Plan,
    measured: &mut Measured,
    progress: &mut dyn Progress,
) -> Result<(), LabError> {
    let rest = match context.load.is_none() {
        true => REST,
        // What the load does must be done between rounds: while one lasts, nothing else runs here.
        false => Duration::from_nanos(plan.round_ns),
    };
    let mut probe = Probe::start(&context.launcher, "os/interruptions")?;
    for round in 0..plan.rounds {
        if context.interrupted() {
            return Err(LabError::Interrupted);
        }
        context.begin_round(round);
        let with_releases = round % 2 == 1;
        let question = Question {
            fifo: context.launcher.placement.fifo,
            length_ns: plan.round_ns,
            step_ns_max: STEP_NS_MAX,
            releases: if with_releases { RELEASES } else { 0 },
            seed: context.seed(round).unwrap_or(round as u64 + 1),
        };
        let answer = probe.ask(&ProbeQuestion::Interruptions(question), WITHIN)?;
        context.add_marks(answer.marks);
        let seen = Seen::of(&answer).ok_or_else(|| {
            LabError::process("os/interruptions", "the probe did not say what it saw")
        })?;
        measured.add(seen, with_releases, &answer.scheduling);
        progress.step(&format!("round {} of {}", round + 1, plan.rounds));
        std::thread::sleep(rest);
    }
    Ok(())
}

/// How much to measure.
#[derive(Clone, Copy, Debug)]
struct Plan {
    /// The first, third, ... without releases, the others with.
    rounds: usize,
    round_ns: u64,
}

impl Plan {
    fn of(effort: Effort) -> Self {
        let (rounds, round_ns) = match effort {
            Effort::Glance => (2, 50_000_000),
            // A seed is a round of each kind; the emulator executes every reading of the clock.
            Effort::Emulated { seeds } => (2 * usize::from(seeds), 20_000_000),
            Effort::Quick => (30, 100_000_000),
            Effort::Full => (600, 100_000_000),
        };
        Self { rounds, round_ns }
    }
}

const ROUNDS_ARE: &str =
    "in turns: without anything else, and with less urgent threads whose sleeps end meanwhile";
/// One each 4 to 7 ms of a round: few fall on a tick.
const RELEASES: u32 = 16;
/// Some ten times a reading of the clock.
const STEP_NS_MAX: u64 = 1_000;
/// After a round, for all others: with it, real-time threads have less of the CPU than the kernel allows them in a second.
const REST: Duration = Duration::from_millis(20);
/// A round and what goes before it take a fifth of a second.
const WITHIN: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn real_time_threads_leave_a_tenth_of_the_cpu_to_others() {
        for effort in [
            Effort::Glance,
            Effort::Quick,
            Effort::Full,
            Effort::Emulated { seeds: 4 },
        ] {
            let plan = Plan::of(effort);
            assert!(plan.round_ns <= probe::ROUND_NS_MAX);
            assert!(REST.as_nanos() * 9 >= u128::from(plan.round_ns), "{plan:?}");
            assert!(RELEASES <= probe::RELEASES_MAX && plan.rounds.is_multiple_of(2));
        }
    }

    #[test]
    fn a_quick_run_looks_for_three_seconds() {
        let plan = Plan::of(Effort::Quick);
        assert_eq!(plan.rounds as u64 * plan.round_ns, 3_000_000_000);
    }
}
