//! Tables that an experiment asks for in words of its labels: [`crate::summary`] fills them from the series of the same
//! file.

use serde::{Deserialize, Serialize};

use crate::Labels;
use crate::view_setters::{owned, view_setters};

/// A table whose rows and columns are values of labels.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TableView {
    /// Its name in the page, without spaces: `worst-by-load`.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// What a reader must know to read it.
    pub caption: String,
    /// Only series, or derived numbers, that have all of these labels.
    pub of: Labels,
    /// The derived number that is shown; empty where series are.
    #[serde(default)]
    pub derived: String,
    /// The labels whose values name the rows.
    pub rows: Vec<String>,
    /// The labels whose values name the columns; none for one column.
    pub columns: Vec<String>,
    /// What is shown of each series: a column for each. Not of derived numbers.
    pub values: Vec<CellValue>,
    /// Rows that somebody published, below ours.
    #[serde(default)]
    pub published: Vec<PublishedRow>,
}

impl TableView {
    /// A table of that name and title.
    #[must_use]
    pub fn new(id: &str, title: &str) -> Self {
        Self::default().named(id, title)
    }

    view_setters! {
        /// What a reader must know to read it.
        caption(value: impl Into<String>) => value.into();
        /// Only series, or derived numbers, that have all of these labels.
        of(of: Labels) => of;
        /// The derived number that is shown.
        derived(value: impl Into<String>) => value.into();
        /// The labels whose values name the rows.
        rows(names: impl IntoIterator<Item = impl Into<String>>) => owned(names);
        /// The labels whose values name the columns.
        columns(names: impl IntoIterator<Item = impl Into<String>>) => owned(names);
        /// What is shown of each series.
        values(value: impl Into<Vec<CellValue>>) => value.into();
        /// Rows that somebody published.
        published(published: Vec<PublishedRow>) => published;
    }
}

/// What a cell shows of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CellValue {
    /// The median over rounds of the rounds' medians.
    Median,
    /// The mean, and the standard deviation in parentheses behind it, as the papers have it.
    MeanAndDeviation,
    /// 99 of 100 samples are at most this.
    P99,
    /// The largest sample of all rounds.
    Worst,
    /// Calls a second.
    CallsPerSecond,
}

/// A row of a published table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PublishedRow {
    /// Where it stands, and on what it was measured: `P0 Table 1, Pentium III 866 MHz, us`.
    pub source: String,
    /// What the row is of: `VxWorks`.
    pub name: String,
    /// For the columns that it has: the labels of the column, and the cell as it is written there.
    pub cells: Vec<(Labels, String)>,
}
