//! Debian's compiler (package rustc-web), which can build the standard library for any processor: its source is at hand.

use std::path::Path;
use std::process::Command;

use anyhow::ensure;

const CARGO: &str = "/usr/bin/cargo";
const RUSTC: &str = "/usr/bin/rustc";
const SOURCE: &str = "/usr/lib/rustlib/src/rust/library/Cargo.lock";
const REMEDY: &str = "apt install rustc-web cargo-web rust-web-src";

/// Its cargo, which writes into that folder.
///
/// # Errors
/// That it is not installed, and how to get it.
pub(crate) fn cargo(target_folder: &Path) -> anyhow::Result<Command> {
    for needed in [CARGO, RUSTC, SOURCE] {
        ensure!(Path::new(needed).exists(), "there is no {needed}: {REMEDY}");
    }
    let mut command = Command::new(CARGO);
    command
        .env("RUSTC", RUSTC)
        // The standard library can be built by a stable compiler, but only by one that is told so.
        .env("RUSTC_BOOTSTRAP", "1")
        .env("CARGO_TARGET_DIR", target_folder)
        // This program's cargo is another one.
        .env_remove("CARGO")
        .env_remove("RUSTUP_TOOLCHAIN");
    Ok(command)
}
