//! What is said of each bound: better, equal, worse, missing, new.

use std::collections::BTreeMap;

use serde::Serialize;

use super::functions::{Cause, cause};
use super::{Baseline, BoundKey, Bounds, Dependencies, Measured};
use crate::board;

/// A campaign beside its baseline.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Checked {
    /// Whether it is the very experiment of the baseline, whose numbers are then the same to the last instruction.
    pub same_experiment: bool,
    /// What differs, in words; empty for the same experiment.
    pub differences: Vec<String>,
    /// By how many per cent a bound may be longer: 0 for the same experiment.
    pub tolerance_percent: f64,
    /// By how many instructions a bound may be longer where that is more: 0 for the same experiment.
    pub tolerance_instructions: u64,
    /// How many bounds are as they were.
    pub equal: usize,
    /// Those that are not, in the order of the file.
    pub changes: Vec<Change>,
}

/// A bound that is not what it was.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// What is said of it.
    pub sort: Sort,
    /// Kernel and preemption model.
    pub system: String,
    /// Which experiment.
    pub experiment: String,
    /// Its labels, `load=tmpfs`.
    pub series: String,
    /// In guest instructions; `None` where it is new.
    pub was: Option<u64>,
    /// In guest instructions; `None` where it is missing.
    pub is: Option<u64>,
    /// The seed with the largest sample, counted from 1.
    pub seed: Option<usize>,
    /// Why it is worse; `None` of other changes, and of the laboratory's own experiments where no sample was explained.
    pub cause: Option<Cause>,
}

/// What is said of a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Sort {
    /// Longer by more than the tolerance.
    Worse,
    /// Was in the baseline and was not measured.
    Missing,
    /// Different, where nothing may differ.
    Differs,
    /// Longer, within the tolerance.
    LongerWithinTolerance,
    /// Shorter.
    Better,
    /// Not in the baseline.
    New,
}

impl Sort {
    /// Whether it closes the gate.
    #[must_use]
    pub fn fails(self) -> bool {
        matches!(self, Self::Worse | Self::Missing | Self::Differs)
    }
}

impl Checked {
    /// Whether nothing closes the gate.
    #[must_use]
    pub fn passes(&self) -> bool {
        !self.changes.iter().any(|change| change.sort.fails())
    }
}

impl Change {
    /// The bound that changed.
    #[must_use]
    pub fn bound(&self) -> BoundKey {
        [&self.system, &self.experiment, &self.series].map(String::clone)
    }

    /// By how many per cent it is longer; `None` where one side is missing, or was nothing.
    #[must_use]
    pub fn percent(&self) -> Option<f64> {
        let (was, is) = (self.was? as f64, self.is? as f64);
        (was > 0.0).then(|| (is / was - 1.0) * 100.0)
    }
}

/// Sets a campaign beside its baseline. The tolerance is for a different experiment: in the same one, nothing may differ.
#[must_use]
pub fn check(baseline: &Baseline, measured: &Measured, tolerance_percent: f64) -> Checked {
    let differences = differences(baseline, &measured.baseline);
    let same_experiment = differences.is_empty();
    let (tolerance_percent, tolerance_instructions) = if same_experiment {
        (0.0, 0)
    } else {
        (tolerance_percent, INTERRUPT_INSTRUCTIONS)
    };
    let (was, is) = (flat(&baseline.bounds), flat(&measured.baseline.bounds));
    let mut keys: Vec<&[&str; 3]> = was.keys().chain(is.keys()).collect();
    keys.sort();
    keys.dedup();
    let mut checked = Checked {
        same_experiment,
        differences,
        tolerance_percent,
        tolerance_instructions,
        equal: 0,
        changes: Vec::new(),
    };
    for key in keys {
        let pair = (was.get(key).copied(), is.get(key).copied());
        let sort = match pair {
            (Some(was), Some(is)) if was == is => {
                checked.equal += 1;
                continue;
            }
            (Some(_), None) => Sort::Missing,
            (None, _) => Sort::New,
            (Some(was), Some(is)) if is > was => {
                let allowed = was as f64 * (1.0 + tolerance_percent / 100.0);
                if is as f64 > allowed && is > was + tolerance_instructions {
                    Sort::Worse
                } else {
                    Sort::LongerWithinTolerance
                }
            }
            (Some(_), Some(_)) if same_experiment => Sort::Differs,
            (Some(_), Some(_)) => Sort::Better,
        };
        let bound = key.map(str::to_owned);
        let is_worse = sort == Sort::Worse;
        let cause = is_worse.then(|| cause(baseline, measured, &bound));
        let seed = measured.seeds.get(&bound).copied();
        let [system, experiment, series] = bound;
        checked.changes.push(Change {
            sort,
            seed,
            cause: cause.flatten(),
            was: pair.0,
            is: pair.1,
            system,
            experiment,
            series,
        });
    }
    checked
}

