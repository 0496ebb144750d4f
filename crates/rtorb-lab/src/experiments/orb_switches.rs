//! `orb/switches`: how many context switches a call needs, with more and more clients, each in a thread with a priority of its
//! own.
//!
//! P2 expects two: to the thread of the servant, and back. It has client and server in one process, where the platform has
//! processes; most systems have two.

use std::time::Duration;

use indexmap::IndexMap;
use rtorb_results::by_round::ByRound;
use rtorb_results::cells::Cells;
use rtorb_results::{
    Claim, Highlight, Labels, ObtainedScheduling, Plot, PlotKind, Published, Series, StatisticName,
    labels_with,
};

use crate::contestants::whitebox::threads::ThreadSums;
use crate::error::LabError;
use crate::experiment::Context;
use crate::processes::Process;
use crate::processes::probe::Probe;
use crate::study::{
    Amounts, Cell, Conditions, Factor, Findings, Sampled, Study, Subject, Turn,
    Value::{Number, Text},
};
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
        Factor {
            label: PROCESSES,
            levels: &[Text(ONE), Text("two")],
        },
        Factor {
            label: LOW_CLIENTS,
            levels: &[
                Number(1),
                Number(5),
                Number(10),
                Number(20),
                Number(30),
                Number(40),
                Number(MOST as i64),
            ],
        },
    ],
    fixed: &[
        ("orb", Text("rtorb")),
        ("preset", Text("tao")),
        ("transport", Text("tcp")),
        ("operation", Text("octet")),
    ],
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
    findings,
    ..Study::with(|context, _| Processes::start(context))
};

fn plots() -> Vec<Plot> {
    vec![Plot {
        caption: "Of client and server together, voluntary and involuntary. P2 expects two."
            .to_owned(),
        kind: PlotKind::Lines,
        lines: vec![PROCESSES.to_owned()],
        x: LOW_CLIENTS.to_owned(),
        x_title: "low-priority clients".to_owned(),
        values: vec![StatisticName::P50],
        ..Plot::named("switches", "Context switches of a call")
    }]
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
        let mut server = launcher.start("tao server", &role)?;
        let references = server.ready()?;
        Ok(Self {
            probe: Probe::start(launcher, "clients")?,
            references: references.split(' ').map(str::to_owned).collect(),
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
        let clients = question.low_clients + 1;
        answer
            .numbers
            .insert(CALLS.to_owned(), (clients * question.calls) as f64);
        Ok(Sampled::kept(answer))
    }
}

fn findings(_: &Cells, conditions: &Conditions) -> Findings {
    let cells = switches(conditions);
    let series = cells.iter().map(|(labels, counted)| {
        let rounds = counted.rounds.values();
        Series::of_counts(labels.clone(), "per_request", counted.calls, &rounds)
    });
    let with_most = cells
        .iter()
        .filter(|(labels, _)| labels[LOW_CLIENTS] == MOST.into());
    let shown: Vec<(String, f64)> = with_most
        .filter_map(|(labels, counted)| {
            Some((labels[PROCESSES].to_string(), counted.rounds.median()?))
        })
        .collect();
    let highlight = |(processes, value): &(String, f64)| Highlight {
        what: format!(
            "context switches a call, client and server in {}, {MOST} low-priority clients",
            in_words(processes)
        ),
        value: *value,
        unit: String::new(),
        beside: "P2: 2".to_owned(),
    };
    let words: Vec<String> = shown
        .iter()
        .map(|(processes, value)| format!("{value:.2} in {}", in_words(processes)))
        .collect();
    let conclusion = format!(
        "Beside {MOST} low-priority clients, the context switches of a two-way call are {}.",
        words.join(" and ")
    );
    let published = (!words.is_empty()).then(|| Published {
        source: "P2 section 3.1.2 (Solaris, NT)".to_owned(),
        what: "context switches of a two-way call, 1 to 50 low-priority clients".to_owned(),
        published: "2 on average".to_owned(),
        ours: format!("{}, {MOST} low-priority clients", words.join(", ")),
    });
    Findings {
        series: series.collect(),
        highlights: shown.iter().map(highlight).collect(),
        claims: cells.iter().filter_map(claim).collect(),
        conclusions: published.as_ref().map(|_| conclusion).into_iter().collect(),
        published: published.into_iter().collect(),
        ..Findings::default()
    }
}

/// The number of calls, and the switches of a call in each round.
#[derive(Default)]
struct Counted {
    calls: u64,
    rounds: ByRound,
}

/// What was counted in each cell.
fn switches(conditions: &Conditions) -> IndexMap<Labels, Counted> {
    let mut all: IndexMap<Labels, Counted> = IndexMap::new();
    for kept in &conditions.answers {
        let numbers = &kept.answer.numbers;
        let (Some(switches), Some(calls)) = (numbers.get(SWITCHES), numbers.get(CALLS)) else {
            continue;
        };
        let labels = labels_with(&kept.labels, [("what", "switches".into())]);
        let counted = all.entry(labels).or_default();
        counted.calls += *calls as u64;
        counted.rounds.set(kept.round, switches / calls);
    }
    all
}

fn claim((labels, counted): (&Labels, &Counted)) -> Option<Claim> {
    let (processes, low_clients) = (&labels[PROCESSES], &labels[LOW_CLIENTS]);
    Claim::at_most(
        format!("per-call.{processes}.{low_clients}"),
        format!(
            "client and server in {}, low-priority clients: {low_clients}: context switches a call",
            in_words(&processes.to_string())
        ),
        &counted.rounds,
        SWITCHES_MAX,
        "switches",
    )
}

fn in_words(processes: &str) -> &'static str {
    match processes {
        ONE => "one process",
        _ => "two processes",
    }
}

