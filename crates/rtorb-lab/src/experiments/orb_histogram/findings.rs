//! What the low receiver and the load do to the high one, in numbers and in words.

use rtorb_results::by_round::ByRound;
use rtorb_results::cells::{Cells, Samples};
use rtorb_results::statistics::Statistics;
use rtorb_results::{
    Claim, Derived, Highlight, LabelValue, Labels, Published, labels_with, labels_without,
};

use super::{LOW_CALLS, MEETING};
use crate::experiments::beside::NONE;
use crate::study::{Conditions, Findings};

pub(super) fn findings(cells: &Cells, _: &Conditions) -> Findings {
    let inversions = inversions(cells);
    let loads = Loaded::all(cells);
    let alone = loads.iter().filter(|loaded| loaded.is_of(1));
    Findings {
        highlights: highlights(cells),
        derived: inversions
            .iter()
            .flat_map(Inversion::derived)
            .chain(loads.iter().flat_map(Loaded::derived))
            .collect(),
        claims: inversions.iter().flat_map(Inversion::claims).collect(),
        conclusions: inversions
            .iter()
            .map(Inversion::words)
            .chain(alone.map(Loaded::words))
            .collect(),
        published: inversions.iter().filter_map(Inversion::published).collect(),
        ..Findings::default()
    }
}

/// The high receiver alone, over TCP.
fn highlights(cells: &Cells) -> Vec<Highlight> {
    let alone = [
        ("transport", "tcp".into()),
        ("receivers", ONE),
        ("role", "high".into()),
        ("part", "call".into()),
    ];
    let highlight = |(labels, samples): (&Labels, &Samples)| {
        let all = samples.statistics();
        Highlight {
            what: format!("edge to output, load {}, median", labels["load"]),
            value: all.p50 / 1e3,
            unit: "us".to_owned(),
            beside: format!(
                "99 %: {:.1} us, worst: {:.1} us",
                all.p99 / 1e3,
                all.max / 1e3
            ),
        }
    };
    cells.with(&alone).map(highlight).collect()
}

/// A receiver under load and without it.
struct Loaded<'a> {
    labels: &'a Labels,
    with: &'a Samples,
    without: &'a Samples,
}

impl<'a> Loaded<'a> {
    fn all(cells: &'a Cells) -> Vec<Self> {
        let calls = [("part", "call".into())];
        let loaded = cells.with(&calls).filter(|(labels, _)| is_loaded(labels));
        let both = loaded.filter_map(|(labels, with)| {
            let without = cells.get(&labels_with(labels, [("load", NONE.into())]))?;
            Some(Self {
                labels,
                with,
                without,
            })
        });
        both.collect()
    }

    fn is_of(&self, receivers: i64) -> bool {
        self.labels["receivers"] == LabelValue::Number(receivers)
    }

    fn derived(&self) -> Vec<Derived> {
        let quotients = [
            ("with_load_to_without_p50", P50),
            ("with_load_to_without_p99", P99),
            ("with_load_to_without_max", MAX),
        ];
        let both = (self.with, self.without);
        quotients
            .into_iter()
            .filter_map(|(name, which)| quotient(name, self.labels, both, which))
            .collect()
    }

    fn words(&self) -> String {
        let [with, without] = [self.with, self.without].map(|samples| {
            let all = samples.statistics();
            [all.p50, all.p99, all.max].map(|ns| ns / 1e3)
        });
        format!(
            "{}, one receiver: under the load {} the median is {:.1} us instead of {:.1}, the 99th percentile {:.1} instead of \
             {:.1}, and the worst {:.1} instead of {:.1}.",
            self.labels["transport"],
            self.labels["load"],
            with[0],
            without[0],
            with[1],
            without[1],
            with[2],
            without[2],
        )
    }
}

/// The high receiver with the low one and without it.
struct Inversion<'a> {
    /// With the low one.
    labels: &'a Labels,
    with_low: &'a Samples,
    alone: &'a Samples,
    /// By what the low one's call did when the edge came, in the order of [`LOW_CALLS`]; nothing where no edge met a low call.
    met: Option<[&'a Samples; 2]>,
    /// How long a call to the low one takes.
    low_call_ns: f64,
}

