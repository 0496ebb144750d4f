//! What the low receiver and the load do to the high one, in numbers and in words.

use super::PRESET;
use super::measured::{Cell, Measured};
use crate::contestants::Transport;
use crate::results::{Derived, Highlight, Labels, Published, Target, labels};
use crate::square_wave::Part;
use crate::square_wave::recorded::Recorded;
use crate::square_wave::system::Role;
use crate::statistics::{Statistics, median};

/// The quotients of the latencies with the low receiver and without it, and with load and without it.
pub(super) fn derived(measured: &Measured) -> Vec<Derived> {
    let mut derived = Vec::new();
    for inversion in inversions(measured) {
        let labels = labels_of(measured, &inversion.cell);
        for (name, which) in [
            ("with_low_to_alone_p50", p50 as fn(&Statistics) -> f64),
            ("with_low_to_alone_p99", p99),
        ] {
            let both = (inversion.with_low, inversion.alone);
            derived.extend(quotient(name, labels.clone(), both, which));
        }
        derived.push(Derived {
            name: "wait_for_low".to_owned(),
            labels,
            unit: "ns".to_owned(),
            value: inversion.wait_ns,
            rounds: inversion.waits_ns,
        });
    }
    for (cell, loaded) in measured.cells().filter(|(cell, _)| cell.loaded) {
        let unloaded = Cell {
            loaded: false,
            ..cell
        };
        let Some(unloaded) = measured.get(unloaded) else {
            continue;
        };
        for (name, which) in [
            ("with_load_to_without_p50", p50 as fn(&Statistics) -> f64),
            ("with_load_to_without_p99", p99),
            ("with_load_to_without_max", max),
        ] {
            let labels = labels_of(measured, &cell);
            derived.extend(quotient(name, labels, (loaded, unloaded), which));
        }
    }
    derived
}

/// The promise: the urgent call waits for nothing that the other one does.
pub(super) fn targets(measured: &Measured) -> Vec<Target> {
    let target = |inversion: Inversion<'_>| {
        let what = format!(
            "{}, load {}: no priority inversion: with the low receiver the high one's 90th percentile is up by less than half \
             of a low call",
            inversion.cell.transport.label(),
            measured.load(&inversion.cell)
        );
        Target::at_most(
            what,
            inversion.wait_ns / 1e3,
            inversion.limit_ns() / 1e3,
            "us",
        )
    };
    inversions(measured).map(target).collect()
}

/// The high receiver alone, over TCP.
pub(super) fn highlights(measured: &Measured) -> Vec<Highlight> {
    let alone = measured.cells().filter(|(cell, _)| {
        cell.transport == Transport::Tcp && cell.receivers == 1 && cell.role == Role::High
    });
    let highlight = |(cell, recorded): (Cell, &Recorded)| {
        let all = recorded.statistics(Part::Call);
        Highlight {
            what: format!("edge to output, load {}, median", measured.load(&cell)),
            value: all.p50 / 1e3,
            unit: "us".to_owned(),
            beside: format!(
                "99 %: {:.1} us, worst: {:.1} us",
                all.p99 / 1e3,
                all.max / 1e3
            ),
        }
    };
    alone.map(highlight).collect()
}

pub(super) fn words(measured: &Measured) -> Vec<String> {
    let mut words: Vec<String> = inversions(measured)
        .map(|inversion| {
            format!(
                "{}, load {}: {}.",
                inversion.cell.transport.label(),
                measured.load(&inversion.cell),
                inversion.verdict()
            )
        })
        .collect();
    let loaded = measured
        .cells()
        .filter(|(cell, _)| cell.loaded && cell.receivers == 1);
    for (cell, with) in loaded {
        let Some(without) = measured.get(Cell {
            loaded: false,
            ..cell
        }) else {
            continue;
        };
        let us = |recorded: &Recorded, which: fn(&Statistics) -> f64| {
            which(&recorded.statistics(Part::Call)) / 1e3
        };
        words.push(format!(
            "{}, one receiver: under the load {} the median is {:.1} us instead of {:.1}, the 99th percentile {:.1} instead of \
             {:.1}, and the worst {:.1} instead of {:.1}.",
            cell.transport.label(),
            measured.load(&cell),
            us(with, p50),
            us(without, p50),
            us(with, p99),
            us(without, p99),
            us(with, max),
            us(without, max),
        ));
    }
    words
}

pub(super) fn published(measured: &Measured) -> Vec<Published> {
    let published = |inversion: Inversion<'_>| Published {
        source: "P4 section 2.1, Figure 9".to_owned(),
        what: format!(
            "two receivers of different priority, {}, load {}",
            inversion.cell.transport.label(),
            measured.load(&inversion.cell)
        ),
        published: "no priority inversion occurs".to_owned(),
        ours: inversion.verdict(),
    };
    // P4 measures it under load, and over a network.
    inversions(measured)
        .filter(|inversion| inversion.cell.loaded && inversion.cell.transport == Transport::Tcp)
        .map(published)
        .collect()
}

/// The high receiver with the low one and without it.
struct Inversion<'a> {
    /// With the low one.
    cell: Cell,
    with_low: &'a Recorded,
    alone: &'a Recorded,
    /// By how much the 90th percentile is up, each round and their median.
    waits_ns: Vec<f64>,
    wait_ns: f64,
    /// How long a call to the low one takes.
    low_call_ns: f64,
}

