//! The jitter of every observed task in every configuration, and what follows from it.

use std::collections::BTreeMap;

use rtorb_results::by_round::ByRound;
use rtorb_results::rounds::Rounds;
use rtorb_results::statistics::Statistics;
use rtorb_results::summary::words::said;
use rtorb_results::{
    Derived, Highlight, LabelValue, Labels, ObtainedScheduling, Series, all_real_time, labels,
};

use super::conclusions;
use super::plan::{Configuration, Pattern, Rank};
use crate::experiment::Outcome;
use crate::processes::probe::Answer;

/// Everything of a run.
#[derive(Debug, Default)]
pub(super) struct Measured {
    cells: BTreeMap<(Configuration, Rank), Cell>,
    scheduling: Vec<ObtainedScheduling>,
}

/// One observed task in one configuration.
#[derive(Debug, Default)]
pub(super) struct Cell {
    jitter: Rounds,
    lateness: Rounds,
}

impl Measured {
    /// One round of a configuration: the answer has jitter and lateness of each observed task.
    pub(super) fn add(&mut self, configuration: Configuration, answer: Answer) {
        let pairs = answer.samples.chunks_exact(2);
        for (rank, pair) in configuration.ranks().iter().zip(pairs) {
            let cell = self.cells.entry((configuration, *rank)).or_default();
            cell.add(&pair[0], &pair[1]);
        }
        // The configurations with the most tasks have all three.
        let observed = observed_threads(answer.scheduling);
        if observed.len() >= self.scheduling.len() {
            self.scheduling = observed;
        }
    }

    pub(super) fn outcome(&self, complete: bool) -> Outcome {
        Outcome {
            complete,
            scheduling: self.scheduling.clone(),
            highlights: self.highlights(),
            series: self.series(),
            columns: vec!["priority".to_owned()],
            tables: Vec::new(),
            plots: conclusions::plots(),
            derived: self.derived(),
            claims: Vec::new(),
            lost: Vec::new(),
            conclusions: conclusions::conclusions(self),
            published: conclusions::published(self),
            notes: conclusions::notes(self),
        }
    }

    pub(super) fn is_real_time(&self) -> bool {
        all_real_time(&self.scheduling)
    }

    /// The configurations of Table 3.
    pub(super) fn together(&self) -> Vec<Configuration> {
        self.configurations(|pattern| !matches!(pattern, Pattern::Alone(_)))
    }

    /// The configurations of one task with the length of its interval in nanoseconds, the shortest first.
    pub(super) fn alone(&self, resolution_us: u64) -> Vec<(Configuration, u64)> {
        let all = self.configurations(|pattern| matches!(pattern, Pattern::Alone(_)));
        let of = all
            .into_iter()
            .filter(|one| one.resolution_us == resolution_us);
        of.map(|one| (one, one.shortest_interval_ns())).collect()
    }

    /// The statistics of a task's jitter; `None` where it has no sample.
    pub(super) fn jitter(&self, configuration: Configuration, rank: Rank) -> Option<Statistics> {
        let jitter = &self.cells.get(&(configuration, rank))?.jitter.recorder;
        (jitter.count() > 0).then(|| jitter.statistics())
    }

    /// The largest lateness of a task's releases.
    pub(super) fn lateness_max_ns(&self, configuration: Configuration, rank: Rank) -> Option<f64> {
        let lateness = &self.cells.get(&(configuration, rank))?.lateness.recorder;
        (lateness.count() > 0).then(|| lateness.statistics().max)
    }

    fn configurations(&self, wanted: impl Fn(Pattern) -> bool) -> Vec<Configuration> {
        let all = self.cells.keys().map(|(configuration, _)| *configuration);
        let mut wanted: Vec<_> = all.filter(|one| wanted(one.pattern)).collect();
        wanted.dedup();
        wanted
    }

    fn series(&self) -> Vec<Series> {
        let of = |(key, cell): (&(Configuration, Rank), &Cell)| {
            let (configuration, rank) = *key;
            let of = |what| self.labels(configuration, rank, what);
            let mut lateness = of("lateness");
            lateness.insert("part".to_owned(), "lateness".into());
            [
                cell.jitter.series(of("jitter")),
                cell.lateness.series(lateness),
            ]
        };
        self.cells.iter().flat_map(of).collect()
    }

    /// Quotients of means and of medians, round by round.
    fn derived(&self) -> Vec<Derived> {
        let mut derived = Vec::new();
        let mut push = |name: &str, labels: Labels, over: &Cell, under: &Cell| {
            for (statistic, of) in ROUND_STATISTICS {
                let rounds = of(over).divided_by(of(under));
                let mut labels = labels.clone();
                labels.insert("statistic".to_owned(), statistic.into());
                derived.extend(Derived::of_rounds(name, labels, "ratio", &rounds));
            }
        };
        for (&(configuration, rank), cell) in &self.cells {
            let labels = || self.labels(configuration, rank, "jitter");
            if rank == Rank::Lowest
                && let Some(highest) = self.cells.get(&(configuration, Rank::Highest))
            {
                push("lowest_to_highest", labels(), cell, highest);
            }
            let harmonic = Configuration {
                pattern: Pattern::Harmonic,
                ..configuration
            };
            if configuration.pattern == Pattern::NonHarmonic
                && let Some(harmonic) = self.cells.get(&(harmonic, rank))
            {
                push("non_harmonic_to_harmonic", labels(), cell, harmonic);
            }
        }
        derived
    }