/// In the order of transports.
fn inversions(cells: &Cells) -> Vec<Inversion<'_>> {
    let with_both = [
        ("receivers", LabelValue::Number(2)),
        ("role", "high".into()),
        ("part", "call".into()),
    ];
    let inversion = |(labels, with_low)| {
        let low_call = [("role", "low".into()), ("part", "round_trip".into())];
        let low_call = cells.get(&labels_with(labels, low_call))?;
        let met = LOW_CALLS.map(|low_call| {
            let met = [("part", MEETING.into()), ("low_call", low_call.into())];
            cells.get(&labels_with(labels, met))
        });
        Some(Inversion {
            labels,
            with_low,
            alone: cells.get(&labels_with(labels, [("receivers", ONE)]))?,
            met: met[0].zip(met[1]).map(|(met, none)| [met, none]),
            low_call_ns: low_call.median_ns()?,
        })
    };
    let mut all: Vec<Inversion<'_>> = cells.with(&with_both).filter_map(inversion).collect();
    all.sort_by_key(|inversion| &inversion.labels["transport"]);
    all
}

impl Inversion<'_> {
    /// In each round, a number of the edges that met a low call in progress less that of those that met none.
    fn waits_ns(&self, which: Which) -> ByRound {
        self.met.map_or_else(ByRound::default, |[met, none]| {
            met.rounds(which).less(&none.rounds(which))
        })
    }

    fn has_met_enough(&self) -> bool {
        self.met
            .is_some_and(|met| met.iter().all(|kind| kind.count() >= EDGES_MIN))
    }

    /// Edges meet a low call anywhere. Those that had to wait for its rest would be later by half of it in the median; half of
    /// that decides.
    fn limit_ns(&self) -> f64 {
        self.low_call_ns / 4.0
    }

    /// The quotients of the latencies with the low receiver and without it, and the waits.
    fn derived(&self) -> Vec<Derived> {
        let both = (self.with_low, self.alone);
        let quotients = [
            ("with_low_to_alone_p50", P50),
            ("with_low_to_alone_p99", P99),
        ];
        let quotients = quotients
            .into_iter()
            .filter_map(|(name, which)| quotient(name, self.labels, both, which));
        // By how much the 90th percentile is up on that alone.
        let p90 = |samples: &Samples| samples.rounds(|round| round.p90);
        let waits = [
            ("wait_for_low_call", self.waits_ns(P50)),
            ("wait_for_low_call_p99", self.waits_ns(P99)),
            ("wait_for_low", p90(self.with_low).less(&p90(self.alone))),
        ];
        let waits = waits.into_iter().filter_map(|(name, rounds)| {
            Derived::of_rounds(name, labels_of(self.labels), "ns", &rounds)
        });
        quotients.chain(waits).collect()
    }

    /// The urgent call waits for nothing that the other one does: neither usually nor rarely. Not judged by a few meetings.
    fn claims(&self) -> Vec<Claim> {
        let (transport, load) = (&self.labels["transport"], &self.labels["load"]);
        let state = if is_loaded(self.labels) {
            "loaded"
        } else {
            "idle"
        };
        let claim = |(id, name, which): (&str, &str, Which)| {
            let statement = format!(
                "{transport}, load {load}: no priority inversion: the high receiver's {name} where its edge meets a low call in progress, \
                 less that where it meets none (limit: half of what waiting for the rest of a low call would make)"
            );
            let waits_us = self.waits_ns(which).map(|ns| ns / 1e3);
            let id = format!("no-inversion-{id}.{transport}.{state}");
            let claim = Claim::at_most(id, statement, &waits_us, self.limit_ns() / 1e3, "us")?;
            Some(if self.has_met_enough() {
                claim
            } else {
                claim.not_judged(TOO_FEW)
            })
        };
        // The longest waits are the whole rest of a low call, whose median half is the limit.
        let claims = [("p50", "median", P50), ("p99", "99th percentile", P99)];
        claims.into_iter().filter_map(claim).collect()
    }

    fn words(&self) -> String {
        let (transport, load) = (&self.labels["transport"], &self.labels["load"]);
        format!("{transport}, load {load}: {}.", self.verdict())
    }

    /// P4 measures it under load, and over a network.
    fn published(&self) -> Option<Published> {
        let (transport, load) = (&self.labels["transport"], &self.labels["load"]);
        let is_p4s = is_loaded(self.labels) && *transport == "tcp".into();
        is_p4s.then(|| Published {
            source: "P4 section 2.1, Figure 9".to_owned(),
            what: format!("two receivers of different priority, {transport}, load {load}"),
            published: "no priority inversion occurs".to_owned(),
            ours: self.verdict(),
        })
    }

    fn verdict(&self) -> String {
        let times = |which: Which| {
            let of = |samples: &Samples| samples.rounds(which).median();
            of(self.with_low)
                .zip(of(self.alone))
                .map_or(0.0, |(with, alone)| with / alone.max(1.0))
        };
        format!(
            "{}; beside that alone, where caches are colder, its median is {:.2} times and its 99th percentile {:.2} times",
            self.met_or_not(),
            times(P50),
            times(P99),
        )
    }

    fn met_or_not(&self) -> String {
        let wait_ns = self.waits_ns(P50).median();
        let wait_ns = wait_ns.filter(|_| self.has_met_enough());
        let (Some([met, none]), Some(wait_ns)) = (self.met, wait_ns) else {
            return TOO_FEW.to_owned();
        };
        let found = if wait_ns <= self.limit_ns() {
            "no priority inversion was seen"
        } else {
            "the high receiver waits for the low one"
        };
        let of = |samples: &Samples| {
            let p50_us = samples.median_ns().unwrap_or(0.0) / 1e3;
            format!("{p50_us:.1} us ({} edges)", samples.count())
        };
        format!(
            "{found}: the high receiver's median is {} where its edge meets a low call in progress, {} where it meets none, a \
             difference of {:.1} us; to wait for the rest of a low call would make {:.1} us",
            of(met),
            of(none),
            wait_ns / 1e3,
            self.low_call_ns / 2e3
        )
    }
}

