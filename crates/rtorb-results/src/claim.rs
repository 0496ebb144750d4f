//! Claims: statements about results, each with a number, a limit and a verdict that a bad run can turn.
//!
//! An experiment declares them ([`Declaration`]), and each of them is in every result: held, missed, not judged or not measured,
//! with the reason. A claim about times is judged by the 95 % interval of the median of its rounds. Above the limit, the claim is
//! missed; below, it is held. If the limit lies within the interval, the rounds differ too much to tell, and the claim is not
//! judged. A count is exact in every round, so its largest round decides.

use serde::{Deserialize, Serialize};

use crate::by_round::ByRound;
use crate::series::with_unit;

pub use declaration::{Declaration, Grounds, Judged, SAMPLES_BEYOND};

mod declaration;

/// A statement about results, with the number that decides it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// Identifies the claim in all runs: `orb/throughput.share-of-omniorb.tcp`.
    pub id: String,
    /// The statement in words.
    pub statement: String,
    /// The measured value: the median of the rounds, the largest of them if the claim is about each, or a count. `None` if nothing
    /// was measured.
    pub value: Option<f64>,
    /// The largest value with which the claim is held.
    pub limit: f64,
    /// The unit of value, limit and interval.
    pub unit: String,
    /// The ends of the 95 % interval of the median; `None` for a count, which is exact, for the largest round, and for fewer than two
    /// rounds.
    pub interval: Option<[f64; 2]>,
    /// The number of rounds with a value; `None` for a count.
    pub rounds: Option<usize>,
    /// The outcome.
    pub verdict: Verdict,
    /// Why the claim was not judged or not measured; empty if it was.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// True if what would be measured is not on this host, such as a peer that is not installed: then the run is no failure for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub excused: bool,
    /// The share of samples that decide it, if these are few.
    #[serde(skip)]
    deciding: Option<f64>,
}

/// The outcome of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The value is at most the limit, by more than the interval.
    Held,
    /// The value exceeds the limit by more than the interval.
    Missed,
    /// The run cannot tell.
    NotJudged,
    /// There are no samples.
    NotMeasured,
}

impl Claim {
    /// A claim that is held if `value`, which is exact, is at most `limit`.
    #[must_use]
    pub fn counted(
        id: impl Into<String>,
        statement: impl Into<String>,
        value: f64,
        limit: f64,
        unit: &str,
    ) -> Self {
        let is_held = value <= limit;
        Self {
            id: id.into(),
            statement: statement.into(),
            value: Some(value),
            limit,
            unit: unit.to_owned(),
            interval: None,
            rounds: None,
            verdict: if is_held {
                Verdict::Held
            } else {
                Verdict::Missed
            },
            reason: String::new(),
            excused: false,
            deciding: None,
        }
    }

    /// A claim of which nothing was measured, for a reason.
    #[must_use]
    pub fn not_measured(
        id: String,
        statement: String,
        (limit, unit): (f64, &str),
        reason: String,
    ) -> Self {
        Self {
            value: None,
            verdict: Verdict::NotMeasured,
            reason,
            ..Self::counted(id, statement, 0.0, limit, unit)
        }
    }

    /// A claim that is held if the interval of the rounds' median ends at most at `limit`.
    pub(crate) fn of_median(
        id: String,
        statement: String,
        rounds: &ByRound,
        (limit, unit): (f64, &str),
    ) -> Self {
        let claim = Self {
            value: rounds.median(),
            rounds: Some(rounds.len()),
            interval: rounds.interval(),
            ..Self::counted(id, statement, 0.0, limit, unit)
        };
        match claim.interval {
            None => {
                let count = rounds.len();
                claim.not_judged(format!(
                    "{count} rounds: fewer than six have no interval of their median"
                ))
            }
            Some([_, high]) if high <= limit => claim.judged(Verdict::Held),
            Some([low, _]) if low > limit => claim.judged(Verdict::Missed),
            Some([low, high]) => {
                let (low, high) = (with_unit(low, unit), with_unit(high, unit));
                claim.not_judged(format!("the rounds differ too much: {low} to {high}"))
            }
        }
    }

    /// Takes the verdict back, for a reason.
    #[must_use]
    pub fn not_judged(mut self, reason: impl Into<String>) -> Self {
        self.take_back(reason);
        self
    }

    /// The share of the CPU time that a hypervisor may take before the claim cannot be judged: a tenth of the samples that decide it.
    /// Nothing if that is the largest; a tenth of a percent if it is about a standard deviation, most of which one sample can make.
    #[must_use]
    pub fn stolen_share_max(&self) -> f64 {
        self.deciding.map_or(STOLEN_SHARE_MAX, |share| share / 10.0)
    }

