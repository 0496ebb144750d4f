//! What an experiment hands over: the one JSON file that scripts and the report read (docs/results.md).
//!
//! Below: the statistics in it, and what is made of it: the page, tables, comparisons, exports, a profile.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::host::Host;
use crate::host::preflight::Finding;
use crate::model::judgement::Judgement;
use crate::results::statistics::{Bucket, Percentile, Recorder, Statistics};
pub use claim::{Claim, Verdict, Verdicts};
pub use emulation::{EmulatedSystem, Emulation};
pub use plot::{Plot, PlotKind, PublishedPoints, StatisticName};
pub use table_view::{CellValue, PublishedRow, TableView};

pub(crate) mod by_round;
pub(crate) mod cells;
mod claim;
pub mod compare;
mod emulation;
pub mod export;
pub mod loading;
mod plot;
pub mod profile;
pub mod report;
pub(crate) mod rounds;
pub mod runs;
pub mod statistics;
pub mod summary;
#[cfg(test)]
pub(crate) mod synthetic;
mod table_view;
pub(crate) mod timestamp;

/// One run of one experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// The form of the file: [`SCHEMA`].
    pub schema: String,
    /// The experiment's name, such as `orb/throughput`.
    pub experiment: String,
    /// What it shows, in a line.
    pub title: String,
    /// The table or figure that it reproduces.
    pub reproduces: String,
    /// Which run it is of: the same in every file that one command wrote, and in no other.
    #[serde(default)]
    pub run: String,
    /// When the run began, UTC, as RFC 3339 has it.
    pub started: String,
    /// How long it took, in seconds.
    pub duration_s: f64,
    /// For how many milliseconds the hypervisor gave the measured CPU to others meanwhile, in steps of ten: time that is in the
    /// largest samples. `None` where the kernel does not tell.
    #[serde(default)]
    pub stolen_ms: Option<u64>,
    /// False when the run was interrupted: what is there holds, the rest is missing.
    pub complete: bool,
    /// The parameters of this run.
    pub parameters: BTreeMap<String, LabelValue>,
    /// Where it was run: of two hosts, that of the clients.
    pub host: Host,
    /// The host of the servers, when that was another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_host: Option<Host>,
    /// The emulated machine that it was run in. `None` where time is the time of day; otherwise a nanosecond is one of virtual time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emulation: Option<Emulation>,
    /// What a run of an analysed system shows of its bounds; nothing of any other experiment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judgement: Option<Judgement>,
    /// What stood in the way of real time when it began.
    pub findings: Vec<Finding>,
    /// The scheduling that the measured processes really had.
    pub scheduling: Vec<ObtainedScheduling>,
    /// The few numbers to read first.
    pub highlights: Vec<Highlight>,
    /// What was measured.
    pub series: Vec<Series>,
    /// The labels whose values name the columns of the table; empty where ORB and transport do.
    #[serde(default)]
    pub columns: Vec<String>,
    /// The tables that show it, where it asks for other ones than that of all its medians.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tables: Vec<TableView>,
    /// The plots that show it.
    #[serde(default)]
    pub plots: Vec<Plot>,
    /// What follows from it.
    pub derived: Vec<Derived>,
    /// The claims, and whether they are held.
    pub claims: Vec<Claim>,
    /// Measurements that failed: no claim over their rounds was judged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<LostRound>,
    /// What was found, in words.
    #[serde(default)]
    pub conclusions: Vec<String>,
    /// Published figures to set beside ours.
    pub published: Vec<Published>,
    /// What a reader must know, such as a contestant that was left out.
    pub notes: Vec<String>,
}

impl Results {
    /// The file of these results below the report's folder: `results/orb/throughput.json`.
    #[must_use]
    pub fn path(folder: &Path, experiment: &str) -> PathBuf {
        folder.join("results").join(format!("{experiment}.json"))
    }

    /// Writes the file, in whole or not at all.
    ///
    /// # Errors
    /// What the file system said.
    pub fn write(&self, folder: &Path) -> std::io::Result<PathBuf> {
        let path = Self::path(folder, &self.experiment);
        let mut text = serde_json::to_string_pretty(self).map_err(std::io::Error::other)?;
        text.push('\n');
        write_atomically(&path, text.as_bytes())?;
        Ok(path)
    }

