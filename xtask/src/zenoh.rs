//! `cargo xtask zenoh`: the tests of `rtorb-zenoh`, which a plain `cargo test --workspace` leaves out, because Zenoh takes a long time to build.

use xshell::{Shell, cmd};

/// The features that are not built by default and need nothing of the host but protoc: those of the command, and the tests of `rtorb-zenoh`.
pub(crate) const FEATURES: &str = "rtorb-cli/tls,rtorb-cli/etcd,rtorb-cli/zenoh,rtorb-zenoh/tests";

/// The tests are chosen among those of all packages, with the features of the gate: so the gate builds each dependency once.
pub(crate) fn run(sh: &Shell) -> anyhow::Result<()> {
    let tests = ["units", "federation", "threads", "namespaces"];
    let tests = tests
        .iter()
        .flat_map(|name| ["--test".to_owned(), format!("zenoh_{name}")]);
    let tests: Vec<String> = tests.collect();
    cmd!(
        sh,
        "cargo test --workspace --features {FEATURES} {tests...}"
    )
    .run()?;
    Ok(())
}
