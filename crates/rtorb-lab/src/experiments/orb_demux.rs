//! `orb/demux`: does finding the servant and the operation cost more when there are more of them.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::contestants::burst::{Burst, Verb};
use crate::contestants::demux::Kind;
use crate::contestants::operations::Operation;
use crate::contestants::{Transport, key_bytes};
use crate::error::LabError;
use crate::experiment::{Context, Effort, Experiment, Outcome, Parameters, Progress, is_complete};
use crate::processes::{Launcher, Process};
use crate::results::by_round::ByRound;
use crate::results::statistics::Recorder;
use crate::results::{Claim, Derived, Highlight, Series, all_real_time, labels};

/// The experiment.
#[derive(Debug)]
pub struct OrbDemux;

impl Experiment for OrbDemux {
    fn name(&self) -> &'static str {
        "orb/demux"
    }

    fn title(&self) -> &'static str {
        "What finding servant and operation costs as their number grows: it should be flat"
    }

    fn reproduces(&self) -> &'static str {
        "P2 section 2"
    }

    fn parameters(&self, effort: Effort) -> Parameters {
        let plan = Plan::of(effort);
        labels([
            ("rounds", plan.rounds.into()),
            ("count_per_round", plan.count.into()),
            (
                "objects_max",
                plan.objects.iter().copied().max().unwrap_or(0).into(),
            ),
            ("effort", effort.name().into()),
        ])
    }

    fn uses_agent(&self) -> bool {
        true
    }

    fn run(&self, context: &Context, progress: &mut dyn Progress) -> Result<Outcome, LabError> {
        let plan = Plan::of(context.effort);
        let mut found = Found::new(transport(&context.launcher));
        let complete = is_complete(measure(context, plan, &mut found, progress))?;
        Ok(found.outcome(complete))
    }
}

#[derive(Clone, Copy, Debug)]
struct Plan {
    rounds: usize,
    count: usize,
    objects: &'static [usize],
}

impl Plan {
    fn of(effort: Effort) -> Self {
        match effort {
            Effort::Glance | Effort::Emulated { .. } => Self {
                rounds: 1,
                count: 20,
                objects: &OBJECTS[..2],
            },
            Effort::Quick => Self {
                rounds: 5,
                count: 2_000,
                objects: &OBJECTS,
            },
            Effort::Full => Self {
                rounds: 20,
                count: 10_000,
                objects: &OBJECTS,
            },
        }
    }
}

/// How many objects there are, and how many operations each has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Cell {
    operations: usize,
    objects: usize,
}

/// A running server and its client.
#[derive(Debug)]
struct Pair {
    cell: Cell,
    key_bytes: usize,
    // In this order: the client is ended before the server that it is connected to.
    client: Process,
    server: Process,
}

impl Pair {
    fn start(context: &Context, cell: Cell) -> Result<Self, LabError> {
        let Cell {
            operations,
            objects,
        } = cell;
        let name = format!("rtorb {objects} objects {operations} operations");
        let launcher = &context.launcher;
        let transport = transport(launcher);
        let endpoint = match transport {
            Transport::Tcp => launcher.server_endpoint(),
            Transport::Unix | Transport::Futex => {
                let name = format!("demux-{operations}-{objects}.socket");
                format!("uiop://{}", context.folder().join(name).display())
            }
        };
        let (operations, objects) = (operations.to_string(), objects.to_string());
        let role = ["demux-server", &endpoint, &operations, &objects];
        let mut server = launcher.start_server(&format!("{name} server"), &role)?;
        let references = server.ready()?;
        let role: Vec<&str> = ["demux-client", &operations]
            .into_iter()
            .chain(references.split(' '))
            .collect();
        let mut client = launcher.start(&format!("{name} client"), &role)?;
        client.ready()?;
        let key_bytes = references
            .split(' ')
            .next()
            .and_then(key_bytes)
            .unwrap_or(0);
        Ok(Self {
            cell,
            key_bytes,
            client,
            server,
        })
    }
}

fn measure(
    context: &Context,
    plan: Plan,
    found: &mut Found,
    progress: &mut dyn Progress,
) -> Result<(), LabError> {
    let operations = [Kind::Single, Kind::Large].map(Kind::operations);
    let cells = operations.into_iter().flat_map(|operations| {
        plan.objects.iter().map(move |objects| Cell {
            operations,
            objects: *objects,
        })
    });
    let mut pairs = cells
        .map(|cell| Pair::start(context, cell))
        .collect::<Result<Vec<_>, _>>()?;
    for pair in &pairs {
        let processes = [&pair.server, &pair.client];
        found
            .scheduling
            .extend(processes.iter().filter_map(|process| process.scheduling()));
    }
    progress.begin(plan.rounds);
    for round in 0..plan.rounds {
        let count = pairs.len();
        for index in 0..count {
            if context.interrupted() {
                return Err(LabError::Interrupted);
            }
            let pair = &mut pairs[(index + round) % count];
            let messages = Operation::Void.message_bytes(0, pair.key_bytes);
            let burst = Burst {
                verb: Verb::Call,
                operation: Operation::Void,
                len: 0,
                warm_up: 200,
                count: plan.count,
                budget_ns: 300_000_000,
                request_bytes: messages.request,
                reply_bytes: messages.reply,
            };
            let samples = pair.client.burst(&burst)?;
            let cell = found.cells.entry(pair.cell).or_default();
            cell.recorder.record_all(&samples.times_ns);
            cell.recorder.end_round();
            let mut recorder = Recorder::new();
            recorder.record_all(&samples.times_ns);
            cell.p50.set(round, recorder.statistics().p50);
            std::thread::sleep(PAUSE);
        }
        progress.step(&format!("round {} of {}", round + 1, plan.rounds));
    }
    Ok(())
}

