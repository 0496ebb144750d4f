//! What results consist of: series of samples, numbers derived from them, and what stands beside them.

use serde::{Deserialize, Serialize};

use crate::by_round::ByRound;
use crate::labels::Labels;
use crate::statistics::{Bucket, Percentile, Recorder, Statistics};

/// What was measured under one set of labels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// What tells this series from the others.
    pub labels: Labels,
    /// The unit of every value here: `ns`.
    pub unit: String,
    /// How many samples were taken.
    pub count: u64,
    /// The statistics over all samples of all rounds.
    #[serde(flatten)]
    pub statistics: Statistics,
    /// The median of each round, in the order they were run.
    pub rounds_p50: Vec<f64>,
    /// The 99th percentile of each round, where rounds are judged by it.
    #[serde(default)]
    pub rounds_p99: Vec<f64>,
    /// The largest sample of each round, where a round is a seed of an emulated machine; empty everywhere else.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rounds_max: Vec<f64>,
    /// Where the slowest sample is found when the run is repeated, which only an emulated machine does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worst_sample: Option<WorstSample>,
    /// The same of a sample whose time is the median of its round: what is ordinary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub typical_sample: Option<WorstSample>,
    /// The curve of the percentile plot.
    pub percentiles: Vec<Percentile>,
    /// How many samples were how large, smallest first, without the sizes that none had.
    #[serde(default)]
    pub histogram: Vec<Bucket>,
    /// Answers that were wrong: 0, or the series says nothing about speed.
    pub wrong: u64,
    /// Calls a second over the whole of the measured time, including the wait for the last oneway to be served.
    pub calls_per_second: Option<f64>,
}

impl Series {
    /// A series of a count, such as locks a request, that each round has once; `count` is how many requests were counted.
    #[must_use]
    pub fn of_counts(labels: Labels, unit: &str, count: u64, rounds: &[f64]) -> Self {
        Self {
            unit: unit.to_owned(),
            count,
            statistics: Statistics::exactly(rounds),
            rounds_p50: rounds.to_vec(),
            ..Self::from_recorder(labels, &Recorder::new())
        }
    }

    /// A series of times from a recorder.
    #[must_use]
    pub fn from_recorder(labels: Labels, recorder: &Recorder) -> Self {
        Self {
            labels,
            unit: "ns".to_owned(),
            count: recorder.count(),
            statistics: recorder.statistics(),
            rounds_p50: Vec::new(),
            rounds_p99: Vec::new(),
            rounds_max: recorder.rounds_max_ns(),
            worst_sample: None,
            typical_sample: None,
            percentiles: recorder.percentiles(),
            histogram: recorder.buckets(),
            wrong: 0,
            calls_per_second: None,
        }
    }

    /// The median over rounds of the rounds' medians: what contestants are compared by, since the machine drifts
    /// between rounds. The median of all samples when there was one round only.
    #[must_use]
    pub fn median_of_rounds(&self) -> f64 {
        crate::statistics::median(&self.rounds_p50).unwrap_or(self.statistics.p50)
    }
}

/// The slowest sample of a series in the run of an emulated machine, which repeats to the nanosecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorstSample {
    /// Which call of `rtorb_instruments::replay::sample_taken` ended it, of all calls since the machine was switched on, from 1: an
    /// observer of the repeated run counts them. A program of the user's own calls its `rtorb_sample` instead.
    pub mark: u64,
    /// How long it took, in nanoseconds of the machine's clock: the sample is what was executed in so many before the mark.
    pub value_ns: u64,
}

impl WorstSample {
    /// The first of these samples that takes as long as half of them do or less; `None` when there are none.
    #[must_use]
    pub fn typical(samples: &[Self]) -> Option<Self> {
        let mut ranked: Vec<u64> = samples.iter().map(|sample| sample.value_ns).collect();
        ranked.sort_unstable();
        let value_ns = *ranked.get(ranked.len().saturating_sub(1) / 2)?;
        let mut samples = samples.iter().copied();
        samples.find(|sample| sample.value_ns == value_ns)
    }

    /// The slower one; of two that are alike, the first.
    #[must_use]
    pub fn or(self, later: Self) -> Self {
        if later.value_ns > self.value_ns {
            later
        } else {
            self
        }
    }
}

/// A number to read first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Highlight {
    /// What it is of.
    pub what: String,
    /// The number.
    pub value: f64,
    /// Its unit: `us`, `ratio`, `calls/s`.
    pub unit: String,
    /// What to set it beside; empty when it speaks for itself.
    pub beside: String,
}

