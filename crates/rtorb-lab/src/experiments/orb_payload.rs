//! `orb/payload`: latency from digital input to digital output against the size of the process data image, without and with load.

use rtorb_results::metric::{
    Metric,
    Statistic::{Max, Min, P50, P99},
    Step::{Less, Times},
};
use rtorb_results::statements::{DerivedOf, HighlightOf, PublishedOf, Statements, Words};
use rtorb_results::{ObtainedScheduling, Plot, PlotKind, StatisticName, labels};

use crate::contestants::Transport;
use crate::contestants::square_wave::system::{self, Role, System};
use crate::contestants::square_wave::{Part, Path, Run};
use crate::error::LabError;
use crate::experiments::beside::{LOADS, NONE, VariedLoad};
use crate::study::{
    Amounts, Cell, Factor, Sampled, Study, Subject, Turn,
    Value::{Number, Text},
};

/// The experiment.
pub const STUDY: Study<OneReceiver> = Study {
    name: "orb/payload",
    title: "Latency from digital input to digital output against the size of the process data image that a call carries, without and with load",
    reproduces: "P4 Figure 10",
    amounts: Amounts {
        glance: 20,
        emulated: 20,
        quick: [2, 180],
        full: [10, 1_000],
        samples: "edges_per_round",
    },
    // The load varies slowest: to start it takes long. P4's example is an image of 1 KiB.
    factors: &[
        Factor {
            label: "load",
            levels: &LOADS,
        },
        Factor {
            label: SIZE,
            levels: &[
                Number(0),
                Number(64),
                Number(256),
                Number(1_024),
                Number(4_096),
                Number(16_384),
                Number(65_536),
            ],
        },
    ],
    fixed: &[
        ("orb", Text("rtorb")),
        ("preset", Text("tao")),
        ("transport", Text("tcp")),
    ],
    parameters: &[
        ("edges_hz", Number((1_000_000_000 / PERIOD_NS) as i64)),
        ("priority", Number(Role::High.priority() as i64)),
    ],
    columns: &["load"],
    labels_of_run: system::labels_of_run,
    agents_max: system::HOSTS,
    obstacle: system::obstacle,
    period_ns: PERIOD_NS,
    // An emulated machine has the load that it was booted for.
    leaves_out: |cell, effort| effort.seeds().is_some() && cell.is("load", NONE),
    plots,
    says: SAYS,
    notes: system::notes,
    ..Study::with(|context, _| {
        Ok(OneReceiver {
            system: System::start(context, Transport::Tcp, &[Role::High])?,
            load: VariedLoad::later(context, system::HOSTS),
        })
    })
};

/// A supplier and one receiver, and the load.
#[derive(Debug)]
pub struct OneReceiver {
    system: System,
    load: VariedLoad,
}

impl OneReceiver {
    fn run(&self, edges: usize, payload_bytes: usize) -> Run {
        Run {
            duration_ns: edges as u64 * PERIOD_NS,
            payload_bytes,
            path: Path::Call,
            waves: vec![self.system.wave(Role::High, PERIOD_NS, 0)],
        }
    }
}

impl Subject for OneReceiver {
    /// To start the load takes long.
    const BLOCKS: Option<&'static str> = Some("load");

    fn scheduling(&mut self) -> Result<Vec<ObtainedScheduling>, LabError> {
        let few = self.run(10, 0);
        self.system.roll_call(&few)
    }

    fn measure(&mut self, cell: &Cell<'_>, turn: &Turn<'_>) -> Result<Sampled, LabError> {
        let run = self.run(turn.samples, cell.number(SIZE));
        let load = self.load.set(cell, turn.context)?;
        let latencies = self.system.run(&run)?.pop().unwrap_or_default();
        self.load.check()?;
        let labelled = |(part, times_ns): (Part, _)| {
            let labels = labels([("part", part.name().into()), ("load", load.clone())]);
            (labels, times_ns)
        };
        let parts = Part::ALL.into_iter().zip(latencies.parts_ns);
        Ok(Sampled {
            parts: parts.map(labelled).collect(),
            wrong: latencies.wrong,
            ..Sampled::default()
        })
    }

    fn notes(&self) -> Vec<String> {
        self.load.note().into_iter().collect()
    }
}

const US: Metric = Metric::of(P50).with(&[Times(1e-3)]);
/// From the best latency to the 99th percentile.
const SPREAD: Metric = Metric::of(P99).with(&[Less(Min, "")]);
const WORST_LESS_BEST: Metric = Metric::of(Max).with(&[Less(Min, "")]);
const SPREAD_US: Metric = Metric::of(Max).with(&[Less(Min, ""), Times(1e-3)]);
const OTHERS: &[&str] = &["orb", "part"];

const SAYS: Statements = Statements {
    highlights: &[HighlightOf {
        what: "edge to output, load {load}, {payload_bytes} bytes of data, median",
        // P4's example, and the largest.
        of: "part=call, payload_bytes=1024 | part=call, payload_bytes=65536",
        metric: US,
        unit: "us",
        beside: Words::with("from best to worst {0}", &[(SPREAD_US, "us")]),
    }],
    derived: &[
        DerivedOf {
            name: "worst_less_best",
            of: "part=call",
            without: OTHERS,
            metric: WORST_LESS_BEST,
            unit: "ns",
        },
        DerivedOf {
            name: "p99_less_best",
            of: "part=call",
            without: OTHERS,
            metric: SPREAD,
            unit: "ns",
        },
    ],
    published: &[PublishedOf {
        source: "P4 section 2.1, Figure 10",
        what: "the difference between immediate and worst case latency, load {load}",
        published: "the larger the process data image is the larger is the difference",
        of: "part=call, payload_bytes=65536",
        ours: Words::with(
            "{0} with no data, {1} with 1 KiB, {2} with 64 KiB (medians over rounds)",
            &[
                (SPREAD_US.at("payload_bytes=0"), "us"),
                (SPREAD_US.at("payload_bytes=1024"), "us"),
                (SPREAD_US, "us"),
            ],
        ),
    }],
    ..Statements::NONE
};

fn plots() -> Vec<Plot> {
    let plot = |id: &str, title: &str| Plot {
        caption: "From the edge on the input until the output is set.".to_owned(),
        of: labels([("part", "call".into())]),
        choose: vec!["load".to_owned()],
        log_y: true,
        ..Plot::named(id, title)
    };
    vec![
        Plot {
            // No size and 64 KiB are on no scale of numbers together.
            kind: PlotKind::Bars,
            x: SIZE.to_owned(),
            x_title: "octets of data in a call".to_owned(),
            values: vec![
                StatisticName::Min,
                StatisticName::P50,
                StatisticName::P99,
                StatisticName::Max,
            ],
            ..plot(
                "latency-against-payload",
                "From best to worst against the size of the process data image (P4 Figure 10)",
            )
        },
        Plot {
            kind: PlotKind::Percentiles,
            lines: vec![SIZE.to_owned()],
            ..plot("payload-percentiles", "The tail, for each size")
        },
    ]
}

const SIZE: &str = "payload_bytes";
/// 1,000 edges a second, a square wave of 500 Hz.
const PERIOD_NS: u64 = 1_000_000;