/// The fastest that reaches the server.
fn transport(launcher: &Launcher) -> Transport {
    match launcher.agent {
        Some(_) => Transport::Tcp,
        None => Transport::Unix,
    }
}

#[derive(Debug)]
struct Found {
    transport: Transport,
    cells: BTreeMap<Cell, Measured>,
    scheduling: Vec<crate::results::ObtainedScheduling>,
}

#[derive(Debug, Default)]
struct Measured {
    recorder: Recorder,
    p50: ByRound,
}

impl Found {
    fn new(transport: Transport) -> Self {
        Self {
            transport,
            cells: BTreeMap::new(),
            scheduling: Vec::new(),
        }
    }

    fn outcome(self, complete: bool) -> Outcome {
        let real_time = all_real_time(&self.scheduling);
        let derived: Vec<Derived> = self
            .cells
            .keys()
            .filter_map(|cell| self.to_smallest(*cell))
            .collect();
        let worst = derived
            .iter()
            .max_by(|one, other| one.value.total_cmp(&other.value));
        let mut outcome = Outcome {
            complete,
            claims: self
                .cells
                .keys()
                .filter_map(|cell| self.claim(*cell))
                .collect(),
            ..Outcome::default()
        };
        if let Some(worst) = worst {
            let count = |label: &str| {
                worst
                    .labels
                    .get(label)
                    .map(ToString::to_string)
                    .unwrap_or_default()
            };
            outcome.highlights.push(Highlight {
                what: format!(
                    "{} objects with {} operations, to one of each (the largest ratio)",
                    count("objects"),
                    count("operations")
                ),
                value: worst.value,
                unit: "×".to_owned(),
                beside: "1.0 is flat".to_owned(),
            });
        }
        outcome.series = self
            .cells
            .iter()
            .map(|(cell, measured)| series(*cell, self.transport, measured, real_time))
            .collect();
        outcome.derived = derived;
        outcome.scheduling = self.scheduling;
        outcome
    }

    /// How the time compares with that of one object with one operation, round by round.
    fn to_smallest(&self, cell: Cell) -> Option<Derived> {
        let labels = labels([
            ("operations", cell.operations.into()),
            ("objects", cell.objects.into()),
        ]);
        Derived::of_rounds("to_smallest", labels, "ratio", &self.ratios(cell)?)
    }

    fn ratios(&self, cell: Cell) -> Option<ByRound> {
        let of = |cell: Cell| Some(&self.cells.get(&cell)?.p50);
        let smallest = Cell {
            operations: 1,
            objects: 1,
        };
        (cell != smallest).then_some(())?;
        Some(of(cell)?.divided_by(of(smallest)?))
    }

    fn claim(&self, cell: Cell) -> Option<Claim> {
        let Cell {
            objects,
            operations,
        } = cell;
        Claim::at_most(
            format!("to-smallest.{objects}.{operations}"),
            format!(
                "{objects} objects with {operations} operations: the median, to that with one of each"
            ),
            &self.ratios(cell)?,
            NOISE,
            "ratio",
        )
    }
}

fn series(cell: Cell, transport: Transport, measured: &Measured, real_time: bool) -> Series {
    let labels = labels([
        ("orb", "rtorb".into()),
        ("transport", transport.label().into()),
        ("objects", cell.objects.into()),
        ("operations", cell.operations.into()),
        ("part", "call".into()),
        ("real_time", real_time.into()),
    ]);
    Series {
        rounds_p50: measured.p50.values(),
        ..Series::from_recorder(labels, &measured.recorder)
    }
}

const OBJECTS: [usize; 3] = [1, 1_000, 1_000_000];
/// Medians of rounds of one and the same call differ by as much from run to run.
const NOISE: f64 = 1.05;
const PAUSE: Duration = Duration::from_millis(2);

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(rounds_p50: &[f64]) -> Measured {
        Measured {
            recorder: Recorder::new(),
            p50: rounds_p50.into(),
        }
    }

    #[test]
    fn growth_is_compared_with_the_smallest_round_by_round() {
        let mut found = Found::new(Transport::Unix);
        found.cells.insert(
            Cell {
                operations: 1,
                objects: 1,
            },
            measured(&[5_000.0, 6_000.0, 5_000.0]),
        );
        found.cells.insert(
            Cell {
                operations: 300,
                objects: 1_000_000,
            },
            measured(&[5_500.0, 6_600.0, 5_600.0]),
        );
        let outcome = found.outcome(true);
        assert_eq!(outcome.derived.len(), 1);
        assert!((outcome.claims[0].value - 1.1).abs() < 1e-9);
        assert!(outcome.claims[0].is_missed());
        assert!(
            outcome.highlights[0]
                .what
                .contains("1000000 objects with 300")
        );
    }
}
