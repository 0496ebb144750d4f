//! From an edge on the input until the output is set: by a call, and by an event through the channel.

use rtorb_results::claim::Declaration;
use rtorb_results::metric::{
    Metric,
    Statistic::P50,
    Step::{Over, Times},
};
use rtorb_results::statements::{DerivedOf, HighlightOf, PublishedOf, Sentence, Statements, Words};
use rtorb_results::{ObtainedScheduling, Plot, PlotKind, TableView, labels};

use super::{served, table, words};
use crate::contestants::Transport;
use crate::contestants::event_channel::system::Channel;
use crate::contestants::square_wave::system::{self, Role, System};
use crate::contestants::square_wave::{Part, Path, Run};
use crate::error::LabError;
use crate::experiment::Context;
use crate::experiments::beside::{LOADS, NONE, VariedLoad};
use crate::experiments::transports::TRANSPORTS;
use crate::study::{
    Amounts, Cell, Factor, Sampled, Study, Subject, Turn,
    Value::{Number, Text},
};

pub(super) const STUDY: Study<Systems> = Study {
    name: "edges",
    title: "A call, and an event through the channel",
    reproduces: "P4 Figure 12",
    amounts: Amounts {
        glance: 20,
        emulated: 125,
        quick: [6, 100],
        full: [10, 1_000],
        samples: "edges_per_round",
    },
    factors: &[
        Factor {
            label: "load",
            levels: &LOADS,
        },
        TRANSPORTS,
        Factor {
            label: PATH,
            levels: &[Text("call"), Text("event")],
        },
    ],
    fixed: &[
        ("orb", Text("rtorb")),
        ("preset", Text("tao")),
        ("role", Text("high")),
        ("payload_bytes", Number(0)),
    ],
    parameters: &[
        ("edges_hz", Number((1_000_000_000 / PERIOD_NS) as i64)),
        ("priority_high", Number(Role::High.priority() as i64)),
        ("priority_low", Number(Role::Low.priority() as i64)),
    ],
    labels_of_run: system::labels_of_run,
    agents_max: system::HOSTS,
    obstacle: system::obstacle,
    period_ns: PERIOD_NS,
    // An emulated machine has the load that it was booted for.
    leaves_out: |cell, effort| {
        effort.seeds().is_some() && (cell.is("load", NONE) || Transport::of(cell) == Transport::Shm)
    },
    tables: || {
        vec![TableView {
            caption: "From the edge on the input until the output is set.".to_owned(),
            rows: words(&["transport", "load"]),
            columns: words(&[PATH]),
            ..table(
                "edge-to-output",
                "A call, and an event through the channel",
                "call",
            )
        }]
    },
    plots: || {
        vec![Plot {
            caption: "P4's figure is of the event alone; beside it the same edge by a call, in the same run.".to_owned(),
            kind: PlotKind::Histogram,
            of: labels([("part", "call".into())]),
            choose: words(&["transport", "load"]),
            lines: words(&[PATH]),
            x_title: "from the edge on the input until the output is set, us".to_owned(),
            log_x: true,
            log_y: true,
            ..Plot::named("event-and-call", "An event through the channel (P4 Figure 12), and a call")
        }]
    },
    says: SAYS,
    ..Study::with(|context, _| Systems::start(context))
};

/// A channel, a supplier and a receiver for each transport.
pub(super) struct Systems {
    systems: Vec<System>,
    load: VariedLoad,
}

impl Systems {
    fn start(context: &Context) -> Result<Self, LabError> {
        let has_agents = context.launcher.agent().is_some();
        let transports = match context.gpio.len() {
            // Hosts are joined by TCP.
            0 if has_agents => &[Transport::Tcp][..],
            0 if context.effort.seeds().is_some() => &[Transport::Tcp, Transport::Unix],
            0 => &Transport::OF_ORB,
            // Two systems cannot have the same lines.
            _ => &[Transport::Tcp],
        };
        let start = |transport: &Transport| {
            let served = served(context, &[Role::High]);
            let channel = if has_agents {
                Channel::start_server(&context.launcher.at_host(system::CHANNEL_HOST), &served)?
            } else {
                Channel::start(context, *transport, "edges", &served)?
            };
            System::start_with(context, *transport, &[Role::High], Some(channel))
        };
        let systems = transports.iter().map(start);
        Ok(Self {
            systems: systems.collect::<Result<_, _>>()?,
            load: VariedLoad::later(context, system::HOSTS),
        })
    }
}

