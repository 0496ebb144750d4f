//! The octets by what they were counted of, and what follows from them.

use std::collections::BTreeMap;

use rtorb_results::by_round::ByRound;
use rtorb_results::cells::Cells;
use rtorb_results::{
    Derived, Highlight, LabelValue, Labels, ObtainedScheduling, Plot, PlotKind, Published, Series,
    StatisticName, labels, labels_with, labels_without,
};

use super::library::Library;
use super::memory::{Memory, PRIVATE_DIRTY};
use super::program::Program;
use crate::experiment::Outcome;

/// Everything that was counted.
#[derive(Debug, Default)]
pub(super) struct Measured {
    program: Option<Program>,
    /// `None` where the program has no symbols.
    library: Option<Library>,
    pub(super) scheduling: Vec<ObtainedScheduling>,
    /// Octets under each set of labels.
    octets: Cells,
    /// The most that any process had locked.
    locked_max: Option<u64>,
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
        let mut octets = Cells::default();
        for (counted, size) in program.named() {
            let names = [("what", "program".into()), ("counted", counted.into())];
            octets.add(&labels(names), 0, &[size], 0);
        }
        for (name, size) in library.iter().flat_map(Library::named) {
            let names = [
                ("what", "library_text".into()),
                ("crate", name.into()),
                ("counted", "code".into()),
            ];
            octets.add(&labels(names), 0, &[size], 0);
        }
        Self {
            program: Some(program),
            library,
            octets,
            ..Self::default()
        }
    }

    /// Adds the memory of a process in a round.
    pub(super) fn add(&mut self, process: &Labels, round: usize, memory: Memory) {
        self.locked_max = self.locked_max.max(Some(memory.locked));
        for (counted, octets) in memory.named() {
            let labels = labels_with(process, [("counted", counted.into())]);
            self.octets.add(&labels, round, &[octets], 0);
        }
    }

    pub(super) fn outcome(self, complete: bool) -> Outcome {
        let derived = self.derived();
        Outcome {
            complete,
            highlights: self.highlights(&derived),
            conclusions: self.conclusions(&derived),
            series: self.series(),
            columns: vec!["counted".to_owned()],
            plots: vec![plot()],
            published: self.published(),
            notes: self.notes(),
            derived,
            scheduling: self.scheduling,
            ..Outcome::default()
        }
    }

    fn series(&self) -> Vec<Series> {
        let mut all = self.octets.series(&Labels::new());
        all.iter_mut()
            .for_each(|series| BYTES.clone_into(&mut series.unit));
        all
    }

    /// The octets that each connection adds, by the line that fits best.
    fn derived(&self) -> Vec<Derived> {
        let mut lines: BTreeMap<Labels, Vec<(f64, ByRound)>> = BTreeMap::new();
        for (labels, octets) in self.octets.all() {
            let connections = labels.get("connections").and_then(LabelValue::number);
            if let Some(connections) = connections {
                let line = lines.entry(labels_without(labels, &["connections"]));
                let point = (connections as f64, octets.rounds(|round| round.p50));
                line.or_default().push(point);
            }
        }
        let per_connection = lines.into_iter().filter_map(|(labels, points)| {
            Derived::of_rounds("bytes_per_connection", labels, BYTES, &slopes(&points))
        });
        let locked = self.locked_max.map(|octets| Derived {
            name: "locked_max".to_owned(),
            labels: Labels::new(),
            unit: BYTES.to_owned(),
            value: octets as f64,
            rounds: Vec::new(),
        });
        per_connection.chain(locked).collect()
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = vec![NOTE.to_owned()];
        if self.program.is_some() && self.library.is_none() {
            notes.push(STRIPPED.to_owned());
        }
        if self.library.is_some() {
            notes.push(OF_SYMBOLS.to_owned());
        }
        notes
    }

    /// What an ORB and its connections cost, in words.
    fn conclusions(&self, derived: &[Derived]) -> Vec<String> {
        let mut found = Vec::new();
        if let Some(octets) = self.of_server() {
            let verdict = if octets < MEGABYTE {
                "less"
            } else {
                "not less"
            };
            found.push(format!(
                "A server with one object and no connection has written {:.0} KiB that it shares with nobody: {verdict} than the 1 MByte that P4 gives for an application.",
                octets / KIB
            ));
        }
        for (what, whose, why) in [
            (
                SERVER,
                "a server",
                "default has a thread for each, tao one for all",
            ),
            (
                CLIENTS,
                "a process of clients",
                "each connection has a client thread",
            ),
        ] {
            let costs: Vec<String> = private_per_connection(derived, what)
                .map(|(preset, octets)| format!("{:.1} KiB with the preset {preset}", octets / KIB))
                .collect();
            if !costs.is_empty() {
                found.push(format!(
                    "Each connection costs {whose} {}: {why}.",
                    costs.join(" and ")
                ));
            }
        }
        if let Some(library) = &self.library {
            let (orb, all) = (library.orb(), library.all);
            found.push(format!(
                "The ORB is {:.0} KiB of code, {:.0} % of the program's; the rest is the laboratory, its report, the command line and the libraries.",
                orb as f64 / KIB,
                100.0 * orb as f64 / all as f64
            ));
        }
        found
    }

    fn highlights(&self, derived: &[Derived]) -> Vec<Highlight> {
        let mut highlights = Vec::new();
        if let Some(octets) = self.of_server() {
            highlights.push(Highlight {
                what: "memory of a server with one object that it shares with no other process"
                    .to_owned(),
                value: octets / KIB,
                unit: "KiB".to_owned(),
                beside: "P4: less than 1 MByte".to_owned(),
            });
        }
        for (what, whose) in [(SERVER, "a server"), (CLIENTS, "the clients")] {
            let per_connection = private_per_connection(derived, what);
            highlights.extend(per_connection.map(|(preset, octets)| Highlight {
                what: format!("memory of {whose} for each connection, {preset}"),
                value: octets / KIB,
                unit: "KiB".to_owned(),
                beside: String::new(),
            }));
        }
        if let Some(library) = &self.library {
            highlights.push(Highlight {
                what: "code of the ORB in this program (rtorb, rtorb_core, rtorb_wire, rtorb_os)"
                    .to_owned(),
                value: library.orb() as f64 / KIB,
                unit: "KiB".to_owned(),
                beside: format!("the whole program: {:.0} KiB", library.all as f64 / KIB),
            });
        }
        highlights
    }

    fn published(&self) -> Vec<Published> {
        let mut published = Vec::new();
        if let Some(octets) = self.of_server() {
            published.push(Published {
                source: "P4 section 1.3".to_owned(),
                what: "memory of an application".to_owned(),
                published: "\"less than 1 MByte of RAM\"".to_owned(),
                ours: format!(
                    "{:.0} KiB written by a server with one object, preset default",
                    octets / KIB
                ),
            });
        }
        if let Some(program) = self.program {
            published.push(Published {
                source: "P0 Figure 7".to_owned(),
                what: "static size of libACE and libTAO".to_owned(),
                published: "the text has no numbers; it says that NT's was the smallest, QNX's of TAO and Linux's of ACE the largest".to_owned(),
                ours: self.library.as_ref().map_or_else(String::new, |library| {
                    let orb = library.orb();
                    format!(
                        "{:.0} KiB of code in the ORB's own crates; ",
                        orb as f64 / KIB
                    )
                }) + &format!(
                    "{:.0} KiB of text and data: this whole program, laboratory, report and command line included",
                    program.stripped() as f64 / KIB
                ),
            });
        }
        published
    }

    /// What a server with one object and no connection has written and shares with no other process.
    fn of_server(&self) -> Option<f64> {
        let process = process(SERVER, "default", 0);
        let labels = labels_with(&process, [("counted", PRIVATE_DIRTY.into())]);
        self.octets.get(&labels)?.median_ns()
    }
}

