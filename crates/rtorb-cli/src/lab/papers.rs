//! `rtorb lab papers`: the page about the papers beside the results that it is made from.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use rtorb_report::papers::Papers as Page;
use rtorb_results::{Error, runs};

use crate::exit_status::FAILED;
use crate::orb_options::usage;
use crate::output::line;

/// Compare the page about the papers with results, or write it.
///
/// `crates/rtorb-report/papers.md` says for each item of five papers what rtorb shows, and whether that agrees. Its figures and
/// answers follow from stored results, by the rows in `crates/rtorb-report/papers`.
#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("task").required(true).args(["check", "write"])))]
pub(crate) struct Papers {
    /// Print each row that differs from what follows from the results; exit status 1 if there is one.
    #[arg(long)]
    check: bool,
    /// Write the page, and with DIR the stored results too.
    #[arg(long)]
    write: bool,
    /// Folder that `measure`, `lab run` or `lab kernel run` wrote: its results are taken instead of the stored ones of the same
    /// experiments.
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Folder with the page, its rows and its stored results. Without this option `--check` takes those that are built into this
    /// program, and `--write` the folder crates/rtorb-report.
    #[arg(long, value_name = "FOLDER")]
    page: Option<PathBuf>,
}

impl Papers {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        let mut page = self.page()?;
        if let Some(folder) = &self.folder {
            let [run] = <[runs::Run; 1]>::try_from(runs::read(folder)?).map_err(|_| {
                Error::folder(folder, "holds several runs: name one, such as its run-1")
            })?;
            page.take_in(&run.results)?;
        }
        let comparison = page.compare()?;
        if self.write {
            let path = page.write(&comparison.page)?;
            line(format!("Page: {}", path.display()))?;
        } else {
            comparison.differences.iter().try_for_each(line)?;
        }
        let [yes, partly, no, open] = comparison.counts;
        line(format!("yes {yes}, partly {partly}, no {no}, open {open}"))?;
        let differs = self.check && !comparison.differences.is_empty();
        Ok(if differs {
            ExitCode::from(FAILED)
        } else {
            ExitCode::SUCCESS
        })
    }

    fn page(&self) -> anyhow::Result<Page> {
        let folder = match &self.page {
            None if self.check => return Ok(Page::built_in()?),
            None => PathBuf::from(FOLDER),
            Some(folder) => folder.clone(),
        };
        if !folder.join("papers").is_dir() {
            return Err(usage(format!(
                "{} holds no page about the papers: give the folder crates/rtorb-report of a checkout with `--page FOLDER`",
                folder.display()
            )));
        }
        Ok(Page::read(&folder)?)
    }
}

const FOLDER: &str = "crates/rtorb-report";
