//! The gate: whether a real-time bound of a campaign got worse than the one that was written down.
//!
//! A bound is the largest sample of a series over all seeds, in guest instructions. The baseline is a small file that is committed
//! beside the code: which campaign it is of, what that depends on, a line for each bound, and the functions that it was spent in, where a
//! sample was explained.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use rtorb_lab::LabError;
use rtorb_results::campaign::Boards;
use rtorb_results::{Labels, Results, Series, distinct, read_json, write_json};
use serde::{Deserialize, Serialize};

use crate::campaign::{Identity, Record, System, folder_of};
use crate::machine::Machine;
pub use functions::{Cause, FunctionTable, Functions, Growth};
pub use verdict::{Change, Checked, INTERRUPT_INSTRUCTIONS, Sort, check};

mod functions;
mod verdict;

/// The bounds of a campaign, and the campaign.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Baseline {
    /// The form of the file: `rtorb-baseline/1`.
    pub schema: String,
    /// What is measured again.
    pub plan: Plan,
    /// What the numbers depend on.
    pub identity: Dependencies,
    /// System, experiment, labels of the series; the largest sample over all seeds in guest instructions.
    pub bounds: Bounds,
    /// What the samples that are bounds were spent in, where it is known. An older file has none.
    #[serde(default, skip_serializing_if = "is_default")]
    pub functions: Functions,
}

/// System, experiment, labels of the series, and the bound in guest instructions.
pub type Bounds = BTreeMap<String, BTreeMap<String, BTreeMap<String, u64>>>;

/// A bound: its system, its experiment, and the labels of its series.
pub type BoundKey = [String; 3];

/// What a campaign is made of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// In the order of the campaign.
    pub kernels: Vec<PlannedKernel>,
    /// What kernels are told as `preempt=`, where they have such a model.
    pub preempt: Vec<String>,
    /// The boots of each system: load, and experiments.
    pub boots: Vec<(String, Vec<String>)>,
    /// How many seeds.
    pub seeds: u16,
    /// The published sample counts and levels; otherwise a look.
    #[serde(default, skip_serializing_if = "is_default")]
    pub full: bool,
    /// The machine; a file that names none is of that with one CPU.
    #[serde(default, skip_serializing_if = "is_default")]
    pub machine: Machine,
}

/// A kernel, exactly.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedKernel {
    /// What the campaign calls it: `6.12-rt`.
    pub name: String,
    /// `uname -r`.
    pub release: String,
    /// The package's version; `None` for an image of the user's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package_version: Option<String>,
    /// The SHA-256 of the image.
    pub sha256: String,
}

/// What the numbers depend on, besides the kernels. Where any of it differs, it is a different experiment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dependencies {
    /// What the emulator says of its version.
    pub emulator: String,
    /// The SHA-256 of its program.
    pub emulator_sha256: String,
    /// The SHA-256 of its firmware.
    pub firmware_sha256: String,
    /// The SHA-256 of the guest's root, with the programs that measure.
    pub initramfs_sha256: String,
    /// The arguments of the emulator and of the kernels.
    pub machine: String,
    /// The emulator of boards, if one of the kernels runs on a board.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boards: Option<Boards>,
}

/// The bounds of a campaign that was run, with the seed that each is of.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// As it would be written down.
    pub baseline: Baseline,
    /// The seed of a bound, where the series says it.
    seeds: BTreeMap<BoundKey, usize>,
    /// Why the functions of a bound are not known, where that is known.
    unexplained: BTreeMap<BoundKey, String>,
}

impl Baseline {
    /// Reads a file that [`Self::write`] made.
    ///
    /// # Errors
    /// That there is none, with how to make it, or that it is of another form.
    pub fn read(path: &Path) -> Result<Self, LabError> {
        read_json(path, SCHEMA).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => LabError::Incomplete {
                what: format!(
                    "there is no {}: `rtorb lab kernel baseline DIR --baseline {0}` makes it of a campaign that `rtorb lab kernel run` wrote",
                    path.display()
                ),
            },
            io::ErrorKind::InvalidData => LabError::Incomplete {
                what: format!("{} is no baseline: {error}", path.display()),
            },
            _ => LabError::file(path)(error),
        })
    }

    /// Writes the file, in whole or not at all: sorted, a line for each bound.
    ///
    /// # Errors
    /// What the file system said.
    pub fn write(&self, path: &Path) -> Result<(), LabError> {
        write_json(path, self).map_err(LabError::file(path))
    }

    /// How many bounds there are.
    #[must_use]
    pub fn count(&self) -> usize {
        let experiments = self.bounds.values().flat_map(BTreeMap::values);
        experiments.map(BTreeMap::len).sum()
    }
}

