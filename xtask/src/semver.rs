//! `cargo xtask semver`: what the public items of the libraries promised in the last release, and no longer do.

use anyhow::bail;
use xshell::{Shell, cmd};

/// The last commit of 0.1.
pub(crate) const BASELINE: &str = "99b0a8253b90b7965273ab14b43a236ee2077f28";

/// Compares all packages that are published. A change that breaks programs needs a new second number before 1.0.
pub(crate) fn run(sh: &Shell, baseline: &str) -> anyhow::Result<()> {
    let tool = ["semver-checks", "--version"];
    if cmd!(sh, "cargo {tool...}")
        .quiet()
        .ignore_stderr()
        .run()
        .is_err()
    {
        bail!("cargo-semver-checks is not installed: cargo install cargo-semver-checks --locked");
    }
    Ok(cmd!(
        sh,
        "cargo semver-checks --workspace --baseline-rev {baseline}"
    )
    .run()?)
}
