//! `os/other-cpu`: the cost of waking a thread on another CPU and of receiving bytes from it, as a call to a component on another
//! CPU pays it.
//!
//! The CPUs are either both kept awake, or may both sleep between samples. In a virtual machine, a CPU that sleeps is given away.

use std::time::Duration;

use rtorb_results::metric::{Metric, Statistic::P50, Step::Times};
use rtorb_results::profile::ServiceRow;
use rtorb_results::statements::{HighlightOf, Statements, Words};
use rtorb_results::{Plot, PlotKind, StatisticName};

use crate::error::LabError;
use crate::experiments::os_services::BELOW_PROBE;
use crate::experiments::os_services::probe::{
    BUDGET_NS, LAST, MESSAGE_BYTES, OtherCpu, Question, Service, WARM_UP,
};
use crate::processes::probe::Probe;
use crate::study::{
    Amounts, Cell, Factor, Sampled, Study, Subject, Turn,
    Value::{Number, Text},
};

/// The experiment.
pub const STUDY: Study<OneProbe> = Study {
    name: "os/other-cpu",
    title: "The cost of waking a thread on another CPU and of receiving bytes from it",
    reproduces: "P3 section 3 (the cost of each service of a platform)",
    amounts: Amounts {
        glance: 50,
        emulated: 100,
        quick: [3, 400],
        full: [20, 500],
        samples: "samples_per_round",
    },
    factors: &[
        Factor {
            label: "service",
            levels: &[Text("futex"), Text("unix"), Text("tcp")],
        },
        Factor {
            label: "peer",
            levels: &[Text("idle"), Text("awake")],
        },
    ],
    parameters: &[
        ("warm_up", Number(WARM_UP as i64)),
        ("last_samples_left_out", Number(LAST as i64)),
        ("pause_us_max", Number((PAUSE_NS_MAX / 1_000) as i64)),
        ("message_bytes", Number(MESSAGE_BYTES as i64)),
    ],
    columns: &["peer", "load"],
    obstacle: |context| context.other_cpu().is_none().then_some(ONE_CPU),
    plots,
    says: SAYS,
    notes: |context| context.without_fifo(NO_FIFO).into_iter().collect(),
    services: &[
        elsewhere(
            ServiceRow::new("scheduler", "wake"),
            &[("service", "futex")],
            &[("by", "futex"), ("cpu", "other")],
        ),
        elsewhere(
            ServiceRow::new("transport", "round_trip"),
            &[("service", "unix")],
            &[("transport", "unix"), ("cpu", "other")],
        ),
        elsewhere(
            ServiceRow::new("transport", "round_trip"),
            &[("service", "tcp")],
            &[("transport", "tcp"), ("cpu", "other")],
        ),
    ],
    ..Study::with(|context, _| Probe::start(&context.launcher, "os/other-cpu").map(OneProbe))
};

/// A host with one CPU does without it.
const fn elsewhere(
    row: ServiceRow,
    of: &'static [(&'static str, &'static str)],
    otherwise: &'static [(&'static str, &'static str)],
) -> ServiceRow {
    let row = row.of(of).otherwise(otherwise);
    row.configured_by(&["peer"]).may_lack()
}

/// A probe, which is asked once a cell and round.
#[derive(Debug)]
pub struct OneProbe(Probe<Question>);

impl Subject for OneProbe {
    fn measure(&mut self, cell: &Cell<'_>, turn: &Turn<'_>) -> Result<Sampled, LabError> {
        let fifo = turn.context.launcher.placement.fifo;
        let cpu = turn
            .context
            .other_cpu()
            .ok_or_else(|| LabError::process("os/other-cpu", ONE_CPU))?;
        let question = Question {
            service: Service::of(cell),
            samples: turn.samples as u32,
            low_priority: fifo.map(|probe| probe.saturating_sub(BELOW_PROBE).max(1)),
            pause_ns_max: PAUSE_NS_MAX,
            seed: turn.seed(),
            other: Some(OtherCpu {
                cpu,
                awake: cell.is("peer", "awake"),
            }),
        };
        self.0.ask(&question, WITHIN).map(Sampled::of)
    }
}

fn plots() -> Vec<Plot> {
    vec![
        Plot {
            caption: "From just before the request until the thread runs or the bytes arrive, including one clock read.".to_owned(),
            kind: PlotKind::Bars,
            lines: vec!["peer".to_owned()],
            x: "service".to_owned(),
            x_title: "service".to_owned(),
            values: vec![StatisticName::P50, StatisticName::P99],
            log_y: true,
            ..Plot::named("other-cpu", "What a thread of another CPU costs")
        },
        Plot {
            caption: "How much longer it takes than usual, and how rarely.".to_owned(),
            kind: PlotKind::Percentiles,
            choose: vec!["peer".to_owned()],
            lines: vec!["service".to_owned()],
            log_y: true,
            ..Plot::named("other-cpu-percentiles", "The tail of each")
        },
    ]
}

const US: Metric = Metric::of(P50).with(&[Times(1e-3)]);

const SAYS: Statements = Statements {
    highlights: &[HighlightOf {
        what: "{service}, the other CPU idle",
        of: "peer=idle",
        metric: US,
        unit: "us",
        beside: Words::with("kept awake {0}", &[(US.at("peer=awake"), "us")]),
    }],
    ..Statements::NONE
};

/// Long enough for a CPU to fall asleep that may.
const PAUSE_NS_MAX: u64 = 400_000;
const WITHIN: Duration = Duration::from_nanos(BUDGET_NS);
const ONE_CPU: &str = "Nothing was measured: the process may use one CPU only.";
const NO_FIFO: &str =
    "Without SCHED_FIFO on one CPU each, the samples include the work of other threads.";
