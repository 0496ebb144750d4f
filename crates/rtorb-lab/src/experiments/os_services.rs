//! `os/services`: the cost of the services of the operating system that an ORB needs: a system call, a switch of threads, a
//! contended mutex, a wake-up, and bytes to another thread and back; the last two also with the other thread on
//! another CPU, which is the cost of a call to a component there.
//!
//! Under a load there are pauses between samples: real-time threads that never sleep would leave it no time. With another CPU there
//! are always pauses: both CPUs are kept awake, or may sleep. In a virtual machine, a CPU that sleeps is given away.

use std::time::Duration;

use crate::experiments::prelude::*;
use crate::processes::probe::Probe;
use probe::{BUDGET_NS, LAST, MESSAGE_BYTES, NOT_IN_TURN, OtherCpu, Question, Service, WARM_UP};

mod computed;
mod kernels;
pub mod probe;

/// The experiment.
pub const STUDY: Study<OneProbe> = Study {
    name: "os/services",
    title: "The cost of the services of the operating system that an ORB needs, on one CPU and on two",
    reproduces: "P0 Table 1, P2 Table 1 (yield, synchronized); P3 section 3 (the cost of each service of a platform)",
    amounts: Amounts {
        glance: 50,
        emulated: 300,
        quick: [3, 400],
        full: [20, 500],
        samples: "samples_per_round",
    },
    factors: &[
        Factor::texts(PEER, &["idle", "awake"]).or_absent(),
        Factor::texts("service", SERVICES),
    ],
    parameters: &[
        ("warm_up", Number(WARM_UP as i64)),
        ("last_samples_left_out", Number(LAST as i64)),
        (
            "pause_us_max_under_load",
            Number((PAUSE_NS_MAX / 1_000) as i64),
        ),
        (
            "pause_us_max_of_two_cpus",
            Number((PAUSE_NS_MAX_OF_TWO / 1_000) as i64),
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
    columns: &[PEER, "load", "real_time"],
    // An emulated machine has one CPU, but for that of P1.
    leaves_out: |cell, effort| {
        let is_of_two = ["futex", "unix", "tcp"]
            .iter()
            .any(|service| cell.is("service", service));
        cell.has(PEER) && (!is_of_two || effort.seeds().is_some())
    },
    plots,
    says: computed::SAYS,
    computed: computed::compute,
    notes: |context| context.without_fifo(NO_FIFO).into_iter().collect(),
    services: &[
        ServiceRow::new("clock", "read").of(&[("service", "clock_read")]),
        ServiceRow::new("kernel", "system_call").of(&[("service", "system_call")]),
        ServiceRow::new("timer", "set").of(&[("service", "set_timer")]),
        wake(&[("service", "futex")], &[("by", "futex")]),
        wake(&[("service", "eventfd")], &[("by", "eventfd")]),
        ServiceRow::new("mutex", "contended_lock").of(&[("service", "pi_lock")]),
        ServiceRow::new("mutex", "release_to_waiter").of(&[("service", "pi_hand_over")]),
        round_trip(&[("service", "pipe")], &[("transport", "pipe")]),
        round_trip(&[("service", "unix")], &[("transport", "unix")]),
        round_trip(&[("service", "tcp")], &[("transport", "tcp")]),
    ],
    emulated: Some(Emulated {
        is_quick: true,
        ..Emulated::unloaded(1.0)
    }),
    kernels: Some(kernels::view),
    ..Study::with(|context, _| {
        Ok(OneProbe {
            probe: Probe::start(&context.launcher, "os/services")?,
            not_in_turn: 0.0,
            has_one_cpu: context.other_cpu().is_none(),
        })
    })
};

/// Labels, each with its value.
type LabelValues = &'static [(&'static str, &'static str)];

const fn wake(of: LabelValues, otherwise: LabelValues) -> ServiceRow {
    with_peer(ServiceRow::new("scheduler", "wake").of(of)).otherwise(otherwise)
}

const fn round_trip(of: LabelValues, otherwise: LabelValues) -> ServiceRow {
    with_peer(ServiceRow::new("transport", "round_trip").of(of)).otherwise(otherwise)
}

/// A service that may be another CPU's too.
const fn with_peer(row: ServiceRow) -> ServiceRow {
    row.configured_by(&["cpu", PEER])
}

/// A probe whose threads share a CPU, or have one each.
#[derive(Debug)]
pub struct OneProbe {
    probe: Probe<Question>,
    /// The number of yields in which the other thread did not run exactly once.
    not_in_turn: f64,
    has_one_cpu: bool,
}

impl Subject for OneProbe {
    fn measure(&mut self, cell: &Cell<'_>, turn: &Turn<'_>) -> Result<Sampled, LabError> {
        let context = turn.context;
        let fifo = context.launcher.placement.fifo;
        let mut other = None;
        if cell.has(PEER) {
            let Some(cpu) = context.other_cpu() else {
                return Ok(Sampled::default());
            };
            let awake = cell.is(PEER, "awake");
            other = Some(OtherCpu { cpu, awake });
        }
        let question = Question {
            service: Service::of(cell),
            samples: turn.samples as u32,
            low_priority: fifo.map(|probe| probe.saturating_sub(BELOW_PROBE).max(1)),
            pause_ns_max: match () {
                () if other.is_some() => PAUSE_NS_MAX_OF_TWO,
                () if context.load.is_none() => 0,
                () => PAUSE_NS_MAX,
            },
            seed: turn.seed(),
            other,
        };
        let answer = self.probe.ask(&question, WITHIN)?;
        self.not_in_turn += answer.numbers.get(NOT_IN_TURN).unwrap_or(&0.0);
        std::thread::sleep(PAUSE);
        let mut sampled = Sampled {
            warm_up: Some(u64::from(WARM_UP)),
            ..Sampled::of(answer)
        };
        if other.is_some() {
            for (of, _) in &mut sampled.parts {
                of.insert("cpu".to_owned(), "other".into());
            }
        }
        Ok(sampled)
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

    fn absent(&self) -> Vec<(Labels, String)> {
        let peers = ["idle", "awake"].into_iter().filter(|_| self.has_one_cpu);
        let peers = peers.map(|peer| (labels([(PEER, peer.into())]), ONE_CPU.to_owned()));
        peers.collect()
    }
}

impl Service {
    /// The value of the label `service`.
    pub(in crate::experiments) fn label(self) -> &'static str {
        self.into()
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
        Plot::bars("services", "What each service costs")
            .caption(
                "From just before it is asked for until it is had, with one reading of the clock.",
            )
            .lines([PEER])
            .x("service")
            .values([StatisticName::P50, StatisticName::P99, StatisticName::Max])
            .log_y(),
        Plot::percentiles("services-percentiles", "The tail of each service")
            .caption("How much longer a service takes than usual, and how rarely.")
            .choose([PEER])
            .lines(["service"])
            .log_y(),
    ]
}

/// The label of the state of the other CPU, on which the second thread runs; without it, both threads have one CPU.
const PEER: &str = "peer";
/// The cheapest first.
const SERVICES: &[&str] = Service::VARIANTS.split_at(Service::ALL.len()).0;
/// By how much the measuring threads are less urgent than the probe's main thread, which only waits meanwhile.
pub(super) const BELOW_PROBE: u8 = 10;
/// Some ten times as long as a service takes, so that the load has most of the CPU.
const PAUSE_NS_MAX: u64 = 200_000;
/// Long enough for a CPU to fall asleep that may.
const PAUSE_NS_MAX_OF_TWO: u64 = 400_000;
const WITHIN: Duration = Duration::from_nanos(BUDGET_NS);
/// Leaves the CPU to others between questions, so that real-time throttling never has a reason.
const PAUSE: Duration = Duration::from_millis(2);
const ONE_CPU: &str = "This process may use only one CPU, so no thread can run on another.";
const NO_FIFO: &str = "Without SCHED_FIFO on one CPU, a thread that is woken need not run at once, and a yield need not let the other thread \
                       run: what others do meanwhile is in the samples.";
