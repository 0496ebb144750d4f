//! Histograms of times whose buckets grow with the time: four for each doubling, so that a bucket is at most a quarter wide, or one tick.

use core::time::Duration;

/// The buckets of a histogram. The last one has all times from 7 * 2^39 ticks on, which are more than twenty minutes.
pub const BUCKETS: usize = 164;

/// Returns the bucket of a time in ticks.
#[inline(always)]
pub(super) const fn bucket(ticks: u64) -> usize {
    // The two bits behind the highest one choose among four buckets. Each time below 8 has its own.
    let shift = 61 - (ticks | 4).leading_zeros();
    let place = (shift as usize) * 4 + (ticks >> shift) as usize;
    if place < BUCKETS { place } else { BUCKETS - 1 }
}

/// Returns the shortest time of a bucket, in ticks.
const fn lower(bucket: usize) -> u64 {
    if bucket < 8 {
        return bucket as u64;
    }
    (4 + bucket as u64 % 4) << (bucket / 4 - 1)
}

/// How many calls took how long.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    counts: [u64; BUCKETS],
    /// The length of a tick.
    tick_ns: f64,
}

impl Histogram {
    /// Makes a histogram whose bucket `n`, below [`BUCKETS`], has `count(n)` times. `tick_ns` is the length of a tick.
    #[must_use]
    pub fn new(tick_ns: f64, count: impl Fn(usize) -> u64) -> Self {
        Self {
            counts: core::array::from_fn(count),
            tick_ns,
        }
    }

    /// Returns how many times are in each bucket.
    #[must_use]
    pub fn counts(&self) -> &[u64; BUCKETS] {
        &self.counts
    }

    /// Returns the length of a tick, in ns.
    #[must_use]
    pub fn tick_ns(&self) -> f64 {
        self.tick_ns
    }

    /// Returns the number of counted times.
    #[must_use]
    pub fn count(&self) -> u64 {
        let add = |sum: u64, count: &u64| sum.saturating_add(*count);
        self.counts.iter().fold(0, add)
    }

    /// Returns the quantile `part` of the times, from above 0 to 1: the median for 0.5. It is the upper end of a bucket, at most a quarter above
    /// the time itself. Returns `None` without times.
    #[must_use]
    pub fn quantile(&self, part: f64) -> Option<Duration> {
        let count = self.count();
        let rank = ((count as f64 * part).ceil() as u64).clamp(1, count.max(1));
        let mut seen = 0_u64;
        let found = self.counts.iter().position(|of_bucket| {
            seen = of_bucket.saturating_add(seen);
            seen >= rank
        })?;
        Some(self.upper(found))
    }

    /// Returns the buckets that have times: the upper end of each, which is no time of it, and how many times it has.
    pub fn buckets(&self) -> impl Iterator<Item = (Duration, u64)> + '_ {
        let filled = self.counts.iter().enumerate().filter(|it| *it.1 > 0);
        filled.map(|(bucket, count)| (self.upper(bucket), *count))
    }

    /// Adds the times of another one of the same clock.
    pub fn add(&mut self, other: &Self) {
        for (own, others) in self.counts.iter_mut().zip(other.counts) {
            *own = own.saturating_add(others);
        }
    }

    /// Returns the times that came after an earlier state of the same histogram.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self::new(self.tick_ns, |bucket| {
            self.counts[bucket].saturating_sub(earlier.counts[bucket])
        })
    }

    fn upper(&self, bucket: usize) -> Duration {
        Duration::from_nanos((lower(bucket + 1) as f64 * self.tick_ns).round() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_is_in_the_bucket_between_its_ends_which_are_a_quarter_apart() {
        let times = (0..200).chain(
            (3..42).flat_map(|bit| [(1 << bit) - 1, 1 << bit, (1 << bit) + (1 << bit >> 2)]),
        );
        for ticks in times {
            let place = bucket(ticks);
            assert!(lower(place) <= ticks && ticks < lower(place + 1), "{ticks}");
            let width = lower(place + 1) - lower(place);
            assert!(width <= (lower(place) / 4).max(1), "{ticks}");
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn a_quantile_is_the_upper_end_of_its_bucket() {
        let mut counts = [0; BUCKETS];
        for ticks in 1..=100 {
            counts[bucket(ticks)] += 1;
        }
        let times = Histogram::new(2.0, |place| counts[place]);
        assert_eq!(times.count(), 100);
        let quantile = |part| times.quantile(part).map(|it| it.as_nanos());
        assert_eq!(quantile(0.5), Some(2 * 56), "50 is in 48 to 55");
        assert_eq!(quantile(1.0), Some(2 * 112));
        assert_eq!(quantile(0.0), Some(2 * 2), "the shortest");
        assert_eq!(Histogram::new(2.0, |_| 0).quantile(0.5), None);
    }
}