fn is_loaded(labels: &Labels) -> bool {
    labels.get("load").is_some_and(|load| *load != NONE.into())
}

fn quotient(
    name: &str,
    labels: &Labels,
    (above, below): (&Samples, &Samples),
    which: Which,
) -> Option<Derived> {
    let (above, below) = (above.rounds(which), below.rounds(which));
    Derived::quotient(name, labels_of(labels), &above, &below)
}

/// The labels of a number that follows from calls with these.
fn labels_of(labels: &Labels) -> Labels {
    labels_without(labels, &["orb", "payload_bytes", "part"])
}

/// One of the statistics.
type Which = fn(&Statistics) -> f64;

const P50: Which = |found| found.p50;
const P99: Which = |found| found.p99;
const MAX: Which = |found| found.max;
/// A number of receivers.
const ONE: LabelValue = LabelValue::Number(1);
/// Why nothing is said of inversion.
const TOO_FEW: &str = "too few edges met a call to the low receiver, or too few met none, to tell whether the high one waits for it";
/// Fewer have no median to speak of.
const EDGES_MIN: u64 = 30;

#[cfg(test)]
mod tests {
    use super::*;
    use rtorb_results::{Verdict, Verdicts, labels};

    /// The high receiver's latency in a round: alone, where its edge meets no low call, and where it meets one.
    type Round = [u64; 3];