/// By preset, the octets that a connection adds to what a process has written and shares with no other.
fn private_per_connection<'a>(
    derived: &'a [Derived],
    what: &'a str,
) -> impl Iterator<Item = (String, f64)> {
    derived
        .iter()
        .filter(move |one| {
            one.labels.get("what") == Some(&what.into())
                && one.labels.get("counted") == Some(&PRIVATE_DIRTY.into())
        })
        .map(|one| (one.labels["preset"].to_string(), one.value))
}

fn plot() -> Plot {
    Plot {
        caption: "Octets that a process has written and shares with no other, while nobody calls."
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
const KIB: f64 = 1024.0;
const MEGABYTE: f64 = 1e6;
const NOTE: &str = "Memory was not locked: with mlockall(2) the whole of every thread's stack and of every mapping is resident. The derived number `locked_max` is the most that the kernel counted as locked.";
const STRIPPED: &str = "This program has no symbols, so the ORB's share of it cannot be told: a build by `cargo build --release` has them.";
const OF_SYMBOLS: &str = "The ORB's code is that of the functions whose names are of its crates (`library_text`). Functions of the standard library that were made for it are not in it, nor what was inlined into other crates; constants have no names, and are in the whole program's `text` alone.";

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(private_dirty: u64) -> Memory {
        Memory {
            private_dirty,
            ..Memory::default()
        }
    }

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
        for (connections, octets) in [(0, 1_024_000), (1, 1_032_192), (10, 1_105_920)] {
            measured.add(&process(SERVER, "default", connections), 0, memory(octets));
        }
        measured.add(&process(IDLE, "default", 0), 0, memory(512_000));
        let outcome = measured.outcome(true);
        let private: Vec<&Derived> = outcome
            .derived
            .iter()
            .filter(|one| one.labels.get("counted") == Some(&PRIVATE_DIRTY.into()))
            .collect();
        assert_eq!(private.len(), 1);
        assert!((private[0].value - 8_192.0).abs() < 1e-6);
        assert!((outcome.highlights[0].value - 1_000.0).abs() < 1e-6);
        assert!(outcome.series.iter().all(|series| series.unit == "bytes"));
        assert!(outcome.published[0].ours.starts_with("1000 KiB"));
        assert!(
            outcome.conclusions[0].contains("1000 KiB")
                && outcome.conclusions[0].contains("not less")
        );
        assert_eq!(
            outcome.conclusions[1],
            "Each connection costs a server 8.0 KiB with the preset default: default has a thread for each, tao one for all."
        );
        assert_eq!(outcome.conclusions.len(), 2);
        let locked = outcome.derived.iter().find(|one| one.name == "locked_max");
        assert!(locked.is_some_and(|one| one.value == 0.0));
    }
}
