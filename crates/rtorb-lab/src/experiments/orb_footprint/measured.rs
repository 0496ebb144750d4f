//! The octets by what they were counted of, and what follows from them.

use std::collections::BTreeMap;

use super::memory::{Memory, PRIVATE_DIRTY};
use super::program::Program;
use crate::experiment::Outcome;
use crate::results::{
    Derived, Highlight, Labels, ObtainedScheduling, Plot, PlotKind, Published, Series,
    StatisticName, labels,
};
use crate::statistics::{Recorder, median};

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

/// Everything that was counted.
#[derive(Debug, Default)]
pub(super) struct Measured {
    pub(super) program: Option<Program>,
    pub(super) scheduling: Vec<ObtainedScheduling>,
    /// By key, the octets of each round.
    octets: BTreeMap<Key, Vec<u64>>,
}

impl Measured {
    pub(super) fn add(
        &mut self,
        what: What,
        preset: &'static str,
        connections: usize,
        memory: Memory,
    ) {
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
            series: self.series(),
            columns: vec!["counted".to_owned()],
            plots: vec![plot()],
            published: self.published(),
            notes: vec![NOTE.to_owned()],
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
        program.chain(memory).collect()
    }

    /// The octets that each connection adds, by the line that fits best.
    fn derived(&self) -> Vec<Derived> {
        let mut lines: BTreeMap<(What, &str, &str), Vec<(usize, &[u64])>> = BTreeMap::new();
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
        per_connection.collect()
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
        let of_server = derived.iter().filter(|one| {
            one.labels.get("what") == Some(&What::Server.label().into())
                && one.labels.get("counted") == Some(&PRIVATE_DIRTY.into())
        });
        highlights.extend(of_server.map(|one| Highlight {
            what: format!(
                "memory of a server for each connection, {}",
                one.labels["preset"]
            ),
            value: one.value / KIB,
            unit: "KiB".to_owned(),
            beside: String::new(),
        }));
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
                ours: format!(
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
const NOTE: &str = "Memory was not locked: with mlockall(2) the whole of every thread's stack and of every mapping is resident. `locked` is what the kernel counted as locked.";

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
            .filter(|one| one.labels["counted"] == PRIVATE_DIRTY.into())
            .collect();
        assert_eq!(private.len(), 1);
        assert!((private[0].value - 8_192.0).abs() < 1e-6);
        assert!((outcome.highlights[0].value - 1_000.0).abs() < 1e-6);
        assert!(outcome.series.iter().all(|series| series.unit == "bytes"));
        assert!(outcome.published[0].ours.starts_with("1000 KiB"));
    }
}
