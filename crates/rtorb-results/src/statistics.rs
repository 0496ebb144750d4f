//! Samples to numbers: a histogram with fixed bounds and the statistics that every series reports.
//!
//! Recording a sample makes no heap call: the histogram's counters are reserved when the recorder is made, and a sample
//! beyond the bound counts as the bound.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Collects the samples of one series, in nanoseconds.
#[derive(Clone, Debug)]
pub struct Recorder {
    histogram: Histogram<u64>,
    min_ns: u64,
    max_ns: u64,
    mean_ns: f64,
    /// Sum of squared distances from the mean, kept as Welford's method does: no cancellation.
    squares: f64,
    count: u64,
    /// The largest sample of each round that has ended.
    rounds_max_ns: Vec<f64>,
    /// Of the samples since then.
    round_max_ns: Option<u64>,
}

impl Recorder {
    /// An empty recorder; every counter it will ever need is reserved here.
    #[must_use]
    pub fn new() -> Self {
        Self {
            histogram: Histogram::new_with_bounds(1, SAMPLE_NS_MAX, SIGNIFICANT_DIGITS)
                .expect("the bounds are constants that the histogram accepts"),
            min_ns: u64::MAX,
            max_ns: 0,
            mean_ns: 0.0,
            squares: 0.0,
            count: 0,
            rounds_max_ns: Vec::new(),
            round_max_ns: None,
        }
    }

    /// Adds one sample.
    pub fn record(&mut self, sample_ns: u64) {
        self.record_as(sample_ns, sample_ns as f64);
    }

    /// Adds a difference of two times. A negative one counts as 0 in the percentiles, and as it is in mean and deviation.
    pub fn record_difference(&mut self, difference_ns: f64) {
        self.record_as(difference_ns.round().max(0.0) as u64, difference_ns);
    }

    fn record_as(&mut self, sample_ns: u64, value_ns: f64) {
        self.histogram.saturating_record(sample_ns);
        self.min_ns = self.min_ns.min(sample_ns);
        self.max_ns = self.max_ns.max(sample_ns);
        self.round_max_ns = self.round_max_ns.max(Some(sample_ns));
        self.count += 1;
        let distance = value_ns - self.mean_ns;
        self.mean_ns += distance / self.count as f64;
        self.squares += distance * (value_ns - self.mean_ns);
    }

    /// Adds every sample of a burst.
    pub fn record_all(&mut self, samples_ns: &[u64]) {
        for &sample_ns in samples_ns {
            self.record(sample_ns);
        }
    }

    /// Ends a round: the samples since the last call of this are one. Without any there was none.
    pub fn end_round(&mut self) {
        let max_ns = self.round_max_ns.take();
        self.rounds_max_ns.extend(max_ns.map(|ns| ns as f64));
    }

    /// The largest sample of each round that has ended.
    #[must_use]
    pub fn rounds_max_ns(&self) -> Vec<f64> {
        self.rounds_max_ns.clone()
    }

    /// How many samples were recorded.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The statistics of all samples so far; all zero when there are none.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        if self.count == 0 {
            return Statistics::default();
        }
        Statistics {
            min: self.min_ns as f64,
            mean: self.mean_ns,
            stddev: self.stddev_ns(),
            p50: self.quantile_ns(0.50),
            p90: self.quantile_ns(0.90),
            p99: self.quantile_ns(0.99),
            p99_9: self.quantile_ns(0.999),
            max: self.max_ns as f64,
        }
    }

    /// The curve for a percentile plot: from the median of nothing to the last sample, the same number of points in
    /// each decade of the tail, so that "one in 10", "one in 100" and so on have equal room.
    #[must_use]
    pub fn percentiles(&self) -> Vec<Percentile> {
        if self.count == 0 {
            return Vec::new();
        }
        let mut curve = Vec::new();
        for step in 0u32.. {
            let one_in = 10f64.powf(f64::from(step) / POINTS_PER_DECADE);
            if one_in >= self.count as f64 {
                break;
            }
            let quantile = 1.0 - 1.0 / one_in;
            curve.push(Percentile {
                one_in,
                value: self.quantile_ns(quantile),
            });
        }
        curve.push(Percentile {
            one_in: self.count as f64,
            value: self.max_ns as f64,
        });
        curve
    }

    /// The histogram that the report draws: buckets that grow by a twentieth, without the empty ones.
    #[must_use]
    pub fn buckets(&self) -> Vec<Bucket> {
        let mut buckets: Vec<Bucket> = Vec::new();
        for step in self.histogram.iter_recorded() {
            let value = step.value_iterated_to().clamp(self.min_ns, self.max_ns);
            let count = step.count_since_last_iteration();
            match buckets.last_mut() {
                Some(last) if value as f64 <= last.from * BUCKET_GROWTH => {
                    last.to = value as f64;
                    last.count += count;
                }
                _ => buckets.push(Bucket {
                    from: value as f64,
                    to: value as f64,
                    count,
                }),
            }
        }
        buckets
    }

    /// The sample standard deviation (divisor n - 1), as the papers report jitter.
    fn stddev_ns(&self) -> f64 {
        if self.count < 2 {
            return 0.0;
        }
        (self.squares / (self.count - 1) as f64).sqrt()
    }

    /// The histogram answers the upper edge of the bucket, which may lie beyond what was seen.
    fn quantile_ns(&self, quantile: f64) -> f64 {
        self.histogram
            .value_at_quantile(quantile)
            .clamp(self.min_ns, self.max_ns) as f64
    }
}

