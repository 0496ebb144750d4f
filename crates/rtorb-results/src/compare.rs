//! Two measurements beside each other: what differs, and whether it is more than the noise.
//!
//! Series are matched by experiment and labels. The median of each run is one observation; with one run on a side, the
//! medians of its rounds are. The ratio B/A has a confidence interval by Welch's t on logarithms, and so many series are
//! judged at once that the false discovery rate is controlled (Benjamini and Hochberg 1995).

use serde::Serialize;

use crate::Labels;
use crate::error::Error;
use crate::runs::Run;
pub use conditions::{Condition, Gravity};

mod conditions;
mod observed;
mod welch;

/// What a comparison found. As JSON it is what `rtorb lab compare --json` prints (docs/reference/results.md).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The form: [`SCHEMA`].
    pub schema: &'static str,
    /// What was taken as an observation.
    pub observations: Observations,
    /// Whether times are counts of guest instructions on both sides: then every run repeats exactly, and the rounds are seeds. An
    /// interval then says what other seeds might give, and nothing about the noise of a machine.
    pub virtual_time: bool,
    /// How many runs A has.
    pub runs_a: usize,
    /// How many runs B has.
    pub runs_b: usize,
    /// The share of the true ratios that the intervals hold: 0.95.
    pub confidence: f64,
    /// At most this share of the differences found is expected to be none.
    pub false_discovery_rate: f64,
    /// What else differs than what was measured, gravest first: read this before the numbers.
    pub conditions: Vec<Condition>,
    /// How many series have which verdict.
    pub counts: Counts,
    /// Every series that both sides have: those that differ first, the largest difference first.
    pub series: Vec<Compared>,
    /// Series that A alone has.
    pub only_in_a: Vec<SeriesName>,
    /// Series that B alone has.
    pub only_in_b: Vec<SeriesName>,
}

/// What is taken as an observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Observations {
    /// The median of each run: covers what differs from run to run.
    Runs,
    /// The median of each round of a run: drift between runs is not covered.
    Rounds,
}

/// What names a series on both sides.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct SeriesName {
    /// The experiment's name.
    pub experiment: String,
    /// Its labels without `real_time` and without the load that its whole run was under: those are conditions.
    pub labels: Labels,
}

/// One series of both sides.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// Which one.
    #[serde(flatten)]
    pub name: SeriesName,
    /// The unit of its values.
    pub unit: String,
    /// What A has.
    pub a: SeriesSummary,
    /// What B has.
    pub b: SeriesSummary,
    /// `b.p50` divided by `a.p50`; `None` when one of them is not above 0.
    pub ratio: Option<f64>,
    /// The lower end of the interval of the ratio, of this series alone.
    pub ratio_low: Option<f64>,
    /// The upper end.
    pub ratio_high: Option<f64>,
    /// How probable a difference as large as this one is if there is none.
    pub p: Option<f64>,
    /// The same, corrected for the number of series.
    pub p_adjusted: Option<f64>,
    /// What follows.
    pub verdict: Change,
    /// Why nothing can be said, where that is so.
    pub why: Option<String>,
}

impl Compared {
    /// How much slower B is, in per cent of A; `None` unless it is slower beyond the noise.
    #[must_use]
    pub fn slower_percent(&self) -> Option<f64> {
        let slower = self.verdict == Change::Slower;
        // A time that rose from nothing rose by more than any number of per cent.
        slower.then(|| {
            self.ratio
                .map_or(f64::INFINITY, |ratio| (ratio - 1.0) * 100.0)
        })
    }

    /// How far the ratio is from 1, whichever side is the greater.
    fn distance(&self) -> f64 {
        match (self.ratio, self.verdict.differs()) {
            (Some(ratio), _) => ratio.ln().abs(),
            (None, true) => f64::INFINITY,
            (None, false) => 0.0,
        }
    }
}

/// The statistics of a series on one side.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SeriesSummary {
    /// How many observations there are.
    pub observations: usize,
    /// Their geometric mean; the arithmetic mean when one is 0. Each is a median.
    pub p50: f64,
    /// The median over runs of the 99th percentile; for information.
    pub p99: f64,
    /// The largest sample of all runs; for information.
    pub max: f64,
}

/// The change of a series from A to B.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// B takes less time, beyond the noise.
    Faster,
    /// B takes more time, beyond the noise.
    Slower,
    /// B has less of what is counted, beyond the noise.
    Less,
    /// B has more of what is counted, beyond the noise.
    More,
    /// No difference beyond the noise; the interval says how large one may still be.
    NoDifference,
    /// There is too little to say anything.
    CannotBeSaid,
}

impl Change {
    /// Whether the sides differ.
    #[must_use]
    pub fn differs(self) -> bool {
        !matches!(self, Self::NoDifference | Self::CannotBeSaid)
    }

