//! `os/interruptions`: what the kernel's tick, other interrupts, the firmware and a hypervisor take from the most urgent thread of a
//! CPU, and what the interrupt takes that releases a less urgent one.
//!
//! The thread reads the clock without pause. Where that took long and no other thread ran, the CPU was taken by something that no
//! priority stands against: in a response-time analysis, interference of the highest priority. In each round it looks twice: while
//! nothing else runs, and while less urgent threads sleep until moments that are known, whose interrupts are found by them.

use std::time::Duration;

use crate::experiments::prelude::*;
use crate::processes::probe::Probe;
use probe::{Question, Seen};

mod computed;
mod kinds;
pub mod probe;
mod ticks;

/// The experiment.
pub const STUDY: Study<Looking> = Study {
    name: "os/interruptions",
    title: "What ticks, other interrupts, firmware and a hypervisor take from the most urgent thread of a CPU",
    reproduces: "P3 section 4.2 (the tick as a task of the highest priority), seen by the thread that it interrupts",
    // The emulator executes every reading of the clock.
    amounts: Amounts {
        glance: 50,
        emulated: 20,
        quick: [15, 100],
        full: [300, 100],
        samples: "round_ms",
    },
    factors: &[Factor::numbers(RELEASES, &[0, RELEASES_A_ROUND])],
    parameters: &[
        ("rounds_are", Text(ROUNDS_ARE)),
        ("gap_ns_min", Number(STEP_NS_MAX as i64)),
        ("rest_ms", Number(REST.as_millis() as i64)),
        ("rest_ms_under_load", Text("as long as it looked")),
        ("clock", Text("CLOCK_MONOTONIC, read without pause")),
        (
            "switches",
            Text("getrusage(2), RUSAGE_THREAD, after each gap"),
        ),
    ],
    columns: &["load", "real_time"],
    plots,
    says: computed::SAYS,
    computed: computed::compute,
    notes: |context| {
        let others = [OTHER_TOOLS.to_owned()];
        others
            .into_iter()
            .chain(context.without_fifo(NO_FIFO))
            .collect()
    },
    services: &[
        ServiceRow::new("kernel", "tick").of(&[("what", "tick")]),
        ServiceRow::new("kernel", "interruption").of(&[("what", "interruption")]),
        ServiceRow::new("hypervisor", "theft")
            .of(&[("what", "theft")])
            .may_lack(),
        ServiceRow::new("timer", "release_interrupt").of(&[("what", "release")]),
    ],
    ..Study::with(|context, _| Probe::start(&context.launcher, "os/interruptions").map(Looking))
};

/// The thread that looks, in a probe.
#[derive(Debug)]
pub struct Looking(Probe<Question>);

impl Subject for Looking {
    fn measure(&mut self, cell: &Cell<'_>, turn: &Turn<'_>) -> Result<Sampled, LabError> {
        let placement = &turn.context.launcher.placement;
        let length = Duration::from_millis(turn.samples as u64);
        let question = Question {
            fifo: placement.fifo,
            length_ns: length.as_nanos() as u64,
            step_ns_max: STEP_NS_MAX,
            releases: cell.number(RELEASES) as u32,
            seed: turn.seed(),
        };
        let answer = self.0.ask(&question, WITHIN)?;
        if Seen::of(&answer).is_none() {
            let what = "the probe did not say what it saw";
            return Err(LabError::process("os/interruptions", what));
        }
        // What a load does must be done between turns: while one lasts, nothing else runs here.
        let is_idle = turn.context.load.is_none();
        std::thread::sleep(if is_idle { REST } else { length });
        Ok(Sampled::kept(answer).of_threads(&["looks", "sleeps"]))
    }
}

fn plots() -> Vec<Plot> {
    vec![
        Plot::histogram("interruptions", "How long the most urgent thread is interrupted")
            .caption(
                "Gaps between two readings of the clock during which no other thread ran, by what they are taken for.",
            )
            .lines(["what"])
            .x_title("length of an interruption, us")
            .log_x()
            .log_y(),
        Plot::percentiles("interruptions-percentiles", "The tail of each kind of interruption")
            .caption("How much longer an interruption is than usual, and how rarely.")
            .lines(["what"])
            .log_y(),
    ]
}

/// The label of the number of threads whose sleep ends while the other one looks.
const RELEASES: &str = "releases_per_round";
/// One each 4 to 7 ms of a round: few fall on a tick.
const RELEASES_A_ROUND: i64 = 16;
const ROUNDS_ARE: &str =
    "in turns: without anything else, and with less urgent threads whose sleeps end meanwhile";
/// Some ten times a reading of the clock.
const STEP_NS_MAX: u64 = 1_000;
/// After a turn, for all others: with it, real-time threads have less of the CPU than the kernel allows them in a second.
const REST: Duration = Duration::from_millis(20);
/// A turn and what goes before it take a fifth of a second.
const WITHIN: Duration = Duration::from_secs(2);

const NO_FIFO: &str = "Without SCHED_FIFO on one CPU other threads may run instead of the one that looks: gaps with a switch are left out, \
                       but interrupts while they ran were not seen.";
const OTHER_TOOLS: &str = "Such gaps are what oslat of rt-tests looks for, which cannot tell whether another thread ran, and what the \
                           kernel's osnoise tracer finds, which names the interrupts. The hwlat tracer looks with interrupts switched \
                           off: what it finds is the firmware's and the hypervisor's alone. Where the kernel has these tracers, they say \
                           who it was.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn real_time_threads_leave_a_tenth_of_the_cpu_to_others() {
        let Amounts {
            glance,
            emulated,
            quick: [_, quick],
            full: [_, full],
            ..
        } = STUDY.amounts;
        for length_ms in [glance, emulated, quick, full] {
            assert!(length_ms as u64 * 1_000_000 <= probe::ROUND_NS_MAX);
            assert!(REST.as_millis() * 9 >= length_ms as u128);
        }
        assert!(RELEASES_A_ROUND <= i64::from(probe::RELEASES_MAX));
    }

    #[test]
    fn a_quick_run_looks_for_three_seconds() {
        let [rounds, length_ms] = STUDY.amounts.quick;
        assert_eq!(2 * rounds * length_ms, 3_000);
    }
}
