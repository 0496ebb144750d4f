//! A metric: a number of each round that follows from cells, such as the median of one beside that of another in the same round.

use crate::by_round::ByRound;
use crate::cells::{Cells, Samples};
use crate::labels::{Labels, is_part};
use crate::pattern;
use crate::statistics::Statistics;

/// A number of each round of a subject, which is a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Metric {
    /// A statistic of the samples of a round.
    pub statistic: Statistic,
    /// The labels in which the cell differs from the subject: `part=wait, -role`.
    pub of: &'static str,
    /// What is made of it, in order.
    pub steps: &'static [Step],
    /// Its unit: `ns`, unless it is a quotient or says another.
    pub unit: &'static str,
}

/// What is made of a number by that of another cell in the same round. A round that either has lost is lost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// The quotient by a statistic of the cell whose labels differ so from the subject's.
    Over(Statistic, &'static str),
    /// The difference.
    Less(Statistic, &'static str),
    /// The sum.
    Plus(Statistic, &'static str),
    /// The larger one.
    Or(Statistic, &'static str),
    /// Another unit.
    Times(f64),
    /// The largest of all rounds, in the place of each.
    Largest,
}

/// A statistic of the samples of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statistic {
    /// The smallest.
    Min,
    /// The arithmetic mean.
    Mean,
    /// The sample standard deviation: jitter, as the papers have it.
    Deviation,
    /// The median.
    P50,
    /// Nine of ten are at most this.
    P90,
    /// 99 of 100 are at most this.
    P99,
    /// 999 of 1,000 are at most this.
    P99_9,
    /// The largest.
    Max,
}

/// Why a metric has no number.
pub(crate) struct Missing {
    /// The labels of which there is no cell.
    pub(crate) of: Labels,
}

impl Metric {
    /// A statistic of the subject itself.
    #[must_use]
    pub const fn of(statistic: Statistic) -> Self {
        Self {
            statistic,
            of: "",
            steps: &[],
            unit: "ns",
        }
    }

    /// The number that these steps make of it, such as the quotient by that of another cell, which is a `ratio`.
    #[must_use]
    pub const fn with(self, steps: &'static [Step]) -> Self {
        let mut unit = self.unit;
        let mut place = 0;
        while place < steps.len() {
            if let Step::Over(..) = steps[place] {
                unit = "ratio";
            }
            place += 1;
        }
        Self {
            steps,
            unit,
            ..self
        }
    }

    /// The same number, whose unit is another one than its steps tell.
    #[must_use]
    pub const fn in_unit(self, unit: &'static str) -> Self {
        Self { unit, ..self }
    }

    /// Of a cell whose labels differ so from the subject's.
    #[must_use]
    pub const fn at(self, of: &'static str) -> Self {
        Self { of, ..self }
    }

    /// The number of each round that all cells have.
    pub(crate) fn rounds(&self, cells: &Cells, subject: &Labels) -> Result<ByRound, Missing> {
        let rounds = |statistic: Statistic, of: &str| -> Result<ByRound, Missing> {
            let samples = find(cells, subject, of)?;
            Ok(samples.rounds(|round| statistic.among(round)))
        };
        let mut value = rounds(self.statistic, self.of)?;
        for step in self.steps {
            value = match *step {
                Step::Over(statistic, of) => value.divided_by(&rounds(statistic, of)?),
                Step::Less(statistic, of) => value.less(&rounds(statistic, of)?),
                Step::Plus(statistic, of) => {
                    value.paired(&rounds(statistic, of)?, |one, other| one + other)
                }
                Step::Or(statistic, of) => value.paired(&rounds(statistic, of)?, f64::max),
                Step::Times(factor) => value.map(|value| value * factor),
                Step::Largest => {
                    let largest = value.values().into_iter().fold(f64::MIN, f64::max);
                    value.map(|_| largest)
                }
            };
        }
        Ok(value)
    }

    /// How the labels of the cells that it is made of differ from the subject's, and whether the metric grows with theirs.
    #[cfg(any(test, feature = "synthetic"))]
    pub(crate) fn cells(&self) -> Vec<(&'static str, bool)> {
        let besides = self.steps.iter().filter_map(|step| {
            let (_, of) = step.beside()?;
            Some((of, matches!(step, Step::Plus(..) | Step::Or(..))))
        });
        std::iter::once((self.of, true)).chain(besides).collect()
    }

    /// The cells that it is made of, each with the statistic that it gives. Those that are missing are left out.
    pub(crate) fn sides<'a>(
        &self,
        cells: &'a Cells,
        subject: &Labels,
    ) -> Vec<(Statistic, &'a Samples)> {
        let besides = self.steps.iter().filter_map(Step::beside);
        let all = std::iter::once((self.statistic, self.of)).chain(besides);
        all.filter_map(|(statistic, of)| Some((statistic, find(cells, subject, of).ok()?)))
            .collect()
    }
}

/// The cell beside the subject. If none has just these labels, it is the only one that has those of `change` and contradicts the
/// subject in no other: a raw exchange has no preset.
fn find<'a>(cells: &'a Cells, subject: &Labels, change: &str) -> Result<&'a Samples, Missing> {
    let of = pattern::changed(subject, change);
    if let Some(samples) = cells.get(&of) {
        return Ok(samples);
    }
    let wanted = pattern::wanted(change);
    let agrees = |labels: &Labels| {
        let mut own = labels.iter();
        is_part(&wanted, labels)
            && own.all(|(name, value)| of.get(name).is_none_or(|known| known == value))
    };
    let mut found = cells.all().filter(|(labels, _)| agrees(labels));
    match (wanted.is_empty(), found.next(), found.next()) {
        (false, Some((_, samples)), None) => Ok(samples),
        _ => Err(Missing { of }),
    }
}