    /// Where there are the most timers.
    fn highlights(&self) -> Vec<Highlight> {
        let most = |one: &Configuration| (one.timers, one.resolution_us, one.pattern);
        let Some(configuration) = self.together().into_iter().max_by_key(most) else {
            return Vec::new();
        };
        let highlight = |rank: Rank| {
            let jitter = self.jitter(configuration, rank)?;
            Some(Highlight {
                what: format!(
                    "median jitter of the {} of {} tasks, {} intervals, {}",
                    rank.label(),
                    configuration.timers,
                    configuration.pattern.label().replace('_', "-"),
                    said("resolution_us", &configuration.resolution_us.into())
                ),
                value: jitter.p50 / 1e3,
                unit: "us".to_owned(),
                beside: format!(
                    "mean {:.1} us, 99th percentile {:.1} us",
                    jitter.mean / 1e3,
                    jitter.p99 / 1e3
                ),
            })
        };
        configuration
            .ranks()
            .iter()
            .filter_map(|rank| highlight(*rank))
            .collect()
    }

    fn labels(&self, configuration: Configuration, rank: Rank, what: &str) -> Labels {
        let mut all = labels([
            ("timers", configuration.timers.into()),
            ("pattern", configuration.pattern.label().into()),
            ("priority", rank.label().into()),
            ("resolution_us", configuration.resolution_us.into()),
            ("what", what.into()),
            ("real_time", self.is_real_time().into()),
        ]);
        if let Pattern::Alone(_) = configuration.pattern {
            let interval_us = configuration.shortest_interval_ns() / 1_000;
            let what = LabelValue::Text(format!("{what}_{}", configuration.pattern.label()));
            all.insert("interval_us".to_owned(), interval_us.into());
            // A name of its own, so that no plot against the number of timers has these too.
            all.insert("what".to_owned(), what);
        }
        all
    }
}

impl Cell {
    fn add(&mut self, jitter_ns: &[u64], lateness_ns: &[u64]) {
        self.jitter.add(jitter_ns);
        self.lateness.add(lateness_ns);
    }
}

type OfRounds = fn(&Cell) -> &ByRound;

/// The value of the label `statistic`, and that of each round.
const ROUND_STATISTICS: [(&str, OfRounds); 2] = [
    ("mean", |cell| &cell.jitter.mean),
    ("p50", |cell| &cell.jitter.p50),
];

/// All tasks are made alike; the observed ones stand for them.
fn observed_threads(all: Vec<ObtainedScheduling>) -> Vec<ObtainedScheduling> {
    let is_observed = |kind: &ObtainedScheduling| {
        let mut names = Rank::ALL.into_iter().map(Rank::label);
        names.any(|name| kind.process.contains(name))
    };
    all.into_iter().filter(is_observed).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A round in every configuration, with the same jitter in every sample of a task.
    pub(in super::super) fn measured(jitter_ns: impl Fn(Configuration, Rank) -> u64) -> Measured {
        let mut measured = Measured::default();
        let mut add = |configuration: Configuration| {
            let of = |rank: &Rank| {
                let ns = jitter_ns(configuration, *rank);
                [vec![ns; 10], vec![2 * ns; 10]]
            };
            let answer = Answer {
                samples: configuration.ranks().iter().flat_map(of).collect(),
                ..Answer::default()
            };
            measured.add(configuration, answer);
        };
        for resolution_us in [500, 1_000] {
            for timers in [1, 2, 5, 20] {
                for pattern in Pattern::TOGETHER {
                    add(Configuration {
                        pattern,
                        resolution_us,
                        timers,
                    });
                }
            }
            for multiple in [1, 16] {
                add(Configuration {
                    pattern: Pattern::Alone(multiple),
                    resolution_us,
                    timers: 1,
                });
            }
        }
        measured
    }

    #[test]
    fn every_observed_task_is_a_series_and_no_two_have_the_same_labels() {
        let outcome = measured(|_, _| 1_000).outcome(true);
        let jitter = outcome
            .series
            .iter()
            .filter(|series| !series.labels.contains_key("part"));
        // For each resolution: 1, 2, 3 and 3 tasks of both patterns, and two that run alone.
        assert_eq!(jitter.count(), 2 * (2 * (1 + 2 + 3 + 3) + 2));
        for (index, series) in outcome.series.iter().enumerate() {
            let later = &outcome.series[index + 1..];
            assert!(later.iter().all(|other| other.labels != series.labels));
        }
    }

    #[test]
    fn quotients_are_of_the_same_configuration() {
        let outcome = measured(|configuration, rank| match (configuration.pattern, rank) {
            (Pattern::NonHarmonic, Rank::Lowest) => 6_000,
            (_, Rank::Lowest) => 3_000,
            _ => 1_000,
        })
        .outcome(true);
        let values = |name: &str, pattern: &str| -> Vec<f64> {
            let of = outcome.derived.iter().filter(|one| {
                one.name == name
                    && one.labels["statistic"] == "p50".into()
                    && one.labels["pattern"] == pattern.into()
                    && one.labels["priority"] == "lowest".into()
            });
            of.map(|one| one.value).collect()
        };
        assert_eq!(values("lowest_to_highest", "harmonic"), [3.0; 6]);
        assert_eq!(values("lowest_to_highest", "non_harmonic"), [6.0; 6]);
        assert_eq!(values("non_harmonic_to_harmonic", "non_harmonic"), [2.0; 6]);
    }
}
