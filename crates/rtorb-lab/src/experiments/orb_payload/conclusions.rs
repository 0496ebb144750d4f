//! Whether the distance from the best to the worst latency grows with the data, in numbers and in words.

use super::{Measured, PRESET, TRANSPORT};
use crate::contestants::square_wave::Part;
use crate::contestants::square_wave::recorded::Recorded;
use crate::results::statistics::Statistics;
use crate::results::{Derived, Highlight, Published, labels};

/// The distance of the worst, and of the 99th percentile, from the best.
pub(super) fn derived(measured: &Measured) -> Vec<Derived> {
    let mut derived = Vec::new();
    for (payload_bytes, recorded) in &measured.sizes {
        for distance in Distance::ALL {
            let rounds = recorded.rounds(Part::Call, |round| distance.of(round));
            let labels = labels([
                ("preset", PRESET.into()),
                ("transport", TRANSPORT.label().into()),
                ("payload_bytes", (*payload_bytes).into()),
            ]);
            derived.extend(Derived::of_rounds(distance.name(), labels, "ns", &rounds));
        }
    }
    derived
}

/// P4's example, the smallest and the largest.
pub(super) fn highlights(measured: &Measured) -> Vec<Highlight> {
    let shown = [0, 1_024, 65_536];
    let sizes = measured
        .sizes
        .iter()
        .filter(|(payload_bytes, _)| shown.contains(*payload_bytes));
    let highlight = |(payload_bytes, recorded): (&usize, &Recorded)| {
        let all = recorded.statistics(Part::Call);
        Highlight {
            what: format!("edge to output, {payload_bytes} octets of data, median"),
            value: all.p50 / 1e3,
            unit: "us".to_owned(),
            beside: format!(
                "best: {:.1} us, 99 %: {:.1} us, worst: {:.1} us",
                all.min / 1e3,
                all.p99 / 1e3,
                all.max / 1e3
            ),
        }
    };
    sizes.map(highlight).collect()
}

pub(super) fn words(measured: &Measured) -> Vec<String> {
    let growths = Distance::ALL.into_iter().filter_map(|distance| {
        Some(format!(
            "From the best latency to the {}: {}.",
            distance.words(),
            Growth::of(measured, distance)?.words()
        ))
    });
    growths.collect()
}

pub(super) fn published(measured: &Measured) -> Vec<Published> {
    let growth = Growth::of(measured, Distance::Worst);
    let published = growth.map(|growth| Published {
        source: "P4 section 2.1, Figure 10".to_owned(),
        what: "the difference between immediate and worst case latency".to_owned(),
        published: "the larger the process data image is the larger is the difference".to_owned(),
        ours: format!("{}: {}", growth.verdict(), growth.words()),
    });
    published.into_iter().collect()
}

/// From the best latency to which other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Distance {
    Worst,
    P99,
}

impl Distance {
    const ALL: [Self; 2] = [Self::Worst, Self::P99];

    fn name(self) -> &'static str {
        match self {
            Self::Worst => "worst_less_best",
            Self::P99 => "p99_less_best",
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Worst => "worst",
            Self::P99 => "99th percentile",
        }
    }

    fn of(self, statistics: &Statistics) -> f64 {
        match self {
            Self::Worst => statistics.max - statistics.min,
            Self::P99 => statistics.p99 - statistics.min,
        }
    }
}

/// A distance against the octets of data.
#[derive(Clone, Debug, PartialEq)]
struct Growth {
    /// Octets and distance in nanoseconds, of the smallest and of the largest data.
    ends: [(usize, f64); 2],
    /// Pairs of sizes of which the larger has the larger distance, and all pairs.
    pairs: (usize, usize),
}

impl Growth {
    fn of(measured: &Measured, distance: Distance) -> Option<Self> {
        let distances: Vec<(usize, f64)> = measured
            .sizes
            .iter()
            .map(|(size, recorded)| (*size, distance.of(&recorded.statistics(Part::Call))))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contestants::square_wave::Latencies;

    /// Of each size the best and the worst latency.
    fn measured(sizes: &[(usize, u64, u64)]) -> Measured {
        let mut measured = Measured::default();
        for (size, best_ns, worst_ns) in sizes {
            let latencies = Latencies {
                parts_ns: [vec![*best_ns, *worst_ns], vec![], vec![], vec![]],
                wrong: 0,
                ..Latencies::default()
            };
            measured.sizes.entry(*size).or_default().add(0, &latencies);
        }
        measured
    }

    #[test]
    fn growth_is_judged_by_pairs() {
        let growing = measured(&[(0, 10, 20), (64, 12, 30), (1_024, 20, 60)]);
        let growth = Growth::of(&growing, Distance::Worst).unwrap();
        assert_eq!(growth.ends, [(0, 10.0), (1_024, 40.0)]);
        assert_eq!(growth.pairs, (3, 3));
        assert!(published(&growing)[0].ours.starts_with("so it is here"));
        let shrinking = measured(&[(0, 10, 60), (64, 12, 30), (1_024, 20, 25)]);
        assert!(published(&shrinking)[0].ours.contains("other way round"));
        let neither = measured(&[(0, 10, 20), (64, 10, 60), (1_024, 10, 40)]);
        assert_eq!(Growth::of(&neither, Distance::Worst).unwrap().pairs, (2, 3));
        assert!(published(&neither)[0].ours.contains("do not decide"));
    }

    #[test]
    fn one_size_says_nothing_of_growth() {
        let one = measured(&[(0, 10, 20)]);
        assert!(words(&one).is_empty() && published(&one).is_empty());
        let distances: Vec<(String, f64)> = derived(&one)
            .into_iter()
            .map(|derived| (derived.name, derived.value))
            .collect();
        assert_eq!(distances[0], ("worst_less_best".to_owned(), 10.0));
        assert_eq!(distances.len(), 2);
    }
}
