//! `orb/payload`: latency from digital input to digital output against the size of the process data image.

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
use crate::study::{
    Amounts, Cell, Conditions, Factor, Findings, Sampled, Study, Subject, Turn,
    Value::{Number, Text},
};

/// The experiment.
pub const STUDY: Study<OneReceiver> = Study {
    name: "orb/payload",
    title: "Latency from digital input to digital output against the size of the process data image that a call carries",
    reproduces: "P4 Figure 10",
    amounts: Amounts {
        glance: 20,
        emulated: 20,
        quick: [2, 350],
        full: [10, 1_000],
        samples: "edges_per_round",
    },
    // P4's example is an image of 1 KiB.
    factors: &[Factor {
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
    }],
    fixed: &[
        ("orb", Text("rtorb")),
        ("preset", Text("tao")),
        ("transport", Text("tcp")),
    ],
    parameters: &[
        ("edges_hz", Number((1_000_000_000 / PERIOD_NS) as i64)),
        ("priority", Number(Role::High.priority() as i64)),
    ],
    columns: &["transport"],
    labels_of_run: |context| {
        labels([("pulse", system::pulse_of(context, Role::High).name().into())])
    },
    period_ns: PERIOD_NS,
    plots,
    findings,
    notes: system::notes,
    ..Study::with(|context, _| {
        System::start(context, Transport::Tcp, &[Role::High]).map(OneReceiver)
    })
};

/// A supplier and one receiver.
#[derive(Debug)]
pub struct OneReceiver(System);

impl OneReceiver {
    fn run(&self, edges: usize, payload_bytes: usize) -> Run {
        Run {
            duration_ns: edges as u64 * PERIOD_NS,
            payload_bytes,
            path: Path::Call,
            waves: vec![self.0.wave(Role::High, PERIOD_NS, 0)],
        }
    }
}

impl Subject for OneReceiver {
    fn scheduling(&mut self) -> Result<Vec<ObtainedScheduling>, LabError> {
        let few = self.run(10, 0);
        self.0.roll_call(&few)
    }

    fn measure(&mut self, cell: &Cell<'_>, turn: &Turn<'_>) -> Result<Sampled, LabError> {
        let run = self.run(turn.samples, cell.number(SIZE));
        let latencies = self.0.run(&run)?.pop().unwrap_or_default();
        let parts = Part::ALL.into_iter().zip(latencies.parts_ns);
        Ok(Sampled {
            parts: parts
                .map(|(part, times_ns)| (labels([("part", part.name().into())]), times_ns))
                .collect(),
            wrong: latencies.wrong,
            ..Sampled::default()
        })
    }
}

fn findings(cells: &Cells, _: &Conditions) -> Findings {
    let wanted = [("part", LabelValue::from(Part::Call.name()))];
    let sizes = cells.with(&wanted).map(|(labels, samples)| {
        let size = labels.get(SIZE).and_then(LabelValue::number);
        (size.unwrap_or(0) as usize, samples)
    });
    let mut sizes: Vec<(usize, &Samples)> = sizes.collect();
    sizes.sort_by_key(|(size, _)| *size);
    let words = DISTANCES.iter().filter_map(|distance| {
        let growth = Growth::of(&sizes, distance)?.words();
        Some(format!(
            "From the best latency to the {}: {growth}.",
            distance.words
        ))
    });
    let growth = Growth::of(&sizes, &DISTANCES[0]);
    let published = growth.map(|growth| Published {
        source: "P4 section 2.1, Figure 10".to_owned(),
        what: "the difference between immediate and worst case latency".to_owned(),
        published: "the larger the process data image is the larger is the difference".to_owned(),
        ours: format!("{}: {}", growth.verdict(), growth.words()),
    });
    Findings {
        highlights: sizes.iter().filter_map(highlight).collect(),
        derived: sizes.iter().flat_map(distances).collect(),
        conclusions: words.collect(),
        published: published.into_iter().collect(),
        ..Findings::default()
    }
}

/// P4's example, the smallest and the largest.
fn highlight((size, samples): &(usize, &Samples)) -> Option<Highlight> {
    let all = samples.statistics();
    [0, 1_024, 65_536].contains(size).then(|| Highlight {
        what: format!("edge to output, {size} octets of data, median"),
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
fn distances((size, samples): &(usize, &Samples)) -> Vec<Derived> {
    let derived = |distance: &Distance| {
        let labels = labels([
            ("preset", "tao".into()),
            ("transport", "tcp".into()),
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
            let labels = labels([(SIZE, (*size).into()), ("part", "call".into())]);
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
