//! `cargo xtask rtos`: guests that run real-time kernels, for the tests and the kernel laboratory, at `rtos/NAME` in the target folder.
//!
//! They need the standard library's source for their processor, which the usual toolchain does not have. Debian's has it.

use std::path::{Path, PathBuf};

use anyhow::Context;
use xshell::{Shell, cmd};

use crate::debian;
use crate::metadata::target_folder;

/// The crates in `rtos/`, outside of the workspace.
const GUESTS: [&str; 2] = ["freertos", "rtic"];
/// The processor of all of them.
const TARGET: &str = "thumbv7m-none-eabi";
const LINKER: &str = "CARGO_TARGET_THUMBV7M_NONE_EABI_LINKER";

/// Builds every guest, and prints its place and size.
pub(crate) fn run(sh: &Shell) -> anyhow::Result<()> {
    let linker = linker(sh)?;
    let target_folder = target_folder(sh)?.join("rtos");
    for guest in GUESTS {
        let _folder = sh.push_dir(format!("rtos/{guest}"));
        let build = debian::cargo(sh, &target_folder)?.env(LINKER, &linker);
        let build = build.args([
            "build",
            "--release",
            "-Zbuild-std=core,alloc",
            "--target",
            TARGET,
        ]);
        build.run()?;
        let built = target_folder.join(format!("{TARGET}/release/rtorb-{guest}"));
        let placed = target_folder.join(guest);
        sh.copy_file(built, &placed)?;
        let bytes = placed.metadata()?.len();
        println!("{}: {bytes} bytes with symbols", placed.display());
    }
    Ok(())
}

/// The linker that comes with the toolchain of this workspace: Debian's has none for other processors.
fn linker(sh: &Shell) -> anyhow::Result<PathBuf> {
    let libraries = cmd!(sh, "rustc --print target-libdir").quiet().read()?;
    let linker = Path::new(&libraries).with_file_name("bin/rust-lld");
    let found = Some(linker).filter(|linker| linker.exists());
    found.with_context(|| format!("no rust-lld beside {libraries}: install Rust by rustup"))
}