/// What one interrupt costs at most that comes into a sample or not as it happens, with the thread that it wakes. Over six
/// variants of a program, a clock read of 71 was 2,485 at worst in one of them, and a system call of 394 was 4,615.
pub const INTERRUPT_INSTRUCTIONS: u64 = 5_000;

fn flat(bounds: &Bounds) -> BTreeMap<[&str; 3], u64> {
    let mut all = BTreeMap::new();
    for (system, experiments) in bounds {
        for (experiment, series) in experiments {
            for (labels, bound) in series {
                all.insert([&**system, &**experiment, &**labels], *bound);
            }
        }
    }
    all
}

/// What differs besides the kernels and the plan.
fn differences_of_dependencies(before: &Dependencies, now: &Dependencies) -> Vec<String> {
    let mut found = Vec::new();
    let mut differ = |what: &str, was: &str, is: &str| {
        if was != is {
            found.push(format!("{what}: was {}, is {}", shown(was), shown(is)));
        }
    };
    differ("the emulator", &before.emulator, &now.emulator);
    differ(
        "the emulator's program",
        &before.emulator_sha256,
        &now.emulator_sha256,
    );
    differ(
        "the firmware",
        &before.firmware_sha256,
        &now.firmware_sha256,
    );
    differ(
        "the guest's root, with the programs that measure",
        &before.initramfs_sha256,
        &now.initramfs_sha256,
    );
    differ("the machine", &before.machine, &now.machine);
    let boards = |of: &Dependencies| board::in_words(of.boards.as_ref());
    differ("the emulator of boards", &boards(before), &boards(now));
    found
}

/// What makes it a different experiment.
fn differences(was: &Baseline, is: &Baseline) -> Vec<String> {
    let mut found = differences_of_dependencies(&was.identity, &is.identity);
    let (before, now) = (&was.plan, &is.plan);
    for kernel in &before.kernels {
        let same_name = now.kernels.iter().find(|one| one.name == kernel.name);
        let Some(other) = same_name else {
            found.push(format!("the kernel {} is not measured", kernel.name));
            continue;
        };
        if other.sha256 != kernel.sha256 {
            found.push(format!(
                "the kernel {}: was {} {}, is {} {}",
                kernel.name,
                kernel.release,
                shown(&kernel.sha256),
                other.release,
                shown(&other.sha256)
            ));
        }
    }
    for kernel in &now.kernels {
        if before.kernels.iter().all(|one| one.name != kernel.name) {
            found.push(format!("the kernel {} is new", kernel.name));
        }
    }
    if before.seeds != now.seeds {
        found.push(format!(
            "the seeds: were {}, are {}",
            before.seeds, now.seeds
        ));
    }
    if before.full != now.full {
        found.push("whether the published sample counts are taken".to_owned());
    }
    if before.machine != now.machine {
        found.push(format!(
            "the machine: was {}, is {}",
            before.machine, now.machine
        ));
    }
    if before.preempt != now.preempt {
        found.push("the preemption models that kernels are told".to_owned());
    }
    if before.boots != now.boots {
        found.push("which experiments are run under which loads".to_owned());
    }
    found
}

/// A digest is known by its beginning.
fn shown(text: &str) -> &str {
    if text.len() == SHA256_DIGITS {
        &text[..DIGITS]
    } else {
        text
    }
}

const SHA256_DIGITS: usize = 64;
const DIGITS: usize = 16;
