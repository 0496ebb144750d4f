//! From an edge on the input until the output is set: by a call, and by an event through the channel.

use rtorb_results::cells::{Cells, Samples};
use rtorb_results::statistics::Statistics;
use rtorb_results::{
    Claim, Derived, Highlight, Labels, ObtainedScheduling, Plot, PlotKind, Published, TableView,
    labels, labels_with, labels_without,
};

use super::{served, table, words};
use crate::contestants::Transport;
use crate::contestants::event_channel::system::Channel;
use crate::contestants::square_wave::system::{self, Role, System};
use crate::contestants::square_wave::{Part, Path, Run};
use crate::error::LabError;
use crate::experiment::Context;
use crate::experiments::beside::{LOADS, NONE, VariedLoad};
use crate::experiments::transports::{TRANSPORTS, over};
use crate::study::{
    Amounts, Cell, Conditions, Factor, Findings, Sampled, Study, Subject, Turn,
    Value::{Number, Text},
};

pub(super) const STUDY: Study<Systems> = Study {
    name: "edges",
    title: "A call, and an event through the channel",
    reproduces: "P4 Figure 12",
    amounts: Amounts {
        glance: 20,
        emulated: 125,
        quick: [3, 200],
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
    findings,
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

fn findings(cells: &Cells, conditions: &Conditions) -> Findings {
    let to_call_max = if conditions.on_agents {
        TO_CALL_ON_HOSTS_MAX
    } else {
        TO_CALL_MAX
    };
    let mut pairs: Vec<Pair<'_>> = cells
        .with(&[(PATH, "event".into()), ("part", "call".into())])
        .filter_map(|(labels, event)| Pair::of(cells, labels, event))
        .collect();
    // TCP first.
    pairs.sort_by_key(|pair| over(pair.labels));
    // P4 measures it over a network.
    let over_tcp = || {
        pairs
            .iter()
            .filter(|pair| pair.labels["transport"] == "tcp".into())
    };
    Findings {
        highlights: over_tcp().map(Pair::highlight).collect(),
        derived: pairs.iter().flat_map(Pair::derived).collect(),
        claims: pairs
            .iter()
            .filter_map(|pair| pair.claim(to_call_max))
            .collect(),
        conclusions: pairs.iter().map(Pair::words).collect(),
        published: over_tcp().map(Pair::published).collect(),
        ..Findings::default()
    }
}

/// An event and a call under the same conditions.
struct Pair<'a> {
    /// Of the event.
    labels: &'a Labels,
    /// From the edge.
    event: &'a Samples,
    call: &'a Samples,
    /// From sending.
    event_request: &'a Samples,
    call_request: &'a Samples,
}

impl<'a> Pair<'a> {
    fn of(cells: &'a Cells, labels: &'a Labels, event: &'a Samples) -> Option<Self> {
        let with = |path: &str, part: &str| {
            let others = [(PATH, path.into()), ("part", part.into())];
            cells.get(&labels_with(labels, others))
        };
        Some(Self {
            labels,
            event,
            call: with("call", "call")?,
            event_request: with("event", "request")?,
            call_request: with("call", "request")?,
        })
    }

    fn derived(&self) -> Vec<Derived> {
        let from_edge = (self.event, self.call);
        let from_sending = (self.event_request, self.call_request);
        let quotients: [(&str, (&Samples, &Samples), Which); 3] = [
            ("event_to_call_p50", from_edge, P50),
            ("event_to_call_p99", from_edge, P99),
            ("event_to_call_from_sending_p50", from_sending, P50),
        ];
        let quotients = quotients
            .into_iter()
            .filter_map(|(name, (event, call), which)| {
                let labels = labels_without(self.labels, &["orb", PATH, "part"]);
                Derived::quotient(name, labels, &event.rounds(which), &call.rounds(which))
            });
        quotients.collect()
    }

    fn claim(&self, to_call_max: f64) -> Option<Claim> {
        let (transport, load) = (&self.labels["transport"], &self.labels["load"]);
        let state = if *load == NONE.into() {
            "idle"
        } else {
            "loaded"
        };
        Claim::at_most(
            format!("event-to-call.{transport}.{state}"),
            format!(
                "{transport}, load {load}: an event from the edge until the output is set, by the call's, medians (P4: about 2)"
            ),
            &self.event.rounds(P50).divided_by(&self.call.rounds(P50)),
            to_call_max,
            "ratio",
        )
    }

    fn highlight(&self) -> Highlight {
        let [event, call] = [self.event, self.call].map(|samples| samples.statistics().p50 / 1e3);
        Highlight {
            what: format!(
                "edge to output by an event, load {}, median",
                self.labels["load"]
            ),
            value: event,
            unit: "us".to_owned(),
            beside: format!("by a call: {call:.1} us, {:.2} times", self.times()),
        }
    }

    fn published(&self) -> Published {
        let (transport, load) = (&self.labels["transport"], &self.labels["load"]);
        Published {
            source: "P4 section 2.2, Figure 12".to_owned(),
            what: format!(
                "an event through the channel by a call, from the edge, {transport}, load {load}"
            ),
            published: "approximately two times".to_owned(),
            ours: format!("{:.2} times", self.times()),
        }
    }

    fn words(&self) -> String {
        let (transport, load) = (&self.labels["transport"], &self.labels["load"]);
        let [event, call] = [self.event, self.call].map(Samples::statistics);
        format!(
            "{transport}, load {load}: an event takes {:.2} times a call from the edge ({:.1} us instead of {:.1}), and {:.2} times from \
             sending; its 99th percentile is {:.1} us, that of the call {:.1}.",
            self.times(),
            event.p50 / 1e3,
            call.p50 / 1e3,
            times(self.event_request, self.call_request),
            event.p99 / 1e3,
            call.p99 / 1e3,
        )
    }

    fn times(&self) -> f64 {
        times(self.event, self.call)
    }
}

/// The quotient of two medians over rounds.
fn times(event: &Samples, call: &Samples) -> f64 {
    let both = event.median_ns().zip(call.median_ns());
    both.map_or(0.0, |(event, call)| event / call.max(1.0))
}

type Which = fn(&Statistics) -> f64;

const P50: Which = |found| found.p50;
const P99: Which = |found| found.p99;
const PATH: &str = "path";
/// 1,000 edges a second, a square wave of 500 Hz.
const PERIOD_NS: u64 = 1_000_000;
const FEW_EDGES: usize = 10;
/// The paper found about 2. On one CPU, the edge's own time is a large part of both.
const TO_CALL_MAX: f64 = 1.8;
/// Where each process has a host of its own, there are two ways over the network instead of one.
const TO_CALL_ON_HOSTS_MAX: f64 = 2.2;

#[cfg(test)]
mod tests {
    use super::*;
    use rtorb_results::Verdict;

    /// The medians of an event in each round, where a call takes 20 us.
    fn cells(events_ns: &[u64]) -> Cells {
        let mut cells = Cells::default();
        for (round, event_ns) in events_ns.iter().enumerate() {
            for (path, ns) in [("call", 20_000), ("event", *event_ns)] {
                for (part, ns) in [("call", ns), ("request", ns - 1_000)] {
                    let labels = labels([
                        ("orb", "rtorb".into()),
                        ("transport", "tcp".into()),
                        ("load", NONE.into()),
                        (PATH, path.into()),
                        ("part", part.into()),
                    ]);
                    cells.add(&labels, round, &[ns], 0);
                }
            }
        }
        cells
    }

    fn found(events_ns: &[u64]) -> Findings {
        findings(&cells(events_ns), &Conditions::default())
    }

    #[test]
    fn on_several_hosts_there_are_two_ways_over_the_network() {
        let limit = |on_agents| {
            let conditions = Conditions {
                on_agents,
                ..Conditions::default()
            };
            findings(&cells(&[30_000; 3]), &conditions).claims[0].limit
        };
        assert_eq!(
            [false, true].map(limit),
            [TO_CALL_MAX, TO_CALL_ON_HOSTS_MAX]
        );
    }

    #[test]
    fn an_event_is_judged_by_the_call() {
        let good = found(&[30_000; 3]);
        assert_eq!(good.claims[0].id, "event-to-call.tcp.idle");
        assert_eq!(good.claims[0].verdict, Verdict::Held);
        assert_eq!(good.published[0].ours, "1.50 times");
        assert_eq!(good.highlights[0].beside, "by a call: 20.0 us, 1.50 times");
        let values: Vec<f64> = good.derived.iter().map(|one| one.value).collect();
        assert_eq!(values[..2], [1.5, 1.5]);
        assert!((values[2] - 29.0 / 19.0).abs() < 1e-9);
        let names: Vec<&str> = good.derived[0].labels.keys().map(String::as_str).collect();
        assert_eq!(names, ["load", "transport"]);
        let bad = found(&[60_000; 3]);
        assert_eq!(bad.claims[0].verdict, Verdict::Missed);
        let said = &bad.conclusions[0];
        assert!(said.contains("3.00 times a call from the edge (60.0 us instead of 20.0)"));
        let unclear = found(&[30_000, 60_000, 30_000]);
        assert_eq!(unclear.claims[0].verdict, Verdict::NotJudged);
        assert!(found(&[]).conclusions.is_empty());
    }
}
