//! What the gate runs once the peers are installed.

use std::time::Instant;

use xshell::{Shell, cmd};

use crate::metadata::target_folder;
use crate::zenoh;

/// Runs every step with the peers required, and stops at the first that fails.
pub(crate) fn run(sh: &Shell) -> anyhow::Result<()> {
    let target = target_folder(sh)?;
    if sh.var(KERNELS).is_err() {
        sh.set_var(KERNELS, target.join("kernels"));
    }
    let static_program = target.join("static/rtorb");
    let loom = target.join("loom");
    let features = zenoh::FEATURES;
    let python = target.join("python/environment/bin/python");
    for step in [
        // First what takes a moment.
        cmd!(sh, "cargo xtask fmt"),
        // What guests of the kernel laboratory run: the program as the only file, and kernels.
        cmd!(sh, "cargo xtask static --try"),
        // The same program as a Debian package and as an image, installed and run.
        cmd!(sh, "cargo xtask deb --try"),
        cmd!(sh, "cargo xtask image --try"),
        cmd!(sh, "{static_program} lab kernels fetch 6.12 6.12-rt"),
        // Guests with kernels that are no Linux, and the portable crates for other systems.
        cmd!(sh, "cargo xtask rtos"),
        cmd!(sh, "cargo xtask portability"),
        cmd!(sh, "cargo test --workspace").env("RTORB_REQUIRE_PEERS", "1"),
        // With the command that the tests built.
        cmd!(sh, "cargo xtask python"),
        // The command with TLS and with Zenoh; and every type between all ORBs, alone, because its clients and servers use the whole host. With all
        // packages: the features of one alone would build half of them again.
        cmd!(
            sh,
            "cargo test --workspace --features {features} --test peers --test cli -- matrix with_tls with_zenoh"
        )
        .env("RTORB_REQUIRE_PEERS", "1")
        .env("RTORB_MATRIX", "1")
        .env("RTORB_PYTHON", python),
        // Federations over Zenoh, which a plain `cargo test --workspace` does not build.
        cmd!(sh, "cargo xtask zenoh").env("RTORB_REQUIRE_PEERS", "1"),
        // Everything is built differently for the interleavings of what has no lock.
        cmd!(
            sh,
            "cargo test -p rtorb-os -p rtorb-wire --release --test loom"
        )
        .env("RUSTFLAGS", "--cfg loom")
        .env("CARGO_TARGET_DIR", loom),
        // Whole ORBs with their threads: 10,000 seeds. The other systems run as tests.
        cmd!(
            sh,
            "cargo xtask simulate --seeds 1001 --system calls --system lanes --system events --system naming --system gateways --system started --system callbacks --system held --system budgets --system hostile"
        ),
        // Also compiles what is not built by default. Later steps find the packages of others compiled.
        cmd!(
            sh,
            "cargo clippy --workspace --all-targets --features rtorb-cli/iceoryx2,{features} -- -D warnings"
        ),
        cmd!(sh, "cargo xtask instructions"),
        cmd!(sh, "cargo xtask package"),
        cmd!(sh, "cargo xtask features"),
        cmd!(sh, "cargo xtask book"),
    ] {
        let (shown, start) = (step.to_string(), Instant::now());
        step.run()?;
        println!("== {shown}: done in {} s", start.elapsed().as_secs());
    }
    Ok(())
}

/// Where `rtorb lab` keeps kernels.
const KERNELS: &str = "RTORB_KERNELS";
