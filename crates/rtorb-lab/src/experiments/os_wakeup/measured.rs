//! What the two tools saw under each condition, and what follows from it.

use std::collections::BTreeMap;
use std::fmt;

use rtorb_results::rounds::Rounds;
use rtorb_results::{
    Claim, Derived, Highlight, Labels, ObtainedScheduling, Plot, PlotKind, Published, Series,
    WorstSample, all_real_time, labels,
};

use crate::experiment::Outcome;
use crate::processes::load::Load;

/// Who measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Tool {
    /// Our loop.
    Rtorb,
    /// cyclictest of rt-tests.
    Cyclictest,
}

impl Tool {
    fn name(self) -> &'static str {
        match self {
            Self::Rtorb => "rtorb",
            Self::Cyclictest => "cyclictest",
        }
    }
}

/// What ran beside the measuring thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Condition {
    /// The load in the background.
    pub(super) load: Load,
    /// Whether the CPU was kept from sleeping by a thread of the idle class.
    pub(super) awake: bool,
}

impl Condition {
    /// In the order in which they are measured: the load is switched on once, at the end.
    pub(super) fn all(load: Load, has_cpu: bool) -> Vec<Self> {
        let mut all = vec![Self {
            load: Load::none(),
            awake: false,
        }];
        if has_cpu {
            all.push(Self {
                load: Load::none(),
                awake: true,
            });
        }
        all.push(Self { load, awake: false });
        all
    }

    fn cpu(&self) -> &'static str {
        match (self.awake, self.load.is_none()) {
            (true, _) => "awake",
            (false, true) => "idle",
            (false, false) => "loaded",
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.cpu() {
            "loaded" => write!(formatter, "load {}", self.load),
            cpu => write!(formatter, "without load, the CPU {cpu}"),
        }
    }
}

/// All samples, in the order of the conditions.
#[derive(Debug, Default)]
pub(super) struct Measured {
    /// The wake-ups of each tool under each condition.
    cells: Vec<(Condition, BTreeMap<Tool, Rounds>)>,
    /// Of each condition of an emulated machine, the slowest wake-up of our loop.
    worst: Vec<(Condition, WorstSample)>,
    /// And an ordinary one, of its first round.
    typical: Vec<(Condition, WorstSample)>,
    scheduling: BTreeMap<Tool, Vec<ObtainedScheduling>>,
}

impl Measured {
    /// Adds the samples of a round; one without any is lost.
    pub(super) fn add(&mut self, tool: Tool, condition: &Condition, late_ns: &[u64]) {
        let known = self.cells.iter().position(|(known, _)| known == condition);
        let index = known.unwrap_or_else(|| {
            self.cells.push((condition.clone(), BTreeMap::new()));
            self.cells.len() - 1
        });
        self.cells[index].1.entry(tool).or_default().add(late_ns);
    }

    /// Remembers the slowest of samples that were marked one after another, and an ordinary one.
    pub(super) fn mark(&mut self, condition: &Condition, first_mark: u64, late_ns: &[u64]) {
        if sample_of(&self.typical, condition).is_none() {
            let typical = WorstSample::typical(late_ns, first_mark);
            self.typical
                .extend(typical.map(|typical| (condition.clone(), typical)));
        }
        let samples = (first_mark..).zip(late_ns);
        let samples = samples.map(|(mark, late_ns)| WorstSample {
            mark,
            value_ns: *late_ns,
        });
        let known = self.worst.iter().position(|(known, _)| known == condition);
        let before = known.map(|index| self.worst.swap_remove(index).1);
        let worst = before.into_iter().chain(samples).reduce(WorstSample::or);
        self.worst
            .extend(worst.map(|worst| (condition.clone(), worst)));
    }

    /// Drops what was measured under a condition that did not hold.
    pub(super) fn forget(&mut self, condition: &Condition) {
        self.cells.retain(|(known, _)| known != condition);
    }

