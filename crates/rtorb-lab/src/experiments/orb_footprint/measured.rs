//! The octets by what they were counted of, and what follows from them.

use std::collections::BTreeMap;

use rtorb_results::statistics::{Recorder, median};
use rtorb_results::{
    Derived, Highlight, Labels, ObtainedScheduling, Plot, PlotKind, Published, Series,
    StatisticName, labels,
};

use super::library::Library;
use super::memory::{Memory, PRIVATE_DIRTY};
use super::program::Program;
use crate::experiment::Outcome;

/// Whose memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum What {
    /// A process with an ORB and nothing else.
    Idle,
    /// A server with one object.
    Server,
    /// A process of clients, a thread for each connection.
    Client,
}

impl What {
    fn label(self) -> &'static str {
        match self {
            Self::Idle => "idle_orb",
            Self::Server => "server",
            Self::Client => "clients",
        }
    }
}

/// What tells one series from another: whose memory, of which preset, with how many connections, counted how.
type Key = (What, &'static str, usize, &'static str);

/// A number of connections, and the octets of each round.
type Point<'a> = (usize, &'a [u64]);

/// Everything that was counted.
#[derive(Debug, Default)]
pub(super) struct Measured {
    pub(super) program: Option<Program>,
    /// `None` where the program has no symbols.
    pub(super) library: Option<Library>,
    pub(super) scheduling: Vec<ObtainedScheduling>,
    /// By key, the octets of each round.
    octets: BTreeMap<Key, Vec<u64>>,
    /// The most that any process had locked.
    locked_max: Option<u64>,
}

