//! `os/services`: the cost of the services of the operating system that an ORB needs, on one CPU: a system call, a switch of
//! threads, a contended mutex, a wake-up, and bytes to another thread and back.
//!
//! Under a load there are pauses between samples: real-time threads that never sleep would leave it no time.

use std::time::Duration;

use rtorb_results::profile::ServiceRow;
use rtorb_results::{Plot, PlotKind, StatisticName};

use crate::error::LabError;
use crate::experiment::Emulated;
use crate::processes::probe::Probe;
use crate::study::{
    Amounts, Cell, Factor, Sampled, Study, Subject, Turn,
    Value::{self, Number, Text},
};
use probe::{BUDGET_NS, LAST, MESSAGE_BYTES, NOT_IN_TURN, Question, Service, WARM_UP};

mod findings;
mod kernels;
pub mod probe;

/// The experiment.
pub const STUDY: Study<OneCpu> = Study {
    name: "os/services",
    title: "The cost of the services of the operating system that an ORB needs, on one CPU",
    reproduces: "P0 Table 1, P2 Table 1 (yield, synchronized); P3 section 3 (the cost of each service of a platform)",
    amounts: Amounts {
        glance: 50,
        emulated: 300,
        quick: [3, 400],
        full: [20, 500],
        samples: "samples_per_round",
    },
    factors: &[Factor {
        label: "service",
        levels: &SERVICES,
    }],
    parameters: &[
        ("warm_up", Number(WARM_UP as i64)),
        ("last_samples_left_out", Number(LAST as i64)),
        (
            "pause_us_max_under_load",
            Number((PAUSE_NS_MAX / 1_000) as i64),
        ),
        ("message_bytes", Number(MESSAGE_BYTES as i64)),
        (
            "priorities",
            Text(
                "SCHED_FIFO, ten below the probe's; who is woken, or waits for the mutex, has one more",
            ),
        ),
        ("clock", Text("CLOCK_MONOTONIC, read twice for a sample")),
        ("mutex", Text("priority inheritance (futex(2), PI)")),
        ("futex", Text("a word that processes may share")),
        ("tcp", Text("loopback interface, TCP_NODELAY")),
    ],
    columns: &["load", "real_time"],
    plots,
    says: findings::SAYS,
    findings: findings::findings,
    notes: |context| context.without_fifo(NO_FIFO).into_iter().collect(),
    services: &[
        ServiceRow::new("clock", "read").of(&[("service", "clock_read")]),
        ServiceRow::new("kernel", "system_call").of(&[("service", "system_call")]),
        ServiceRow::new("timer", "set").of(&[("service", "set_timer")]),
        ServiceRow::new("scheduler", "wake")
            .of(&[("service", "futex")])
            .otherwise(&[("by", "futex")]),
        ServiceRow::new("scheduler", "wake")
            .of(&[("service", "eventfd")])
            .otherwise(&[("by", "eventfd")]),
        ServiceRow::new("mutex", "contended_lock").of(&[("service", "pi_lock")]),
        ServiceRow::new("mutex", "release_to_waiter").of(&[("service", "pi_hand_over")]),
        ServiceRow::new("transport", "round_trip")
            .of(&[("service", "pipe")])
            .otherwise(&[("transport", "pipe")]),
        ServiceRow::new("transport", "round_trip")
            .of(&[("service", "unix")])
            .otherwise(&[("transport", "unix")]),
        ServiceRow::new("transport", "round_trip")
            .of(&[("service", "tcp")])
            .otherwise(&[("transport", "tcp")]),
    ],
    emulated: Some(Emulated {
        is_quick: true,
        ..Emulated::unloaded(1.0)
    }),
    kernels: Some(kernels::view),
    ..Study::with(|context, _| {
        Ok(OneCpu {
            probe: Probe::start(&context.launcher, "os/services")?,
            not_in_turn: 0.0,
        })
    })
};

