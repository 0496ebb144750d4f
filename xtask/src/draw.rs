//! `cargo xtask draw`: runs the tests with a new seed, so that random tests draw new cases.

use std::hash::{BuildHasher, RandomState};

use anyhow::Context;
use xshell::{Shell, cmd};

/// Runs `cargo test` with these arguments, by default for the workspace; prints the seed, and how to replay a failure.
pub(crate) fn run(sh: &Shell, mut arguments: Vec<String>) -> anyhow::Result<()> {
    let seed = RandomState::new().hash_one(0);
    if arguments.is_empty() {
        arguments.push("--workspace".to_owned());
    }
    let replay = format!("{SEED}={seed} cargo test {}", arguments.join(" "));
    println!("== {replay}");
    let test = cmd!(sh, "cargo test {arguments...}").env(SEED, seed.to_string());
    test.run()
        .with_context(|| format!("replay it with {replay}"))
}

/// The seed of proptest and of the generators made by hand; `.cargo/config.toml` has the usual one.
const SEED: &str = "PROPTEST_RNG_SEED";
