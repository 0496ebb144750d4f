//! The bytes by what they were counted of, and what is said of them.

use std::collections::BTreeMap;

use rtorb_results::by_round::ByRound;
use rtorb_results::cells::Cells;
use rtorb_results::claim::Grounds;
use rtorb_results::metric::{Metric, Statistic::P50, Step::Times};
use rtorb_results::statements::{HighlightOf, PublishedOf, Sentence, Statements, Words};
use rtorb_results::{
    Derived, LabelValue, Labels, ObtainedScheduling, Plot, PlotKind, StatisticName, labels,
    labels_with, labels_without,
};

use super::library::Library;
use super::memory::{Memory, PRIVATE_DIRTY};
use super::program::Program;
use crate::experiment::Outcome;

/// Everything that was counted.
#[derive(Debug, Default)]
pub(super) struct Measured {
    /// The program has symbols.
    has_symbols: bool,
    pub(super) scheduling: Vec<ObtainedScheduling>,
    /// Bytes under each set of labels.
    bytes: Cells,
}

/// The labels of a process but for what is counted of it.
pub(super) fn process(what: &str, preset: &str, connections: usize) -> Labels {
    labels([
        ("what", what.into()),
        ("preset", preset.into()),
        ("connections", connections.into()),
    ])
}

impl Measured {
    /// What is the same in all rounds.
    pub(super) fn of(program: Program, library: Option<Library>) -> Self {
        let mut bytes = Cells::default();
        for (counted, size) in program.named() {
            let names = [("what", "program".into()), ("counted", counted.into())];
            add(&mut bytes, &labels(names), 0, size);
        }
        for (name, size) in library.iter().flat_map(Library::named) {
            let names = [
                ("what", "library_text".into()),
                ("crate", name.into()),
                ("counted", "code".into()),
            ];
            add(&mut bytes, &labels(names), 0, size);
        }
        Self {
            has_symbols: library.is_some(),
            bytes,
            ..Self::default()
        }
    }

    /// Adds the memory of a process in a round.
    pub(super) fn add(&mut self, process: &Labels, round: usize, memory: Memory) {
        for (counted, size) in memory.named() {
            let labels = labels_with(process, [("counted", counted.into())]);
            add(&mut self.bytes, &labels, round, size);
        }
    }

    pub(super) fn outcome(self, complete: bool) -> Outcome {
        let said = SAYS.evaluate(&Grounds::of(&self.bytes, 1));
        let note = if self.has_symbols {
            OF_SYMBOLS
        } else {
            STRIPPED
        };
        Outcome {
            complete,
            highlights: said.highlights,
            conclusions: said.conclusions,
            series: self.bytes.series(&Labels::new()),
            columns: vec!["counted".to_owned()],
            plots: vec![plot()],
            published: said.published,
            notes: [NOTE, note].map(str::to_owned).into(),
            derived: self.per_connection(),
            scheduling: self.scheduling,
            ..Outcome::default()
        }
    }

    /// The bytes that each connection adds, by the line that fits best.
    fn per_connection(&self) -> Vec<Derived> {
        let mut lines: BTreeMap<Labels, Vec<(f64, ByRound)>> = BTreeMap::new();
        for (labels, bytes) in self.bytes.all() {
            let connections = labels.get("connections").and_then(LabelValue::number);
            if let Some(connections) = connections {
                let line = lines.entry(labels_without(labels, &["connections"]));
                let point = (connections as f64, bytes.rounds(|round| round.p50));
                line.or_default().push(point);
            }
        }
        let per_connection = lines.into_iter().filter_map(|(labels, points)| {
            Derived::of_rounds("bytes_per_connection", labels, BYTES, &slopes(&points))
        });
        per_connection.collect()
    }
}

fn add(bytes: &mut Cells, labels: &Labels, round: usize, size: u64) {
    bytes.add_count(labels, round, size as f64, (BYTES, 1));
}

const IN_KIB: Metric = Metric::of(P50).with(&[Times(1.0 / 1024.0)]);
/// What a server with one object and no connection has written and shares with no other process.
const OF_SERVER: &str = "what=server, preset=default, connections=0, counted=private_dirty";
const OF_LIBRARY: &str = "what=library_text, crate=orb";

