//! `rtorb lab export DIR`: writes results as flat tables for other programs.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use rtorb_results::export;
use rtorb_results::runs;
use serde_json::json;

use crate::output::{line, print_json};

/// Write results as flat tables, CSV or Parquet, for other programs.
///
/// Writes the tables series, percentiles, histograms, rounds, derived and derived_rounds; docs/reference/results.md describes their
/// columns.
#[derive(Debug, Args)]
pub(crate) struct Export {
    /// Folder that `measure` or `lab run` wrote, with one run or several.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Format of the files.
    #[arg(long, value_enum, default_value_t = Format::Csv)]
    format: Format,
    /// Folder of the tables.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Print the files' names and numbers of rows as one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    Csv,
    Parquet,
}

impl Export {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        let format = match self.format {
            Format::Csv => export::Format::Csv,
            Format::Parquet => export::Format::Parquet,
        };
        let tables = export::tables(&runs::read(&self.folder)?);
        let paths = export::write(&tables, format, &self.out)?;
        let written = paths.iter().zip(&tables);
        if self.json {
            let files =
                written.map(|(path, table)| json!({ "file": path, "rows": table.rows.len() }));
            print_json(&json!({ "files": files.collect::<Vec<_>>() }))?;
        } else {
            for (path, table) in written {
                line(format!("{}: {} rows", path.display(), table.rows.len()))?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}
