//! `cargo xtask simulate`: runs the simulations of connections with many seeds, built as a release.

use anyhow::Context;
use xshell::{Shell, cmd};

/// Runs both simulations: two engines of `rtorb-wire`, and whole ORBs. Each prints the seeds that fail, and one hash of all runs.
pub(crate) fn run(sh: &Shell, seeds: u64, from: u64) -> anyhow::Result<()> {
    for simulation in [
        cmd!(
            sh,
            "cargo test --quiet --release -p rtorb-wire --test simulation -- --nocapture"
        ),
        cmd!(
            sh,
            "cargo test --quiet --release -p rtorb --lib tests::randomly -- --nocapture"
        ),
    ] {
        let simulation = simulation.env("RTORB_SIMULATE_SEEDS", seeds.to_string());
        let simulation = simulation.env("RTORB_SIMULATE_FROM", from.to_string());
        simulation
            .run()
            .context("a seed that failed is printed above")?;
    }
    Ok(())
}
