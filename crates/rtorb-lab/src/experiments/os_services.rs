//! `os/services`: what the services of the operating system cost that an ORB lives on: a system call, a switch of threads, a
//! contended mutex, a wake-up, and octets to another thread and back, on one CPU.
//!
//! Services take turns within a round, so that a drift of the machine is in all of them alike. Under a load there are pauses
//! between samples: real-time threads that never sleep would leave it no time.

use std::time::Duration;

use crate::error::LabError;
use crate::experiment::{Context, Effort, Experiment, Outcome, Parameters, Progress, is_complete};
use crate::processes::probe::{Probe, Question as ProbeQuestion};
use crate::results::labels;
use measured::Measured;
use probe::{BUDGET_NS, LAST, Question, Service, WARM_UP};

mod measured;
pub mod probe;

/// The experiment.
#[derive(Debug)]
pub struct OsServices;

impl Experiment for OsServices {
    fn name(&self) -> &'static str {
        "os/services"
    }

    fn title(&self) -> &'static str {
        "What the services of the operating system cost that an ORB lives on, on one CPU"
    }

    fn reproduces(&self) -> &'static str {
        "P0 Table 1, P2 Table 1 (yield, synchronized); P3 section 3 (the cost of each service of a platform)"
    }

    fn parameters(&self, effort: Effort) -> Parameters {
        let plan = Plan::of(effort);
        labels([
            ("rounds", plan.rounds.into()),
            ("samples_per_round", plan.samples.into()),
            ("warm_up", WARM_UP.into()),
            ("last_samples_left_out", LAST.into()),
            ("pause_us_max_under_load", (PAUSE_NS_MAX / 1_000).into()),
            ("message_bytes", probe::MESSAGE_BYTES.into()),
            ("priorities", PRIORITIES.into()),
            ("clock", "CLOCK_MONOTONIC, read twice for a sample".into()),
            ("mutex", "priority inheritance (futex(2), PI)".into()),
            ("futex", "a word that processes may share".into()),
            ("tcp", "loopback interface, TCP_NODELAY".into()),
            ("effort", effort.name().into()),
        ])
    }

    fn run(&self, context: &Context, progress: &mut dyn Progress) -> Result<Outcome, LabError> {
        let plan = Plan::of(context.effort);
        progress.begin(plan.rounds * Service::ALL.len());
        let mut measured = Measured::of(context);
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
    let fifo = context.launcher.placement.fifo;
    let mut probe = Probe::start(&context.launcher, "os/services")?;
    for round in 0..plan.rounds {
        context.begin_round(round);
        for service in Service::ALL {
            let question = Question {
                service,
                samples: plan.samples,
                low_priority: fifo.map(|probe| probe.saturating_sub(BELOW_PROBE).max(1)),
                pause_ns_max: match context.load.is_none() {
                    true => 0,
                    false => PAUSE_NS_MAX,
                },
                seed: context.seed(round).unwrap_or(round as u64 + 1),
                other: None,
            };
            let answer = probe.ask(&ProbeQuestion::Services(question), WITHIN)?;
            let marked = context.add_marks(answer.marks);
            measured.add(service, &answer, marked);
            progress.step(&format!(
                "{}, round {} of {}",
                service.name(),
                round + 1,
                plan.rounds
            ));
            std::thread::sleep(PAUSE);
        }
    }
    Ok(())
}

/// How much to measure.
#[derive(Clone, Copy, Debug)]
struct Plan {
    rounds: usize,
    /// Of each service in a round.
    samples: u32,
}

impl Plan {
    fn of(effort: Effort) -> Self {
        let (rounds, samples) = match effort {
            Effort::Glance => (1, 50),
            Effort::Emulated { seeds } => (usize::from(seeds), 300),
            Effort::Quick => (3, 400),
            Effort::Full => (20, 500),
        };
        Self { rounds, samples }
    }
}

const PRIORITIES: &str =
    "SCHED_FIFO, ten below the probe's; who is woken, or waits for the mutex, has one more";
/// By how much the measuring threads are less urgent than the probe's main thread, which only waits meanwhile.
pub(super) const BELOW_PROBE: u8 = 10;
/// Some ten times as long as a service takes, so that the load has most of the CPU.
const PAUSE_NS_MAX: u64 = 200_000;
const WITHIN: Duration = Duration::from_nanos(BUDGET_NS);
/// Leaves the CPU to others between questions, so that real-time throttling never has a reason.
const PAUSE: Duration = Duration::from_millis(2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_run_keeps_ten_thousand_samples_of_each() {
        let plan = Plan::of(Effort::Full);
        assert!(plan.rounds * plan.samples as usize >= 10_000);
    }

    #[test]
    fn a_seed_is_a_round() {
        assert_eq!(Plan::of(Effort::Emulated { seeds: 4 }).rounds, 4);
    }
}
