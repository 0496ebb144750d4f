//! `cargo xtask simulate`: runs the simulations of connections with many seeds, built as a release.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail, ensure};

/// Two engines of `rtorb-wire`, and whole ORBs.
const SIMULATIONS: &[&[&str]] = &[
    &["-p", "rtorb-wire", "--test", "simulation", "--"],
    &["-p", "rtorb", "--lib", "tests::randomly", "--"],
];

/// `--seeds N` seeds, `--from SEED`; fails if one fails. Each simulation prints the seeds that fail, and one hash of all runs.
pub(crate) fn run(workspace: &Path, arguments: &[&str]) -> anyhow::Result<()> {
    let (mut seeds, mut from) = (10_000_u64, 0_u64);
    let mut rest = arguments;
    while let [option, value, after @ ..] = rest {
        let number = value.parse().with_context(|| format!("{option} {value}"))?;
        match *option {
            "--seeds" => seeds = number,
            "--from" => from = number,
            other => bail!("unknown option {other}: --seeds N and --from SEED are known"),
        }
        rest = after;
    }
    ensure!(rest.is_empty(), "{} needs a number", rest.join(" "));
    for simulation in SIMULATIONS {
        let status = Command::new("cargo")
            .current_dir(workspace)
            .args(["test", "--quiet", "--release"])
            .args(*simulation)
            .arg("--nocapture")
            .env("RTORB_SIMULATE_SEEDS", seeds.to_string())
            .env("RTORB_SIMULATE_FROM", from.to_string())
            .status()
            .context("cargo test")?;
        ensure!(
            status.success(),
            "{status}: a seed that failed is printed above"
        );
    }
    Ok(())
}
