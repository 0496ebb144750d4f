//! `cargo xtask semver`: what the public items of the libraries promised in the last release, and no longer do.

use anyhow::bail;
use cargo_metadata::Package;
use xshell::{Shell, cmd};

use crate::metadata::members;

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
    let mut exclude = Vec::new();
    for package in members(sh)? {
        if !is_in(sh, baseline, &package) {
            exclude.extend(["--exclude".to_owned(), package.name.to_string()]);
        }
    }
    Ok(cmd!(
        sh,
        "cargo semver-checks --workspace --baseline-rev {baseline} {exclude...}"
    )
    .run()?)
}

/// True if a commit has the package, where it is now. A new one has promised nothing.
fn is_in(sh: &Shell, commit: &str, package: &Package) -> bool {
    let root = sh.current_dir();
    let manifest = package.manifest_path.as_std_path();
    let manifest = manifest.strip_prefix(&root).unwrap_or(manifest);
    let found = format!("{commit}:{}", manifest.display());
    let found = cmd!(sh, "git cat-file -e {found}").quiet().ignore_stderr();
    found.run().is_ok()
}
