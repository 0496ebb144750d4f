//! The bounds of a search.

/// The bounds of every search. A search that reaches them ends as undecided; it never guesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SearchLimits {
    /// Evaluations of demand for one task, or for one demand test. A fixed point of response times usually takes tens of them. A
    /// fully used processor whose periods have no common measure may need as many as its hyperperiod has releases.
    pub steps_max: u32,
    /// Rounds in which jitter propagates along chains.
    pub rounds_max: u32,
}

impl Default for SearchLimits {
    fn default() -> Self {
        Self {
            steps_max: 200_000,
            rounds_max: 1_000,
        }
    }
}
