//! One value a round, kept by the number of the round.

use std::collections::BTreeMap;

use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::statistics::median;

/// The value of each round that has one. A lost round leaves a gap: it never moves the values of later rounds to its place.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ByRound(BTreeMap<usize, f64>);

impl ByRound {
    /// Sets the value of a round. Rounds are counted from 0.
    pub fn set(&mut self, round: usize, value: f64) {
        self.0.insert(round, value);
    }

    /// The values in the order of the rounds.
    pub fn values(&self) -> Vec<f64> {
        self.0.values().copied().collect()
    }

    /// The median of the rounds; `None` without any.
    pub fn median(&self) -> Option<f64> {
        median(&self.values())
    }

    /// The rounds and their values.
    pub fn each(&self) -> impl Iterator<Item = (usize, f64)> {
        self.0.iter().map(|(round, value)| (*round, *value))
    }

    /// The number of rounds with a value.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether no round has a value.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The 95 % interval of the median; `None` for fewer than two rounds.
    ///
    /// From six rounds on, it is that between two values, whatever their distribution: so many values lie below the median as
    /// heads fall in as many throws of a coin (W. J. Conover, Practical Nonparametric Statistics, 3.2). A disturbed round then
    /// moves it little. Of fewer, it is Student's, around the mean.
    pub fn interval(&self) -> Option<[f64; 2]> {
        interval(&self.values())
    }

    /// Combines the values of the rounds that both have: what the machine does beside differs from round to round.
    pub fn paired(&self, other: &Self, combine: impl Fn(f64, f64) -> f64) -> Self {
        let both = self.0.iter();
        both.filter_map(|(round, ours)| Some((*round, combine(*ours, *other.0.get(round)?))))
            .collect()
    }

    /// The quotients of the rounds that both have. A divisor below one nanosecond counts as one.
    pub fn divided_by(&self, other: &Self) -> Self {
        self.paired(other, |ours, theirs| ours / theirs.max(1.0))
    }

    /// The differences of the rounds that both have.
    pub fn less(&self, other: &Self) -> Self {
        self.paired(other, |ours, theirs| ours - theirs)
    }

    /// Converts each value.
    pub fn map(&self, convert: impl Fn(f64) -> f64) -> Self {
        let each = self.0.iter();
        each.map(|(round, value)| (*round, convert(*value)))
            .collect()
    }
}

impl FromIterator<(usize, f64)> for ByRound {
    fn from_iter<I: IntoIterator<Item = (usize, f64)>>(values: I) -> Self {
        Self(values.into_iter().collect())
    }
}

/// The values of the first rounds.
impl From<&[f64]> for ByRound {
    fn from(values: &[f64]) -> Self {
        values.iter().copied().enumerate().collect()
    }
}

fn interval(values: &[f64]) -> Option<[f64; 2]> {
    if values.len() < 2 {
        return None;
    }
    let outside = outside(values.len());
    if outside > 0 {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        return Some([sorted[outside - 1], sorted[sorted.len() - outside]]);
    }
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let error = (squares / (count - 1.0) / count).sqrt();
    let t = StudentsT::new(0.0, 1.0, count - 1.0).ok()?;
    let half = error * t.inverse_cdf(f64::midpoint(1.0, CONFIDENCE));
    Some([mean - half, mean + half])
}

/// The number of the value, from each end, at which the interval of the median ends; 0 if there are too few values.
fn outside(count: usize) -> usize {
    // The probability of so many heads, and of at most so many.
    let mut exactly = 0.5f64.powi(count as i32);
    let mut at_most = exactly;
    let mut heads = 0;
    while at_most <= (1.0 - CONFIDENCE) / 2.0 {
        heads += 1;
        exactly *= (count - heads + 1) as f64 / heads as f64;
        at_most += exactly;
    }
    heads
}

/// How sure an interval is to hold the value of endless rounds, if these vary as those that were measured.
const CONFIDENCE: f64 = 0.95;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_that_one_side_has_lost_are_left_out() {
        let ours: ByRound = [(0, 10.0), (1, 20.0), (2, 40.0)].into_iter().collect();
        let theirs: ByRound = [(0, 5.0), (2, 8.0)].into_iter().collect();
        let quotients = ours.divided_by(&theirs);
        assert_eq!(quotients, [(0, 2.0), (2, 5.0)].into_iter().collect());
        assert_eq!(quotients.median(), Some(3.5));
        assert_eq!(
            ours.less(&theirs),
            [(0, 5.0), (2, 32.0)].into_iter().collect()
        );
    }

    #[test]
    fn the_interval_of_many_rounds_ends_at_two_of_them() {
        // Conover's table of the binomial distribution for p = 0.5.
        for (count, end) in [(5, 0), (6, 1), (8, 1), (9, 2), (12, 3), (20, 6), (30, 10)] {
            assert_eq!(outside(count), end, "{count}");
        }
        let mut rounds: Vec<f64> = (1..=12).map(f64::from).collect();
        rounds[11] = 1e9;
        assert_eq!(
            interval(&rounds),
            Some([3.0, 10.0]),
            "a stall moves nothing"
        );
    }

    #[test]
    fn the_interval_of_few_rounds_is_students() {
        // For two degrees of freedom and 95 %: 4.303 standard errors (W. S. Gosset's table).
        let [low, high] = interval(&[1.0, 2.0, 3.0]).unwrap();
        let half = 4.303 / 3.0f64.sqrt();
        assert!((high - 2.0 - half).abs() < 1e-3 && (2.0 - low - half).abs() < 1e-3);
        assert_eq!(interval(&[2.0, 2.0]), Some([2.0, 2.0]));
    }
}