    /// Keeps the first scheduling that was seen of each tool.
    pub(super) fn saw(&mut self, tool: Tool, scheduling: Vec<ObtainedScheduling>) {
        if !scheduling.is_empty() {
            self.scheduling.entry(tool).or_insert(scheduling);
        }
    }

    pub(super) fn outcome(&self) -> Outcome {
        Outcome {
            scheduling: self.scheduling.values().flatten().cloned().collect(),
            highlights: self.highlights(),
            series: self.series(),
            columns: vec!["tool".to_owned()],
            plots: self.plots(),
            derived: self.derived(),
            claims: self.claims(),
            conclusions: self.conclusions(),
            published: self.published(),
            ..Outcome::default()
        }
    }

    fn series(&self) -> Vec<Series> {
        let cells = self.cells.iter().flat_map(|(condition, tools)| {
            tools
                .iter()
                .map(move |(tool, cell)| (condition, *tool, cell))
        });
        let series = cells.map(|(condition, tool, cell)| {
            let mut labels = self.labels(condition);
            labels.insert("tool".to_owned(), tool.name().into());
            let scheduling = self.scheduling.get(&tool).map_or(&[][..], Vec::as_slice);
            labels.insert("real_time".to_owned(), all_real_time(scheduling).into());
            let is_ours = tool == Tool::Rtorb;
            let marked = |samples: &[_]| sample_of(samples, condition).filter(|_| is_ours);
            Series {
                worst_sample: marked(&self.worst),
                typical_sample: marked(&self.typical),
                ..cell.series(labels)
            }
        });
        series.collect()
    }

    fn labels(&self, condition: &Condition) -> Labels {
        labels([
            ("load", condition.load.to_string().into()),
            ("cpu", condition.cpu().into()),
        ])
    }

    /// Our median divided by cyclictest's: the quotient of the two medians over rounds, and that of each round.
    fn derived(&self) -> Vec<Derived> {
        let quotient = |(condition, tools): &(Condition, BTreeMap<Tool, Rounds>)| {
            let (ours, theirs) = (tools.get(&Tool::Rtorb)?, tools.get(&Tool::Cyclictest)?);
            let rounds = ours.p50.divided_by(&theirs.p50);
            Some(Derived {
                value: ours.p50.median()? / theirs.p50.median()?,
                ..Derived::of_rounds(TO_CYCLICTEST, self.labels(condition), "ratio", &rounds)?
            })
        };
        self.cells.iter().filter_map(quotient).collect()
    }

    fn claims(&self) -> Vec<Claim> {
        let claim = |(condition, tools): &(Condition, BTreeMap<Tool, Rounds>)| {
            let (ours, theirs) = (tools.get(&Tool::Rtorb)?, tools.get(&Tool::Cyclictest)?);
            let ratios = ours.p50.divided_by(&theirs.p50);
            let statement = format!("{condition}: the median is cyclictest's (difference)");
            Claim::at_most(
                format!("as-cyclictest.{}", condition.cpu()),
                statement,
                &ratios.map(|ratio| 100.0 * (ratio - 1.0).abs()),
                DIFFERENCE_MAX * 100.0,
                "%",
            )
        };
        self.cells.iter().filter_map(claim).collect()
    }

    fn highlights(&self) -> Vec<Highlight> {
        let highlight = |(condition, tools): &(Condition, BTreeMap<Tool, Rounds>)| {
            let ours = tools.get(&Tool::Rtorb)?.recorder.statistics();
            let theirs = tools.get(&Tool::Cyclictest);
            let theirs = theirs.map(|cell| cell.recorder.statistics());
            let line = |what: &str, ours_ns: f64, theirs_ns: Option<f64>| Highlight {
                what: format!("{what}, {condition}"),
                value: ours_ns / 1e3,
                unit: "us".to_owned(),
                beside: theirs_ns
                    .map(|ns| format!("cyclictest {:.1} us", ns / 1e3))
                    .unwrap_or_default(),
            };
            Some([
                line("max", ours.max, theirs.map(|theirs| theirs.max)),
                line("p99.9", ours.p99_9, theirs.map(|theirs| theirs.p99_9)),
            ])
        };
        // What a CPU does that is kept awake is not what a user meets.
        let met = self.cells.iter().filter(|(condition, _)| !condition.awake);
        met.filter_map(highlight).flatten().collect()
    }

