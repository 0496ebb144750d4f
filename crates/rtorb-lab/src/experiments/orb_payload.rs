//! `orb/payload`: latency from digital input to digital output against the size of the process data image, without and with load.

use indexmap::IndexMap;
use rtorb_results::cells::{Cells, Samples};
use rtorb_results::statistics::Statistics;
use rtorb_results::{
    Derived, Highlight, LabelValue, ObtainedScheduling, Plot, PlotKind, Published, StatisticName,
    labels,
};

use crate::contestants::Transport;
use crate::contestants::square_wave::system::{self, Role, System};
use crate::contestants::square_wave::{Part, Path, Run};
use crate::error::LabError;
use crate::experiments::beside::{LOADS, NONE, VariedLoad};
use crate::study::{
    Amounts, Cell, Conditions, Factor, Findings, Sampled, Study, Subject, Turn,
    Value::{Number, Text},
};

/// The experiment.
pub const STUDY: Study<OneReceiver> = Study {
    name: "orb/payload",
    title: "Latency from digital input to digital output against the size of the process data image that a call carries, without and with load",
    reproduces: "P4 Figure 10",
    amounts: Amounts {
        glance: 20,
        emulated: 20,
        quick: [2, 180],
        full: [10, 1_000],
        samples: "edges_per_round",
    },
    // The load varies slowest: to start it takes long. P4's example is an image of 1 KiB.
    factors: &[
        Factor {
            label: "load",
            levels: &LOADS,
        },
        Factor {
            label: SIZE,
            levels: &[
                Number(0),
                Number(64),
                Number(256),
                Number(1_024),
                Number(4_096),
                Number(16_384),
                Number(65_536),
            ],
        },
    ],
    fixed: &[
        ("orb", Text("rtorb")),
        ("preset", Text("tao")),
        ("transport", Text("tcp")),
    ],
    parameters: &[
        ("edges_hz", Number((1_000_000_000 / PERIOD_NS) as i64)),
        ("priority", Number(Role::High.priority() as i64)),
    ],
    columns: &["load"],
    labels_of_run: system::labels_of_run,
    agents_max: system::HOSTS,
    obstacle: system::obstacle,
    period_ns: PERIOD_NS,
    // An emulated machine has the load that it was booted for.
    leaves_out: |cell, effort| effort.seeds().is_some() && cell.is("load", NONE),
    plots,
    findings,
    notes: system::notes,
    ..Study::with(|context, _| {
        Ok(OneReceiver {
            system: System::start(context, Transport::Tcp, &[Role::High])?,
            load: VariedLoad::later(context, system::HOSTS),
        })
    })
};

/// A supplier and one receiver, and the load.
#[derive(Debug)]
pub struct OneReceiver {
    system: System,
    load: VariedLoad,
}

impl OneReceiver {
    fn run(&self, edges: usize, payload_bytes: usize) -> Run {
        Run {
            duration_ns: edges as u64 * PERIOD_NS,
            payload_bytes,
            path: Path::Call,
            waves: vec![self.system.wave(Role::High, PERIOD_NS, 0)],
        }
    }
}

impl Subject for OneReceiver {
    /// To start the load takes long.
    const BLOCKS: Option<&'static str> = Some("load");

    fn scheduling(&mut self) -> Result<Vec<ObtainedScheduling>, LabError> {
        let few = self.run(10, 0);
        self.system.roll_call(&few)
    }

