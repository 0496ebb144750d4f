//! Results as flat tables for other programs: CSV and Parquet (docs/reference/results.md).
//!
//! One row an observation, one column a property: each table has the run, the experiment, the kernel and every label as
//! columns of its own, so that nothing must be joined to be read.

use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::runs::Run;
use crate::write_atomically;

mod csv_form;
#[cfg(feature = "parquet")]
mod parquet_form;
mod tables;

/// A table of one kind of rows.
#[derive(Clone, Debug, PartialEq)]
pub struct ExportedTable {
    /// Its name, which is the file's without the ending.
    pub name: &'static str,
    /// The columns in their order.
    pub columns: Vec<Column>,
    /// The rows, each with a cell for each column.
    pub rows: Vec<Vec<Cell>>,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// What its cells are, if they are there.
    pub kind: Kind,
}

/// What the cells of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Words.
    Text,
    /// Whole numbers.
    Integer,
    /// Numbers.
    Real,
    /// Yes or no.
    Truth,
}

/// A cell; of the kind that its column says, or missing.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// There is no value: an empty field in CSV, null in Parquet.
    Missing,
    /// Words.
    Text(String),
    /// A whole number.
    Integer(i64),
    /// A number.
    Real(f64),
    /// Yes or no.
    Truth(bool),
}

/// The form of the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// RFC 4180, with a header.
    Csv,
    /// Apache Parquet, compressed with Snappy. It takes the feature `parquet`.
    Parquet,
}

impl Format {
    /// How the files' names end.
    #[must_use]
    pub fn ending(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Parquet => "parquet",
        }
    }
}

/// The tables of these runs: `series`, `percentiles`, `histograms`, `rounds`, `derived`, `derived_rounds`.
#[must_use]
pub fn tables(runs: &[Run]) -> Vec<ExportedTable> {
    tables::all(runs)
}

/// Writes each table as a file below `folder`, each in whole or not at all, and answers their paths. All are made before
/// the first is written.
///
/// # Errors
/// What the file system said, or that this build has no Parquet.
pub fn write(
    tables: &[ExportedTable],
    format: Format,
    folder: &Path,
) -> Result<Vec<PathBuf>, Error> {
    let encode = |table: &ExportedTable| match format {
        Format::Csv => csv_form::encode(table),
        #[cfg(feature = "parquet")]
        Format::Parquet => parquet_form::encode(table),
        #[cfg(not(feature = "parquet"))]
        Format::Parquet => Err(std::io::Error::new(
            std::io::ErrorKind::Unsupported,
            "this program was built without Parquet: build it with `--features parquet`, or ask for CSV",
        )),
    };
    let mut files = Vec::new();
    for table in tables {
        let path = folder.join(format!("{}.{}", table.name, format.ending()));
        let bytes = encode(table).map_err(Error::file(&path))?;
        files.push((path, bytes));
    }
    for (path, bytes) in &files {
        write_atomically(path, bytes).map_err(Error::file(path))?;
    }
    Ok(files.into_iter().map(|(path, _)| path).collect())
}

#[cfg(test)]
mod tests;
