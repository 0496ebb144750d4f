//! The jitter of every observed task, and what follows from it.

use rtorb_results::cells::{Cells, Samples};
use rtorb_results::statistics::Statistics;
use rtorb_results::summary::words::said;
use rtorb_results::{Derived, Highlight, LabelValue, Labels, Published};

use crate::study::{Conditions, Findings};

pub(super) fn findings(cells: &Cells, conditions: &Conditions) -> Findings {
    let found = Jitters::of(cells);
    let said = found.said();
    let beside = |((what, published), ours): (&(&str, &str), &Option<String>)| {
        Some(Published {
            source: "P3 section 5.2".to_owned(),
            what: (*what).to_owned(),
            published: (*published).to_owned(),
            ours: ours.clone()?,
        })
    };
    Findings {
        highlights: found.highlights(),
        derived: found.derived(conditions.real_time),
        published: PUBLISHED.iter().zip(&said).filter_map(beside).collect(),
        conclusions: said.into_iter().flatten().collect(),
        notes: (!conditions.real_time)
            .then(|| NOT_REAL_TIME.to_owned())
            .into_iter()
            .collect(),
        ..Findings::default()
    }
}

/// The jitter of the observed tasks.
pub(super) struct Jitters<'a> {
    cells: &'a Cells,
    /// Those of Table 3. The tasks of a configuration are neighbours, the most urgent first.
    pub(super) together: Vec<Case<'a>>,
    /// Those that ran alone.
    pub(super) alone: Vec<Case<'a>>,
}

/// An observed task in a configuration.
#[derive(Debug)]
pub(super) struct Case<'a> {
    pub(super) labels: &'a Labels,
    samples: &'a Samples,
    pub(super) jitter: Statistics,
}

impl Case<'_> {
    pub(super) fn number(&self, label: &str) -> i64 {
        self.labels[label].number().unwrap_or_default()
    }

    pub(super) fn is(&self, label: &str, value: &str) -> bool {
        self.labels[label] == value.into()
    }

    /// What distinguishes its configuration from others. The configuration with the most timers is the largest.
    pub(super) fn configuration(&self) -> (i64, i64, String) {
        let pattern = self.labels["pattern"].to_string().replace('_', "-");
        (self.number("timers"), self.number("resolution_us"), pattern)
    }
}

impl<'a> Jitters<'a> {
    pub(super) fn of(cells: &'a Cells) -> Self {
        let of = |what: &str| {
            let wanted = [("what", what.into())];
            let found = cells
                .with(&wanted)
                .filter(|(_, samples)| samples.count() > 0);
            let case = |(labels, samples): (&'a Labels, &'a Samples)| Case {
                labels,
                samples,
                jitter: samples.statistics(),
            };
            found.map(case).collect()
        };
        Self {
            cells,
            together: of("jitter"),
            alone: of("jitter_alone"),
        }
    }

    /// The observed tasks of each configuration.
    pub(super) fn configurations(&self) -> impl Iterator<Item = &[Case<'a>]> {
        let are_one = |a: &Case<'_>, b: &Case<'_>| a.configuration() == b.configuration();
        self.together.chunk_by(are_one)
    }

    /// The samples under the same labels but one.
    pub(super) fn beside(
        &self,
        case: &Case<'_>,
        label: &str,
        value: LabelValue,
    ) -> Option<&'a Samples> {
        let mut labels = case.labels.clone();
        if value == "lateness".into() {
            labels.insert("part".to_owned(), value.clone());
        }
        labels.insert(label.to_owned(), value);
        let mut all = self.cells.all();
        let found = all.find(|(found, samples)| **found == labels && samples.count() > 0);
        found.map(|(_, samples)| samples)
    }

    /// Quotients of means and of medians, round by round.
    fn derived(&self, real_time: bool) -> Vec<Derived> {
        let mut derived = Vec::new();
        for case in &self.together {
            let others = [
                ("lowest_to_highest", "priority", "lowest", "highest"),
                (
                    "non_harmonic_to_harmonic",
                    "pattern",
                    "non_harmonic",
                    "harmonic",
                ),
            ];
            for (name, label, this, other) in others {
                let under = self.beside(case, label, other.into());
                let Some(under) = under.filter(|_| case.is(label, this)) else {
                    continue;
                };
                for (statistic, value) in [("mean", mean as Value), ("p50", p50)] {
                    let rounds = case.samples.rounds(value).divided_by(&under.rounds(value));
                    let mut labels = case.labels.clone();
                    labels.insert("real_time".to_owned(), real_time.into());
                    labels.insert("statistic".to_owned(), statistic.into());
                    derived.extend(Derived::of_rounds(name, labels, "ratio", &rounds));
                }
            }
        }
        derived
    }

    /// Where there are the most timers.
    fn highlights(&self) -> Vec<Highlight> {
        let most = self
            .configurations()
            .max_by_key(|tasks| tasks[0].configuration());
        let highlight = |task: &Case<'_>| {
            let (timers, _, pattern) = task.configuration();
            Highlight {
                what: format!(
                    "median jitter of the {} of {timers} tasks, {pattern} intervals, {}",
                    task.labels["priority"],
                    said("resolution_us", &task.labels["resolution_us"])
                ),
                value: task.jitter.p50 / 1e3,
                unit: "us".to_owned(),
                beside: format!(
                    "mean {:.1} us, 99th percentile {:.1} us",
                    task.jitter.mean / 1e3,
                    task.jitter.p99 / 1e3
                ),
            }
        };
        most.unwrap_or_default().iter().map(highlight).collect()
    }
}

pub(super) type Value = fn(&Statistics) -> f64;

pub(super) fn mean(statistics: &Statistics) -> f64 {
    statistics.mean
}

pub(super) fn p50(statistics: &Statistics) -> f64 {
    statistics.p50
}

/// P3's words; a sentence of ours decides each.
pub(super) const PUBLISHED: [(&str, &str); 6] = [
    (
        "jitter and priority, all measured cases",
        "a higher-priority task experienced a smaller jitter, a lower-priority task a larger one",
    ),
    (
        "jitter and the number of timers, all measured cases",
        "increases with the number of timers in the system",
    ),
    (
        "harmonic and non-harmonic intervals",
        "almost the same up to 5 timers; beyond, larger with non-harmonic ones on QNX, smaller on RTLinux and OSEKWorks",
    ),
    (
        "a bound, QNX",
        "always bounded by twice the clock resolution",
    ),
    (
        "jitter and the length of the interval",
        "independent of the interval length",
    ),
    (
        "jitter and the clock resolution",
        "QNX: increased as the resolution became coarser; RTLinux: almost no change",
    ),
];

const NOT_REAL_TIME: &str = "The tasks did not have SCHED_FIFO: `priority` says what was asked for, and nobody had it. The kernel may \
                             add up to 50 us to each sleep (timer slack).";
