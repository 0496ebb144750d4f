//! The files of a campaign over kernels: what it depends on, whether it repeats, where it ran.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::json::read_json;

/// campaign.json: what the campaign depends on, whether it repeats, and what nothing depends on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The form of the file: `rtorb-campaign/1`.
    pub schema: String,
    /// The identity's name, which every results file of the campaign has as `run`.
    pub id: String,
    /// What it depends on.
    pub identity: Identity,
    /// Whether everything was measured that was planned.
    pub complete: bool,
    /// What is not there.
    pub missing: Vec<Absent>,
    /// One case, run twice.
    pub self_check: SelfCheck,
    /// What the guests said: a repetition of a boot must say the same.
    #[serde(default)]
    pub answers: Vec<Answer>,
    /// When, how long, where: nothing in the results depends on it.
    pub wall: Wall,
}

/// What the guest of one boot said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// Which system, by its index in the identity.
    pub system: usize,
    /// Under which load.
    pub load: String,
    /// The experiments of this boot.
    pub experiments: Vec<String>,
    /// The address of `rtorb_instruments::replay::sample_taken` in it.
    pub sample_taken: u64,
    /// The SHA-256 of all that it said.
    pub sha256: String,
}

/// Something that was planned and is missing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Absent {
    /// Of which kernel.
    pub kernel: String,
    /// With which preemption model; empty where it never booted.
    pub preempt: String,
    /// Under which load.
    pub load: String,
    /// Which experiment.
    pub experiment: String,
    /// Why.
    pub why: String,
}

/// Whether the case that was run twice said the same octets both times.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SelfCheck {
    /// Which case.
    pub case: String,
    /// Whether; `None` where it did not come to its end twice.
    pub repeats: Option<bool>,
    /// The SHA-256 of what each of the two guests said.
    pub sha256: Vec<String>,
}

/// When and where a campaign was run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Wall {
    /// UTC, as RFC 3339 has it.
    pub started: String,
    /// In seconds.
    pub duration_s: f64,
    /// How many guests ran side by side.
    pub guests: usize,
    /// Where.
    pub host: Host,
}

/// The host of the emulator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// `uname -n`.
    pub name: Option<String>,
    /// `uname -r`.
    pub kernel_release: String,
    /// The CPU's own name.
    pub cpu_model: Option<String>,
    /// CPUs online.
    pub cpus_online: usize,
}

impl Host {
    /// What matters here of a host.
    #[must_use]
    pub fn of(host: &rtorb_host::Host) -> Self {
        Self {
            name: host.name.clone(),
            kernel_release: host.kernel_release.clone(),
            cpu_model: host.cpu_model.clone(),
            cpus_online: host.cpus_online,
        }
    }
}

impl Record {
    /// The name of its file.
    pub const FILE: &str = "campaign.json";

    /// The record of the campaign in a folder.
    ///
    /// # Errors
    /// That there is none, or that it cannot be read.
    pub fn read(folder: &Path) -> Result<Self, Error> {
        let path = folder.join(Self::FILE);
        read_json(&path, SCHEMA).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Error::folder(folder, HOLDS_NONE),
            _ => Error::file(&path)(error),
        })
    }
}

/// What a campaign depends on. Two campaigns with the same identity have the same results, octet by octet; a change of any of
/// it is a different experiment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// What the emulator says of its version.
    pub emulator: String,
    /// The SHA-256 of the emulator's program.
    pub emulator_sha256: String,
    /// The SHA-256 of the guest's root, which holds the program that measures.
    pub initramfs_sha256: String,
    /// The kernels, each with the preemption model that it is told.
    pub systems: Vec<System>,
    /// What each of them is told as `preempt=`; `None` leaves it what it is by itself.
    #[serde(default)]
    pub asked: Vec<Option<String>>,
    /// The SHA-256 of the firmware that the emulator starts a machine with.
    #[serde(default)]
    pub firmware_sha256: String,
    /// The arguments of the emulator and of the kernels.
    #[serde(default)]
    pub machine: String,
    /// The experiments.
    pub experiments: Vec<String>,
    /// The loads.
    pub loads: Vec<String>,
    /// The boots of each system: the load, and which experiments run under it one after another.
    #[serde(default)]
    pub boots: Vec<(String, Vec<String>)>,
    /// How many seeds.
    pub seeds: u16,
    /// The published sample counts and levels; otherwise a look.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub full: bool,
    /// The emulator of boards, if one of the kernels runs on a board.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boards: Option<Boards>,
    /// The machine: an instruction takes 2 to the power of this many nanoseconds of virtual time.
    pub shift: u8,
}

/// The emulator of boards, for kernels that are no Linux.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Boards {
    /// What it says of its version.
    pub emulator: String,
    /// The SHA-256 of its program.
    pub emulator_sha256: String,
    /// Its arguments.
    pub machine: String,
}

/// An operating system of the campaign: a row of its tables.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct System {
    /// The kernel.
    pub kernel: Kernel,
    /// `none`, `voluntary`, `full`, `lazy`, as the guest's kernel says that it runs.
    pub preempt: String,
}

/// A kernel image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kernel {
    /// Its name as the user gave it, and as the label `kernel` has it: `6.12`, `6.12-rt`.
    pub name: String,
    /// What it calls itself, as `uname -r` does: `6.12.117+deb12-rt-amd64`.
    #[serde(default)]
    pub release: String,
    /// The compressed image that is booted, `vmlinuz`.
    pub image: PathBuf,
    /// The SHA-256 of the image, in hexadecimal digits.
    pub sha256: String,
    /// The package that it came from; `None` for a file that the user named.
    pub package: Option<Package>,
    /// The emulated board that it runs on, if it is no Linux for a PC: `mps2-an385`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub board: Option<String>,
}

/// A package of the distribution that holds a kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Package {
    /// Such as `linux-image-6.12.117+deb12-rt-amd64-unsigned`.
    pub name: String,
    /// The version of the package.
    pub version: String,
    /// The SHA-256 of the package's file.
    pub sha256: String,
}

impl SelfCheck {
    /// What a reader of the results must know of it.
    #[must_use]
    pub fn warning(&self) -> Option<&'static str> {
        (self.repeats == Some(false)).then_some(DOES_NOT_REPEAT)
    }
}

/// The form of the file.
pub const SCHEMA: &str = "rtorb-campaign/1";
/// What the name of an experiment over kernels begins with; the rest is the experiment that was compared.
pub const PREFIX: &str = "kernel/";
/// The label of a comparison that names the operating system.
pub const SYSTEM: &str = "system";
/// The derived number: how many times the worst sample of the most real-time system.
pub const RATIO: &str = "ratio_to_real_time";
/// The derived number: how many times the median of the most real-time system.
pub const RATIO_OF_MEDIANS: &str = "median_to_real_time";
const HOLDS_NONE: &str =
    "holds no campaign: give a folder that `rtorb lab kernel run --out DIR` wrote";
const DOES_NOT_REPEAT: &str = "NOT REPEATABLE: one case was run twice and did not say the same both times, so that no number here can be \
                               relied on. campaign.json names the case, and the folder `differs` has both answers.";