    /// Reads a file that [`Self::write`] made.
    ///
    /// # Errors
    /// What the file system said, or that the file is not of this schema.
    pub fn read(path: &Path) -> std::io::Result<Self> {
        let text = std::fs::read_to_string(path)?;
        let results: Self = serde_json::from_str(&text)
            .map_err(|error| invalid(format!("{}: {error}", path.display())))?;
        if results.schema == SCHEMA {
            return Ok(results);
        }
        let message = format!(
            "{} has schema {:?}, this program reads {SCHEMA:?}",
            path.display(),
            results.schema
        );
        Err(invalid(message))
    }

    /// Reads every results file below a report's folder, in the order of their names.
    ///
    /// # Errors
    /// As [`Self::read`]; and when there is no results folder.
    pub fn read_folder(folder: &Path) -> std::io::Result<Vec<Self>> {
        let mut paths = Vec::new();
        collect_json(&folder.join("results"), &mut paths)?;
        paths.sort();
        paths.iter().map(|path| Self::read(path)).collect()
    }

    /// Whether every measured process was scheduled in real time; false when none was seen.
    #[must_use]
    pub fn is_real_time(&self) -> bool {
        all_real_time(&self.scheduling)
    }

    /// True if any claim is missed.
    #[must_use]
    pub fn misses_a_claim(&self) -> bool {
        self.claims.iter().any(Claim::is_missed)
    }

    /// What its times are: those of an emulated machine are counts of instructions.
    #[must_use]
    pub fn time_unit(&self) -> TimeUnit {
        let emulated = self.parameters.get("effort") == Some(&EMULATED.into());
        match emulated || self.emulation.is_some() {
            true => TimeUnit::GuestInstructions,
            false => TimeUnit::Seconds,
        }
    }

    /// The series that have all these labels.
    pub fn matching<'a>(
        &'a self,
        labels: &'a [(&'a str, &'a str)],
    ) -> impl Iterator<Item = &'a Series> {
        self.series.iter().filter(move |series| {
            labels.iter().all(|(name, value)| {
                series
                    .labels
                    .get(*name)
                    .is_some_and(|found| found.to_string() == *value)
            })
        })
    }
}

/// What a nanosecond in a results file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// One of the time of day.
    Seconds,
    /// An instruction of an emulated machine.
    GuestInstructions,
}

impl TimeUnit {
    /// The unit of a thousand of them, as tables and axes name it.
    #[must_use]
    pub fn of_thousand(self) -> &'static str {
        match self {
            Self::Seconds => "us",
            Self::GuestInstructions => "k instr",
        }
    }

    /// What a reader of tables and axes must know of it; nothing where everybody knows.
    #[must_use]
    pub fn legend(self) -> &'static str {
        match self {
            Self::Seconds => "",
            Self::GuestInstructions => {
                "k instr: thousands of guest instructions, each of which is a nanosecond of virtual time. No caches, no buses, one CPU: \
                 lengths of kernel paths, not times of a machine."
            }
        }
    }
}

/// Names to values; sorted, so that two runs compare line by line.
pub type Labels = BTreeMap<String, LabelValue>;

/// The value of a label or a parameter.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub enum LabelValue {
    /// Yes or no.
    Bool(bool),
    /// A whole number.
    Number(i64),
    /// A name.
    Text(String),
}

impl std::fmt::Display for LabelValue {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bool(value) => value.fmt(formatter),
            Self::Number(value) => value.fmt(formatter),
            Self::Text(value) => value.fmt(formatter),
        }
    }
}

impl LabelValue {
    /// The number, if it is one.
    #[must_use]
    pub fn number(&self) -> Option<i64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Bool(_) | Self::Text(_) => None,
        }
    }
}