impl Highlight {
    /// The value with as many digits as mean something, in the unit of [`Self::shown_unit`].
    #[must_use]
    pub fn shown(&self) -> String {
        let (value, unit) = fitting(self.value, &self.unit);
        let shown = match value {
            large if large.abs() >= 1_000.0 => format!("{large:.0}"),
            ms if unit != self.unit => format!("{ms:.2}"),
            us if us.abs() >= 10.0 && ["us", "k instr"].contains(&unit) => {
                format!("{us:.1}")
            }
            other => format!("{other:.2}"),
        };
        match shown.strip_suffix(".00") {
            Some(whole) => whole.to_owned(),
            None => shown,
        }
    }

    /// The unit of [`Self::shown`]: a time from 1,000 us on is in ms.
    #[must_use]
    pub fn shown_unit(&self) -> &str {
        fitting(self.value, &self.unit).1
    }
}

/// A value in the unit that a reader expects of its size: of a time in microseconds, milliseconds from 1,000 on, and seconds from a
/// million on. Other units stay.
pub(crate) fn fitting(value: f64, unit: &str) -> (f64, &str) {
    match (unit, value.abs()) {
        ("us", large) if large >= 1e6 => (value / 1e6, "s"),
        ("us", large) if large >= 1e3 => (value / 1e3, "ms"),
        _ => (value, unit),
    }
}

/// A number that follows from several series of the same run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Derived {
    /// What it is: `time_above_raw`, `share_of_omniorb`, ...
    pub name: String,
    /// Which series it belongs to.
    pub labels: Labels,
    /// `ns` or `ratio`.
    pub unit: String,
    /// The median over rounds.
    pub value: f64,
    /// The value of each round.
    pub rounds: Vec<f64>,
}

/// A round in which something could not be measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostRound {
    /// The number of the round, counted from 0.
    pub round: usize,
    /// What was not measured in it, such as `tao: 10 low-priority clients`.
    pub what: String,
    /// The error.
    pub why: String,
}

/// With as many digits as tell it from a limit.
pub(crate) fn with_unit(value: f64, unit: &str) -> String {
    let (value, unit) = fitting(value, unit);
    let shown = match value.abs() {
        small if small < 10.0 => format!("{value:.3}"),
        medium if medium < 100.0 => format!("{value:.2}"),
        _ => format!("{value:.1}"),
    };
    let shown = shown.trim_end_matches('0').trim_end_matches('.');
    let shown = if shown == "-0" { "0" } else { shown };
    let unit = match unit {
        "ratio" => "times",
        "per_request" => "a request",
        "per_event" => "an event",
        "per_second" => "a second",
        other => other,
    };
    format!("{shown} {unit}").trim_end().to_owned()
}

impl Derived {
    /// The median of the rounds, and the rounds; `None` without any.
    pub fn of_rounds(name: &str, labels: Labels, unit: &str, rounds: &ByRound) -> Option<Self> {
        Some(Self {
            name: name.to_owned(),
            labels,
            unit: unit.to_owned(),
            value: rounds.median()?,
            rounds: rounds.values(),
        })
    }
}

/// A figure that somebody published, beside ours of this run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Published {
    /// Where it stands, such as `P0 Figure 2`.
    pub source: String,
    /// What it is of.
    pub what: String,
    /// The published figure, as the text has it.
    pub published: String,
    /// Ours.
    pub ours: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_the_unit_that_fits_it() {
        let of = |value: f64, unit: &str| {
            let highlight = Highlight {
                what: String::new(),
                value,
                unit: unit.to_owned(),
                beside: String::new(),
            };
            format!("{} {}", highlight.shown(), highlight.shown_unit())
        };
        for (value, unit, shown) in [
            (31_343.2, "us", "31.34 ms"),
            (999.9, "us", "999.9 us"),
            (-0.52, "us", "-0.52 us"),
            (-2_500.0, "us", "-2.50 ms"),
            (1_200_000.0, "us", "1.20 s"),
            (31_343.2, "k instr", "31343 k instr"),
            (3_444.0, "KiB", "3444 KiB"),
        ] {
            assert_eq!(of(value, unit), shown);
        }
        assert_eq!(with_unit(31_343.2, "us"), "31.34 ms");
        assert_eq!(with_unit(0.31, "%"), "0.31 %");
    }
}
