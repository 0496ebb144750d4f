//! Debian's compiler (package rustc-web), which can build the standard library for any processor: its source is at hand.

use std::path::Path;

use anyhow::ensure;
use xshell::{Cmd, Shell, cmd};

const CARGO: &str = "/usr/bin/cargo";
const RUSTC: &str = "/usr/bin/rustc";
const SOURCE: &str = "/usr/lib/rustlib/src/rust/library/Cargo.lock";
const REMEDY: &str = "apt install rustc-web cargo-web rust-web-src";

/// Its cargo, which writes into that folder.
///
/// # Errors
/// It is not installed; the error says how to install it.
pub(crate) fn cargo<'a>(sh: &'a Shell, target_folder: &Path) -> anyhow::Result<Cmd<'a>> {
    for needed in [CARGO, RUSTC, SOURCE] {
        ensure!(sh.path_exists(needed), "there is no {needed}: {REMEDY}");
    }
    let command = cmd!(sh, "{CARGO}").env("RUSTC", RUSTC);
    // A stable compiler builds the standard library only with this variable.
    let command = command.env("RUSTC_BOOTSTRAP", "1");
    // This program runs under another cargo.
    let command = command.env_remove("CARGO").env_remove("RUSTUP_TOOLCHAIN");
    Ok(command.env("CARGO_TARGET_DIR", target_folder))
}