/// A probe whose threads share a CPU.
#[derive(Debug)]
pub struct OneCpu {
    probe: Probe<Question>,
    /// The number of yields in which the other thread did not run exactly once.
    not_in_turn: f64,
}

impl Subject for OneCpu {
    fn measure(&mut self, cell: &Cell<'_>, turn: &Turn<'_>) -> Result<Sampled, LabError> {
        let context = turn.context;
        let fifo = context.launcher.placement.fifo;
        let question = Question {
            service: Service::of(cell),
            samples: turn.samples as u32,
            low_priority: fifo.map(|probe| probe.saturating_sub(BELOW_PROBE).max(1)),
            pause_ns_max: if context.load.is_none() {
                0
            } else {
                PAUSE_NS_MAX
            },
            seed: turn.seed(),
            other: None,
        };
        let answer = self.probe.ask(&question, WITHIN)?;
        self.not_in_turn += answer.numbers.get(NOT_IN_TURN).unwrap_or(&0.0);
        std::thread::sleep(PAUSE);
        Ok(Sampled {
            warm_up: Some(u64::from(WARM_UP)),
            ..Sampled::of(answer)
        })
    }

    fn notes(&self) -> Vec<String> {
        let note = (self.not_in_turn > 0.0).then(|| {
            format!(
                "In {} yields the other thread did not run exactly once: they are no round trips of two switches.",
                self.not_in_turn
            )
        });
        note.into_iter().collect()
    }
}

impl Service {
    /// The value of the label `service`.
    pub(in crate::experiments) const fn label(self) -> &'static str {
        match self {
            Self::ClockRead => "clock_read",
            Self::SystemCall => "system_call",
            Self::SetTimer => "set_timer",
            Self::Yield => "yield",
            Self::Futex => "futex",
            Self::Eventfd => "eventfd",
            Self::PiHandOver => "pi_hand_over",
            Self::PiLock => "pi_lock",
            Self::Pipe => "pipe",
            Self::Unix => "unix",
            Self::Tcp => "tcp",
        }
    }

    /// The service of a cell.
    ///
    /// # Panics
    /// When the study has none of that name.
    pub(super) fn of(cell: &Cell<'_>) -> Self {
        let mut all = Self::ALL.into_iter();
        let found = all.find(|service| cell.is("service", service.label()));
        found.expect("every level is a service")
    }
}

fn plots() -> Vec<Plot> {
    vec![
        Plot {
            caption:
                "From just before it is asked for until it is had, with one reading of the clock."
                    .to_owned(),
            kind: PlotKind::Bars,
            x: "service".to_owned(),
            x_title: "service".to_owned(),
            values: vec![StatisticName::P50, StatisticName::P99, StatisticName::Max],
            log_y: true,
            ..Plot::named("services", "What each service costs")
        },
        Plot {
            caption: "How much longer a service takes than usual, and how rarely.".to_owned(),
            kind: PlotKind::Percentiles,
            lines: vec!["service".to_owned()],
            log_y: true,
            ..Plot::named("services-percentiles", "The tail of each service")
        },
    ]
}

/// The cheapest first.
const SERVICES: [Value; Service::ALL.len()] = {
    let mut levels = [Text(""); Service::ALL.len()];
    let mut place = 0;
    while place < levels.len() {
        levels[place] = Text(Service::ALL[place].label());
        place += 1;
    }
    levels
};
/// By how much the measuring threads are less urgent than the probe's main thread, which only waits meanwhile.
pub(super) const BELOW_PROBE: u8 = 10;
/// Some ten times as long as a service takes, so that the load has most of the CPU.
const PAUSE_NS_MAX: u64 = 200_000;
const WITHIN: Duration = Duration::from_nanos(BUDGET_NS);
/// Leaves the CPU to others between questions, so that real-time throttling never has a reason.
const PAUSE: Duration = Duration::from_millis(2);
const NO_FIFO: &str = "Without SCHED_FIFO on one CPU, a thread that is woken need not run at once, and a yield need not let the other thread \
                       run: what others do meanwhile is in the samples.";