impl Inversion<'_> {
    /// The low edges lead by up to 100 us. A high call that had to wait for a low one would wait for any part of it, so that
    /// where low calls take a third of that time, its 90th percentile would be up by two thirds of a call.
    fn limit_ns(&self) -> f64 {
        self.low_call_ns / 2.0
    }

    fn verdict(&self) -> String {
        let times = |which: fn(&Statistics) -> f64| {
            let of = |recorded: &Recorded| median(&recorded.rounds(Part::Call, which));
            of(self.with_low)
                .zip(of(self.alone))
                .map_or(0.0, |(with, alone)| with / alone.max(1.0))
        };
        let found = match self.wait_ns <= self.limit_ns() {
            true => "no priority inversion was seen",
            false => "the high receiver waits for the low one",
        };
        format!(
            "{found}: with the low receiver the high one's median is {:.2} times and its 99th percentile {:.2} times that alone, \
             and its 90th percentile is up by {:.1} us; a low call takes {:.1} us",
            times(p50),
            times(p99),
            self.wait_ns / 1e3,
            self.low_call_ns / 1e3
        )
    }
}

fn inversions(measured: &Measured) -> impl Iterator<Item = Inversion<'_>> {
    let both = measured
        .cells()
        .filter(|(cell, _)| cell.receivers == 2 && cell.role == Role::High);
    both.filter_map(|(cell, with_low)| {
        let alone = measured.get(Cell {
            receivers: 1,
            ..cell
        })?;
        let low = measured.get(Cell {
            role: Role::Low,
            ..cell
        })?;
        let p90 = |recorded: &Recorded| recorded.rounds(Part::Call, |round| round.p90);
        let waits_ns: Vec<f64> = p90(with_low)
            .into_iter()
            .zip(p90(alone))
            .map(|(with, alone)| with - alone)
            .collect();
        Some(Inversion {
            cell,
            with_low,
            alone,
            wait_ns: median(&waits_ns)?,
            waits_ns,
            low_call_ns: median(&low.rounds(Part::RoundTrip, p50))?,
        })
    })
}

/// Of the median over rounds, and of each round.
fn quotient(
    name: &str,
    labels: Labels,
    (above, below): (&Recorded, &Recorded),
    which: fn(&Statistics) -> f64,
) -> Option<Derived> {
    let above = above.rounds(Part::Call, which);
    let below = below.rounds(Part::Call, which);
    Some(Derived {
        name: name.to_owned(),
        labels,
        unit: "ratio".to_owned(),
        value: median(&above)? / median(&below)?.max(1.0),
        rounds: above
            .iter()
            .zip(&below)
            .map(|(above, below)| above / below.max(1.0))
            .collect(),
    })
}

fn labels_of(measured: &Measured, cell: &Cell) -> Labels {
    labels([
        ("preset", PRESET.into()),
        ("transport", cell.transport.label().into()),
        ("receivers", cell.receivers.into()),
        ("role", cell.role.name().into()),
        ("load", measured.load(cell).into()),
    ])
}

fn p50(statistics: &Statistics) -> f64 {
    statistics.p50
}

fn p99(statistics: &Statistics) -> f64 {
    statistics.p99
}

fn max(statistics: &Statistics) -> f64 {
    statistics.max
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::square_wave::Latencies;

    /// The high receiver's latency alone and with the low one, whose calls take 30 us.
    fn measured(alone_ns: u64, with_low_ns: u64) -> Measured {
        let mut measured = Measured::of("mix".to_owned());
        for loaded in [false, true] {
            for (receivers, role, call_ns) in [
                (1, Role::High, alone_ns),
                (2, Role::High, with_low_ns),
                (2, Role::Low, 70_000),
            ] {
                let latencies = Latencies {
                    parts_ns: [
                        vec![call_ns; 10],
                        vec![2_000; 10],
                        vec![call_ns - 2_000; 10],
                        vec![30_000; 10],
                    ],
                    wrong: 0,
                };
                let cell = Cell {
                    transport: Transport::Tcp,
                    receivers,
                    loaded,
                    role,
                };
                measured.add(cell, &latencies);
            }
        }
        measured
    }

    #[test]
    fn a_high_call_that_waits_for_a_low_one_is_told() {
        let good = measured(20_000, 22_000);
        assert!(targets(&good).iter().all(|target| target.holds));
        assert_eq!(targets(&good).len(), 2);
        assert!(
            words(&good)[0].contains("no priority inversion was seen"),
            "{:?}",
            words(&good)
        );
        let bad = measured(20_000, 42_000);
        assert!(targets(&bad).iter().all(|target| !target.holds));
        assert!(
            published(&bad)[0]
                .ours
                .starts_with("the high receiver waits for the low one")
        );
        assert_eq!(published(&bad).len(), 1);
    }

    #[test]
    fn quotients_are_of_the_same_cell() {
        let derived = derived(&measured(20_000, 30_000));
        let values = |name: &str| -> Vec<f64> {
            let found = derived.iter().filter(|derived| derived.name == name);
            found
                .map(|derived| (derived.value * 100.0).round() / 100.0)
                .collect()
        };
        assert_eq!(values("with_low_to_alone_p50"), [1.5, 1.5]);
        assert_eq!(values("with_load_to_without_max"), [1.0, 1.0, 1.0]);
        let waits = values("wait_for_low");
        assert!(
            waits.iter().all(|wait| (9_900.0..10_100.0).contains(wait)),
            "{waits:?}"
        );
    }
}
