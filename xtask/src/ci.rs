//! What the gate runs once the peers are installed.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, ensure};

use crate::metadata::target_folder;

/// One call of a program.
struct Step {
    /// As a user calls it; a path is one below the target folder.
    program: &'static str,
    arguments: &'static [&'static str],
    environment: &'static [(&'static str, &'static str)],
}

/// The steps in order. The first two make what guests of the kernel laboratory run: the program as the only file, and kernels. Then come
/// guests with kernels that are no Linux, and the portable crates for other systems. The README's test command runs beside that; the
/// interleavings of what has no lock are tried in a folder of their own, because everything is built differently for them. The last step
/// also compiles what is not built by default.
const STEPS: [Step; 12] = [
    Step {
        program: CARGO,
        arguments: &["xtask", "static", "--try"],
        environment: &[],
    },
    Step {
        program: "static/rtorb",
        arguments: &["lab", "kernels", "fetch", "6.12", "6.12-rt"],
        environment: &[],
    },
    Step {
        program: CARGO,
        arguments: &["xtask", "rtos"],
        environment: &[],
    },
    Step {
        program: CARGO,
        arguments: &["xtask", "portability"],
        environment: &[],
    },
    Step {
        program: CARGO,
        arguments: &["test", "--workspace"],
        environment: &[("RTORB_REQUIRE_PEERS", "1")],
    },
    Step {
        program: CARGO,
        arguments: &[
            "test",
            "-p",
            "rtorb-os",
            "-p",
            "rtorb-wire",
            "--release",
            "--test",
            "loom",
        ],
        environment: &[("RUSTFLAGS", "--cfg loom"), (TARGET_FOLDER, "loom")],
    },
    Step {
        program: CARGO,
        arguments: &["xtask", "instructions"],
        environment: &[],
    },
    Step {
        program: CARGO,
        arguments: &["xtask", "package"],
        environment: &[],
    },
    Step {
        program: CARGO,
        arguments: &["xtask", "features"],
        environment: &[],
    },
    Step {
        program: CARGO,
        arguments: &["xtask", "book"],
        environment: &[],
    },
    Step {
        program: CARGO,
        arguments: &["fmt", "--all", "--check"],
        environment: &[],
    },
    Step {
        program: CARGO,
        arguments: &[
            "clippy",
            "--workspace",
            "--all-targets",
            "--features",
            "rtorb-cli/iceoryx2",
            "--",
            "-D",
            "warnings",
        ],
        environment: &[],
    },
];

/// Runs every step with the peers required, and stops at the first that fails.
pub(crate) fn run(workspace: &Path) -> anyhow::Result<()> {
    let target = target_folder(workspace)?;
    for step in STEPS {
        let shown = format!("{} {}", step.program, step.arguments.join(" "));
        println!("== {shown}");
        let start = Instant::now();
        let mut command = match step.program {
            CARGO => Command::new(CARGO),
            path => Command::new(target.join(path)),
        };
        command.current_dir(workspace).args(step.arguments);
        for (name, value) in step.environment {
            match *name {
                TARGET_FOLDER => command.env(name, target.join(value)),
                name => command.env(name, value),
            };
        }
        if std::env::var_os(KERNELS).is_none() {
            command.env(KERNELS, target.join("kernels"));
        }
        let status = command.status().with_context(|| shown.clone())?;
        ensure!(status.success(), "{shown}: {status}");
        println!("== {shown}: done in {} s", start.elapsed().as_secs());
    }
    Ok(())
}

const CARGO: &str = "cargo";
/// Where cargo builds. The value in a step is a folder below the target folder.
const TARGET_FOLDER: &str = "CARGO_TARGET_DIR";
/// Where `rtorb lab` keeps kernels.
const KERNELS: &str = "RTORB_KERNELS";