impl Default for Recorder {
    fn default() -> Self {
        Self::new()
    }
}

/// What is said about a series; the unit stands beside it in [`crate::Series`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Statistics {
    /// The smallest sample, exact.
    pub min: f64,
    /// The arithmetic mean, exact.
    pub mean: f64,
    /// The sample standard deviation, exact.
    pub stddev: f64,
    /// The median, to three significant digits, as are the other percentiles.
    pub p50: f64,
    /// Nine of ten samples are at most this.
    pub p90: f64,
    /// 99 of 100 samples are at most this.
    pub p99: f64,
    /// 999 of 1,000 samples are at most this.
    pub p99_9: f64,
    /// The largest sample, exact.
    pub max: f64,
}

impl Statistics {
    /// What a table heads the columns of [`Self::in_order`] with.
    pub const NAMES: [&'static str; 8] =
        ["min", "mean", "stddev", "p50", "p90", "p99", "p99.9", "max"];

    /// Of values that are kept, to the last digit: a percentile is the value that so many do not exceed. All zero without any.
    #[must_use]
    pub fn exactly(values: &[f64]) -> Self {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let count = sorted.len();
        let (Some(&min), Some(&max)) = (sorted.first(), sorted.last()) else {
            return Self::default();
        };
        let mean = sorted.iter().sum::<f64>() / count as f64;
        let squares: f64 = sorted.iter().map(|value| (value - mean).powi(2)).sum();
        let quantile = |quantile: f64| {
            let rank = (quantile * count as f64).ceil() as usize;
            sorted[rank.clamp(1, count) - 1]
        };
        Self {
            min,
            mean,
            stddev: (squares / (count.max(2) - 1) as f64).sqrt(),
            p50: median(values).unwrap_or(0.0),
            p90: quantile(0.9),
            p99: quantile(0.99),
            p99_9: quantile(0.999),
            max,
        }
    }

    /// From the smallest to the largest sample, as tables have them.
    pub fn in_order(&self) -> [f64; 8] {
        [
            self.min,
            self.mean,
            self.stddev,
            self.p50,
            self.p90,
            self.p99,
            self.p99_9,
            self.max,
        ]
    }
}

/// One point of a percentile curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Percentile {
    /// All samples but one in so many are at most `value`: 2 is the median, 1,000 is the 99.9th percentile.
    pub one_in: f64,
    /// The value there, in the unit of its series.
    pub value: f64,
}

/// A bar of a histogram.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bucket {
    /// The smallest sample in it, to three significant digits, in the unit of its series.
    pub from: f64,
    /// The largest one.
    pub to: f64,
    /// How many there are.
    pub count: u64,
}

/// The median of a few values, such as the medians of rounds; the mean of the middle two when their number is even.
#[must_use]
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        length if length % 2 == 1 => Some(sorted[middle]),
        _ => Some(f64::midpoint(sorted[middle - 1], sorted[middle])),
    }
}

