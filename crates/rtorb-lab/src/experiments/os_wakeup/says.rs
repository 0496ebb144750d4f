//! What follows from how late the two loops woke under each condition.

use std::fmt;

use rtorb_results::cells::{Cells, Samples};
use rtorb_results::{
    Claim, Derived, Highlight, Labels, Plot, PlotKind, Published, labels_with, labels_without,
};

use super::{AWAKE, CYCLICTEST, IDLE, LOADED, RTORB};
use crate::study::{Conditions, Findings};

pub(super) fn findings(cells: &Cells, _: &Conditions) -> Findings {
    let all = Condition::all(cells);
    // What a CPU does that is kept awake is not what a user meets.
    let met = all.iter().filter(|condition| !condition.is(AWAKE));
    let has_cyclictest = cells.with(&[("tool", CYCLICTEST.into())]).next().is_some();
    Findings {
        highlights: met.flat_map(Condition::highlights).collect(),
        derived: all.iter().filter_map(Condition::derived).collect(),
        claims: all.iter().filter_map(Condition::claim).collect(),
        conclusions: conclusions(&all),
        published: published(&all),
        plots: if has_cyclictest {
            plots(&BESIDE_CYCLICTEST)
        } else {
            plots(&ALONE)
        },
        ..Findings::default()
    }
}

/// What the loops saw while the same ran beside them.
struct Condition<'a> {
    /// The load and what the CPU did.
    labels: Labels,
    ours: &'a Samples,
    /// Those of cyclictest.
    theirs: Option<&'a Samples>,
}

impl<'a> Condition<'a> {
    /// In the order in which they were measured.
    fn all(cells: &'a Cells) -> Vec<Self> {
        let condition = |(labels, ours): (&Labels, &'a Samples)| Self {
            labels: labels_without(labels, &["tool"]),
            ours,
            theirs: cells.get(&labels_with(labels, [("tool", CYCLICTEST.into())])),
        };
        cells
            .with(&[("tool", RTORB.into())])
            .map(condition)
            .collect()
    }

    fn is(&self, cpu: &str) -> bool {
        self.labels["cpu"] == cpu.into()
    }

    fn median_us(&self) -> Option<f64> {
        Some(self.ours.median_ns()? / 1e3)
    }

    fn max_us(&self) -> f64 {
        self.ours.statistics().max / 1e3
    }

    fn highlights(&self) -> [Highlight; 2] {
        let ours = self.ours.statistics();
        let theirs = self.theirs.map(Samples::statistics);
        let line = |what: &str, ours_ns: f64, theirs_ns: Option<f64>| Highlight {
            what: format!("{what}, {self}"),
            value: ours_ns / 1e3,
            unit: "us".to_owned(),
            beside: theirs_ns
                .map(|ns| format!("cyclictest {:.1} us", ns / 1e3))
                .unwrap_or_default(),
        };
        [
            line("max", ours.max, theirs.map(|theirs| theirs.max)),
            line("p99.9", ours.p99_9, theirs.map(|theirs| theirs.p99_9)),
        ]
    }

    /// Our median divided by cyclictest's: the quotient of the two medians over rounds, and that of each round.
    fn derived(&self) -> Option<Derived> {
        let (ours, theirs) = (self.ours, self.theirs?);
        let [ours, theirs] = [ours, theirs].map(|samples| samples.rounds(|round| round.p50));
        Derived::quotient(TO_CYCLICTEST, self.labels.clone(), &ours, &theirs)
    }

    fn claim(&self) -> Option<Claim> {
        let (ours, theirs) = (self.ours, self.theirs?);
        let [ours, theirs] = [ours, theirs].map(|samples| samples.rounds(|round| round.p50));
        let differences = ours.divided_by(&theirs);
        Claim::at_most(
            format!("as-cyclictest.{}", self.labels["cpu"]),
            format!("{self}: the median is cyclictest's (difference)"),
            &differences.map(|ratio| 100.0 * (ratio - 1.0).abs()),
            DIFFERENCE_MAX * 100.0,
            "%",
        )
    }
}

