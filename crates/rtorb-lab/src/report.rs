//! The page that people read: one file, no network, for phones and wide screens, light and dark.

use std::path::{Path, PathBuf};

use askama::Template;

use crate::experiments::ALL;
use crate::preflight::{self, Finding, Severity};
use crate::results::{Results, write_atomically};
use crate::summary::{self, Table};
use figures::Figure;

mod figures;
mod host_rows;

/// Writes `index.html` in a folder from the results below it, and answers its path.
///
/// # Errors
/// That there are no results, or what the file system said.
pub fn write(folder: &Path) -> std::io::Result<PathBuf> {
    let mut all = Results::read_folder(folder)?;
    // In the order of a run; what this program does not know comes last.
    let place = |results: &Results| {
        ALL.iter()
            .position(|known| known.name() == results.experiment)
    };
    all.sort_by_key(|results| place(results).unwrap_or(ALL.len()));
    let page = render(&all)?;
    let path = folder.join("index.html");
    write_atomically(&path, page.as_bytes())?;
    Ok(path)
}

/// The page of these results.
///
/// # Errors
/// That there are none.
pub fn render(all: &[Results]) -> std::io::Result<String> {
    let Some(first) = all.first() else {
        return Err(std::io::Error::new(
            std::io::ErrorKind::NotFound,
            "there are no results",
        ));
    };
    let script = if all.iter().any(|results| !results.series.is_empty()) {
        plotly_script()
    } else {
        String::new()
    };
    let page = Page {
        started: &first.started,
        host_line: host_rows::line(&first.host),
        host: host_rows::rows(&first.host),
        fit: preflight::is_fit(&first.findings),
        unfit: of(first, Severity::Unfit),
        advice: of(first, Severity::Advice),
        unknown: of(first, Severity::Unknown),
        good: of(first, Severity::Good),
        experiments: all.iter().map(Section::of).collect(),
        plotly_script: script,
    };
    page.render().map_err(std::io::Error::other)
}

#[derive(Template)]
#[template(path = "report.html")]
struct Page<'a> {
    started: &'a str,
    host_line: String,
    host: Vec<(&'static str, String)>,
    fit: bool,
    unfit: Vec<&'a Finding>,
    advice: Vec<&'a Finding>,
    unknown: Vec<&'a Finding>,
    good: Vec<&'a Finding>,
    experiments: Vec<Section<'a>>,
    plotly_script: String,
}

/// One experiment on the page.
struct Section<'a> {
    results: &'a Results,
    anchor: String,
    real_time: bool,
    medians: Table,
    tails: Table,
    figures: Vec<Figure>,
}

impl<'a> Section<'a> {
    fn of(results: &'a Results) -> Self {
        Self {
            results,
            anchor: results.experiment.replace('/', "-"),
            real_time: results.is_real_time(),
            medians: summary::medians(results),
            tails: summary::tails(results),
            figures: figures::figures(results),
        }
    }

    /// Processes that were not scheduled in real time: shown in plain sight.
    fn not_real_time(&self) -> Vec<String> {
        let processes = self
            .results
            .scheduling
            .iter()
            .filter(|process| !process.real_time);
        let describe = processes.map(|process| {
            format!(
                "{}: {}, CPUs {}",
                process.process, process.policy, process.cpus
            )
        });
        describe.collect()
    }

    /// Whether it counts, and times nothing.
    fn counts(&self) -> bool {
        !self.results.series.is_empty() && summary::calls(self.results).next().is_none()
    }

    fn duration(&self) -> String {
        format!("{:.0} s", self.results.duration_s)
    }

    fn samples(&self) -> u64 {
        let counts = self.results.series.iter().map(|series| series.count);
        match self.counts() {
            // The same requests are counted in many ways.
            true => counts.max().unwrap_or(0),
            false => counts.sum(),
        }
    }

    fn wrong(&self) -> u64 {
        self.results.series.iter().map(|series| series.wrong).sum()
    }
}

fn of(results: &Results, severity: Severity) -> Vec<&Finding> {
    results
        .findings
        .iter()
        .filter(|finding| finding.severity == severity)
        .collect()
}

/// The plotting library's own script, without the one for formulas that it comes with.
fn plotly_script() -> String {
    let scripts = plotly::Plot::offline_js_sources();
    scripts
        .find(SCRIPT_END)
        .map(|end| scripts[..end + SCRIPT_END.len()].to_owned())
        .unwrap_or(scripts)
}

const SCRIPT_END: &str = "</script>";