    fn measure(&mut self, cell: &Cell<'_>, turn: &Turn<'_>) -> Result<Sampled, LabError> {
        let run = self.run(turn.samples, cell.number(SIZE));
        let load = self.load.set(cell, turn.context)?;
        let latencies = self.system.run(&run)?.pop().unwrap_or_default();
        self.load.check()?;
        let labelled = |(part, times_ns): (Part, _)| {
            let labels = labels([("part", part.name().into()), ("load", load.clone())]);
            (labels, times_ns)
        };
        let parts = Part::ALL.into_iter().zip(latencies.parts_ns);
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

fn findings(cells: &Cells, _: &Conditions) -> Findings {
    let wanted = [("part", LabelValue::from(Part::Call.name()))];
    let mut loads: IndexMap<&LabelValue, Vec<(usize, &Samples)>> = IndexMap::new();
    for (labels, samples) in cells.with(&wanted) {
        let size = labels.get(SIZE).and_then(LabelValue::number);
        let sizes = loads.entry(&labels["load"]).or_default();
        sizes.push((size.unwrap_or(0) as usize, samples));
    }
    let mut findings = Findings::default();
    for (load, mut sizes) in loads {
        sizes.sort_by_key(|(size, _)| *size);
        let words = DISTANCES.iter().filter_map(|distance| {
            let growth = Growth::of(&sizes, distance)?.words();
            let distance = distance.words;
            Some(format!(
                "Load {load}, from the best latency to the {distance}: {growth}."
            ))
        });
        findings.conclusions.extend(words);
        let growth = Growth::of(&sizes, &DISTANCES[0]);
        findings.published.extend(growth.map(|growth| Published {
            source: "P4 section 2.1, Figure 10".to_owned(),
            what: format!("the difference between immediate and worst case latency, load {load}"),
            published:
                "the larger the process data image is the larger is the difference".to_owned(),
            ours: format!("{}: {}", growth.verdict(), growth.words()),
        }));
        let highlights = sizes.iter().filter_map(|size| highlight(load, size));
        findings.highlights.extend(highlights);
        let derived = sizes.iter().flat_map(|size| distances(load, size));
        findings.derived.extend(derived);
    }
    findings
}

/// P4's example, the smallest and the largest.
fn highlight(load: &LabelValue, (size, samples): &(usize, &Samples)) -> Option<Highlight> {
    let all = samples.statistics();
    [0, 1_024, 65_536].contains(size).then(|| Highlight {
        what: format!("edge to output, load {load}, {size} octets of data, median"),
        value: all.p50 / 1e3,
        unit: "us".to_owned(),
        beside: format!(
            "best: {:.1} us, 99 %: {:.1} us, worst: {:.1} us",
            all.min / 1e3,
            all.p99 / 1e3,
            all.max / 1e3
        ),
    })
}

/// The distances of a size.
fn distances(load: &LabelValue, (size, samples): &(usize, &Samples)) -> Vec<Derived> {
    let derived = |distance: &Distance| {
        let labels = labels([
            ("preset", "tao".into()),
            ("transport", "tcp".into()),
            ("load", load.clone()),
            (SIZE, (*size).into()),
        ]);
        Derived::of_rounds(distance.name, labels, "ns", &samples.rounds(distance.of))
    };
    DISTANCES.iter().filter_map(derived).collect()
}

/// From the best latency to another one.
struct Distance {
    name: &'static str,
    words: &'static str,
    of: fn(&Statistics) -> f64,
}

const DISTANCES: [Distance; 2] = [
    Distance {
        name: "worst_less_best",
        words: "worst",
        of: |found| found.max - found.min,
    },
    Distance {
        name: "p99_less_best",
        words: "99th percentile",
        of: |found| found.p99 - found.min,
    },
];

/// A distance against the octets of data.
#[derive(Clone, Debug, PartialEq)]
struct Growth {
    /// Octets and distance in nanoseconds, of the smallest and of the largest data.
    ends: [(usize, f64); 2],
    /// Pairs of sizes of which the larger has the larger distance, and all pairs.
    pairs: (usize, usize),
}

impl Growth {
    fn of(sizes: &[(usize, &Samples)], distance: &Distance) -> Option<Self> {
        let distances = sizes.iter();
        let distances: Vec<(usize, f64)> = distances
            .map(|(size, samples)| (*size, (distance.of)(&samples.statistics())))
            .collect();
        let pairs = distances.iter().enumerate().flat_map(|(place, smaller)| {
            let larger = distances[place + 1..].iter();
            larger.map(move |larger| larger.1 > smaller.1)
        });
        let pairs: Vec<bool> = pairs.collect();
        let growing = pairs.iter().filter(|grows| **grows).count();
        match distances[..] {
            [first, .., last] => Some(Self {
                ends: [first, last],
                pairs: (growing, pairs.len()),
            }),
            _ => None,
        }
    }

    /// Three quarters of all pairs decide.
    fn verdict(&self) -> &'static str {
        let (growing, all) = self.pairs;
        match () {
            () if 4 * growing >= 3 * all => "so it is here",
            () if 4 * growing <= all => "here it is the other way round",
            () => "here the sizes do not decide it",
        }
    }

    fn words(&self) -> String {
        let [(smallest, first_ns), (largest, last_ns)] = self.ends;
        let (growing, all) = self.pairs;
        format!(
            "{:.1} us with {smallest} octets of data, {:.1} us with {largest}; of {all} pairs of sizes the larger has the larger \
             difference in {growing}",
            first_ns / 1e3,
            last_ns / 1e3
        )
    }
}

fn plots() -> Vec<Plot> {
    let plot = |id: &str, title: &str| Plot {
        caption: "From the edge on the input until the output is set.".to_owned(),
        of: labels([("part", "call".into())]),
        choose: vec!["load".to_owned()],
        log_y: true,
        ..Plot::named(id, title)
    };
    vec![
        Plot {
            // No size and 64 KiB are on no scale of numbers together.
            kind: PlotKind::Bars,
            x: SIZE.to_owned(),
            x_title: "octets of data in a call".to_owned(),
            values: vec![
                StatisticName::Min,
                StatisticName::P50,
                StatisticName::P99,
                StatisticName::Max,
            ],
            ..plot(
                "latency-against-payload",
                "From best to worst against the size of the process data image (P4 Figure 10)",
            )
        },
        Plot {
            kind: PlotKind::Percentiles,
            lines: vec![SIZE.to_owned()],
            ..plot("payload-percentiles", "The tail, for each size")
        },
    ]
}

const SIZE: &str = "payload_bytes";
/// 1,000 edges a second, a square wave of 500 Hz.
const PERIOD_NS: u64 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    /// Of each size the best and the worst latency.
    fn found(sizes: &[(usize, u64, u64)]) -> Findings {
        let mut cells = Cells::default();
        for (size, best_ns, worst_ns) in sizes {
            let labels = labels([
                (SIZE, (*size).into()),
                ("part", "call".into()),
                ("load", "mix".into()),
            ]);
            cells.add(&labels, 0, &[*best_ns, *worst_ns], 0);
        }
        findings(&cells, &Conditions::default())
    }

    #[test]
    fn growth_is_judged_by_pairs() {
        let said = |sizes: &[(usize, u64, u64)]| found(sizes).published[0].ours.clone();
        let growing = said(&[(0, 10, 20), (64, 12, 30), (1_024, 20, 60)]);
        assert!(growing.starts_with("so it is here"), "{growing}");
        assert!(growing.contains("of 3 pairs of sizes the larger has the larger difference in 3"));
        let shrinking = said(&[(0, 10, 60), (64, 12, 30), (1_024, 20, 25)]);
        assert!(shrinking.contains("other way round"), "{shrinking}");
        let neither = said(&[(0, 10, 20), (64, 10, 60), (1_024, 10, 40)]);
        assert!(neither.contains("do not decide"), "{neither}");
    }

    #[test]
    fn one_size_says_nothing_of_growth() {
        let one = found(&[(0, 10, 20)]);
        assert!(one.conclusions.is_empty() && one.published.is_empty());
        let distances: Vec<(&str, f64)> = one
            .derived
            .iter()
            .map(|derived| (derived.name.as_str(), derived.value))
            .collect();
        assert_eq!(
            distances,
            [("worst_less_best", 10.0), ("p99_less_best", 10.0)]
        );
    }
}
