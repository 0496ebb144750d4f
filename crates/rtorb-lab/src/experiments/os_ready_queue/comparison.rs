//! Whether one configuration takes longer than another, round by round.

use crate::results::statistics::median;

/// One configuration's figure divided by another's, in each round that has both.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Comparison {
    /// A quotient a round.
    pub(super) ratios: Vec<f64>,
}

/// What the rounds say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The first takes longer.
    Longer,
    /// The first is over sooner.
    Shorter,
    /// Neither, as far as the rounds can tell.
    Alike,
    /// The rounds are too far apart to tell: a difference as large as P3's could hide in them.
    Scattered,
    /// There are too few rounds to tell.
    Unknown,
}

impl Comparison {
    /// Nothing when no round has both.
    pub(super) fn of(pairs: impl Iterator<Item = (f64, f64)>) -> Option<Self> {
        let ratios: Vec<f64> = pairs
            .filter(|(_, second)| *second > 0.0)
            .map(|(first, second)| first / second)
            .collect();
        (!ratios.is_empty()).then_some(Self { ratios })
    }

    /// The median over rounds.
    pub(super) fn ratio(&self) -> f64 {
        median(&self.ratios).unwrap_or(1.0)
    }

    /// A difference is one when the median exceeds [`NEGLIGIBLE`] and nine of ten rounds are on its side: as unlikely
    /// by chance as one in 64 with 7 rounds.
    pub(super) fn verdict(&self) -> Verdict {
        if self.ratios.len() < ROUNDS_MIN {
            return Verdict::Unknown;
        }
        let most = 0.9 * self.ratios.len() as f64;
        let above = self.ratios.iter().filter(|ratio| **ratio > 1.0).count() as f64;
        let below = self.ratios.iter().filter(|ratio| **ratio < 1.0).count() as f64;
        match self.ratio() {
            ratio if ratio > 1.0 + NEGLIGIBLE && above >= most => Verdict::Longer,
            ratio if ratio < 1.0 / (1.0 + NEGLIGIBLE) && below >= most => Verdict::Shorter,
            _ if self.is_scattered() => Verdict::Scattered,
            _ => Verdict::Alike,
        }
    }

    /// Whether even the middle half of the rounds is further apart than [`SCATTERED`].
    fn is_scattered(&self) -> bool {
        let mut sorted = self.ratios.clone();
        sorted.sort_by(f64::total_cmp);
        let quarter = sorted.len() / 4;
        let middle = &sorted[quarter..sorted.len() - quarter];
        match middle {
            [least, .., most] => *most > SCATTERED * *least,
            _ => false,
        }
    }

    /// `1.02 (0.97 to 1.10)`.
    pub(super) fn shown(&self) -> String {
        let smallest = self.ratios.iter().copied().fold(f64::INFINITY, f64::min);
        let largest = self.ratios.iter().copied().fold(0.0, f64::max);
        format!("{:.2} ({smallest:.2} to {largest:.2})", self.ratio())
    }
}

/// What no paper would call a difference.
const NEGLIGIBLE: f64 = 0.05;
/// P3's smallest difference that it gives a number for: twice as long with 20 tasks as without any.
const SCATTERED: f64 = 2.0;
/// Fewer all fall on one side too easily.
const ROUNDS_MIN: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;

    fn comparison(ratios: &[f64]) -> Comparison {
        Comparison::of(ratios.iter().map(|ratio| (*ratio, 1.0))).unwrap()
    }

    #[test]
    fn a_difference_needs_a_size_and_the_agreement_of_the_rounds() {
        let verdict = |ratios: &[f64]| comparison(ratios).verdict();
        assert_eq!(verdict(&[1.2, 1.3, 1.1, 1.2, 1.4]), Verdict::Longer);
        assert_eq!(verdict(&[0.8, 0.7, 0.9, 0.8, 0.6]), Verdict::Shorter);
        assert_eq!(
            verdict(&[1.2, 1.3, 0.9, 1.2, 1.4]),
            Verdict::Alike,
            "the rounds disagree"
        );
        assert_eq!(
            verdict(&[1.01, 1.02, 1.01, 1.03, 1.02]),
            Verdict::Alike,
            "it is small"
        );
        assert_eq!(
            verdict(&[0.4, 0.5, 1.0, 1.1, 3.0, 3.9, 1.0]),
            Verdict::Scattered,
            "twice as long could hide in it"
        );
        assert_eq!(
            verdict(&[0.1, 0.9, 1.0, 1.1, 1.0, 1.1, 84.0]),
            Verdict::Alike,
            "one round at either end is a stall"
        );
        assert_eq!(verdict(&[2.0, 2.0]), Verdict::Unknown);
    }

    #[test]
    fn a_round_without_a_figure_is_left_out() {
        let pairs = [(2.0, 0.0), (2.0, 1.0), (4.0, 1.0)];
        let comparison = Comparison::of(pairs.into_iter()).unwrap();
        assert_eq!(comparison.ratios, [2.0, 4.0]);
        assert_eq!(comparison.shown(), "3.00 (2.00 to 4.00)");
        assert_eq!(Comparison::of(std::iter::empty()), None);
    }
}