const PROCESSES: &str = "processes";
const ONE: &str = "one";
const LOW_CLIENTS: &str = "low_clients";
/// The number that has the calls of all clients.
const CALLS: &str = "calls";
/// P2's largest number of low-priority clients.
const MOST: usize = 50;
/// Two, and what the beginning and the end of a client's thread add.
const SWITCHES_MAX: f64 = 2.1;
/// Far longer than all calls take.
const WITHIN: Duration = Duration::from_secs(20);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::processes::probe::Answer;
    use crate::study::Answered;
    use rtorb_results::{Verdict, labels};
    use std::collections::BTreeMap;

    fn found(switches: [f64; 6]) -> Findings {
        let answered = |(round, per_call): (usize, f64)| Answered {
            labels: labels([(PROCESSES, ONE.into()), (LOW_CLIENTS, MOST.into())]),
            round,
            answer: Answer {
                numbers: BTreeMap::from([
                    (SWITCHES.to_owned(), per_call * 100.0),
                    (CALLS.to_owned(), 100.0),
                ]),
                ..Answer::default()
            },
        };
        let answers = switches.into_iter().enumerate().map(answered).collect();
        let conditions = Conditions {
            answers,
            ..Conditions::default()
        };
        findings(&Cells::default(), &conditions)
    }

    #[test]
    fn a_call_may_have_two_switches() {
        let verdict = |switches| found(switches).claims[0].verdict;
        assert_eq!(verdict([2.0; 6]), Verdict::Held);
        assert_eq!(verdict([2.5, 2.5, 2.6, 2.5, 2.4, 2.5]), Verdict::Missed);
        assert_eq!(verdict([1.9, 3.0, 1.8, 2.9, 1.9, 3.0]), Verdict::NotJudged);
    }

    #[test]
    fn the_switches_are_those_of_a_call() {
        let found = found([2.0; 6]);
        assert_eq!(
            (found.series[0].count, found.series[0].statistics.p50),
            (600, 2.0)
        );
        assert!(found.published[0].ours.contains("2.00 in one process"));
        let expected = "Beside 50 low-priority clients, the context switches of a two-way call are 2.00 in one process.";
        assert_eq!(found.conclusions, [expected]);
    }
}