impl Step {
    /// The statistic, and how the labels of its cell differ from the subject's.
    fn beside(&self) -> Option<(Statistic, &'static str)> {
        match *self {
            Self::Over(statistic, of)
            | Self::Less(statistic, of)
            | Self::Plus(statistic, of)
            | Self::Or(statistic, of) => Some((statistic, of)),
            Self::Times(_) | Self::Largest => None,
        }
    }
}

impl Statistic {
    /// It, among the statistics of a round.
    #[must_use]
    pub fn among(self, round: &Statistics) -> f64 {
        match self {
            Self::Min => round.min,
            Self::Mean => round.mean,
            Self::Deviation => round.stddev,
            Self::P50 => round.p50,
            Self::P90 => round.p90,
            Self::P99 => round.p99,
            Self::P99_9 => round.p99_9,
            Self::Max => round.max,
        }
    }

    /// The share of samples beyond it, if it tells of a tail; `None` for what many samples decide together.
    pub(crate) fn tail(self) -> Option<f64> {
        match self {
            Self::Min | Self::Mean | Self::Deviation | Self::P50 | Self::P90 => None,
            Self::P99 => Some(0.01),
            Self::P99_9 => Some(0.001),
            Self::Max => Some(0.0),
        }
    }

    /// The share of samples that decide it, if these are few; `None` for what many samples decide together.
    pub(crate) fn deciding(self) -> Option<f64> {
        match self {
            // One call that a hypervisor held up makes most of it.
            Self::Deviation => Some(0.01),
            _ => self.tail(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::labels;

    fn cells() -> Cells {
        let mut cells = Cells::default();
        let of = |clients: usize| labels([("preset", "tao".into()), ("clients", clients.into())]);
        for (round, [alone, beside, raw]) in [[10, 15, 5], [20, 40, 5]].into_iter().enumerate() {
            cells.add(&of(0), round, &[alone], 0);
            cells.add(&of(9), round, &[beside], 0);
            cells.add(&labels([("orb", "raw".into())]), round, &[raw], 0);
        }
        cells.add(&of(9), 2, &[7], 0);
        cells
    }

    #[test]
    fn a_metric_pairs_the_rounds_that_all_cells_have() {
        let subject = labels([("preset", "tao".into()), ("clients", 9usize.into())]);
        let values = |steps: &'static [Step]| {
            let rounds = Metric::of(Statistic::P50)
                .with(steps)
                .rounds(&cells(), &subject);
            rounds.ok().map(|rounds| rounds.values())
        };
        use Statistic::P50;
        assert_eq!(
            values(&[Step::Over(P50, "clients=0")]),
            Some(vec![1.5, 2.0])
        );
        assert_eq!(
            values(&[Step::Less(P50, "clients=0"), Step::Over(P50, "orb=raw")]),
            Some(vec![1.0, 4.0]),
            "a raw exchange has no preset"
        );
        assert_eq!(values(&[Step::Times(2.0)]), Some(vec![30.0, 80.0, 14.0]));
        assert_eq!(values(&[Step::Largest]), Some(vec![40.0; 3]));
        assert_eq!(values(&[Step::Over(P50, "clients=1")]), None);
    }
}
