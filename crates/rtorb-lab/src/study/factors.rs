//! What is varied, by how much, and the combinations of it.

use std::str::FromStr;

use rtorb_results::{LabelValue, Labels, is_part};

use crate::experiment::Effort;

/// Something that is varied.
#[derive(Clone, Copy, Debug)]
pub struct Factor {
    /// The label.
    pub(crate) label: &'static str,
    levels: FactorLevels,
    /// Before all levels, cells without the label.
    may_lack: bool,
}

/// The values of a factor, in the order in which they are measured.
#[derive(Clone, Copy, Debug)]
enum FactorLevels {
    Texts(&'static [&'static str]),
    Numbers(&'static [i64]),
}

/// A value of a parameter, known when the program is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// A name.
    Text(&'static str),
    /// A whole number.
    Number(i64),
    /// Yes or no.
    Flag(bool),
    /// A whole number that depends on the effort.
    ByEffort(ByEffort),
}

/// A whole number for each effort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByEffort {
    pub(crate) glance: usize,
    pub(crate) emulated: usize,
    pub(crate) quick: usize,
    pub(crate) full: usize,
}

/// How much each effort measures: rounds, and samples of a cell in a round. In an emulated machine, a round is a seed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Amounts {
    pub(crate) glance: usize,
    pub(crate) emulated: usize,
    pub(crate) quick: [usize; 2],
    pub(crate) full: [usize; 2],
    /// The parameter that has the number of samples.
    pub(crate) samples: &'static str,
}

/// A combination of levels.
#[derive(Debug)]
pub struct Cell<'a>(&'a Labels);

impl Amounts {
    /// Rounds, and samples of a cell in a round.
    pub(crate) fn of(&self, effort: Effort) -> (usize, usize) {
        match effort {
            Effort::Glance => (1, self.glance),
            Effort::Emulated { seeds, full } => {
                let seeds = usize::from(seeds);
                let [rounds, samples] = self.full;
                let published = (rounds * samples).div_ceil(seeds.max(1));
                (seeds, if full { published } else { self.emulated })
            }
            Effort::Quick => self.quick.into(),
            Effort::Full => self.full.into(),
        }
    }
}

impl<'a> Cell<'a> {
    /// The cell of these levels.
    pub(crate) fn of(levels: &'a Labels) -> Self {
        Self(levels)
    }

    /// A level in words; `None` if the cell has no level of that factor.
    pub(crate) fn level(&self, label: &str) -> Option<String> {
        self.0.get(label).map(ToString::to_string)
    }

    /// The level that has these words; `None` if the cell has none of them.
    pub(crate) fn parsed<T: FromStr>(&self, label: &str) -> Option<T> {
        self.level(label)?.parse().ok()
    }

    /// The number of a level.
    ///
    /// # Panics
    /// When the study has no such factor of numbers.
    pub(crate) fn number(&self, label: &str) -> usize {
        let number = self.0.get(label).and_then(LabelValue::number);
        let number = number.and_then(|number| usize::try_from(number).ok());
        number.expect("the study has a factor with that label")
    }

    /// True if it has a level of this factor.
    pub(crate) fn has(&self, label: &str) -> bool {
        self.0.contains_key(label)
    }

    /// True if it has all of these levels.
    pub(crate) fn is_of(&self, levels: &Labels) -> bool {
        is_part(levels, self.0)
    }

    /// The levels of these factors, as far as it has them.
    pub(crate) fn levels(&self, labels: &[&str]) -> Labels {
        let levels = self.0.iter();
        let levels = levels.filter(|(label, _)| labels.contains(&label.as_str()));
        levels
            .map(|(label, level)| (label.clone(), level.clone()))
            .collect()
    }

    /// True if the level is this one.
    pub(crate) fn is(&self, label: &str, level: &str) -> bool {
        self.0.get(label) == Some(&level.into())
    }
}

impl Value {
    pub(super) fn with(self, effort: Effort) -> LabelValue {
        match self {
            Self::Text(text) => text.into(),
            Self::Number(number) => LabelValue::Number(number),
            Self::Flag(flag) => flag.into(),
            Self::ByEffort(numbers) => numbers.of(effort).into(),
        }
    }
}

impl Factor {
    /// A factor of names.
    pub(crate) const fn texts(label: &'static str, levels: &'static [&'static str]) -> Self {
        Self::of(label, FactorLevels::Texts(levels))
    }

    /// A factor of whole numbers.
    pub(crate) const fn numbers(label: &'static str, levels: &'static [i64]) -> Self {
        Self::of(label, FactorLevels::Numbers(levels))
    }

    /// The same factor, which cells may lack: those are measured first.
    pub(crate) const fn or_absent(self) -> Self {
        Self {
            may_lack: true,
            ..self
        }
    }

    const fn of(label: &'static str, levels: FactorLevels) -> Self {
        Self {
            label,
            levels,
            may_lack: false,
        }
    }

    /// Its values, in the order in which they are measured; `None` for cells that lack the label.
    pub(crate) fn levels(&self) -> Vec<Option<LabelValue>> {
        let number = |number: &i64| Some(LabelValue::Number(*number));
        let mut levels: Vec<Option<LabelValue>> = match self.levels {
            FactorLevels::Texts(texts) => texts.iter().map(|text| Some((*text).into())).collect(),
            FactorLevels::Numbers(numbers) => numbers.iter().map(number).collect(),
        };
        if self.may_lack {
            levels.insert(0, None);
        }
        levels
    }

    /// True if its levels are without and with a load that runs beside the subject.
    pub(super) fn is_background_load(&self) -> bool {
        self.label == "load" && self.levels().contains(&Some("none".into()))
    }
}

impl ByEffort {
    /// The number with this effort.
    pub(crate) fn of(self, effort: Effort) -> usize {
        match effort {
            Effort::Glance => self.glance,
            Effort::Emulated { full: false, .. } => self.emulated,
            Effort::Quick => self.quick,
            Effort::Full | Effort::Emulated { full: true, .. } => self.full,
        }
    }
}