    /// How a reader says it.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::Less => "less",
            Self::More => "more",
            Self::NoDifference => "no difference",
            Self::CannotBeSaid => "cannot be said",
        }
    }
}

/// The number of series with each change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// [`Change::Faster`].
    pub faster: usize,
    /// [`Change::Slower`].
    pub slower: usize,
    /// [`Change::Less`].
    pub less: usize,
    /// [`Change::More`].
    pub more: usize,
    /// [`Change::NoDifference`].
    pub no_difference: usize,
    /// [`Change::CannotBeSaid`].
    pub cannot_be_said: usize,
}

/// Sets the runs of B beside those of A.
///
/// # Errors
/// That they share no experiment, or that what differs spoils the comparison and `spoilt` refuses it.
pub fn compare(a: &[Run], b: &[Run], spoilt: Spoilt) -> Result<Comparison, Error> {
    let conditions = conditions::between(a, b);
    refuse_spoilt(&conditions, spoilt)?;
    let observations = match a.len().min(b.len()) {
        0 | 1 => Observations::Rounds,
        _ => Observations::Runs,
    };
    let matched = observed::matched(a, b);
    if matched.both.is_empty() {
        let what =
            "A and B have no series in common: compare runs of the same experiments".to_owned();
        return Err(Error::NotComparable { what });
    }
    let mut series: Vec<Compared> = matched
        .both
        .into_iter()
        .map(|pair| pair.compared(observations))
        .collect();
    judge(&mut series);
    series.sort_by(|left, right| {
        let rank = |one: &Compared| (one.verdict.differs(), one.distance());
        let ((left_differs, left_far), (right_differs, right_far)) = (rank(left), rank(right));
        right_differs
            .cmp(&left_differs)
            .then(right_far.total_cmp(&left_far))
    });
    Ok(Comparison {
        schema: SCHEMA,
        observations,
        virtual_time: is_virtual(a) && is_virtual(b),
        runs_a: a.len(),
        runs_b: b.len(),
        confidence: welch::CONFIDENCE,
        false_discovery_rate: FALSE_DISCOVERY_RATE,
        conditions,
        counts: count(&series),
        series,
        only_in_a: matched.only_in_a,
        only_in_b: matched.only_in_b,
    })
}

fn is_virtual(runs: &[Run]) -> bool {
    let mut all = runs.iter().flat_map(|run| &run.results);
    all.all(|results| results.time_unit().is_virtual())
}

/// What to do when what differs spoils the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spoilt {
    /// Refuse it.
    Refuse,
    /// Compare all the same; the conditions say it.
    Compare,
}

fn refuse_spoilt(conditions: &[Condition], spoilt: Spoilt) -> Result<(), Error> {
    let spoils = |condition: &&Condition| condition.gravity == Gravity::Spoils;
    match conditions.iter().find(spoils) {
        Some(condition) if spoilt == Spoilt::Refuse => {
            let what = format!(
                "{} spoils the comparison: A {}, B {}. {}",
                condition.what, condition.a, condition.b, condition.why
            );
            Err(Error::NotComparable { what })
        }
        _ => Ok(()),
    }
}

/// Corrects for the number of series that are tested, and says what follows for each.
fn judge(series: &mut [Compared]) {
    let tested: Vec<f64> = series.iter().filter_map(|one| one.p).collect();
    let mut adjusted = welch::benjamini_hochberg(&tested).into_iter();
    for one in series.iter_mut().filter(|one| one.p.is_some()) {
        one.p_adjusted = adjusted.next();
        let found = one.p_adjusted.is_some_and(|p| p <= FALSE_DISCOVERY_RATE);
        let (is_time, rose) = (one.unit == "ns", one.b.p50 > one.a.p50);
        one.verdict = match (found, is_time, rose) {
            (false, _, _) => Change::NoDifference,
            (true, true, true) => Change::Slower,
            (true, true, false) => Change::Faster,
            (true, false, true) => Change::More,
            (true, false, false) => Change::Less,
        };
    }
}

fn count(series: &[Compared]) -> Counts {
    let mut counts = Counts::default();
    for one in series {
        let count = match one.verdict {
            Change::Faster => &mut counts.faster,
            Change::Slower => &mut counts.slower,
            Change::Less => &mut counts.less,
            Change::More => &mut counts.more,
            Change::NoDifference => &mut counts.no_difference,
            Change::CannotBeSaid => &mut counts.cannot_be_said,
        };
        *count += 1;
    }
    counts
}

/// The form of a comparison as JSON.
pub const SCHEMA: &str = "rtorb-comparison/1";
const FALSE_DISCOVERY_RATE: f64 = 0.05;

#[cfg(test)]
mod tests;