    fn conclusions(&self) -> Vec<String> {
        let ours = |wanted: &str| {
            let (condition, tools) = self
                .cells
                .iter()
                .find(|(condition, _)| condition.cpu() == wanted)?;
            let cell = tools.get(&Tool::Rtorb)?;
            let p50_us = cell.p50.median()? / 1e3;
            Some((condition, p50_us, cell.recorder.statistics().max / 1e3))
        };
        let mut found = Vec::new();
        if let (Some((_, idle_us, idle_max_us)), Some((condition, loaded_us, loaded_max_us))) =
            (ours("idle"), ours("loaded"))
        {
            found.push(format!(
                "With {condition} the thread wakes {loaded_us:.1} us late (median) instead of {idle_us:.1} us, at most \
                 {loaded_max_us:.0} us instead of {idle_max_us:.0} us."
            ));
        }
        if let (Some((_, idle_us, _)), Some((_, awake_us, _))) = (ours("idle"), ours("awake")) {
            found.push(format!(
                "Without load the thread wakes {idle_us:.1} us late while the CPU may sleep, {awake_us:.1} us late when the \
                 CPU is kept awake (medians)."
            ));
        }
        found
    }

    fn published(&self) -> Vec<Published> {
        let max_us = |(condition, tools): &(Condition, BTreeMap<Tool, Rounds>)| {
            let max_ns = tools.get(&Tool::Rtorb)?.recorder.statistics().max;
            Some(format!("{:.0} us ({condition})", max_ns / 1e3))
        };
        let ours: Vec<String> = self.cells.iter().filter_map(max_us).collect();
        if ours.is_empty() {
            return Vec::new();
        }
        vec![Published {
            source: "P4 section 3".to_owned(),
            what: "maximum latency that cyclictest shows on one system".to_owned(),
            published: "26 us with a RT_PREEMPT enabled kernel, 39.6 ms with a vanilla kernel"
                .to_owned(),
            ours: format!("at most {}", ours.join(", ")),
        }]
    }

    fn plots(&self) -> Vec<Plot> {
        let mut tools = self.cells.iter().flat_map(|(_, tools)| tools.keys());
        let words = if tools.any(|tool| *tool == Tool::Cyclictest) {
            BESIDE_CYCLICTEST
        } else {
            ALONE
        };
        plots(&words)
    }
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

fn sample_of(samples: &[(Condition, WorstSample)], wanted: &Condition) -> Option<WorstSample> {
    let found = samples.iter().find(|(condition, _)| condition == wanted);
    found.map(|(_, sample)| *sample)
}

fn plots(words: &Words) -> Vec<Plot> {
    let plot = |id: &str, title: &str, caption: &str, kind: PlotKind| Plot {
        id: id.to_owned(),
        title: title.to_owned(),
        caption: caption.to_owned(),
        kind,
        lines: ["cpu", "load", "tool"].map(str::to_owned).to_vec(),
        x_title: "from the set moment until the thread runs, us".to_owned(),
        log_x: true,
        log_y: true,
        ..Plot::default()
    };
    vec![
        Plot {
            choose: ["cpu", "load"].map(str::to_owned).to_vec(),
            lines: vec!["tool".to_owned()],
            ..plot(
                "wakeup-histogram",
                words.histogram[0],
                words.histogram[1],
                PlotKind::Histogram,
            )
        },
        plot(
            "wakeup-percentiles",
            "The tail of the wake-up latency",
            words.percentiles,
            PlotKind::Percentiles,
        ),
    ]
}

const TO_CYCLICTEST: &str = "to_cyclictest";
/// What issue and documentation promise.
const DIFFERENCE_MAX: f64 = 0.15;

#[cfg(test)]
mod tests {
    use super::*;

