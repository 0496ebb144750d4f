//! What the papers show and whether we see it: the page `papers.md`, made from the rows of `papers/P0.toml` and so on and from the
//! stored results `papers/results.jsonl`.
//!
//! A row names its figures and the comparisons that they must pass. So what it says and whether it agrees follow from results.

use std::path::{Path, PathBuf};

use rtorb_results::{Error, Results, read_text, write_atomically};
use serde::Deserialize;

use row::{Cells, Row};
use stored::{Stored, StoredResults};

mod expression;
mod figure;
mod html;
mod quantity;
mod row;
mod stored;
mod template;

pub(crate) use html::html;

/// The page, the rows that it is made from, and the results that these read.
#[derive(Clone, Debug)]
pub struct Papers {
    folder: PathBuf,
    page: String,
    head: String,
    papers: Vec<PaperRows>,
    results: StoredResults,
}

/// The file of one paper.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PaperRows {
    #[serde(skip)]
    key: String,
    title: String,
    intro: String,
    row: Vec<Row>,
}

/// The page that follows from the rows and the results, beside the one that is there.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The page that follows.
    pub page: String,
    /// Each part of the page that differs, in a sentence.
    pub differences: Vec<String>,
    /// How many rows say `yes`, `partly`, `no` and `open`. A row with nothing to compare is not counted.
    pub counts: [usize; 4],
}

/// Why a figure has no value.
#[derive(Clone, Debug, PartialEq)]
enum Trouble {
    /// The row is wrong.
    Mistake(String),
    /// The results do not tell.
    Unmeasured(String),
}

impl Papers {
    /// The page, rows and results that are built into this program.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn built_in() -> Result<Self, Error> {
        let texts = |name: &str| {
            let found = BUILT_IN.iter().find(|(file, _)| *file == name);
            Ok(found.map_or("", |(_, text)| text).to_owned())
        };
        Self::of(PathBuf::new(), &texts)
    }

    /// Reads page, rows and results in a folder, such as `crates/rtorb-report`.
    ///
    /// # Errors
    /// What reading said, or what is wrong with a file.
    pub fn read(folder: &Path) -> Result<Self, Error> {
        let read = |name: &str| {
            let path = folder.join(name);
            read_text(&path).map_err(Error::file(path))
        };
        Self::of(folder.to_owned(), &read)
    }

    fn of(folder: PathBuf, text: &dyn Fn(&str) -> Result<String, Error>) -> Result<Self, Error> {
        let mut papers = Vec::new();
        for known in crate::PAPERS {
            let name = format!("papers/{}.toml", known.key);
            let paper: PaperRows =
                toml::from_str(&text(&name)?).map_err(|error| wrong(folder.join(&name), error))?;
            papers.push(PaperRows {
                key: known.key.to_owned(),
                ..paper
            });
        }
        let results = StoredResults::parse(&text(RESULTS)?)
            .map_err(|error| wrong(folder.join(RESULTS), error))?;
        Ok(Self {
            page: text(PAGE)?,
            head: text(HEAD)?,
            papers,
            results,
            folder,
        })
    }

    /// Takes results in, each in place of the stored ones of the same experiment on the same machine.
    ///
    /// # Errors
    /// Why numbers of a run say nothing: it was interrupted, a glance, without real time or beside load, or it lost rounds.
    pub fn take_in(&mut self, results: &[Results]) -> Result<(), Error> {
        for results in results {
            if let Some(why) = says_nothing(results) {
                let what = format!("{} {why}: measure it again", results.experiment);
                return Err(Error::Incomplete { what });
            }
        }
        self.results.take_in(results);
        Ok(())
    }

    /// The figures about this experiment that select nothing of such results, or several series where one is meant, whatever the levels
    /// of its factors are: rows that are older than the experiment's form.
    #[must_use]
    pub fn misfits(&self, results: &Results) -> Vec<String> {
        let stored = Stored::of(results);
        let of_paper = |paper: &PaperRows| {
            let rows = paper.row.iter().flat_map(|row| row.misfits(&stored));
            rows.map(|misfit| format!("{} {misfit}", paper.key))
                .collect::<Vec<_>>()
        };
        self.papers.iter().flat_map(of_paper).collect()
    }

    /// Makes the page from rows and results, and compares it with the one that is there.
    ///
    /// # Errors
    /// What is wrong with a row.
    pub fn compare(&self) -> Result<Comparison, Error> {
        let mut page = self.head.replace("{results}\n", &self.results.sources());
        let mut differences = Vec::new();
        let mut counts = [0; 4];
        for paper in &self.papers {
            page += &format!(
                "\n## {}: {}\n\n{}\n{TABLE}",
                paper.key, paper.title, paper.intro
            );
            for row in &paper.row {
                let path = || self.folder.join(format!("papers/{}.toml", paper.key));
                let cells = row.cells(&paper.key, &self.results);
                let cells = cells.map_err(|error| wrong(path(), error))?;
                if let Some(count) = counts.get_mut(cells.agrees as usize) {
                    *count += 1;
                }
                differences.extend(self.difference(&cells));
                page += &(cells.line() + "\n");
            }
        }
        if differences.is_empty() && page != self.page {
            differences.push("The page differs outside of its rows, or has others.".to_owned());
        }
        Ok(Comparison {
            page,
            differences,
            counts,
        })
    }

    /// How the row of the page differs from what follows.
    fn difference(&self, cells: &Cells) -> Option<String> {
        let item = &cells.texts[0];
        let start = format!("| {item} |");
        let Some(there) = self.page.lines().find(|line| line.starts_with(&start)) else {
            return Some(format!("{item}: the page lacks the row"));
        };
        if there == cells.line() {
            return None;
        }
        let there: Vec<&str> = there.trim_matches(['|', ' ']).split(" | ").collect();
        let names = ["item", "paper", "command", "what we see", "agrees", "why"];
        let both = names.iter().zip(&there).zip(&cells.texts);
        let differing = both.filter(|((_, there), follows)| there != follows);
        let texts = differing
            .map(|((name, there), follows)| format!("\n  {name}: {there}\n    results: {follows}"));
        Some(format!("{item}{}", texts.collect::<String>()))
    }

    /// Writes the page that follows, and the stored results.
    ///
    /// # Errors
    /// What writing said.
    pub fn write(&self, page: &str) -> Result<PathBuf, Error> {
        let path = self.folder.join(RESULTS);
        let results = self
            .results
            .text()
            .map_err(|error| wrong(path.clone(), error))?;
        write_atomically(&path, results.as_bytes()).map_err(Error::file(path))?;
        let path = self.folder.join(PAGE);
        write_atomically(&path, page.as_bytes()).map_err(Error::file(path.clone()))?;
        Ok(path)
    }
}

