//! `orb/demux`: the cost of finding servant and operation as their numbers grow.

use std::time::Duration;

use crate::contestants::burst::{Burst, Verb};
use crate::contestants::operations::Operation;
use crate::contestants::{Transport, key_bytes};
use crate::experiments::prelude::*;
use crate::processes::{Launcher, Process};

/// The experiment.
pub const STUDY: Study<Pairs> = Study {
    name: "orb/demux",
    title: "The cost of finding servant and operation as their numbers grow: it should be flat",
    reproduces: "P2 section 2",
    amounts: Amounts {
        glance: 20,
        emulated: 20,
        quick: [6, 1_200],
        full: [20, 10_000],
        samples: "count_per_round",
    },
    factors: &[
        Factor::numbers("operations", &[1, 300]),
        Factor::numbers("objects", &[1, 1_000, 1_000_000]),
    ],
    fixed: &[("orb", Text("rtorb")), ("part", Text("call"))],
    labels_of_run: |context| labels([("transport", transport(&context.launcher).label().into())]),
    agents_max: 1,
    leaves_out: |cell, effort| {
        let is_short = matches!(effort, Effort::Glance | Effort::Emulated { .. });
        is_short && cell.number("objects") > 1_000
    },
    says: SAYS,
    plots,
    ..Study::with(|context, cells| {
        let pairs = cells.iter().map(|cell| Pair::start(context, cell));
        pairs.collect::<Result<_, _>>().map(Pairs)
    })
};

fn plots() -> Vec<Plot> {
    vec![Plot {
        caption:
            "Medians, from zero up. A flat line means that the time does not grow with the number."
                .to_owned(),
        x: "objects".to_owned(),
        lines: words(&["operations"]),
        log_x: true,
        ..Plot::named("objects", "Time against the number of objects")
    }]
}

/// A server and a client for each cell.
#[derive(Debug)]
pub struct Pairs(Vec<Pair>);

impl Subject for Pairs {
    fn scheduling(&mut self) -> Result<Vec<ObtainedScheduling>, LabError> {
        let processes = self.0.iter().flat_map(|pair| [&pair.server, &pair.client]);
        Ok(processes.filter_map(Process::scheduling).collect())
    }

    fn measure(&mut self, cell: &Cell<'_>, turn: &Turn<'_>) -> Result<Sampled, LabError> {
        let mut pairs = self.0.iter_mut();
        let pair = pairs.find(|pair| pair.of == numbers(cell));
        let pair = pair.expect("each cell has a pair");
        let messages = Operation::Void.message_bytes(0, pair.key_bytes);
        let burst = Burst {
            verb: Verb::Call,
            operation: Operation::Void,
            len: 0,
            warm_up: 200,
            count: turn.samples,
            budget_ns: 300_000_000,
            request_bytes: messages.request,
            reply_bytes: messages.reply,
            period_ns: 0,
        };
        let samples = burst.ask(&mut pair.client)?;
        std::thread::sleep(PAUSE);
        Ok(Sampled {
            wrong: samples.wrong,
            ..Sampled::whole(samples.times_ns)
        })
    }
}

/// A running server and its client.
#[derive(Debug)]
pub struct Pair {
    /// Operations and objects.
    of: [usize; 2],
    key_bytes: usize,
    // In this order: the client is ended before the server that it is connected to.
    client: Process,
    server: Process,
}

impl Pair {
    fn start(context: &Context, cell: &Cell<'_>) -> Result<Self, LabError> {
        let [operations, objects] = numbers(cell);
        let name = format!("rtorb {objects} objects {operations} operations");
        let launcher = &context.launcher;
        let transport = transport(launcher);
        let endpoint = match transport {
            Transport::Tcp => launcher.server_endpoint(),
            _ => {
                let name = format!("demux-{operations}-{objects}.socket");
                format!("uiop://{}", context.folder().join(name).display())
            }
        };
        let (operations, objects) = (operations.to_string(), objects.to_string());
        let role = ["demux-server", &endpoint, &operations, &objects];
        let server = launcher.start_server(&format!("{name} server"), &role)?;
        let mut role = vec!["demux-client", &operations];
        role.extend(server.words());
        let client = launcher.start(&format!("{name} client"), &role)?;
        let key_bytes = server.words().next().and_then(key_bytes).unwrap_or(0);
        Ok(Self {
            of: numbers(cell),
            key_bytes,
            client,
            server,
        })
    }
}

/// Operations and objects of a cell.
fn numbers(cell: &Cell<'_>) -> [usize; 2] {
    ["operations", "objects"].map(|label| cell.number(label))
}

/// The fastest that reaches the server.
fn transport(launcher: &Launcher) -> Transport {
    match launcher.agent() {
        Some(_) => Transport::Tcp,
        None => Transport::Unix,
    }
}

/// The median beside that of one object with one operation, round by round.
const TO_SMALLEST: Metric = Metric::of(P50).with(&[Over(P50, SMALLEST)]);
const SMALLEST: &str = "operations=1, objects=1";
const OTHERS: &str = "operations>1 | objects>1";

const SAYS: Statements = Statements {
    highlights: &[HighlightOf {
        what: "{objects} objects with {operations} operations, to one of each",
        of: OTHERS,
        metric: TO_SMALLEST,
        unit: "×",
        beside: Words::text("1.0 is flat"),
    }],
    derived: &[DerivedOf {
        name: "to_smallest",
        of: OTHERS,
        without: &["orb", "part"],
        metric: TO_SMALLEST,
        unit: "ratio",
    }],
    // Medians of rounds of one and the same call differ by as much from run to run.
    claims: &[Declaration::at_most(
        "to-smallest.{objects}.{operations}",
        TO_SMALLEST,
        1.05,
        "ratio",
    )
    .of(
        OTHERS,
        "{objects} objects with {operations} operations: the median, to that with one of each",
    )],
    ..Statements::NONE
};

const PAUSE: Duration = Duration::from_millis(2);
