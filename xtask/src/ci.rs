//! What the gate runs once the peers are installed.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, ensure};

/// One call of cargo.
struct Step {
    arguments: &'static [&'static str],
    environment: &'static [(&'static str, &'static str)],
}

/// The steps in order: the first is the README's test command, the second tries the interleavings of what has no lock, in
/// a folder of its own because everything is built differently for it, the third runs the program where there is no other
/// file.
const STEPS: [Step; 5] = [
    Step {
        arguments: &["test", "--workspace"],
        environment: &[("RTORB_REQUIRE_PEERS", "1")],
    },
    Step {
        arguments: &["test", "-p", "rtorb-os", "--release", "--test", "loom"],
        environment: &[
            ("RUSTFLAGS", "--cfg loom"),
            ("CARGO_TARGET_DIR", "target/loom"),
        ],
    },
    Step {
        arguments: &["xtask", "static", "--try"],
        environment: &[],
    },
    Step {
        arguments: &["fmt", "--all", "--check"],
        environment: &[],
    },
    Step {
        arguments: &[
            "clippy",
            "--workspace",
            "--all-targets",
            "--",
            "-D",
            "warnings",
        ],
        environment: &[],
    },
];

/// Runs every step with the peers required, and stops at the first that fails.
pub(crate) fn run(workspace: &Path) -> anyhow::Result<()> {
    for step in STEPS {
        let shown = step.arguments.join(" ");
        println!("== cargo {shown}");
        let start = Instant::now();
        let mut command = Command::new("cargo");
        command
            .current_dir(workspace)
            .args(step.arguments)
            .envs(step.environment.iter().copied());
        let status = command.status().with_context(|| format!("cargo {shown}"))?;
        ensure!(status.success(), "cargo {shown}: {status}");
        println!("== cargo {shown}: done in {} s", start.elapsed().as_secs());
    }
    Ok(())
}
