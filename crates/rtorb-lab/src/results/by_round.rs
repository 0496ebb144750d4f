//! One value a round, kept by the number of the round.

use std::collections::BTreeMap;

use super::statistics::median;

/// The value of each round that has one. A lost round leaves a gap: it never moves the values of later rounds to its place.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ByRound(BTreeMap<usize, f64>);

impl ByRound {
    /// Sets the value of a round. Rounds are counted from 0.
    pub(crate) fn set(&mut self, round: usize, value: f64) {
        self.0.insert(round, value);
    }

    /// The values in the order of the rounds.
    pub(crate) fn values(&self) -> Vec<f64> {
        self.0.values().copied().collect()
    }

    /// The median of the rounds; `None` without any.
    pub(crate) fn median(&self) -> Option<f64> {
        median(&self.values())
    }

    /// Combines the values of the rounds that both have: what the machine does beside differs from round to round.
    pub(crate) fn paired(&self, other: &Self, combine: impl Fn(f64, f64) -> f64) -> Self {
        let both = self.0.iter();
        both.filter_map(|(round, ours)| Some((*round, combine(*ours, *other.0.get(round)?))))
            .collect()
    }

    /// The quotients of the rounds that both have. A divisor below one nanosecond counts as one.
    pub(crate) fn divided_by(&self, other: &Self) -> Self {
        self.paired(other, |ours, theirs| ours / theirs.max(1.0))
    }

    /// Converts each value.
    pub(crate) fn map(&self, convert: impl Fn(f64) -> f64) -> Self {
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
    }
}
