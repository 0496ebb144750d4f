//! `cargo xtask draw`: runs the tests with a new seed, so that random tests draw new cases.

use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};

/// Runs `cargo test` with these arguments, by default for the workspace; prints the seed, and how to replay a failure.
pub(crate) fn run(workspace: &Path, arguments: &[&str]) -> anyhow::Result<()> {
    let seed = RandomState::new().hash_one(0);
    let arguments = if arguments.is_empty() {
        &["--workspace"]
    } else {
        arguments
    };
    let replay = format!("{SEED}={seed} cargo test {}", arguments.join(" "));
    println!("== {replay}");
    let status = Command::new("cargo")
        .current_dir(workspace)
        .arg("test")
        .args(arguments)
        .env(SEED, seed.to_string())
        .status()
        .context("cargo test")?;
    ensure!(status.success(), "{status}\nReplay it with {replay}");
    Ok(())
}

/// What proptest and the generators made by hand take their seed from; `.cargo/config.toml` has the usual one.
const SEED: &str = "PROPTEST_RNG_SEED";