impl Subject for Systems {
    /// To start the load takes long.
    const BLOCKS: Option<&'static str> = Some("load");

    fn scheduling(&mut self) -> Result<Vec<ObtainedScheduling>, LabError> {
        let mut all = Vec::new();
        for system in &mut self.systems {
            let [call, event] = Path::ALL.map(|path| run(system, FEW_EDGES, path));
            system.run(&call)?;
            // With it come all threads.
            all.extend(system.roll_call(&event)?);
        }
        Ok(all)
    }

    fn measure(&mut self, cell: &Cell<'_>, turn: &Turn<'_>) -> Result<Sampled, LabError> {
        let mut systems = self.systems.iter_mut();
        let system = systems.find(|system| cell.is("transport", system.transport.label()));
        let Some(system) = system else {
            return Ok(Sampled::default());
        };
        let path = Path::ALL
            .into_iter()
            .find(|path| cell.is(PATH, path.name()));
        let path = path.expect("each cell has a path");
        let load = self.load.set(cell, turn.context)?;
        let waves = system.run(&run(system, turn.samples, path))?;
        self.load.check()?;
        let latencies = waves.into_iter().next().unwrap_or_default();
        let parts = Part::ALL.into_iter().zip(latencies.parts_ns);
        // Nobody answers an event.
        let parts = parts.filter(|(part, _)| path == Path::Call || *part != Part::RoundTrip);
        let labelled = |(part, times_ns): (Part, _)| {
            let labels = labels([("part", part.name().into()), ("load", load.clone())]);
            (labels, times_ns)
        };
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

fn run(system: &System, edges: usize, path: Path) -> Run {
    Run {
        duration_ns: edges as u64 * PERIOD_NS,
        payload_bytes: 0,
        path,
        waves: vec![system.wave(Role::High, PERIOD_NS, 0)],
    }
}

/// From the edge, an event by the call.
const TO_CALL: Metric = Metric::of(P50).with(&[Over(P50, "path=call")]);
const US: Metric = Metric::of(P50).with(&[Times(1e-3)]);
const EVENTS: &str = "path=event, part=call";
const OVER_TCP: &str = "path=event, part=call, transport=tcp";

const SAYS: Statements = Statements {
    highlights: &[HighlightOf {
        what: "edge to output by an event, load {load}, median",
        of: OVER_TCP,
        metric: US,
        unit: "us",
        beside: Words::with(
            "by a call: {0}, {1}",
            &[(US.at("path=call"), "us"), (TO_CALL, "ratio")],
        ),
    }],
    derived: &[DerivedOf {
        name: "event_to_call_p50",
        of: EVENTS,
        without: &["orb", PATH, "part"],
        metric: TO_CALL,
        unit: "ratio",
    }],
    // The paper found about 2. On one CPU, the edge's own time is a large part of both; where each process has a host of its own, there
    // are two ways over the network instead of one.
    claims: &[Declaration {
        at_most_on_hosts: Some(2.2),
        ..Declaration::at_most("event-to-call.{transport}.{load}", TO_CALL, 1.8, "ratio").of(
            EVENTS,
            "{transport}, load {load}: an event from the edge until the output is set, by the call's, medians (P4: about 2)",
        )
    }],
    published: &[PublishedOf {
        source: "P4 section 2.2, Figure 12",
        what: "an event through the channel by a call, from the edge, {transport}, load {load}",
        published: "approximately two times",
        of: OVER_TCP,
        ours: Words::with("{0}", &[(TO_CALL, "ratio")]),
    }],
    conclusions: &[Sentence {
        of: EVENTS,
        says: Words::with(
            "{transport}, load {load}: an event takes {0} a call from the edge ({1} instead of {2}), and {3} from sending.",
            &[
                (TO_CALL, "ratio"),
                (US, "us"),
                (US.at("path=call"), "us"),
                (
                    Metric::of(P50)
                        .at("part=request")
                        .with(&[Over(P50, "path=call, part=request")]),
                    "ratio",
                ),
            ],
        ),
    }],
};

const PATH: &str = "path";
/// 1,000 edges a second, a square wave of 500 Hz.
const PERIOD_NS: u64 = 1_000_000;
const FEW_EDGES: usize = 10;
