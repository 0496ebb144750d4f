//! The emulated machine that results were measured in: everything that such a result depends on.

use serde::{Deserialize, Serialize};

/// What is known of an emulated machine. Two results with the same are the same, octet by octet; results in which any of it differs
/// are of different experiments.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Emulation {
    /// What the emulator says of its version.
    pub emulator: String,
    /// The SHA-256 of the emulator's program.
    pub emulator_sha256: String,
    /// The SHA-256 of the guest's root, which holds the program that measures.
    pub initramfs_sha256: String,
    /// The SHA-256 of the firmware that starts the machine.
    #[serde(default)]
    pub firmware_sha256: String,
    /// The arguments of the emulator and of the kernels.
    #[serde(default)]
    pub machine: String,
    /// How many seeds each case was run with.
    pub seeds: u16,
    /// An instruction takes 2 to the power of this many nanoseconds of virtual time.
    pub shift: u8,
    /// The operating systems that the results are of.
    pub systems: Vec<EmulatedSystem>,
}

/// An operating system that was booted in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EmulatedSystem {
    /// As the label `kernel` has it: `6.12-rt`.
    pub kernel: String,
    /// As the label `preempt` has it: `voluntary`.
    pub preempt: String,
    /// `uname -r`.
    pub release: String,
    /// `uname -v`.
    pub version: String,
    /// Whether it is PREEMPT_RT.
    pub preempt_rt: bool,
    /// The SHA-256 of the image that was booted.
    pub image_sha256: String,
    /// The package that it came from, with its version; empty for a file that the user named.
    pub package: String,
    /// The SHA-256 of the package's file; empty where there is no package.
    pub package_sha256: String,
}

impl EmulatedSystem {
    /// As the label `system` has it: `6.12 voluntary`.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{} {}", self.kernel, self.preempt)
    }
}
