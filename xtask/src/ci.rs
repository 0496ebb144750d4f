//! What the gate runs once the peers are installed.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, ensure};

/// The steps in order: the first is the README's test command.
const STEPS: [&[&str]; 3] = [
    &["test", "--workspace"],
    &["fmt", "--all", "--check"],
    &[
        "clippy",
        "--workspace",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ],
];

/// Runs every step with the peers required, and stops at the first that fails.
pub(crate) fn run(workspace: &Path) -> anyhow::Result<()> {
    for step in STEPS {
        let shown = step.join(" ");
        println!("== cargo {shown}");
        let start = Instant::now();
        let mut command = Command::new("cargo");
        command
            .current_dir(workspace)
            .args(step)
            .env("RTORB_REQUIRE_PEERS", "1");
        let status = command.status().with_context(|| format!("cargo {shown}"))?;
        ensure!(status.success(), "cargo {shown}: {status}");
        println!("== cargo {shown}: done in {} s", start.elapsed().as_secs());
    }
    Ok(())
}
