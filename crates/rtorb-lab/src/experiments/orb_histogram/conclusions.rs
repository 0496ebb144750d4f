//! What the low receiver and the load do to the high one, in numbers and in words.

use rtorb_results::by_round::ByRound;
use rtorb_results::statistics::Statistics;
use rtorb_results::{Claim, Derived, Highlight, Labels, Published, labels};

use super::PRESET;
use super::measured::{Cell, Measured, Met};
use crate::contestants::Transport;
use crate::contestants::square_wave::Part;
use crate::contestants::square_wave::recorded::Recorded;
use crate::contestants::square_wave::system::Role;

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
        let waits = [
            ("wait_for_low_call", inversion.waits_ns(p50)),
            ("wait_for_low_call_p99", inversion.waits_ns(p99)),
            ("wait_for_low", inversion.above_alone_ns()),
        ];
        for (name, rounds) in waits {
            derived.extend(Derived::of_rounds(name, labels.clone(), "ns", &rounds));
        }
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

/// The urgent call waits for nothing that the other one does: neither usually nor rarely. Not judged by a few meetings.
pub(super) fn claims(measured: &Measured) -> Vec<Claim> {
    let claims = inversions(measured).flat_map(|inversion| {
        let (transport, load) = (inversion.cell.transport.label(), measured.load(&inversion.cell));
        let is_loaded = if inversion.cell.loaded { "loaded" } else { "idle" };
        let claim = |(id, name, which): (&str, &str, fn(&Statistics) -> f64)| {
            let statement = format!(
                "{transport}, load {load}: no priority inversion: the high receiver's {name} where its edge meets a low call in progress, \
                 less that where it meets none (limit: half of what waiting for the rest of a low call would make)"
            );
            let waits_us = inversion.waits_ns(which).map(|ns| ns / 1e3);
            let id = format!("no-inversion-{id}.{transport}.{is_loaded}");
            let claim = Claim::at_most(id, statement, &waits_us, inversion.limit_ns() / 1e3, "us")?;
            Some(match inversion.has_met_enough() {
                true => claim,
                false => claim.not_judged(TOO_FEW),
            })
        };
        // The longest waits are the whole rest of a low call, whose median half is the limit.
        [("p50", "median", p50 as fn(&Statistics) -> f64), ("p99", "99th percentile", p99)].map(claim)
    });
    claims.flatten().collect()
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
    /// Nothing where no edge met a low call.
    met: Option<&'a Met>,
    /// How long a call to the low one takes.
    low_call_ns: f64,
}