const SAYS: Statements = Statements {
    highlights: &[
        HighlightOf {
            what: "memory of a server with one object that it shares with no other process",
            of: OF_SERVER,
            metric: IN_KIB,
            unit: "KiB",
            beside: Words::text("P4: less than 1 MByte"),
        },
        HighlightOf {
            what: "memory of a server with 100 connections, {preset}",
            of: "what=server, connections=100, counted=private_dirty",
            metric: IN_KIB,
            unit: "KiB",
            beside: Words::with("without any {0}", &[(IN_KIB.at("connections=0"), "KiB")]),
        },
        HighlightOf {
            what: "code of the ORB in this program (rtorb, rtorb_core, rtorb_wire, rtorb_os)",
            of: OF_LIBRARY,
            metric: IN_KIB,
            unit: "KiB",
            beside: Words::with("the whole program: {0}", &[(IN_KIB.at("crate=all"), "KiB")]),
        },
    ],
    published: &[
        PublishedOf {
            source: "P4 section 1.3",
            what: "memory of an application",
            published: "\"less than 1 MByte of RAM\"",
            of: OF_SERVER,
            ours: Words::with(
                "{0} written by a server with one object, preset default",
                &[(IN_KIB, "KiB")],
            ),
        },
        PublishedOf {
            source: "P0 Figure 7",
            what: "static size of libACE and libTAO",
            published: "the text has no numbers; it says that NT's was the smallest, QNX's of TAO and Linux's of ACE the largest",
            of: "what=program, counted=stripped",
            ours: Words::with(
                "{0} of text and data: this whole program, laboratory, report and command line included",
                &[(IN_KIB, "KiB")],
            ),
        },
    ],
    conclusions: &[Sentence {
        of: "what=server, connections=1000, counted=private_dirty",
        says: Words::with(
            "A server with the preset {preset} has written {0} with 1,000 connections, and {1} without any.",
            &[(IN_KIB, "KiB"), (IN_KIB.at("connections=0"), "KiB")],
        ),
    }],
    ..Statements::NONE
};

fn plot() -> Plot {
    Plot {
        caption: "Bytes that a process has written and shares with no other process. No client calls meanwhile."
            .to_owned(),
        kind: PlotKind::Lines,
        of: labels([("counted", PRIVATE_DIRTY.into())]),
        lines: vec!["what".to_owned(), "preset".to_owned()],
        x: "connections".to_owned(),
        x_title: "connections".to_owned(),
        values: vec![StatisticName::P50],
        ..Plot::named("memory-against-connections", "Memory against connections")
    }
}

/// The slope of each round: that of the line through these points with the least squares. None if all are at one place.
fn slopes(points: &[(f64, ByRound)]) -> ByRound {
    let mean = points.iter().map(|(x, _)| x).sum::<f64>() / points.len() as f64;
    let squares: f64 = points.iter().map(|(x, _)| (x - mean).powi(2)).sum();
    let shares = points
        .iter()
        .filter(|_| squares > 0.0)
        .map(|(x, rounds)| rounds.map(|y| (x - mean) * y / squares));
    let slopes = shares.reduce(|some, share| some.paired(&share, |some, share| some + share));
    slopes.unwrap_or_default()
}

/// Whose memory: a process with an ORB and nothing else; a server with one object; clients, with a thread for each connection.
pub(super) const IDLE: &str = "idle_orb";
pub(super) const SERVER: &str = "server";
pub(super) const CLIENTS: &str = "clients";
const BYTES: &str = "bytes";
const NOTE: &str = "Memory was not locked: with mlockall(2) the whole of every thread's stack and of every mapping is resident.";
const STRIPPED: &str = "This program has no symbols, so the ORB's share of it cannot be told: a build by `cargo build --release` has them.";
const OF_SYMBOLS: &str = "The ORB's code is that of the functions whose names are of its crates (`library_text`). Functions of the standard library that were made for it are not in it, nor what was inlined into other crates; constants have no names, and are in the whole program's `text` alone.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_costs_the_slope_of_each_round() {
        let point = |connections, octets: [f64; 2]| (connections, ByRound::from(&octets[..]));
        let line = [
            point(0.0, [5.0; 2]),
            point(10.0, [25.0, 35.0]),
            point(100.0, [205.0, 305.0]),
        ];
        let found = slopes(&line).values();
        assert!(
            (found[0] - 2.0).abs() < 1e-9 && (found[1] - 3.0).abs() < 1e-9,
            "{found:?}"
        );
        assert_eq!(slopes(&line[..1]).len() + slopes(&[]).len(), 0);
        let lost = (200.0, [(1, 605.0)].into_iter().collect());
        let rounds: Vec<usize> = slopes(&[&line[..], &[lost]].concat())
            .each()
            .map(|(round, _)| round)
            .collect();
        assert_eq!(rounds, [1]);
    }

    #[test]
    fn what_follows_is_of_what_was_counted() {
        let mut measured = Measured::default();
        for (connections, bytes) in [(0, 1_024_000), (1, 1_032_192), (10, 1_105_920)] {
            let memory = Memory {
                private_dirty: bytes,
                ..Memory::default()
            };
            measured.add(&process(SERVER, "default", connections), 0, memory);
        }
        let outcome = measured.outcome(true);
        let counted = LabelValue::from(PRIVATE_DIRTY);
        let mut derived = outcome.derived.iter();
        let private = derived.find(|one| one.labels["counted"] == counted);
        assert!(private.is_some_and(|one| (one.value - 8_192.0).abs() < 1e-6));
        assert!((outcome.highlights[0].value - 1_000.0).abs() < 1e-6);
        assert!(outcome.series.iter().all(|series| series.unit == "bytes"));
        assert!(outcome.published[0].ours.starts_with("1000 KiB"));
    }
}
