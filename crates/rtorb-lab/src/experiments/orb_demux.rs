//! `orb/demux`: the cost of finding servant and operation as their numbers grow.

use std::time::Duration;

use crate::contestants::Transport;
use crate::contestants::burst::{Burst, Verb};
use crate::contestants::operations::Operation;
use crate::experiments::prelude::*;
use crate::processes::Process;

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
    fixed: "orb=rtorb, part=call",
    labels_of_run: |context| labels([("transport", transport(context).label().into())]),
    agents_max: 1,
    leaves_out: |cell, effort| {
        let is_short = matches!(effort, Effort::Glance | Effort::Emulated { .. });
        is_short && cell.number("objects") > 1_000
    },
    says: SAYS,
    plots,
    ..Study::with(Pairs::start)
};

fn plots() -> Vec<Plot> {
    vec![Plot::line_chart("objects", "Time against the number of objects")
        .caption(
            "Medians, from zero up. A flat line means that the time does not grow with the number.",
        )
        .x("objects")
        .lines(["operations"])
        .log_x()]
}

/// A client and its server for each cell. The client is ended first.
#[derive(Debug)]
pub struct Pairs(Vec<(Labels, [Process; 2])>);

impl Pairs {
    fn start(context: &Context, cells: &[Cell<'_>]) -> Result<Self, LabError> {
        let launcher = &context.launcher;
        let pair = |cell: &Cell<'_>| {
            let [operations, objects] = NUMBERS.map(|label| cell.number(label).to_string());
            let name = format!("rtorb {objects} objects {operations} operations");
            let socket = format!("demux-{operations}-{objects}");
            let endpoint = transport(context).endpoint_in(context.folder(), &socket);
            let endpoint = endpoint.unwrap_or_else(|| launcher.server_endpoint());
            let role = ["demux-server", &endpoint, &operations, &objects];
            let server = launcher.start_server(&format!("{name} server"), &role)?;
            let mut role = vec!["demux-client", &operations];
            role.extend(server.words());
            let client = launcher.start(&format!("{name} client"), &role)?;
            Ok((cell.levels(&NUMBERS), [client, server]))
        };
        cells.iter().map(pair).collect::<Result<_, _>>().map(Self)
    }
}

impl Subject for Pairs {
    fn scheduling(&mut self) -> Result<Vec<ObtainedScheduling>, LabError> {
        let processes = self.0.iter().flat_map(|(_, pair)| pair);
        Ok(processes.filter_map(Process::scheduling).collect())
    }

    fn measure(&mut self, cell: &Cell<'_>, turn: &Turn<'_>) -> Result<Sampled, LabError> {
        let mut pairs = self.0.iter_mut();
        let pair = pairs.find(|(of, _)| cell.is_of(of));
        let (_, [client, _]) = pair.expect("each cell has a pair");
        let burst = Burst {
            verb: Verb::Call,
            operation: Operation::Void,
            len: 0,
            warm_up: 200,
            count: turn.samples,
            budget_ns: 300_000_000,
            // Of a raw exchange.
            request_bytes: 0,
            reply_bytes: 0,
            period_ns: 0,
        };
        let samples = burst.ask(client)?;
        std::thread::sleep(PAUSE);
        Ok(Sampled {
            wrong: samples.wrong,
            ..Sampled::whole(samples.times_ns)
        })
    }
}

/// The fastest that reaches the server.
fn transport(context: &Context) -> Transport {
    match context.launcher.agent() {
        Some(_) => Transport::Tcp,
        None => Transport::Unix,
    }
}

/// The median beside that of one object with one operation, round by round.
const TO_SMALLEST: Metric = Metric::of(P50).with(&[Over(P50, SMALLEST)]);
const NUMBERS: [&str; 2] = ["operations", "objects"];
const SMALLEST: &str = "operations=1, objects=1";
const OTHERS: &str = "operations>1 | objects>1";

const SAYS: Statements = Statements {
    highlights: &[HighlightOf {
        what: "{objects} objects with {operations} operations, to one of each",
        of: OTHERS,
        metric: TO_SMALLEST.in_unit("×"),
        beside: Words::text("1.0 is flat"),
    }],
    derived: &[DerivedOf {
        name: "to_smallest",
        of: OTHERS,
        without: &["orb", "part"],
        metric: TO_SMALLEST,
    }],
    // Medians of rounds of one and the same call differ by as much from run to run.
    claims: &[
        Declaration::at_most("to-smallest.{objects}.{operations}", TO_SMALLEST, 1.05).of(
            OTHERS,
            "{objects} objects with {operations} operations: the median, to that with one of each",
        ),
    ],
    ..Statements::NONE
};

const PAUSE: Duration = Duration::from_millis(2);
