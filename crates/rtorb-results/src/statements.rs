//! What an experiment says about its cells, as data: numbers to read first, derived numbers, claims, published figures and
//! sentences. One evaluator selects the cells, computes and words all of them.

use crate::cells::Cells;
use crate::claim::{Declaration, Grounds};
use crate::labels::{Labels, labels_without};
use crate::metric::Metric;
use crate::pattern;
use crate::results::Results;
use crate::series::{Derived, Highlight, Published, with_unit};

/// All that is said about the cells of an experiment.
#[derive(Clone, Copy, Debug, Default)]
pub struct Statements {
    /// The few numbers to read first.
    pub highlights: &'static [HighlightOf],
    /// Numbers that need more than one cell.
    pub derived: &'static [DerivedOf],
    /// What is promised.
    pub claims: &'static [Declaration],
    /// What was published, and what is measured here.
    pub published: &'static [PublishedOf],
    /// What was found, in words.
    pub conclusions: &'static [Sentence],
}

/// A number to read first, of every cell that a pattern selects.
#[derive(Clone, Copy, Debug)]
pub struct HighlightOf {
    /// What it is of, with the values of labels in braces.
    pub what: &'static str,
    /// The cells.
    pub of: &'static str,
    /// The number: the median of the rounds.
    pub metric: Metric,
    /// What stands beside it.
    pub beside: Words,
}

/// A number that follows from several cells, of every cell that a pattern selects.
#[derive(Clone, Copy, Debug)]
pub struct DerivedOf {
    /// Its name.
    pub name: &'static str,
    /// The cells.
    pub of: &'static str,
    /// The labels that it does not have of its cell.
    pub without: &'static [&'static str],
    /// The number of each round.
    pub metric: Metric,
}

/// A published figure, and what is measured here, of every cell that a pattern selects.
#[derive(Clone, Copy, Debug)]
pub struct PublishedOf {
    /// Where it stands: `P1 section 2.3`.
    pub source: &'static str,
    /// What it is of, with the values of labels in braces.
    pub what: &'static str,
    /// The published figure, as the text has it.
    pub published: &'static str,
    /// The cells.
    pub of: &'static str,
    /// Ours.
    pub ours: Words,
}

/// A sentence about every cell that a pattern selects.
#[derive(Clone, Copy, Debug)]
pub struct Sentence {
    /// The cells.
    pub of: &'static str,
    /// The sentence.
    pub says: Words,
}

/// Words with the values of labels in braces, such as `{load}`, and numbers: `{0}` is the median over rounds of the first metric,
/// with its unit.
#[derive(Clone, Copy, Debug, Default)]
pub struct Words {
    /// The words.
    pub text: &'static str,
    /// The numbers.
    pub numbers: &'static [Metric],
}

impl Statements {
    /// Nothing is said.
    pub const NONE: Self = Self {
        highlights: &[],
        derived: &[],
        claims: &[],
        published: &[],
        conclusions: &[],
    };

    /// Says it about cells, as results with nothing else in them. A number without samples is left out; a claim without samples is not.
    #[must_use]
    pub fn evaluate(&self, grounds: &Grounds<'_>) -> Results {
        let cells = grounds.cells;
        let measured = |of: &'static str| {
            let all = cells.all().map(|(labels, _)| labels);
            all.filter(move |labels| pattern::matches(of, labels))
        };
        let highlights = self.highlights.iter();
        let highlights = highlights
            .flat_map(|it| measured(it.of).filter_map(|labels| it.evaluate(cells, labels)));
        let derived = self.derived.iter();
        let derived =
            derived.flat_map(|it| measured(it.of).filter_map(|labels| it.evaluate(cells, labels)));
        let published = self.published.iter();
        let published = published
            .flat_map(|it| measured(it.of).filter_map(|labels| it.evaluate(cells, labels)));
        let sentences = self.conclusions.iter();
        let sentences = sentences
            .flat_map(|it| measured(it.of).filter_map(|labels| it.says.evaluate(cells, labels)));
        Results {
            highlights: highlights.collect(),
            derived: derived.collect(),
            claims: self
                .claims
                .iter()
                .flat_map(|it| it.judge(grounds))
                .collect(),
            published: published.collect(),
            conclusions: sentences.collect(),
            ..Results::default()
        }
    }
}

