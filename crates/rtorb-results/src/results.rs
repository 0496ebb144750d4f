//! The results of an experiment: the one JSON file that scripts and the report read (docs/reference/results.md).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rtorb_host::Host;
use rtorb_host::placement::{ObtainedScheduling, all_real_time};
use rtorb_host::preflight::Finding;
use serde::{Deserialize, Serialize};

use crate::claim::Claim;
use crate::emulation::Emulation;
use crate::json::{read_json, write_json};
use crate::judgement::Judgement;
use crate::labels::LabelValue;
use crate::plot::Plot;
use crate::series::{Derived, Highlight, LostRound, Published, Series};
use crate::table_view::TableView;

/// One run of one experiment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
    /// The other hosts of servers, in the order of the agents, if there were several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub further_hosts: Vec<Host>,
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
    /// The results of an experiment, of which nothing is known yet.
    #[must_use]
    pub fn of(experiment: String, title: String, host: Host) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            experiment,
            title,
            host,
            ..Self::default()
        }
    }

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
        write_json(&path, self)?;
        Ok(path)
    }

    /// Reads a file that [`Self::write`] made.
    ///
    /// # Errors
    /// What the file system said, or that the file is not of this schema.
    pub fn read(path: &Path) -> std::io::Result<Self> {
        read_json(path, SCHEMA).map_err(|error| {
            std::io::Error::new(error.kind(), format!("{}: {error}", path.display()))
        })
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

    /// Whether the run was only a glance: it has too few samples to mean anything.
    #[must_use]
    pub fn is_glance(&self) -> bool {
        self.parameters.get("effort") == Some(&"glance".into())
    }

    /// Whether the whole run was beside a load.
    #[must_use]
    pub fn is_loaded(&self) -> bool {
        let load = self.parameters.get("load");
        load.is_some_and(|load| *load != "none".into())
    }

    /// True if any claim is missed, or was not measured although this host can.
    #[must_use]
    pub fn fails_a_claim(&self) -> bool {
        self.claims.iter().any(Claim::is_failure)
    }

    /// True if any answer was wrong: then the claims about it are not judged, and the run is no good all the same.
    #[must_use]
    pub fn has_wrong_answers(&self) -> bool {
        self.series.iter().any(|series| series.wrong > 0)
    }

    /// What its times are: those of an emulated machine are virtual.
    #[must_use]
    pub fn time_unit(&self) -> TimeUnit {
        let emulated = self.parameters.get("effort") == Some(&EMULATED.into());
        match &self.emulation {
            Some(emulation) if emulation.shift > 0 => TimeUnit::VirtualSeconds,
            None if !emulated => TimeUnit::Seconds,
            _ => TimeUnit::GuestInstructions,
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
    /// One of the virtual time of an emulated machine that is as slow as a real one.
    VirtualSeconds,
}

impl TimeUnit {
    /// True if it is that of an emulated machine, the same in every run.
    #[must_use]
    pub fn is_virtual(self) -> bool {
        self != Self::Seconds
    }

    /// The unit of a thousand of them, as tables and axes name it.
    #[must_use]
    pub fn of_thousand(self) -> &'static str {
        match self {
            Self::Seconds => "us",
            Self::GuestInstructions => "k instr",
            Self::VirtualSeconds => "us of virtual time",
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
            Self::VirtualSeconds => {
                "us of virtual time: an emulated machine whose CPUs execute instructions at a fixed rate. No caches, no buses: \
                 use it to compare ORBs and kernels on a slow machine, not as a time of a real one."
            }
        }
    }
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

/// What the effort in an emulated machine is called among the parameters.
pub const EMULATED: &str = "emulated";
/// The form of the files that this program writes and reads.
pub const SCHEMA: &str = "rtorb-results/2";

/// An experiment that could not be measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExperimentFailure {
    /// Its name.
    pub experiment: String,
    /// Why, and what to do.
    pub why: String,
}
