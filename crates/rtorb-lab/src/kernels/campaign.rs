//! A campaign: every kernel under every load, as one comparison.

use serde::{Deserialize, Serialize};

use super::catalogue::Kernel;
use crate::results::Results;

/// What a campaign depends on. Two campaigns with the same identity have the same results, octet by octet; a change of any of
/// it is a different experiment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// What the emulator says of its version.
    pub emulator: String,
    /// The SHA-256 of the emulator's program.
    pub emulator_sha256: String,
    /// The SHA-256 of the guest's root, which holds the program that measures.
    pub initramfs_sha256: String,
    /// The kernels, each with the preemption model that it is told.
    pub systems: Vec<System>,
    /// The experiments.
    pub experiments: Vec<String>,
    /// The loads.
    pub loads: Vec<String>,
    /// How many seeds.
    pub seeds: u16,
    /// What a nanosecond of virtual time is: 2 to the power of this is how many of them an instruction takes. Always 0 so far.
    pub shift: u8,
}

/// An operating system of the campaign: a row of its tables.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct System {
    /// The kernel.
    pub kernel: Kernel,
    /// `none`, `voluntary`, `full`, `lazy`, as the guest's kernel says that it runs.
    pub preempt: String,
}

/// What was found of one operating system: an ordinary results file an experiment, with the series of every load in it.
#[derive(Clone, Debug, PartialEq)]
pub struct OfSystem {
    /// Which one.
    pub system: System,
    /// One for each experiment; every series has the label `load`.
    pub results: Vec<Results>,
}