/// Why the numbers of a run say nothing; `None` if they do.
fn says_nothing(results: &Results) -> Option<&'static str> {
    let is_host = results.emulation.is_none();
    let was_real_time = results.scheduling.is_empty() || results.is_real_time();
    let causes = [
        (!results.complete, "is not complete"),
        (
            results.is_glance(),
            "is a glance, whose numbers mean nothing",
        ),
        (!results.lost.is_empty(), "lost rounds"),
        (
            is_host && !was_real_time,
            "was not measured in real time (`rtorb check` says why)",
        ),
        (is_host && results.is_loaded(), "was measured beside a load"),
    ];
    causes
        .into_iter()
        .find_map(|(holds, why)| holds.then_some(why))
}

/// What is wrong with a file of the page.
fn wrong(path: PathBuf, error: impl ToString) -> Error {
    let error = std::io::Error::new(std::io::ErrorKind::InvalidData, error.to_string());
    Error::File { path, error }
}

const PAGE: &str = "papers.md";
const HEAD: &str = "papers/head.md";
const RESULTS: &str = "papers/results.jsonl";
const BUILT_IN: [(&str, &str); 8] = [
    (PAGE, include_str!("../papers.md")),
    (HEAD, include_str!("../papers/head.md")),
    (RESULTS, include_str!("../papers/results.jsonl")),
    ("papers/P0.toml", include_str!("../papers/P0.toml")),
    ("papers/P1.toml", include_str!("../papers/P1.toml")),
    ("papers/P2.toml", include_str!("../papers/P2.toml")),
    ("papers/P3.toml", include_str!("../papers/P3.toml")),
    ("papers/P4.toml", include_str!("../papers/P4.toml")),
];
const TABLE: &str = "| Item | What the paper shows | Command | What we see | Agrees | Why |\n|---|---|---|---|---|---|\n";

#[cfg(test)]
mod tests;