impl Measured {
    pub(super) fn add(
        &mut self,
        what: What,
        preset: &'static str,
        connections: usize,
        memory: Memory,
    ) {
        self.locked_max = self.locked_max.max(Some(memory.locked));
        for (counted, octets) in memory.named() {
            let key = (what, preset, connections, counted);
            self.octets.entry(key).or_default().push(octets);
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
        let program = self.program.iter().flat_map(|program| {
            [
                ("text", program.text),
                ("data", program.data),
                ("bss", program.bss),
                ("stripped", program.stripped()),
                ("file", program.file),
            ]
            .map(|(counted, octets)| {
                let names = [("what", "program".into()), ("counted", counted.into())];
                series(labels(names), &[octets])
            })
        });
        let library = self.library_octets().map(|(name, octets)| {
            let names = [
                ("what", "library_text".into()),
                ("crate", name.into()),
                ("counted", "code".into()),
            ];
            series(labels(names), &[octets])
        });
        let memory = self
            .octets
            .iter()
            .map(|((what, preset, connections, counted), octets)| {
                let names = [
                    ("what", what.label().into()),
                    ("preset", (*preset).into()),
                    ("connections", (*connections).into()),
                    ("counted", (*counted).into()),
                ];
                series(labels(names), octets)
            });
        program.chain(library).chain(memory).collect()
    }

    /// Each crate of the ORB, these together, and all of the program.
    fn library_octets(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.library.iter().flat_map(|library| {
            let crates = library.crates.iter().map(|(name, octets)| (*name, *octets));
            crates.chain([("orb", library.orb()), ("all", library.all)])
        })
    }

    /// The octets that each connection adds, by the line that fits best.
    fn derived(&self) -> Vec<Derived> {
        let mut lines: BTreeMap<(What, &str, &str), Vec<Point<'_>>> = BTreeMap::new();
        for ((what, preset, connections, counted), octets) in &self.octets {
            let line = lines.entry((*what, preset, counted)).or_default();
            line.push((*connections, octets));
        }
        let per_connection = lines
            .into_iter()
            .filter_map(|((what, preset, counted), points)| {
                let rounds = points.iter().map(|(_, octets)| octets.len()).min()?;
                let slopes: Vec<f64> = (0..rounds)
                    .filter_map(|round| {
                        let of_round = points.iter().map(|(connections, octets)| {
                            (*connections as f64, octets[round] as f64)
                        });
                        slope(&of_round.collect::<Vec<_>>())
                    })
                    .collect();
                Some(Derived {
                    name: "bytes_per_connection".to_owned(),
                    labels: labels([
                        ("what", what.label().into()),
                        ("preset", preset.into()),
                        ("counted", counted.into()),
                    ]),
                    unit: "bytes".to_owned(),
                    value: median(&slopes)?,
                    rounds: slopes,
                })
            });
        let locked = self.locked_max.map(|octets| Derived {
            name: "locked_max".to_owned(),
            labels: Labels::new(),
            unit: "bytes".to_owned(),
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
        if let Some(octets) = self.private(What::Server, 0) {
            let verdict = match octets < MEGABYTE {
                true => "less",
                false => "not less",
            };
            found.push(format!(
                "A server with one object and no connection has written {:.0} KiB that it shares with nobody: {verdict} than the 1 MByte that P4 gives for an application.",
                octets / KIB
            ));
        }
        for what in [What::Server, What::Client] {
            let costs: Vec<String> = private_per_connection(derived, what)
                .map(|(preset, octets)| format!("{:.1} KiB with the preset {preset}", octets / KIB))
                .collect();
            if !costs.is_empty() {
                let (whose, why) = match what {
                    What::Server => ("a server", "default has a thread for each, tao one for all"),
                    _ => (
                        "a process of clients",
                        "each connection has a client thread",
                    ),
                };
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
        if let Some(octets) = self.private(What::Server, 0) {
            highlights.push(Highlight {
                what: "memory of a server with one object that it shares with no other process"
                    .to_owned(),
                value: octets / KIB,
                unit: "KiB".to_owned(),
                beside: "P4: less than 1 MByte".to_owned(),
            });
        }
        for (what, whose) in [(What::Server, "a server"), (What::Client, "the clients")] {
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
                what: "code of the ORB in this program (rtorb, rtorb_wire, rtorb_os)".to_owned(),
                value: library.orb() as f64 / KIB,
                unit: "KiB".to_owned(),
                beside: format!("the whole program: {:.0} KiB", library.all as f64 / KIB),
            });
        }
        highlights
    }

    fn published(&self) -> Vec<Published> {
        let mut published = Vec::new();
        if let Some(octets) = self.private(What::Server, 0) {
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

    fn private(&self, what: What, connections: usize) -> Option<f64> {
        let octets = self
            .octets
            .get(&(what, "default", connections, PRIVATE_DIRTY))?;
        median(
            &octets
                .iter()
                .map(|octets| *octets as f64)
                .collect::<Vec<_>>(),
        )
    }
}

/// By preset, the octets that a connection adds to what a process has written and shares with no other.
fn private_per_connection(
    derived: &[Derived],
    what: What,
) -> impl Iterator<Item = (String, f64)> + '_ {
    derived
        .iter()
        .filter(move |one| {
            one.labels.get("what") == Some(&what.label().into())
                && one.labels.get("counted") == Some(&PRIVATE_DIRTY.into())
        })
        .map(|one| (one.labels["preset"].to_string(), one.value))
}

fn series(labels: Labels, octets: &[u64]) -> Series {
    let mut recorder = Recorder::new();
    octets.iter().for_each(|octets| recorder.record(*octets));
    Series {
        unit: "bytes".to_owned(),
        rounds_p50: octets.iter().map(|octets| *octets as f64).collect(),
        ..Series::from_recorder(labels, &recorder)
    }
}

fn plot() -> Plot {
    Plot {
        id: "memory-against-connections".to_owned(),
        title: "Memory against connections".to_owned(),
        caption: "Octets that a process has written and shares with no other, while nobody calls."
            .to_owned(),
        kind: PlotKind::Lines,
        of: labels([("counted", PRIVATE_DIRTY.into())]),
        lines: vec!["what".to_owned(), "preset".to_owned()],
        x: "connections".to_owned(),
        x_title: "connections".to_owned(),
        values: vec![StatisticName::P50],
        ..Plot::default()
    }
}

/// Of the line through these points with the least squares; `None` when all are at one place.
fn slope(points: &[(f64, f64)]) -> Option<f64> {
    let count = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x_mean, y_mean) = (mean(|point| point.0), mean(|point| point.1));
    let (above, below) = points.iter().fold((0.0, 0.0), |(above, below), (x, y)| {
        let distance = x - x_mean;
        (above + distance * (y - y_mean), below + distance * distance)
    });
    (below > 0.0).then(|| above / below)
}

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
    fn a_connection_costs_the_slope() {
        assert_eq!(
            slope(&[(0.0, 5.0), (10.0, 25.0), (100.0, 205.0)]),
            Some(2.0)
        );
        assert_eq!(slope(&[(3.0, 5.0), (3.0, 6.0)]), None);
        assert_eq!(slope(&[]), None);
    }

    #[test]
    fn what_follows_is_of_what_was_counted() {
        let mut measured = Measured::default();
        for (connections, octets) in [(0, 1_024_000), (1, 1_032_192), (10, 1_105_920)] {
            measured.add(What::Server, "default", connections, memory(octets));
        }
        measured.add(What::Idle, "default", 0, memory(512_000));
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
