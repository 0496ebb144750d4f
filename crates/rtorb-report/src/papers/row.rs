//! A row of the page: what it declares, and what follows from the stored results.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::figure::FigureSource;
use super::quantity::Quantity;
use super::stored::{Stored, StoredResults};
use super::{Trouble, expression, template};

/// One item of a paper, as its file declares it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Row {
    pub(super) item: String,
    /// What the paper shows.
    shows: String,
    command: String,
    /// What we see. `{name}` stands for a figure; other numbers are levels of the row's figures.
    see: String,
    /// What the figures of the row have in common.
    #[serde(default)]
    from: FigureSource,
    #[serde(default)]
    figure: BTreeMap<String, FigureSource>,
    /// The comparisons that must hold for `yes`; none where a part of the item has nothing here to stand beside.
    #[serde(default)]
    yes: Vec<String>,
    /// Those for `partly`, if not all of `yes` hold.
    #[serde(default)]
    partly: Vec<String>,
    /// The answer of a row that compares nothing: `open` or `-`.
    agrees: Option<Agrees>,
    /// The reason for each answer.
    why: BTreeMap<Agrees, String>,
}

/// Whether we see what the paper shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Agrees {
    Yes,
    Partly,
    No,
    /// Not measured.
    Open,
    /// Nothing to compare.
    #[serde(rename = "-")]
    Nothing,
}

/// The cells of a row, as the page has them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Cells {
    pub(super) agrees: Agrees,
    pub(super) texts: [String; 6],
}

impl Agrees {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::Partly => "partly",
            Self::No => "no",
            Self::Open => "open",
            Self::Nothing => "-",
        }
    }
}

impl Cells {
    /// The row in Markdown.
    pub(super) fn line(&self) -> String {
        format!("| {} |", self.texts.join(" | "))
    }
}

impl Row {
    /// The row's figures that such results cannot fill, whatever the levels of the factors are.
    pub(super) fn misfits(&self, stored: &Stored) -> Vec<String> {
        let figures = self.figure.iter();
        let misfits = figures.filter_map(|(name, figure)| {
            let misfit = figure.clone().complete(&self.from).misfit(stored)?;
            Some(format!("{}: {name} {misfit}", self.item))
        });
        misfits.collect()
    }

    /// What the row shows of these results.
    pub(super) fn cells(&self, paper: &str, results: &StoredResults) -> Result<Cells, String> {
        let item = format!("{paper} {}", self.item);
        let figures = Figures { row: self, results };
        let cells = figures.check().and_then(|()| figures.cells(&item));
        let cells = cells.map_err(|error| format!("{item}: {error}"))?;
        match cells
            .texts
            .iter()
            .find(|text| text.contains(" | ") || text.contains('\n'))
        {
            Some(text) => Err(format!("{item}: {text:?} does not fit into a cell")),
            None => Ok(cells),
        }
    }
}

/// The figures of a row, read from results.
struct Figures<'a> {
    row: &'a Row,
    results: &'a StoredResults,
}

impl Figures<'_> {
    /// Refuses a row that answers without comparing, or that has a number from elsewhere.
    fn check(&self) -> Result<(), String> {
        let row = self.row;
        let compares = !(row.yes.is_empty() && row.partly.is_empty());
        match (compares, row.agrees) {
            (false, Some(Agrees::Open | Agrees::Nothing)) | (true, None) => {}
            _ => {
                return Err(
                    "a row either compares figures, or says that it is `open` or `-`".to_owned(),
                );
            }
        }
        let figures: Vec<FigureSource> = row
            .figure
            .values()
            .map(|it| it.clone().complete(&row.from))
            .collect();
        let is_number = |it: &&String| !it.contains(|it: char| it.is_ascii_alphabetic());
        let values = row.figure.values().filter_map(|it| it.value.as_ref());
        let mut expressions = values.chain(&row.yes).chain(&row.partly);
        if let Some(number) = expressions.find(is_number) {
            return Err(format!("`{number}` follows from no figure"));
        }
        let levels: Vec<&str> = figures.iter().flat_map(FigureSource::levels).collect();
        match template::foreign_number(&row.see, &levels) {
            Some(number) => Err(format!("{number} in what we see is no figure of the row")),
            None => Ok(()),
        }
    }

    fn cells(&self, item: &str) -> Result<Cells, String> {
        let row = self.row;
        let filled = self
            .filled(&row.see)
            .and_then(|see| Ok((self.agrees()?, see)));
        let (agrees, see) = match filled {
            Ok(cells) => cells,
            Err(Trouble::Mistake(error)) => return Err(error),
            Err(Trouble::Unmeasured(why)) => (
                row.agrees.unwrap_or(Agrees::Open),
                format!("Not known: {why}."),
            ),
        };
        let why = match row.why.get(&agrees) {
            None => NOT_EXPLAINED.to_owned(),
            Some(why) => match self.filled(why) {
                Ok(why) => why,
                Err(Trouble::Mistake(error)) => return Err(error),
                Err(Trouble::Unmeasured(_)) => NOT_EXPLAINED.to_owned(),
            },
        };
        let word = agrees.word().to_owned();
        let texts = [
            item.to_owned(),
            row.shows.clone(),
            row.command.clone(),
            see,
            word,
            why,
        ];
        Ok(Cells { agrees, texts })
    }

    fn agrees(&self) -> Result<Agrees, Trouble> {
        if let Some(agrees) = self.row.agrees {
            return Ok(agrees);
        }
        let all_hold = |comparisons: &[String]| -> Result<bool, Trouble> {
            let mut all = !comparisons.is_empty();
            for comparison in comparisons {
                all &= expression::holds(comparison, &|name| Ok(self.quantity(name, 0)?.value))?;
            }
            Ok(all)
        };
        let (yes, partly) = (all_hold(&self.row.yes)?, all_hold(&self.row.partly)?);
        Ok(match (yes, partly) {
            (true, _) => Agrees::Yes,
            (false, true) => Agrees::Partly,
            (false, false) => Agrees::No,
        })
    }

    fn filled(&self, text: &str) -> Result<String, Trouble> {
        template::fill(text, &|name| Ok(self.quantity(name, 0)?.shown()))
    }

    /// The figure of a name; one that follows from others asks for these, and so on to a bound.
    fn quantity(&self, name: &str, depth: usize) -> Result<Quantity, Trouble> {
        let figure = self.row.figure.get(name).filter(|_| depth < DEPTH_MAX);
        let figure =
            figure.ok_or_else(|| Trouble::Mistake(format!("there is no figure {name}")))?;
        let mut quantity = match &figure.value {
            Some(text) => Quantity {
                value: expression::value(text, &|name| Ok(self.quantity(name, depth + 1)?.value))?,
                unit: String::new(),
            },
            None => figure.clone().complete(&self.row.from).read(self.results)?,
        };
        if let Some(unit) = &figure.unit {
            quantity.unit.clone_from(unit);
        }
        Ok(quantity)
    }
}

/// What stands where a row has no reason for an answer.
const NOT_EXPLAINED: &str = "Not explained yet.";
/// A figure that follows from one that follows from one, and so on: more is a circle.
const DEPTH_MAX: usize = 8;
