//! Times of all rounds under one set of labels, and the latencies of a wave as such times.

use std::collections::BTreeMap;

use rtorb_results::by_round::ByRound;
use rtorb_results::statistics::{Recorder, Statistics};
use rtorb_results::{Labels, Series};

use super::{Latencies, Part};

/// Each part of the latencies of one wave.
#[derive(Debug, Default)]
pub struct Recorded {
    parts: [RecordedTimes; Part::ALL.len()],
}

/// Times of one kind.
#[derive(Debug, Default)]
pub struct RecordedTimes {
    recorder: Recorder,
    rounds: BTreeMap<usize, Statistics>,
    wrong: u64,
}

impl RecordedTimes {
    /// Adds a round; one without a time says nothing but what was wrong.
    pub fn add(&mut self, round: usize, times_ns: impl IntoIterator<Item = u64>, wrong: u64) {
        let mut times = Recorder::new();
        for time_ns in times_ns {
            self.recorder.record(time_ns);
            times.record(time_ns);
        }
        self.recorder.end_round();
        self.wrong += wrong;
        if times.count() > 0 {
            self.rounds.insert(round, times.statistics());
        }
    }

    /// Of all times.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.recorder.statistics()
    }

    /// One of the statistics, round by round.
    #[must_use]
    pub(crate) fn rounds(&self, which: impl Fn(&Statistics) -> f64) -> ByRound {
        let each = self.rounds.iter();
        each.map(|(round, found)| (*round, which(found))).collect()
    }

    /// The series, with these labels.
    #[must_use]
    pub fn series(&self, labels: Labels) -> Series {
        Series {
            rounds_p50: self.rounds(|round| round.p50).values(),
            rounds_p99: self.rounds(|round| round.p99).values(),
            wrong: self.wrong,
            ..Series::from_recorder(labels, &self.recorder)
        }
    }
}

impl Recorded {
    /// Adds a round; one without an edge says nothing.
    pub fn add(&mut self, round: usize, latencies: &Latencies) {
        for (part, times_ns) in self.parts.iter_mut().zip(&latencies.parts_ns) {
            part.add(round, times_ns.iter().copied(), latencies.wrong);
        }
    }

    /// Of all samples of a part.
    #[must_use]
    pub fn statistics(&self, part: Part) -> Statistics {
        self.parts[part as usize].statistics()
    }

    /// One of the statistics of a part, round by round.
    #[must_use]
    pub(crate) fn rounds(&self, part: Part, which: impl Fn(&Statistics) -> f64) -> ByRound {
        self.parts[part as usize].rounds(which)
    }

    /// A series for each part, with its name added to the labels.
    pub fn series(&self, labels: &Labels) -> impl Iterator<Item = Series> {
        Part::ALL.into_iter().map(|part| {
            let mut labels = labels.clone();
            labels.insert("part".to_owned(), part.name().into());
            self.series_of(part, labels)
        })
    }

    /// The series of one part, with these labels.
    #[must_use]
    pub fn series_of(&self, part: Part, labels: Labels) -> Series {
        self.parts[part as usize].series(labels)
    }

    /// How many samples a part has.
    #[must_use]
    pub fn count(&self, part: Part) -> u64 {
        self.parts[part as usize].recorder.count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rtorb_results::labels;

    #[test]
    fn rounds_are_kept_apart_and_together() {
        let mut recorded = Recorded::default();
        for (round, call_ns) in [(0, 10), (2, 20)] {
            recorded.add(
                round,
                &Latencies {
                    parts_ns: [vec![call_ns], vec![1], vec![2], vec![3]],
                    wrong: 1,
                    ..Latencies::default()
                },
            );
        }
        recorded.add(3, &Latencies::default());
        let largest = recorded.rounds(Part::Call, |round| round.max);
        assert_eq!(largest, [(0, 10.0), (2, 20.0)].into_iter().collect());
        assert_eq!(recorded.statistics(Part::Call).max, 20.0);
        let series: Vec<Series> = recorded.series(&labels([])).collect();
        let parts: Vec<String> = series
            .iter()
            .map(|series| series.labels["part"].to_string())
            .collect();
        assert_eq!(parts, ["call", "wakeup", "request", "round_trip"]);
        assert_eq!((series[0].count, series[0].wrong), (2, 2));
    }
}