impl fmt::Display for Condition<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is(LOADED) {
            write!(formatter, "load {}", self.labels["load"])
        } else {
            write!(formatter, "without load, the CPU {}", self.labels["cpu"])
        }
    }
}

fn conclusions(all: &[Condition<'_>]) -> Vec<String> {
    let of = |cpu: &str| all.iter().find(|condition| condition.is(cpu));
    let median_us = |cpu: &str| of(cpu)?.median_us();
    let Some((idle, idle_us)) = of(IDLE).zip(median_us(IDLE)) else {
        return Vec::new();
    };
    let loaded = of(LOADED).zip(median_us(LOADED)).map(|(loaded, loaded_us)| {
        format!(
            "With {loaded} the thread wakes {loaded_us:.1} us late (median) instead of {idle_us:.1} us, at most {:.0} us instead \
             of {:.0} us.",
            loaded.max_us(),
            idle.max_us()
        )
    });
    let awake = median_us(AWAKE).map(|awake_us| {
        format!(
            "Without load the thread wakes {idle_us:.1} us late while the CPU may sleep, {awake_us:.1} us late when the CPU is \
             kept awake (medians)."
        )
    });
    loaded.into_iter().chain(awake).collect()
}

fn published(all: &[Condition<'_>]) -> Vec<Published> {
    let max_us = |condition: &Condition<'_>| format!("{:.0} us ({condition})", condition.max_us());
    let ours: Vec<String> = all.iter().map(max_us).collect();
    let row = || Published {
        source: "P4 section 3".to_owned(),
        what: "maximum latency that cyclictest shows on one system".to_owned(),
        published: "26 us with a RT_PREEMPT enabled kernel, 39.6 ms with a vanilla kernel"
            .to_owned(),
        ours: format!("at most {}", ours.join(", ")),
    };
    (!ours.is_empty()).then(row).into_iter().collect()
}

/// What the plots are called and what is said of them.
struct Words {
    histogram: [&'static str; 2],
    percentiles: &'static str,
}

const BESIDE_CYCLICTEST: Words = Words {
    histogram: [
        "How late the thread wakes, beside cyclictest",
        "As the histograms of cyclictest. Both should lie on each other; what counts for a deadline is how far to the right the \
         last sample lies.",
    ],
    percentiles: "Solid: measured here; dashed: cyclictest.",
};
const ALONE: Words = Words {
    histogram: [
        "How late the thread wakes",
        "As the histograms of cyclictest. What counts for a deadline is how far to the right the last sample lies.",
    ],
    percentiles: "What a mean hides: how long the slowest wake-ups take.",
};

fn plots(words: &Words) -> Vec<Plot> {
    let plot = |id: &str, title: &str, caption: &str| Plot {
        caption: caption.to_owned(),
        lines: ["cpu", "load", "tool"].map(str::to_owned).to_vec(),
        x_title: "from the set moment until the thread runs, us".to_owned(),
        log_x: true,
        log_y: true,
        ..Plot::named(id, title)
    };
    let [title, caption] = words.histogram;
    vec![
        Plot {
            kind: PlotKind::Histogram,
            choose: ["cpu", "load"].map(str::to_owned).to_vec(),
            lines: vec!["tool".to_owned()],
            ..plot("wakeup-histogram", title, caption)
        },
        Plot {
            kind: PlotKind::Percentiles,
            ..plot(
                "wakeup-percentiles",
                "The tail of the wake-up latency",
                words.percentiles,
            )
        },
    ]
}

const TO_CYCLICTEST: &str = "to_cyclictest";
/// What issue and documentation promise.
const DIFFERENCE_MAX: f64 = 0.15;

#[cfg(test)]
mod tests {
    use rtorb_results::{Verdict, labels};

    use super::*;

    const CONDITIONS: [[&str; 2]; 3] = [["none", IDLE], ["none", AWAKE], ["mix", LOADED]];

    fn add(cells: &mut Cells, [load, cpu]: [&str; 2], tool: &str, rounds: &[&[u64]]) {
        let labels = labels([
            ("load", load.into()),
            ("cpu", cpu.into()),
            ("tool", tool.into()),
        ]);
        for (round, late_ns) in rounds.iter().enumerate() {
            cells.add(&labels, round, late_ns, 0);
        }
    }

    /// Our medians are 10 us; cyclictest's are these, by round.
    fn found(theirs_ns: [u64; 3]) -> Findings {
        let mut cells = Cells::default();
        let theirs: Vec<[u64; 1]> = theirs_ns.map(|ns| [ns]).to_vec();
        let theirs: Vec<&[u64]> = theirs.iter().map(|ns| &ns[..]).collect();
        for condition in CONDITIONS {
            let ours: [&[u64]; 3] = [&[9_000, 10_000, 90_000]; 3];
            add(&mut cells, condition, RTORB, &ours);
            add(&mut cells, condition, CYCLICTEST, &theirs);
        }
        findings(&cells, &Conditions::default())
    }

    #[test]
    fn agreement_is_judged_by_the_medians_of_rounds_in_both_directions() {
        for (theirs_ns, verdict) in [
            ([10_000; 3], Verdict::Held),
            ([11_400; 3], Verdict::Held),
            ([8_000; 3], Verdict::Missed),
            ([12_000; 3], Verdict::Missed),
            ([8_000, 10_000, 12_000], Verdict::NotJudged),
        ] {
            let claims = found(theirs_ns).claims;
            let ids: Vec<&str> = claims.iter().map(|claim| claim.id.as_str()).collect();
            let expected = [
                "as-cyclictest.idle",
                "as-cyclictest.awake",
                "as-cyclictest.loaded",
            ];
            assert_eq!(ids, expected);
            for claim in &claims {
                assert_eq!(claim.verdict, verdict, "{claim:?}");
            }
        }
        let derived = found([5_000; 3]).derived;
        assert_eq!((derived[0].value, derived[0].rounds.len()), (2.0, 3));
        assert_eq!(
            derived[2].labels,
            labels([("load", "mix".into()), ("cpu", LOADED.into())])
        );
    }

    #[test]
    fn a_user_does_not_meet_a_cpu_that_is_kept_awake() {
        let found = found([10_000; 3]);
        let highlights: Vec<&str> = found.highlights.iter().map(|line| &line.what[..]).collect();
        let expected = [
            "max, without load, the CPU idle",
            "p99.9, without load, the CPU idle",
            "max, load mix",
            "p99.9, load mix",
        ];
        assert_eq!(highlights, expected);
        assert!(found.conclusions[1].contains("10.0 us late when the CPU is kept awake"));
        assert!(found.plots[0].title.contains("beside cyclictest"));
    }

    #[test]
    fn without_cyclictest_nothing_is_promised_and_the_rest_is_told() {
        let mut cells = Cells::default();
        let [idle, _, loaded] = CONDITIONS;
        add(&mut cells, idle, RTORB, &[&[1_000]]);
        add(&mut cells, loaded, RTORB, &[&[5_000, 40_000]]);
        let found = findings(&cells, &Conditions::default());
        assert!(found.claims.is_empty() && found.derived.is_empty());
        let conclusion = &found.conclusions[0];
        assert!(
            conclusion.contains("at most 40 us instead of 1 us"),
            "{conclusion}"
        );
        assert!(found.published[0].ours.contains("40 us (load mix)"));
        assert_eq!(found.highlights.len(), 4);
        assert!(!found.plots[0].title.contains("beside cyclictest"));
        let none = findings(&Cells::default(), &Conditions::default());
        assert!(none.published.is_empty() && none.conclusions.is_empty());
    }
}