impl Inversion<'_> {
    /// In each round, a number of the edges that met a low call in progress less that of those that met none.
    fn waits_ns(&self, which: fn(&Statistics) -> f64) -> ByRound {
        let Some(Met { in_progress, none }) = self.met else {
            return ByRound::default();
        };
        let none = none.rounds(Part::Call, which);
        in_progress
            .rounds(Part::Call, which)
            .paired(&none, |met, none| met - none)
    }

    /// By how much the 90th percentile is up on that alone, round by round.
    fn above_alone_ns(&self) -> ByRound {
        let alone = self.alone.rounds(Part::Call, p90);
        self.with_low
            .rounds(Part::Call, p90)
            .paired(&alone, |with, alone| with - alone)
    }

    fn has_met_enough(&self) -> bool {
        self.met.is_some_and(|Met { in_progress, none }| {
            in_progress.count(Part::Call).min(none.count(Part::Call)) >= EDGES_MIN
        })
    }

    /// The median over rounds; nothing where there are too few meetings to judge by.
    fn wait_ns(&self) -> Option<f64> {
        self.waits_ns(p50)
            .median()
            .filter(|_| self.has_met_enough())
    }

    /// Edges meet a low call anywhere. Those that had to wait for its rest would be later by half of it in the median; half of
    /// that decides.
    fn limit_ns(&self) -> f64 {
        self.low_call_ns / 4.0
    }

    fn verdict(&self) -> String {
        let times = |which: fn(&Statistics) -> f64| {
            let of = |recorded: &Recorded| recorded.rounds(Part::Call, which).median();
            of(self.with_low)
                .zip(of(self.alone))
                .map_or(0.0, |(with, alone)| with / alone.max(1.0))
        };
        format!(
            "{}; beside that alone, where caches are colder, its median is {:.2} times and its 99th percentile {:.2} times",
            self.met_or_not(),
            times(p50),
            times(p99),
        )
    }

    fn met_or_not(&self) -> String {
        let (Some(met), Some(wait_ns)) = (self.met, self.wait_ns()) else {
            return TOO_FEW.to_owned();
        };
        let found = match wait_ns <= self.limit_ns() {
            true => "no priority inversion was seen",
            false => "the high receiver waits for the low one",
        };
        let of = |recorded: &Recorded| {
            let rounds = recorded.rounds(Part::Call, p50);
            let p50_us = rounds.median().unwrap_or(0.0) / 1e3;
            format!("{p50_us:.1} us ({} edges)", recorded.count(Part::Call))
        };
        format!(
            "{found}: the high receiver's median is {} where its edge meets a low call in progress, {} where it meets none, a \
             difference of {:.1} us; to wait for the rest of a low call would make {:.1} us",
            of(&met.in_progress),
            of(&met.none),
            wait_ns / 1e3,
            self.low_call_ns / 2e3
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
        Some(Inversion {
            cell,
            with_low,
            alone,
            met: measured.met(cell),
            low_call_ns: low.rounds(Part::RoundTrip, p50).median()?,
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
        value: above.median()? / below.median()?.max(1.0),
        ..Derived::of_rounds(name, labels, "ratio", &above.divided_by(&below))?
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

fn p90(statistics: &Statistics) -> f64 {
    statistics.p90
}

fn p99(statistics: &Statistics) -> f64 {
    statistics.p99
}

fn max(statistics: &Statistics) -> f64 {
    statistics.max
}

/// Why nothing is said of inversion.
const TOO_FEW: &str = "too few edges met a call to the low receiver, or too few met none, to tell whether the high one waits for it";
/// Fewer have no median to speak of.
const EDGES_MIN: u64 = 30;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contestants::square_wave::Latencies;
    use rtorb_results::Verdicts;

    /// So many edges a millisecond apart, `lead_ns` early, whose wake-ups take 2 us, and round trips 30 us.
    fn wave(edges: u64, lead_ns: u64, call_ns: impl Fn(u64) -> u64) -> Latencies {
        let calls_ns: Vec<u64> = (0..edges).map(call_ns).collect();
        let count = calls_ns.len();
        Latencies {
            edges_ns: (1..=edges).map(|edge| edge * 1_000_000 - lead_ns).collect(),
            parts_ns: [
                calls_ns.clone(),
                vec![2_000; count],
                calls_ns.iter().map(|ns| ns - 2_000).collect(),
                vec![30_000; count],
            ],
            wrong: 0,
        }
    }

    /// The high receiver's latency alone and with the low one, whose calls take 30 us: half of the edges meet one.
    fn measured(alone_ns: u64, meeting_none_ns: u64, meeting_ns: u64) -> Measured {
        let mut measured = Measured::of("mix".to_owned());
        for (round, loaded) in [(0, false), (0, true), (1, false), (1, true)] {
            let cell = |receivers, role| Cell {
                transport: Transport::Tcp,
                receivers,
                loaded,
                role,
            };
            let (both_high, both_low) = (cell(2, Role::High), cell(2, Role::Low));
            measured.add(round, cell(1, Role::High), &wave(80, 0, |_| alone_ns));
            for (lead_ns, high_ns) in [(10_000, meeting_ns), (60_000, meeting_none_ns)] {
                let high = wave(40, 0, |_| high_ns);
                let low = wave(40, lead_ns, |_| 70_000);
                measured.add(round, both_high, &high);
                measured.add(round, both_low, &low);
            }
            let mut leads = wave(80, 0, |_| 70_000);
            for (place, edge_ns) in leads.edges_ns.iter_mut().enumerate() {
                *edge_ns -= [10_000, 60_000][place % 2];
            }
            let high = wave(80, 0, |edge| match edge % 2 {
                0 => meeting_ns,
                _ => meeting_none_ns,
            });
            measured.meet(round, both_high, [&high, &leads]);
        }
        measured
    }

    #[test]
    fn a_high_call_that_waits_for_a_low_one_is_told() {
        let good = measured(25_000, 20_000, 22_000);
        let held = Verdicts::of(&claims(&good));
        assert_eq!((held.held, held.missed, held.not_judged), (4, 0, 0));
        let said = &words(&good)[0];
        assert!(said.contains("no priority inversion was seen"), "{said}");
        assert!(said.contains("22.0 us (80 edges) where"), "{said}");
        assert!(
            said.contains("2.0 us; to wait for the rest of a low call would make 15.0 us"),
            "{said}"
        );
        // Even where the high receiver alone is slower still.
        let bad = measured(60_000, 20_000, 35_000);
        assert_eq!(Verdicts::of(&claims(&bad)).missed, 4);
        assert!(
            published(&bad)[0]
                .ours
                .starts_with("the high receiver waits for the low one")
        );
        assert_eq!(published(&bad).len(), 1);
    }

    #[test]
    fn a_few_meetings_decide_nothing() {
        let mut few = Measured::of("mix".to_owned());
        for (receivers, role) in [(1, Role::High), (2, Role::High), (2, Role::Low)] {
            let cell = Cell {
                transport: Transport::Tcp,
                receivers,
                loaded: true,
                role,
            };
            few.add(0, cell, &wave(40, 10_000, |_| 20_000));
            let one_of_two = [wave(2, 0, |_| 20_000), wave(1, 10_000, |_| 20_000)];
            few.meet(0, cell, [&one_of_two[0], &one_of_two[1]]);
        }
        assert_eq!(Verdicts::of(&claims(&few)).not_judged, claims(&few).len());
        assert!(
            words(&few)[0].contains("too few edges"),
            "{:?}",
            words(&few)
        );
    }

    #[test]
    fn both_kinds_of_meeting_are_series_of_a_part_of_their_own() {
        let series = measured(25_000, 20_000, 22_000).series("timer", true);
        let meetings: Vec<_> = series
            .iter()
            .filter(|series| series.labels["part"] == "meeting".into())
            .collect();
        let found: Vec<(String, u64)> = meetings
            .iter()
            .map(|series| (series.labels["low_call"].to_string(), series.count))
            .collect();
        let kinds = [("in_progress".to_owned(), 80), ("none".to_owned(), 80)];
        assert_eq!(found, [kinds.clone(), kinds].concat());
        assert_eq!(meetings[0].statistics.max, 22_000.0);
    }

    #[test]
    fn quotients_are_of_the_same_cell() {
        let derived = derived(&measured(20_000, 30_000, 30_000));
        let values = |name: &str| -> Vec<f64> {
            let found = derived.iter().filter(|derived| derived.name == name);
            found
                .map(|derived| (derived.value * 100.0).round() / 100.0)
                .collect()
        };
        assert_eq!(values("with_low_to_alone_p50"), [1.5, 1.5]);
        assert_eq!(values("with_load_to_without_max"), [1.0, 1.0, 1.0]);
        assert_eq!(values("wait_for_low_call"), [0.0, 0.0]);
        let above_alone = values("wait_for_low");
        assert!(
            above_alone
                .iter()
                .all(|ns| (9_900.0..10_100.0).contains(ns)),
            "{above_alone:?}"
        );
    }
}
