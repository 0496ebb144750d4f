//! Whether two samples differ: Welch's t test, and the correction for many tests.
//!
//! B. L. Welch, "The generalization of 'Student's' problem when several different population variances are involved",
//! Biometrika 34 (1947). Y. Benjamini and Y. Hochberg, "Controlling the false discovery rate: a practical and powerful
//! approach to multiple testing", Journal of the Royal Statistical Society B 57 (1995).

use statrs::distribution::{ContinuousCDF, StudentsT};

/// The difference of two means.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Difference {
    /// The mean of B less that of A.
    pub(super) estimate: f64,
    /// The lower end of its confidence interval.
    pub(super) low: f64,
    /// The upper end.
    pub(super) high: f64,
    /// How probable an estimate as far from 0 is if the means are equal; two-sided.
    pub(super) p: f64,
}

impl Difference {
    /// Tests `b` against `a`. `resolution_variance` is what the rounding of the values adds to the variance of the estimate: values
    /// that agree because they are rounded alike are not without error. `None` when a side has too few values.
    pub(super) fn between(a: &[f64], b: &[f64], resolution_variance: f64) -> Option<Self> {
        if a.len().min(b.len()) < OBSERVATIONS_MIN {
            return None;
        }
        let (of_a, of_b) = (Moments::of(a), Moments::of(b));
        let estimate = of_b.mean - of_a.mean;
        let spread = of_a.mean_variance + of_b.mean_variance;
        let error = (spread + resolution_variance).sqrt();
        if error == 0.0 {
            // No value differs from another of its side, and none was rounded.
            let p = if estimate == 0.0 { 1.0 } else { 0.0 };
            return Some(Self {
                estimate,
                low: estimate,
                high: estimate,
                p,
            });
        }
        let freedom = if spread > 0.0 {
            spread * spread / (of_a.freedom_term() + of_b.freedom_term())
        } else {
            (a.len() + b.len() - 2) as f64
        };
        let t = StudentsT::new(0.0, 1.0, freedom).ok()?;
        let half = error * t.inverse_cdf(f64::midpoint(1.0, CONFIDENCE));
        Some(Self {
            estimate,
            low: estimate - half,
            high: estimate + half,
            p: (2.0 * t.cdf(-(estimate / error).abs())).min(1.0),
        })
    }
}

/// The p-values, each corrected for the number of all: what is at most q is a discovery at the false discovery rate q.
pub(super) fn benjamini_hochberg(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|left, right| p_values[*right].total_cmp(&p_values[*left]));
    let mut adjusted = vec![1.0; p_values.len()];
    let mut smallest = 1.0f64;
    for (from_largest, index) in order.into_iter().enumerate() {
        let rank = p_values.len() - from_largest;
        smallest = smallest.min(p_values[index] * p_values.len() as f64 / rank as f64);
        adjusted[index] = smallest;
    }
    adjusted
}

struct Moments {
    mean: f64,
    /// The variance of the mean.
    mean_variance: f64,
    count: f64,
}

impl Moments {
    fn of(values: &[f64]) -> Self {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        Self {
            mean,
            mean_variance: squares / (count - 1.0) / count,
            count,
        }
    }

    /// Its part of the Welch-Satterthwaite equation.
    fn freedom_term(&self) -> f64 {
        self.mean_variance * self.mean_variance / (self.count - 1.0)
    }
}

/// The share of the true values that the intervals hold.
pub(super) const CONFIDENCE: f64 = 0.95;
/// With two on a side, the interval would be some ten times as wide as what was seen.
pub(super) const OBSERVATIONS_MIN: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of unequal variances of the R manual's `t.test(extra ~ group, data = sleep)`.
    #[test]
    fn agrees_with_the_published_example() {
        let first = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
        let second = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];
        let found = Difference::between(&second, &first, 0.0).unwrap();
        assert!((found.p - 0.07939).abs() < 1e-5, "{found:?}");
        assert!((found.low - -3.365_483_2).abs() < 1e-6, "{found:?}");
        assert!((found.high - 0.205_483_2).abs() < 1e-6, "{found:?}");
    }

    #[test]
    fn too_few_values_say_nothing() {
        assert_eq!(
            Difference::between(&[1.0, 2.0], &[1.0, 2.0, 3.0], 0.0),
            None
        );
    }

    #[test]
    fn values_rounded_alike_are_not_without_error() {
        let same = Difference::between(&[1.0; 3], &[1.0; 3], 1e-6).unwrap();
        assert!((same.p - 1.0).abs() < 1e-9 && same.low < 0.0 && same.high > 0.0);
        let step = Difference::between(&[1.0; 3], &[1.001; 3], 1e-6).unwrap();
        assert!(step.p > 0.2, "{step:?}");
        let counts = Difference::between(&[4.0; 3], &[5.0; 3], 0.0).unwrap();
        assert_eq!((counts.p, counts.estimate), (0.0, 1.0));
    }

    /// `p.adjust(c(0.01, 0.04, 0.03, 0.005), method = "BH")` of R is 0.02, 0.04, 0.04, 0.02.
    #[test]
    fn corrects_as_published() {
        let found = benjamini_hochberg(&[0.01, 0.04, 0.03, 0.005]);
        for (found, expected) in found.iter().zip([0.02, 0.04, 0.04, 0.02]) {
            assert!((found - expected).abs() < 1e-12, "{found} {expected}");
        }
        assert!(benjamini_hochberg(&[]).is_empty());
    }
}