    /// Takes the verdict back, for a reason. The first reason stays.
    pub fn take_back(&mut self, reason: impl Into<String>) {
        if self.verdict == Verdict::NotMeasured {
            return;
        }
        if self.reason.is_empty() {
            self.reason = reason.into();
        }
        self.verdict = Verdict::NotJudged;
    }

    /// Takes the verdict back, for a reason that goes before the one that it has.
    pub fn unjudge(&mut self, reason: String) {
        self.reason.clear();
        self.take_back(reason);
    }

    /// True if the claim is missed.
    #[must_use]
    pub fn is_missed(&self) -> bool {
        self.verdict == Verdict::Missed
    }

    /// True if the run failed to show it: it is missed, or was not measured although this host can.
    #[must_use]
    pub fn is_failure(&self) -> bool {
        self.is_missed() || (self.verdict == Verdict::NotMeasured && !self.excused)
    }

    /// The value with its unit: `1.047 times`, `0.31 %`; `-` if there is none.
    #[must_use]
    pub fn shown_value(&self) -> String {
        let shown = self.value.map(|value| with_unit(value, &self.unit));
        shown.unwrap_or_else(|| "-".to_owned())
    }

    /// The limit with its unit.
    #[must_use]
    pub fn shown_limit(&self) -> String {
        with_unit(self.limit, &self.unit)
    }

    fn judged(self, verdict: Verdict) -> Self {
        Self { verdict, ..self }
    }
}

impl Verdict {
    /// The word for it in tables.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Missed => "MISSED",
            Self::NotJudged => "not judged",
            Self::NotMeasured => "not measured",
        }
    }
}

/// The numbers of claims by verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdicts {
    /// Claims that are held.
    pub held: usize,
    /// Claims that are missed.
    pub missed: usize,
    /// Claims that were not judged.
    pub not_judged: usize,
    /// Claims of which nothing was measured.
    pub not_measured: usize,
}

impl Verdicts {
    /// Counts claims.
    #[must_use]
    pub fn of<'a>(claims: impl IntoIterator<Item = &'a Claim>) -> Self {
        let mut counted = Self::default();
        for claim in claims {
            *match claim.verdict {
                Verdict::Held => &mut counted.held,
                Verdict::Missed => &mut counted.missed,
                Verdict::NotJudged => &mut counted.not_judged,
                Verdict::NotMeasured => &mut counted.not_measured,
            } += 1;
        }
        counted
    }
}

/// The share of a run that a hypervisor may take. Beyond it, no claim about times is judged.
const STOLEN_SHARE_MAX: f64 = 0.01;

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(rounds: &[f64], limit: f64) -> Claim {
        let statement = "a statement".to_owned();
        Claim::of_median("x".to_owned(), statement, &rounds.into(), (limit, "ratio"))
    }

    #[test]
    fn a_claim_is_held_missed_or_not_judged_by_its_interval() {
        let [below, above] = [[0.9, 0.91, 0.89], [1.2, 1.21, 1.19]].map(|it| it.repeat(2));
        assert_eq!(judged(&below, 1.0).verdict, Verdict::Held);
        assert_eq!(judged(&above, 1.0).verdict, Verdict::Missed);
        // Five rounds have no interval of their median, however alike they are.
        for unclear in [&[0.9, 1.3, 0.8].repeat(2)[..], &[0.5; 5], &[0.5], &[2.0]] {
            let claim = judged(unclear, 1.0);
            assert_eq!(claim.verdict, Verdict::NotJudged, "{unclear:?}");
            assert!(!claim.reason.is_empty());
        }
    }

    #[test]
    fn a_count_is_exact() {
        let count = |value| Claim::counted("x", "none", value, 0.0, "events").verdict;
        assert_eq!((count(0.0), count(1.0)), (Verdict::Held, Verdict::Missed));
    }

    #[test]
    fn a_verdict_is_taken_back_for_the_first_reason() {
        let mut claim = judged(&[1.2; 6], 1.0).not_judged("interrupted");
        claim.take_back("stolen");
        assert!(!claim.is_missed());
        assert_eq!(claim.reason, "interrupted");
        let verdicts = Verdicts::of([&claim, &judged(&[1.0; 6], 1.0)]);
        assert_eq!(
            verdicts,
            Verdicts {
                held: 1,
                not_judged: 1,
                ..Verdicts::default()
            }
        );
    }
}
