//! `orb/switches`: how many context switches a call needs, with more and more clients, each in a thread with a priority of its
//! own.
//!
//! P2 expects two: to the thread of the servant, and back. It has client and server in one process, where the platform has
//! processes; most systems have two.

use std::time::Duration;

use crate::contestants::whitebox::threads::ThreadSums;
use crate::experiments::prelude::*;
use crate::processes::Process;
use crate::processes::probe::Probe;
use probe::{Question, SWITCHES, objects};

pub mod probe;

/// The experiment.
pub const STUDY: Study<Processes> = Study {
    name: "orb/switches",
    title: "How many context switches a two-way call needs, with more and more clients",
    reproduces: "P2 section 3.1.2",
    amounts: Amounts {
        glance: 20,
        emulated: 100,
        quick: [5, 100],
        // P2's 4,000 calls of each client over the rounds.
        full: [5, 800],
        samples: "calls_of_each_client_and_round",
    },
    factors: &[
        Factor::texts(PROCESSES, &[ONE, "two"]),
        Factor::numbers(LOW_CLIENTS, &[1, 5, 10, 20, 30, 40, MOST as i64]),
    ],
    fixed: "orb=rtorb, preset=tao, transport=tcp, operation=octet",
    parameters: &[
        (
            "priorities",
            Text(
                "60 of the high-priority client, 59 and down of the others; the same of their servants",
            ),
        ),
        ("calls", Text("one after another")),
    ],
    columns: &[PROCESSES],
    leaves_out: |cell, effort| {
        !effort.is_full() && ![1, 10, MOST].contains(&cell.number(LOW_CLIENTS))
    },
    plots,
    says: SAYS,
    ..Study::with(|context, _| Processes::start(context))
};

fn plots() -> Vec<Plot> {
    vec![
        Plot::line_chart("switches", "Context switches of a call")
            .caption("Of client and server together, voluntary and involuntary. P2 expects two.")
            .lines([PROCESSES])
            .x(LOW_CLIENTS)
            .x_title("low-priority clients")
            .values([StatisticName::P50]),
    ]
}

/// The clients in a probe, which may have the server too, and a server of its own.
#[derive(Debug)]
pub struct Processes {
    probe: Probe<Question>,
    server: Process,
    references: Vec<String>,
}

impl Processes {
    fn start(context: &Context) -> Result<Self, LabError> {
        let launcher = &context.launcher;
        let objects = objects(launcher.is_real_time(), MOST);
        let objects: Vec<String> = objects.map(|object| object.to_string()).collect();
        let endpoint = launcher.server_endpoint();
        let mut role = vec!["rate-server", &endpoint, "tao"];
        role.extend(objects.iter().map(String::as_str));
        let server = launcher.start("tao server", &role)?;
        Ok(Self {
            probe: Probe::start(launcher, "clients")?,
            references: server.words().map(str::to_owned).collect(),
            server,
        })
    }

    fn server_switches(&self) -> Result<f64, LabError> {
        let sums = ThreadSums::of(self.server.id());
        let sums = sums.ok_or_else(|| LabError::process(self.server.name(), "it is gone"))?;
        Ok((sums.voluntary_switches + sums.involuntary_switches) as f64)
    }
}

impl Subject for Processes {
    fn scheduling(&mut self) -> Result<Vec<ObtainedScheduling>, LabError> {
        Ok(self.server.scheduling_by_priority())
    }

    fn measure(&mut self, cell: &Cell<'_>, turn: &Turn<'_>) -> Result<Sampled, LabError> {
        let is_one = cell.is(PROCESSES, ONE);
        let question = Question {
            references: if is_one {
                Vec::new()
            } else {
                self.references.clone()
            },
            real_time: turn.context.launcher.is_real_time(),
            low_clients: cell.number(LOW_CLIENTS),
            calls: turn.samples,
        };
        let before = self.server_switches()?;
        let mut answer = self.probe.ask(&question, WITHIN)?;
        if !is_one {
            let of_server = self.server_switches()? - before;
            *answer.numbers.entry(SWITCHES.to_owned()).or_default() += of_server;
        }
        let calls = ((question.low_clients + 1) * question.calls) as u64;
        let switches = answer.numbers.get(SWITCHES).copied().unwrap_or(0.0);
        let part = labels([("what", "switches".into())]);
        Ok(Sampled {
            scheduling: answer.scheduling,
            counts: vec![(part, switches / calls as f64, ("per_request", calls))],
            ..Sampled::default()
        })
    }
}

/// Context switches of a call.
const A_CALL: Metric = Metric::of(P50);
const WITH_MOST: &str = "low_clients=50, what=switches";

const SAYS: Statements = Statements {
    highlights: &[HighlightOf {
        what: "context switches a call, {processes} process(es), 50 low-priority clients",
        of: WITH_MOST,
        metric: A_CALL.in_unit(""),
        beside: Words::text("P2: 2"),
    }],
    // Two, and what the beginning and the end of a client's thread add.
    claims: &[
        Declaration::count("per-call.{processes}.{low_clients}", A_CALL.in_unit("switches"), 2.1).of(
            "what=switches",
            "client and server in {processes} process(es), low-priority clients: {low_clients}: context switches a call, in every round",
        ),
    ],
    published: &[PublishedOf {
        source: "P2 section 3.1.2 (Solaris, NT)",
        what: "context switches of a two-way call, 1 to 50 low-priority clients",
        published: "2 on average",
        of: WITH_MOST,
        ours: Words::with(
            "{0} in {processes} process(es), 50 low-priority clients",
            &[A_CALL.in_unit("")],
        ),
    }],
    ..Statements::NONE
};

const PROCESSES: &str = "processes";
const ONE: &str = "one";
const LOW_CLIENTS: &str = "low_clients";
/// P2's largest number of low-priority clients.
const MOST: usize = 50;
/// Far longer than all calls take.
const WITHIN: Duration = Duration::from_secs(20);