impl Measured {
    /// The bounds of the campaign in a folder.
    ///
    /// # Errors
    /// That there is none, that it is not complete or does not repeat, or that it measured nothing that has a bound.
    pub fn read(folder: &Path) -> Result<Self, LabError> {
        let record = Record::read(folder)?;
        if !record.complete {
            let what = "holds a campaign that is not complete: run it to its end";
            return Err(LabError::folder(folder, what));
        }
        if record.self_check.repeats != Some(true) {
            let what = "holds a campaign whose self-check failed: no number of it can be relied on";
            return Err(LabError::folder(folder, what));
        }
        let mut found = Vec::new();
        for system in &record.identity.systems {
            let below = folder_of(folder, system);
            let results = Results::read_folder(&below).map_err(LabError::file(&below))?;
            found.push((system_name(system), results));
        }
        let mut measured = Self::of(&record.identity, &found);
        measured.add_functions(&functions::explanations_of(folder)?);
        match measured.baseline.count() {
            0 => Err(LabError::folder(
                folder,
                "measured no time that has a bound",
            )),
            _ => Ok(measured),
        }
    }

    fn of(identity: &Identity, found: &[(String, Vec<Results>)]) -> Self {
        let mut bounds = Bounds::new();
        let mut seeds = BTreeMap::new();
        for (system, all) in found {
            for results in all {
                let bounded = results.series.iter().filter(|series| has_bound(series));
                for series in bounded {
                    let labels = labels_in_words(&series.labels);
                    let of_experiment = bounds
                        .entry(system.clone())
                        .or_default()
                        .entry(results.experiment.clone())
                        .or_default();
                    of_experiment.insert(labels.clone(), bound(series, identity.shift));
                    if let Some(seed) = worst_seed(series) {
                        let key = [system.clone(), results.experiment.clone(), labels];
                        seeds.insert(key, seed);
                    }
                }
            }
        }
        let baseline = Baseline {
            schema: SCHEMA.to_owned(),
            plan: Plan::of(identity),
            identity: Dependencies {
                emulator: identity.emulator.clone(),
                emulator_sha256: identity.emulator_sha256.clone(),
                firmware_sha256: identity.firmware_sha256.clone(),
                initramfs_sha256: identity.initramfs_sha256.clone(),
                machine: identity.machine.clone(),
                boards: identity.boards.clone(),
            },
            bounds,
            functions: Functions::new(),
        };
        Self {
            baseline,
            seeds,
            unexplained: BTreeMap::new(),
        }
    }
}

impl Plan {
    fn of(identity: &Identity) -> Self {
        let mut kernels: Vec<PlannedKernel> = Vec::new();
        for System { kernel, .. } in &identity.systems {
            if kernels.iter().all(|known| known.name != kernel.name) {
                kernels.push(PlannedKernel {
                    name: kernel.name.clone(),
                    release: kernel.release.clone(),
                    package_version: kernel.package.as_ref().map(|one| one.version.clone()),
                    sha256: kernel.sha256.clone(),
                });
            }
        }
        Self {
            kernels,
            preempt: distinct(identity.asked.iter().flatten().cloned()),
            boots: identity.boots.clone(),
            seeds: identity.seeds,
            full: identity.full,
            machine: Machine::of(identity),
        }
    }
}

/// Times, of which the largest over the seeds is known.
fn has_bound(series: &Series) -> bool {
    series.unit == "ns" && series.count > 0 && !series.rounds_max.is_empty()
}

/// In whole instructions, of which each takes 2 to the power of `shift` nanoseconds of the guest.
fn bound(series: &Series, shift: u8) -> u64 {
    let instructions = series.statistics.max / f64::from(shift).exp2();
    instructions.round().max(0.0) as u64
}

/// From 1.
fn worst_seed(series: &Series) -> Option<usize> {
    let largest = series.statistics.max;
    let at = series.rounds_max.iter().position(|max| *max >= largest);
    at.map(|round| round + 1)
}

/// As the campaign's folders are called.
pub(crate) fn system_name(system: &System) -> String {
    match system.preempt.as_str() {
        "" => system.kernel.name.clone(),
        preempt => format!("{}-{preempt}", system.kernel.name),
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// `load=tmpfs cpu=idle`, the load first.
pub(crate) fn labels_in_words(labels: &Labels) -> String {
    let (load, others): (Vec<_>, Vec<_>) = labels.iter().partition(|(name, _)| *name == "load");
    let words = load.into_iter().chain(others);
    let words: Vec<String> = words
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    words.join(" ")
}

const SCHEMA: &str = "rtorb-baseline/1";

#[cfg(test)]
mod tests;
