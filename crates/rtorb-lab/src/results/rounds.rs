//! The samples of one series that were taken in rounds: all of them, and the median of each round.

use super::statistics::{Recorder, median};
use super::{Labels, Series};

/// Times in nanoseconds, round after round.
#[derive(Debug, Default)]
pub(crate) struct Rounds {
    /// Every sample.
    pub(crate) recorder: Recorder,
    /// The median of each round that had samples.
    pub(crate) p50: Vec<f64>,
}

impl Rounds {
    /// Adds a round of samples.
    pub(crate) fn add(&mut self, round_ns: &[u64]) {
        let times: Vec<f64> = round_ns.iter().map(|ns| *ns as f64).collect();
        self.add_computed(&times);
    }

    /// Adds a round of times that were computed and may be negative: then they count as 0 among the samples, and as they are
    /// in the round's median.
    pub(crate) fn add_computed(&mut self, round_ns: &[f64]) {
        for time_ns in round_ns {
            self.recorder.record(time_ns.round().max(0.0) as u64);
        }
        self.recorder.end_round();
        self.p50.extend(median(round_ns));
    }

    /// The series with these labels.
    pub(crate) fn series(&self, labels: Labels) -> Series {
        Series {
            rounds_p50: self.p50.clone(),
            ..Series::from_recorder(labels, &self.recorder)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_negative_time_counts_as_nothing_but_in_the_median() {
        let mut rounds = Rounds::default();
        rounds.add(&[3, 1, 2]);
        rounds.add_computed(&[-4.0, -2.0, 9.4]);
        rounds.add(&[]);
        let series = rounds.series(Labels::new());
        assert_eq!(series.rounds_p50, [2.0, -2.0]);
        assert_eq!(series.rounds_max, [3.0, 9.0]);
        assert_eq!(
            (series.count, series.statistics.min, series.statistics.max),
            (6, 0.0, 9.0)
        );
    }
}
