//! The kernels that can be booted.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// A kernel image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kernel {
    /// Its name as the user gave it, and as the label `kernel` has it: `6.12`, `6.12-rt`.
    pub name: String,
    /// The compressed image that is booted, `vmlinuz`.
    pub image: PathBuf,
    /// The SHA-256 of the image, in hexadecimal digits.
    pub sha256: String,
    /// The package that it came from; `None` for a file that the user named.
    pub package: Option<Package>,
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