impl HighlightOf {
    fn evaluate(&self, cells: &Cells, labels: &Labels) -> Option<Highlight> {
        Some(Highlight {
            what: pattern::filled(self.what, labels),
            value: self.metric.rounds(cells, labels).ok()?.median()?,
            unit: self.metric.unit.to_owned(),
            beside: self.beside.evaluate(cells, labels).unwrap_or_default(),
        })
    }
}

impl DerivedOf {
    fn evaluate(&self, cells: &Cells, labels: &Labels) -> Option<Derived> {
        let rounds = self.metric.rounds(cells, labels).ok()?;
        let labels = labels_without(labels, self.without);
        Derived::of_rounds(self.name, labels, self.metric.unit, &rounds)
    }
}

impl PublishedOf {
    fn evaluate(&self, cells: &Cells, labels: &Labels) -> Option<Published> {
        Some(Published {
            source: self.source.to_owned(),
            what: pattern::filled(self.what, labels),
            published: self.published.to_owned(),
            ours: self.ours.evaluate(cells, labels)?,
        })
    }
}

impl Words {
    /// The text alone.
    #[must_use]
    pub const fn text(text: &'static str) -> Self {
        Self { text, numbers: &[] }
    }

    /// The text with numbers.
    #[must_use]
    pub const fn with(text: &'static str, numbers: &'static [Metric]) -> Self {
        Self { text, numbers }
    }

    /// The words about a cell; `None` if a number has no samples.
    fn evaluate(&self, cells: &Cells, labels: &Labels) -> Option<String> {
        let mut values = labels.clone();
        for (place, metric) in self.numbers.iter().enumerate() {
            let value = metric.rounds(cells, labels).ok()?.median()?;
            values.insert(place.to_string(), with_unit(value, metric.unit).into());
        }
        Some(pattern::filled(self.text, &values))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::labels;
    use crate::metric::Statistic::P50;
    use crate::metric::Step::{Over, Times};

    const US: Metric = Metric::of(P50).with(&[Times(1e-3)]).in_unit("us");
    const ALL: Statements = Statements {
        highlights: &[HighlightOf {
            what: "the wait, {mutex}",
            of: "mutex=plain",
            metric: US,
            beside: Words::with("{0} with inheritance", &[US.at("mutex=inheritance")]),
        }],
        derived: &[DerivedOf {
            name: "to_inheritance",
            of: "mutex!=inheritance",
            without: &["orb"],
            metric: Metric::of(P50).with(&[Over(P50, "mutex=inheritance")]),
        }],
        published: &[PublishedOf {
            source: "P1 section 2.3",
            what: "a lock",
            published: "unbounded",
            of: "mutex=none",
            ours: Words::text("nothing"),
        }],
        conclusions: &[Sentence {
            of: "mutex=plain",
            says: Words::with("The wait is {0}, {1}.", &[US, US.at("mutex=none")]),
        }],
        ..Statements::NONE
    };

    #[test]
    fn words_and_numbers_come_from_the_cells_that_there_are() {
        let mut cells = Cells::default();
        for (mutex, ns) in [("plain", 2_000), ("inheritance", 500)] {
            let of = labels([("mutex", mutex.into()), ("orb", "rtorb".into())]);
            cells.add(&of, 0, &[ns], 0);
        }
        let said = ALL.evaluate(&Grounds::of(&cells, 1));
        let highlight = &said.highlights[0];
        assert_eq!(
            (highlight.what.as_str(), highlight.value),
            ("the wait, plain", 2.0)
        );
        assert_eq!(highlight.beside, "0.5 us with inheritance");
        let derived = &said.derived[0];
        assert_eq!(derived.labels, labels([("mutex", "plain".into())]));
        assert_eq!(derived.value, 4.0);
        assert!(said.published.is_empty());
        assert!(said.conclusions.is_empty(), "a number is missing");
    }
}
