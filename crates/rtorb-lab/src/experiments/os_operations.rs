//! `os/operations`: the operations of a kernel by which tasks hand the CPU to each other, and calls from one task to another, in
//! yields of the same kernel.
//!
//! P0 and P2 held the machine and varied the operating system. A ratio to the kernel's own yield needs no common machine: so
//! kernels of other instruction sets, which the kernel laboratory boots as guests, stand beside Linux ([`guest`]).

use std::time::Duration;

use crate::experiments::os_context_switch::probe::Test;
use crate::experiments::os_services::probe::{Question, Service};
use crate::experiments::prelude::*;
use crate::experiments::{os_services, os_wakeup};
use crate::processes::probe::Probe;
use operation::{ALL, Measured, Operation};

mod computed;
pub mod guest;
mod kernels;
mod operation;
pub mod probe;

/// The experiment.
pub const STUDY: Study<Probes> = Study {
    name: NAME,
    title: TITLE,
    reproduces: REPRODUCES,
    amounts: Amounts {
        glance: 20,
        emulated: 100,
        quick: [5, 200],
        full: [20, 500],
        samples: "samples_per_round",
    },
    factors: &[Factor::texts("operation", &OPERATIONS)],
    fixed: concat!("instructions=", env!("TARGET_ARCH")),
    parameters: &[
        ("mutex", Text("priority inheritance (futex(2), PI)")),
        ("message", Text("64 octets, a pair of UNIX sockets")),
        (
            "semaphore",
            Text("a word that processes may share (futex(2))"),
        ),
        (
            "calls",
            Text(
                "rtorb-embedded on both sides, over a pair of UNIX sockets; the serving thread is the more urgent",
            ),
        ),
    ],
    columns: &["instructions"],
    says: computed::SAYS,
    computed: computed::compute,
    notes: |_| vec![ELSEWHERE.to_owned()],
    emulated: Some(Emulated {
        is_quick: true,
        ..Emulated::unloaded(1.5)
    }),
    kernels: Some(kernels::view),
    ..Study::with(|context, _| {
        let launcher = &context.launcher;
        Ok(Probes {
            services: Probe::start(launcher, "os/operations: services")?,
            wakeup: Probe::start(launcher, "os/operations: wake-up")?,
            own: Probe::start(launcher, "os/operations")?,
        })
    })
};

/// The probes of the experiments that time some of the operations by themselves, and this one's own.
#[derive(Debug)]
pub struct Probes {
    services: Probe<Question>,
    wakeup: Probe<os_wakeup::Question>,
    own: Probe<probe::Question>,
}

impl Subject for Probes {
    fn measure(&mut self, cell: &Cell<'_>, turn: &Turn<'_>) -> Result<Sampled, LabError> {
        let mut all = ALL.iter();
        let operation = all.find(|operation| cell.is("operation", operation.name));
        let operation = operation.expect("every level is an operation");
        let sampled = self.time(operation, turn)?;
        std::thread::sleep(PAUSE);
        Ok(sampled)
    }
}

impl Probes {
    fn time(&mut self, operation: &Operation, turn: &Turn<'_>) -> Result<Sampled, LabError> {
        let placement = turn.context.launcher.placement;
        let below = |priority: u8| priority.saturating_sub(os_services::BELOW_PROBE).max(1);
        let low_priority = placement.fifo.map(below);
        match operation.measured {
            Measured::Service(service) => {
                let question = Question {
                    service,
                    samples: turn.samples as u32,
                    low_priority,
                    pause_ns_max: 0,
                    seed: turn.seed(),
                    other: None,
                };
                let mut answer = self.services.ask(&question, WITHIN)?;
                if let Service::Switch(test) = service {
                    answer.samples = vec![switch_ns(test, &answer.samples)];
                }
                Ok(Sampled::of(answer))
            }
            Measured::WakeUp => {
                let question = os_wakeup::Question {
                    placement,
                    interval_ns: INTERVAL_NS,
                    samples: turn.samples,
                    seed: turn.context.seed(turn.round),
                };
                self.wakeup.ask(&question, WITHIN).map(Sampled::of)
            }
            Measured::Own => {
                let question = probe::Question {
                    operation: operation.name.to_owned(),
                    samples: turn.samples,
                    low_priority,
                };
                self.own.ask(&question, WITHIN).map(Sampled::of)
            }
        }
    }
}

/// The hand-over less the same calls without one, as the papers have it; of a yield nothing is taken away.
fn switch_ns(test: Test, samples: &[Vec<u64>]) -> Vec<u64> {
    let [hand_over, uncontended] = samples else {
        return Vec::new();
    };
    if test == Test::Yield {
        return hand_over.clone();
    }
    let both = hand_over.iter().zip(uncontended);
    both.map(|(hand_over, uncontended)| hand_over.saturating_sub(*uncontended))
        .collect()
}

/// The experiment's name, also where a guest that is no Linux has results of it.
pub const NAME: &str = "os/operations";
const TITLE: &str =
    "The operations of a kernel, and calls between two of its tasks, in yields of the same kernel";
const REPRODUCES: &str = "P0 Table 1, P2 Table 1 (how many times a yield the other switches take)";
const OPERATIONS: [&str; operation::OF_LINUX] = {
    let mut levels = [""; operation::OF_LINUX];
    let mut place = 0;
    while place < levels.len() {
        levels[place] = ALL[place].name;
        place += 1;
    }
    levels
};
const ELSEWHERE: &str =
    "Of Linux, os/wakeup has wake-ups under loads, and os/clock-overhead the cost of a tick.";
const INTERVAL_NS: u64 = 1_000_000;
/// A question takes two seconds at most.
const WITHIN: Duration = Duration::from_secs(2);
/// Leaves the CPU to others between questions, so that real-time throttling never has a reason.
const PAUSE: Duration = Duration::from_millis(2);