impl From<bool> for LabelValue {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<usize> for LabelValue {
    fn from(value: usize) -> Self {
        Self::Number(i64::try_from(value).unwrap_or(i64::MAX))
    }
}

impl From<u64> for LabelValue {
    fn from(value: u64) -> Self {
        Self::Number(i64::try_from(value).unwrap_or(i64::MAX))
    }
}

impl From<u32> for LabelValue {
    fn from(value: u32) -> Self {
        Self::Number(i64::from(value))
    }
}

impl From<&str> for LabelValue {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl From<String> for LabelValue {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}

/// Makes labels from pairs: `labels([("operation", "long".into())])`.
#[must_use]
pub fn labels<const N: usize>(pairs: [(&str, LabelValue); N]) -> Labels {
    pairs
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// These labels, some of them with other values.
#[must_use]
pub(crate) fn labels_with<const N: usize>(
    labels: &Labels,
    others: [(&str, LabelValue); N],
) -> Labels {
    let mut all = labels.clone();
    all.extend(self::labels(others));
    all
}

/// These labels without those of some names.
#[must_use]
pub(crate) fn labels_without(labels: &Labels, names: &[&str]) -> Labels {
    let others = labels.iter();
    let others = others.filter(|(name, _)| !names.contains(&name.as_str()));
    others
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// What was measured under one set of labels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// What tells this series from the others.
    pub labels: Labels,
    /// The unit of every value here: `ns`.
    pub unit: String,
    /// How many samples were taken.
    pub count: u64,
    /// The statistics over all samples of all rounds.
    #[serde(flatten)]
    pub statistics: Statistics,
    /// The median of each round, in the order they were run.
    pub rounds_p50: Vec<f64>,
    /// The 99th percentile of each round, where rounds are judged by it.
    #[serde(default)]
    pub rounds_p99: Vec<f64>,
    /// The largest sample of each round, where a round is a seed of an emulated machine; empty everywhere else.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rounds_max: Vec<f64>,
    /// Where the slowest sample is found when the run is repeated, which only an emulated machine does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worst_sample: Option<WorstSample>,
    /// The same of a sample whose time is the median of its round: what is ordinary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub typical_sample: Option<WorstSample>,
    /// The curve of the percentile plot.
    pub percentiles: Vec<Percentile>,
    /// How many samples were how large, smallest first, without the sizes that none had.
    #[serde(default)]
    pub histogram: Vec<Bucket>,
    /// Answers that were wrong: 0, or the series says nothing about speed.
    pub wrong: u64,
    /// Calls a second over the whole of the measured time, including the wait for the last oneway to be served.
    pub calls_per_second: Option<f64>,
}

impl Series {
    /// A series of times from a recorder.
    #[must_use]
    pub fn from_recorder(labels: Labels, recorder: &Recorder) -> Self {
        Self {
            labels,
            unit: "ns".to_owned(),
            count: recorder.count(),
            statistics: recorder.statistics(),
            rounds_p50: Vec::new(),
            rounds_p99: Vec::new(),
            rounds_max: recorder.rounds_max_ns(),
            worst_sample: None,
            typical_sample: None,
            percentiles: recorder.percentiles(),
            histogram: recorder.buckets(),
            wrong: 0,
            calls_per_second: None,
        }
    }

    /// The median over rounds of the rounds' medians: what contestants are compared by, since the machine drifts
    /// between rounds. The median of all samples when there was one round only.
    #[must_use]
    pub fn median_of_rounds(&self) -> f64 {
        crate::results::statistics::median(&self.rounds_p50).unwrap_or(self.statistics.p50)
    }
}

/// The slowest sample of a series in the run of an emulated machine, which repeats to the nanosecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorstSample {
    /// Which call of [`rtorb_os::replay::sample_taken`] ended it, of all calls since the machine was switched on, from 1: an
    /// observer of the repeated run counts them.
    pub mark: u64,
    /// How long it took, in nanoseconds of the machine's clock: the sample is what was executed in so many before the mark.
    pub value_ns: u64,
}

impl WorstSample {
    /// Of the samples of a round, of which the first one was ended by the mark `first`, the first one that takes as long as half of
    /// them do or less; `None` when there are none.
    #[must_use]
    pub fn typical(samples_ns: &[u64], first: u64) -> Option<Self> {
        let mut ranked = samples_ns.to_vec();
        ranked.sort_unstable();
        let value_ns = *ranked.get(ranked.len().saturating_sub(1) / 2)?;
        let at = samples_ns.iter().position(|sample| *sample == value_ns)?;
        let mark = first + at as u64;
        Some(Self { mark, value_ns })
    }

    /// The slower one; of two that are alike, the first.
    #[must_use]
    pub fn or(self, later: Self) -> Self {
        match later.value_ns > self.value_ns {
            true => later,
            false => self,
        }
    }
}

/// A number to read first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Highlight {
    /// What it is of.
    pub what: String,
    /// The number.
    pub value: f64,
    /// Its unit: `us`, `ratio`, `calls/s`.
    pub unit: String,
    /// What to set it beside; empty when it speaks for itself.
    pub beside: String,
}

impl Highlight {
    /// The value with as many digits as mean something.
    #[must_use]
    pub fn shown(&self) -> String {
        let shown = match self.value {
            large if large >= 1_000.0 => format!("{large:.0}"),
            us if us >= 10.0 && ["us", "k instr"].contains(&self.unit.as_str()) => {
                format!("{us:.1}")
            }
            other => format!("{other:.2}"),
        };
        match shown.strip_suffix(".00") {
            Some(whole) => whole.to_owned(),
            None => shown,
        }
    }
}

/// A number that follows from several series of the same run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Derived {
    /// What it is: `time_above_raw`, `share_of_omniorb`, ...
    pub name: String,
    /// Which series it belongs to.
    pub labels: Labels,
    /// `ns` or `ratio`.
    pub unit: String,
    /// The median over rounds.
    pub value: f64,
    /// The value of each round.
    pub rounds: Vec<f64>,
}

