//! The percentiles by which experiments compare the rounds of two cells.

use rtorb_results::by_round::ByRound;
use rtorb_results::cells::Samples;
use rtorb_results::statistics::Statistics;

/// A percentile of a round.
pub(super) struct Percentile {
    /// Its name in derived numbers and claims.
    pub(super) name: &'static str,
    of: fn(&Statistics) -> f64,
}

impl Percentile {
    /// Its value in each round; none if there are no samples.
    pub(super) fn rounds(&self, samples: Option<&Samples>) -> ByRound {
        samples.map_or_else(ByRound::default, |samples| samples.rounds(self.of))
    }
}

pub(super) const P50: Percentile = Percentile {
    name: "p50",
    of: |round| round.p50,
};
pub(super) const P99: Percentile = Percentile {
    name: "p99",
    of: |round| round.p99,
};
