//! One value a round, kept by the number of the round.

use std::collections::BTreeMap;

use statrs::distribution::{Binomial, DiscreteCDF};

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

    /// The 95 % interval of the median; `None` for fewer than six rounds, which have none.
    ///
    /// It is that between two values, whatever their distribution: so many values lie below the median as heads fall in as many
    /// throws of a coin (W. J. Conover, Practical Nonparametric Statistics, 3.2). A disturbed round then moves it little.
    pub fn interval(&self) -> Option<[f64; 2]> {
        interval(&self.values())
    }

    /// Combines the values of the rounds that both have: what the machine does beside differs from round to round.
    pub fn paired(&self, other: &Self, combine: impl Fn(f64, f64) -> f64) -> Self {
        let both = self.0.iter();
        both.filter_map(|(round, ours)| Some((*round, combine(*ours, *other.0.get(round)?))))
            .collect()
    }

    /// The quotients of the rounds that both have. A round whose divisor is no positive number has none.
    pub fn divided_by(&self, other: &Self) -> Self {
        let mut quotients = self.paired(other, |ours, theirs| ours / theirs);
        quotients.0.retain(|round, _| other.0[round] > 0.0);
        quotients
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
    let outside = outside(values.len());
    if outside == 0 {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    Some([sorted[outside - 1], sorted[sorted.len() - outside]])
}

/// The number of the value, from each end, at which the interval of the median ends; 0 if there are too few values.
fn outside(count: usize) -> usize {
    let heads = Binomial::new(0.5, count as u64).map(|throws| throws.inverse_cdf(BEYOND));
    // The first number of heads whose probability, with those of fewer, exceeds what may lie beyond an end.
    heads.map_or(0, |heads| heads as usize)
}

/// What may lie beyond each end of an interval that holds the median of endless rounds in 95 of 100 cases.
const BEYOND: f64 = 0.025;

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
    fn few_rounds_have_no_interval_and_very_many_have_one() {
        assert_eq!(interval(&[1.0, 2.0, 3.0, 4.0, 5.0]), None);
        assert_eq!(interval(&[]), None);
        let many: Vec<f64> = (1..=2_000).map(f64::from).collect();
        assert_eq!(interval(&many), Some([956.0, 1_045.0]));
    }
}
