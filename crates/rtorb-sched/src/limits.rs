//! How long an analysis may search.

/// The bounds of every search; beyond them the answer is "undecided", never a guess.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Evaluations of demand for one task, or for one demand test. A fixed point of response times is usually found in tens;
    /// a processor that is used in whole, with periods that have no common measure, may need as many as its hyperperiod has
    /// releases.
    pub steps_max: u32,
    /// Rounds in which jitter is handed down chains.
    pub rounds_max: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            steps_max: 200_000,
            rounds_max: 1_000,
        }
    }
}