/// A minute: any experiment's own timeouts end a call long before.
const SAMPLE_NS_MAX: u64 = 60_000_000_000;
/// One part in a thousand: finer than any machine repeats.
const SIGNIFICANT_DIGITS: u8 = 3;
const POINTS_PER_DECADE: f64 = 10.0;
/// Some fifty buckets a decade: finer than a screen shows.
const BUCKET_GROWTH: f64 = 1.05;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn recorded(samples: impl IntoIterator<Item = u64>) -> Recorder {
        let mut recorder = Recorder::new();
        samples
            .into_iter()
            .for_each(|sample| recorder.record(sample));
        recorder
    }

    #[test]
    fn one_to_thousand_has_the_known_statistics() {
        let recorder = recorded(1..=1000);
        let statistics = recorder.statistics();
        assert_eq!(recorder.count(), 1000);
        assert_eq!((statistics.min, statistics.max), (1.0, 1000.0));
        assert!((statistics.mean - 500.5).abs() < 1e-9);
        // The variance of 1..=n with divisor n - 1 is n (n + 1) / 12.
        assert!((statistics.stddev - (1000.0f64 * 1001.0 / 12.0).sqrt()).abs() < 1e-6);
        assert_eq!(statistics.p50, 500.0);
        assert_eq!(statistics.p90, 900.0);
        assert_eq!(statistics.p99, 990.0);
        assert_eq!(statistics.p99_9, 999.0);
    }

    #[test]
    fn every_round_with_samples_has_its_largest() {
        let mut recorder = recorded([5, 9, 0]);
        recorder.end_round();
        recorder.end_round();
        recorder.record(0);
        recorder.end_round();
        recorder.record(70);
        assert_eq!(recorder.rounds_max_ns(), [9.0, 0.0]);
        assert_eq!(recorder.statistics().max, 70.0);
    }

    #[test]
    fn nothing_recorded_is_all_zero() {
        assert_eq!(Recorder::new().statistics(), Statistics::default());
        assert!(Recorder::new().percentiles().is_empty());
    }

    #[test]
    fn one_sample_is_every_percentile_and_has_no_deviation() {
        let statistics = recorded([7_777_777]).statistics();
        assert_eq!(statistics.stddev, 0.0);
        for value in [
            statistics.min,
            statistics.mean,
            statistics.p50,
            statistics.p99_9,
            statistics.max,
        ] {
            assert_eq!(value, 7_777_777.0);
        }
    }

    #[test]
    fn a_sample_beyond_the_bound_keeps_its_exact_maximum() {
        let statistics = recorded([1_000, SAMPLE_NS_MAX * 2]).statistics();
        assert_eq!(statistics.max, (SAMPLE_NS_MAX * 2) as f64);
    }

    #[test]
    fn the_curve_ends_at_the_last_sample() {
        let curve = recorded(1..=10_000).percentiles();
        let last = curve.last().unwrap();
        assert_eq!((last.one_in, last.value), (10_000.0, 10_000.0));
        let ninetieth = curve
            .iter()
            .find(|point| (point.one_in - 10.0).abs() < 1e-9)
            .unwrap();
        assert!(
            (ninetieth.value - 9_000.0).abs() <= 9.0,
            "three significant digits: {}",
            ninetieth.value
        );
    }

    #[test]
    fn buckets_hold_every_sample_in_order() {
        let buckets = recorded((1..=10_000).chain([5_000_000])).buckets();
        assert_eq!(
            buckets.iter().map(|bucket| bucket.count).sum::<u64>(),
            10_001
        );
        assert!(buckets.windows(2).all(|pair| pair[0].to < pair[1].from));
        assert!(
            buckets
                .iter()
                .all(|bucket| bucket.to <= bucket.from * BUCKET_GROWTH)
        );
        let last = buckets.last().unwrap();
        assert_eq!(
            (last.from, last.to, last.count),
            (5_000_000.0, 5_000_000.0, 1)
        );
        assert!(buckets.len() < 250, "{}", buckets.len());
        assert!(Recorder::new().buckets().is_empty());
    }

    #[test]
    fn medians_of_rounds() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
    }

    proptest! {
        #[test]
        fn statistics_agree_with_the_sorted_samples(samples in prop::collection::vec(1u64..10_000_000, 1..500)) {
            let statistics = recorded(samples.iter().copied()).statistics();
            let mut sorted = samples.clone();
            sorted.sort_unstable();
            let exact = |quantile: f64| {
                let rank = ((quantile * sorted.len() as f64).ceil() as usize).max(1);
                sorted[rank - 1] as f64
            };
            for (quantile, found) in [(0.5, statistics.p50), (0.9, statistics.p90), (0.99, statistics.p99)] {
                prop_assert!((found - exact(quantile)).abs() <= exact(quantile) * 0.002 + 1.0);
            }
            let mean = samples.iter().sum::<u64>() as f64 / samples.len() as f64;
            prop_assert!((statistics.mean - mean).abs() <= mean * 1e-9);
            prop_assert!(statistics.min <= statistics.p50 && statistics.p50 <= statistics.p90);
            prop_assert!(statistics.p99 <= statistics.p99_9 && statistics.p99_9 <= statistics.max);
        }
    }
}