    fn idle() -> Condition {
        Condition::all(Load::mix(), true).remove(0)
    }

    fn loaded() -> Condition {
        Condition::all(Load::mix(), false).remove(1)
    }

    fn measured(theirs_ns: u64) -> Measured {
        let mut measured = Measured::default();
        for condition in [idle(), loaded()] {
            for round in 0..3 {
                measured.add(Tool::Rtorb, &condition, &[9_000, 10_000 + round, 90_000]);
                measured.add(Tool::Cyclictest, &condition, &[theirs_ns + round; 5]);
            }
        }
        measured
    }

    #[test]
    fn agreement_is_judged_by_the_medians_of_rounds_in_both_directions() {
        for (theirs_ns, holds) in [
            (10_000, true),
            (11_400, true),
            (8_000, false),
            (12_000, false),
        ] {
            let outcome = measured(theirs_ns).outcome();
            assert_eq!(outcome.claims.len(), 2);
            for claim in &outcome.claims {
                assert_eq!(claim.is_missed(), !holds, "{claim:?}");
            }
        }
        let derived = measured(5_000).outcome().derived;
        assert!((derived[0].value - 10_001.0 / 5_001.0).abs() < 1e-9);
        assert_eq!(derived[0].rounds.len(), 3);
    }

    #[test]
    fn conditions_are_told_apart_by_their_labels() {
        let all = Condition::all(Load::mix(), true);
        let names: Vec<&str> = all.iter().map(Condition::cpu).collect();
        assert_eq!(names, ["idle", "awake", "loaded"]);
        let series = measured(10_000).series();
        assert_eq!(series.len(), 4);
        assert_eq!(series[0].labels["load"].to_string(), "none");
        assert_eq!(series[2].labels["load"].to_string(), "mix");
        assert_eq!(series[0].labels["real_time"], false.into());
        assert_eq!(series[0].count, 9);
    }

    #[test]
    fn the_slowest_of_all_rounds_keeps_its_mark() {
        let mut measured = measured(10_000);
        measured.mark(&loaded(), 101, &[5, 70, 70, 6]);
        measured.mark(&loaded(), 201, &[70, 9]);
        let worst = |series: &Series| {
            series
                .worst_sample
                .map(|worst| (worst.mark, worst.value_ns))
        };
        let found: Vec<_> = measured.series().iter().map(worst).collect();
        assert_eq!(found, [None, None, Some((102, 70)), None]);
        measured.mark(&loaded(), 301, &[1, 71]);
        assert_eq!(worst(&measured.series()[2]), Some((302, 71)));
        let typical = measured.series()[2].typical_sample.unwrap();
        assert_eq!((typical.mark, typical.value_ns), (104, 6));
    }

    #[test]
    fn without_cyclictest_nothing_is_promised_and_the_rest_is_told() {
        let mut measured = Measured::default();
        measured.add(Tool::Rtorb, &idle(), &[1_000]);
        measured.add(Tool::Rtorb, &loaded(), &[5_000, 40_000]);
        let outcome = measured.outcome();
        assert!(outcome.claims.is_empty() && outcome.derived.is_empty());
        assert!(
            outcome.conclusions[0].contains("at most 40 us instead of 1 us"),
            "{:?}",
            outcome.conclusions
        );
        assert!(outcome.published[0].ours.contains("40 us (load mix)"));
        assert_eq!(outcome.highlights.len(), 4);
        measured.forget(&loaded());
        assert_eq!(measured.outcome().series.len(), 1);
        assert!(Measured::default().outcome().published.is_empty());
    }
}
