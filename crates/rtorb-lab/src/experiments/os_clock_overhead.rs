//! `os/clock-overhead`: the processor time that one tick of a clock costs, at resolutions of 100 us to 100 ms (P3 section 4.2,
//! Figures 3 to 5).
//!
//! A program P of some 10 ms computes on one CPU while a real timer ticks there. What P takes longer than without ticks, over
//! the number of ticks, is what one costs: Eq. (1) to (6), solved in the module `equations`.

use std::time::Duration;

use rtorb_host::description::kernel_tick_hz;
use rtorb_results::labels;

use crate::error::LabError;
use crate::experiment::{Context, Effort, Experiment, Outcome, Parameters, Progress, is_complete};
use crate::processes::probe::{Probe, Question};
use measured::Measured;
use probe::Executions;
use tick::Tick;

mod conclusions;
mod equations;
mod measured;
pub mod probe;
mod tick;

/// The experiment.
#[derive(Debug)]
pub struct OsClockOverhead;

impl Experiment for OsClockOverhead {
    fn name(&self) -> &'static str {
        "os/clock-overhead"
    }

    fn title(&self) -> &'static str {
        "The processor time that a clock tick costs, from a tick every 100 us to one every 100 ms"
    }

    fn reproduces(&self) -> &'static str {
        "P3 Figures 3 to 5, Equations 1 to 6"
    }

    fn parameters(&self, effort: Effort) -> Parameters {
        let plan = Plan::of(effort);
        let resolutions: Vec<String> = plan.resolutions_us.iter().map(u64::to_string).collect();
        labels([
            ("rounds", plan.rounds.into()),
            ("resolutions_us", resolutions.join(", ").into()),
            ("executions_signal", (plan.rounds * plan.signal).into()),
            ("executions_thread", (plan.rounds * plan.thread).into()),
            (
                "executions_without_ticks",
                (plan.rounds * plan.without * Tick::ALL.len()).into(),
            ),
            ("program_us", PROGRAM_NS.div_euclid(1_000).into()),
            ("program_ends_by", "steps".into()),
            ("pause_us", (probe::PAUSE.as_micros() as u64).into()),
            ("tick_priority", u32::from(probe::TICK_PRIORITY).into()),
            (
                "program_priority",
                u32::from(probe::PROGRAM_PRIORITY).into(),
            ),
            ("cpu_kept_awake", false.into()),
            ("effort", effort.name().into()),
        ])
    }

    fn run(&self, context: &Context, progress: &mut dyn Progress) -> Result<Outcome, LabError> {
        let mut measured = Measured::default();
        let plan = Plan::of(context.effort);
        let complete = is_complete(measure(context, &plan, &mut measured, progress))?;
        let kernel_hz = kernel_tick_hz(&context.host.kernel_release);
        Ok(measured.outcome(complete, kernel_hz))
    }
}

/// Every round is one question: all configurations, and the program without ticks, so that a drift of the machine's speed
/// cancels.
fn measure(
    context: &Context,
    plan: &Plan,
    measured: &mut Measured,
    progress: &mut dyn Progress,
) -> Result<(), LabError> {
    progress.begin(plan.rounds + 1);
    let mut asked = Probe::start(&context.launcher, "clock-overhead")?;
    let program = asked.calibrate(Duration::from_nanos(PROGRAM_NS))?;
    progress.step("the program is calibrated");
    let question = probe::Question {
        program,
        cpu: context.launcher.placement.cpu,
        real_time: context.launcher.placement.fifo.is_some(),
        executions: plan.executions(),
    };
    for round in 0..plan.rounds {
        if context.interrupted() {
            return Err(LabError::Interrupted);
        }
        context.begin_round(round);
        let answer = asked.ask(&Question::ClockOverhead(question.clone()), ROUND)?;
        measured.add(&question.executions, answer);
        progress.step(&format!("round {} of {}", round + 1, plan.rounds));
    }
    Ok(())
}

/// How much is measured.
#[derive(Clone, Debug)]
struct Plan {
    rounds: usize,
    resolutions_us: &'static [u64],
    /// Executions a round and resolution with each kind of tick.
    signal: usize,
    thread: usize,
    /// Executions a round and kind of tick in which none comes.
    without: usize,
}

impl Plan {
    fn of(effort: Effort) -> Self {
        match effort {
            Effort::Emulated { seeds } => Self {
                rounds: usize::from(seeds),
                resolutions_us: &[100, 1_000, 10_000],
                signal: 1,
                thread: 1,
                without: 2,
            },
            Effort::Glance => Self {
                rounds: 2,
                resolutions_us: &[500, 10_000],
                signal: 2,
                thread: 2,
                without: 2,
            },
            Effort::Quick => Self {
                rounds: 13,
                resolutions_us: &[100, 200, 500, 1_000, 2_000, 10_000, 100_000],
                signal: 2,
                thread: 2,
                without: 3,
            },
            // The signal is P3's tick and has P3's 10,000 samples; for the thread a quarter must do, in half an hour in all.
            Effort::Full => Self {
                rounds: 2_500,
                resolutions_us: &[
                    100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000,
                ],
                signal: 4,
                thread: 1,
                without: 3,
            },
        }
    }

    fn executions(&self) -> Vec<Executions> {
        let of = |tick| {
            let with_ticks = self.resolutions_us.iter().map(move |us| Executions {
                tick,
                resolution_ns: us * 1_000,
                first_ns: first_ns(us * 1_000),
                count: match tick {
                    Tick::Signal => self.signal,
                    Tick::Thread => self.thread,
                },
            });
            let without = Executions {
                tick,
                resolution_ns: NO_TICK_NS,
                first_ns: NO_TICK_NS,
                count: self.without,
            };
            std::iter::once(without).chain(with_ticks)
        };
        Tick::ALL.into_iter().flat_map(of).collect()
    }
}

/// From the beginning of P to the first tick: one resolution, or the middle of P where that would be after its end.
fn first_ns(resolution_ns: u64) -> u64 {
    match resolution_ns < PROGRAM_NS {
        true => resolution_ns,
        false => PROGRAM_NS / 2,
    }
}

/// P3's program takes 10 ms. A twentieth more, so that the first tick of a clock of 10 ms surely falls into it.
const PROGRAM_NS: u64 = 10_500_000;
/// P3's coarsest resolution, from which e_0 comes (Eq. 6): the timer runs, and its first tick is long after P.
const NO_TICK_NS: u64 = 100_000_000;
/// More than a round takes.
const ROUND: Duration = Duration::from_secs(3);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tick_falls_into_the_program_at_every_resolution_and_none_where_e_is_measured() {
        for executions in Plan::of(Effort::Full).executions() {
            let ticks = equations::ticks_in(
                PROGRAM_NS as f64,
                executions.first_ns,
                executions.resolution_ns,
            );
            match executions.is_without_ticks() {
                true => assert_eq!(ticks, 0, "{executions:?}"),
                false if executions.resolution_ns < PROGRAM_NS => {
                    assert_eq!(ticks, PROGRAM_NS / executions.resolution_ns);
                }
                false => assert_eq!(ticks, 1, "{executions:?}"),
            }
        }
    }

    #[test]
    fn the_paper_has_its_ten_thousand_samples_and_its_range() {
        let plan = Plan::of(Effort::Full);
        assert!(plan.rounds * plan.signal >= 10_000);
        let ends = [plan.resolutions_us.first(), plan.resolutions_us.last()];
        assert_eq!(ends, [Some(&100), Some(&100_000)]);
    }
}
