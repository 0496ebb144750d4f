//! The samples of one series that were taken in rounds: all of them, and the median of each round.

use crate::by_round::ByRound;
use crate::statistics::{Recorder, median};
use crate::{Labels, Series};

/// Times in nanoseconds, round after round.
#[derive(Debug, Default)]
pub struct Rounds {
    /// Every sample.
    pub recorder: Recorder,
    /// The median of each round that had samples.
    pub p50: ByRound,
    /// The mean of each round that had samples.
    pub mean: ByRound,
    /// The number of rounds, those without samples included.
    count: usize,
}

impl Rounds {
    /// Adds a round of samples; an empty one is a lost round.
    pub fn add(&mut self, round_ns: &[u64]) {
        let times: Vec<f64> = round_ns.iter().map(|ns| *ns as f64).collect();
        self.add_computed(&times);
    }

    /// Adds a round of times that were computed and may be negative: then they count as 0 in percentiles of all samples.
    pub fn add_computed(&mut self, round_ns: &[f64]) {
        for time_ns in round_ns {
            self.recorder.record_difference(*time_ns);
        }
        self.recorder.end_round();
        if let Some(p50) = median(round_ns) {
            let sum: f64 = round_ns.iter().sum();
            self.p50.set(self.count, p50);
            self.mean.set(self.count, sum / round_ns.len() as f64);
        }
        self.count += 1;
    }

    /// The series with these labels.
    pub fn series(&self, labels: Labels) -> Series {
        Series {
            rounds_p50: self.p50.values(),
            ..Series::from_recorder(labels, &self.recorder)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_negative_time_counts_as_nothing_but_in_median_and_mean() {
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
        assert!((series.statistics.mean - 9.4 / 6.0).abs() < 1e-9);
    }
}