/// A round in which something could not be measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostRound {
    /// The number of the round, counted from 0.
    pub round: usize,
    /// What was not measured in it, such as `tao: 10 low-priority clients`.
    pub what: String,
    /// The error.
    pub why: String,
}

/// With as many digits as tell it from a limit.
fn with_unit(value: f64, unit: &str) -> String {
    let shown = match value.abs() {
        small if small < 10.0 => format!("{value:.3}"),
        medium if medium < 100.0 => format!("{value:.2}"),
        _ => format!("{value:.1}"),
    };
    let shown = shown.trim_end_matches('0').trim_end_matches('.');
    let shown = if shown == "-0" { "0" } else { shown };
    let unit = match unit {
        "ratio" => "times",
        "per_request" => "a request",
        "per_event" => "an event",
        "per_second" => "a second",
        other => other,
    };
    format!("{shown} {unit}").trim_end().to_owned()
}

impl Derived {
    /// The median of the rounds, and the rounds; `None` without any.
    pub(crate) fn of_rounds(
        name: &str,
        labels: Labels,
        unit: &str,
        rounds: &by_round::ByRound,
    ) -> Option<Self> {
        Some(Self {
            name: name.to_owned(),
            labels,
            unit: unit.to_owned(),
            value: rounds.median()?,
            rounds: rounds.values(),
        })
    }

    /// The quotient of the two medians over rounds, and that of each round; `None` without a round that both have.
    pub(crate) fn quotient(
        name: &str,
        labels: Labels,
        above: &by_round::ByRound,
        below: &by_round::ByRound,
    ) -> Option<Self> {
        Some(Self {
            value: above.median()? / below.median()?.max(1.0),
            ..Self::of_rounds(name, labels, "ratio", &above.divided_by(below))?
        })
    }
}

/// A figure that somebody published, beside ours of this run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Published {
    /// Where it stands, such as `P0 Figure 2`.
    pub source: String,
    /// What it is of.
    pub what: String,
    /// The published figure, as the text has it.
    pub published: String,
    /// Ours.
    pub ours: String,
}

/// The scheduling that the threads of a measured process had while it was measured, read from /proc.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObtainedScheduling {
    /// Which process: `rtorb tcp server`.
    pub process: String,
    /// How many threads it had.
    pub threads: usize,
    /// The policy of all its threads, or `mixed`.
    pub policy: String,
    /// The real-time priority of its least urgent thread, 0 when that is not scheduled in real time.
    pub priority: u32,
    /// The CPUs that its threads may use, as the kernel lists them.
    pub cpus: String,
    /// Whether all threads were SCHED_FIFO and on one CPU.
    pub real_time: bool,
}

/// Whether every one was scheduled in real time; false when none was seen.
#[must_use]
pub fn all_real_time(scheduling: &[ObtainedScheduling]) -> bool {
    !scheduling.is_empty() && scheduling.iter().all(|threads| threads.real_time)
}

/// Writes a file beside its final name, then renames it: a reader never sees half of it.
///
/// # Errors
/// What the file system said.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    std::fs::create_dir_all(folder)?;
    let name = path
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    let temporary = folder.join(format!(".{name}.{}", std::process::id()));
    let written =
        std::fs::write(&temporary, bytes).and_then(|()| std::fs::rename(&temporary, path));
    if written.is_err() {
        // Best effort: the first error is the one worth telling.
        let _ = std::fs::remove_file(&temporary);
    }
    written
}

fn invalid(message: String) -> std::io::Error {
    std::io::Error::new(std::io::ErrorKind::InvalidData, message)
}

fn collect_json(folder: &Path, into: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect_json(&path, into)?;
        } else if path
            .extension()
            .is_some_and(|extension| extension == "json")
        {
            into.push(path);
        }
    }
    Ok(())
}

/// What [`crate::experiment::Effort::Emulated`] is called among the parameters.
pub(crate) const EMULATED: &str = "emulated";
/// The form of the files that this program writes and reads.
pub const SCHEMA: &str = "rtorb-results/2";