    /// As many edges of each kind in each round, without and with load. A low call takes 30 us.
    fn found(rounds: &[Round], edges: usize) -> Findings {
        let mut cells = Cells::default();
        for (round, [alone_ns, none_ns, met_ns]) in rounds.iter().enumerate() {
            for load in ["none", "mix"] {
                let labels = |receivers: u64, role: &str, part: &str| {
                    labels([
                        ("orb", "rtorb".into()),
                        ("transport", "tcp".into()),
                        ("load", load.into()),
                        ("receivers", receivers.into()),
                        ("role", role.into()),
                        ("part", part.into()),
                    ])
                };
                let mut add = |labels: Labels, times_ns: &[u64]| {
                    cells.add(&labels, round, times_ns, 0);
                };
                let [met, none] = [*met_ns, *none_ns].map(|ns| vec![ns; edges]);
                add(labels(1, "high", "call"), &vec![*alone_ns; 2 * edges]);
                add(labels(2, "high", "call"), &[&met[..], &none].concat());
                add(labels(2, "low", "round_trip"), &vec![30_000; edges]);
                for (low_call, times_ns) in LOW_CALLS.into_iter().zip([met, none]) {
                    let meeting = labels(2, "high", MEETING);
                    let low_call = [("low_call", low_call.into())];
                    add(labels_with(&meeting, low_call), &times_ns);
                }
            }
        }
        findings(&cells, &Conditions::default())
    }

    #[test]
    fn a_high_call_that_waits_for_a_low_one_is_told() {
        let good = found(&[[25_000, 20_000, 22_000]; 2], 40);
        let held = Verdicts::of(&good.claims);
        assert_eq!((held.held, held.missed, held.not_judged), (4, 0, 0));
        let ids: Vec<&str> = good.claims.iter().map(|claim| claim.id.as_str()).collect();
        assert_eq!(
            ids[1..3],
            ["no-inversion-p99.tcp.idle", "no-inversion-p50.tcp.loaded"]
        );
        let said = &good.conclusions[0];
        assert!(said.contains("no priority inversion was seen"), "{said}");
        assert!(said.contains("22.0 us (80 edges) where"), "{said}");
        assert!(
            said.contains("2.0 us; to wait for the rest of a low call would make 15.0 us"),
            "{said}"
        );
        // Even where the high receiver alone is slower still.
        let bad = found(&[[60_000, 20_000, 35_000]; 2], 40);
        assert_eq!(Verdicts::of(&bad.claims).missed, 4);
        assert_eq!(bad.published.len(), 1);
        let said = &bad.published[0].ours;
        assert!(said.starts_with("the high receiver waits for the low one"));
    }

    #[test]
    fn what_differs_from_round_to_round_is_not_judged() {
        let rounds = [22_000, 35_000].map(|met_ns| [25_000, 20_000, met_ns]);
        let claims = found(&rounds.repeat(3), 40).claims;
        assert!(
            claims
                .iter()
                .all(|claim| claim.verdict == Verdict::NotJudged)
        );
        assert!(claims[0].reason.starts_with("the rounds differ too much"));
    }

    #[test]
    fn a_few_meetings_decide_nothing() {
        let few = found(&[[25_000, 20_000, 22_000]; 2], 14);
        assert!(few.claims.iter().all(|claim| claim.reason == TOO_FEW));
        assert!(few.conclusions[0].contains("too few edges"));
    }

    #[test]
    fn quotients_are_of_the_same_cell() {
        let derived = found(&[[20_000, 30_000, 30_000]; 2], 40).derived;
        let values = |name: &str| -> Vec<f64> {
            let found = derived.iter().filter(|derived| derived.name == name);
            found
                .map(|derived| (derived.value * 100.0).round() / 100.0)
                .collect()
        };
        assert_eq!(values("with_low_to_alone_p50"), [1.5, 1.5]);
        assert_eq!(values("with_load_to_without_max"), [1.0, 1.0]);
        assert_eq!(values("wait_for_low_call"), [0.0, 0.0]);
        let above_alone = values("wait_for_low");
        assert!(
            above_alone
                .iter()
                .all(|ns| (9_900.0..10_100.0).contains(ns)),
            "{above_alone:?}"
        );
        let labels = &derived[0].labels;
        assert!(labels.contains_key("role") && !labels.contains_key("part"));
    }
}
