//! `cargo xtask rtos`: guests that run real-time kernels, for the tests and the kernel laboratory, at `rtos/NAME` in the target folder.
//!
//! They need the standard library's source for their processor, which the usual toolchain does not have. Debian's has it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

use crate::debian;
use crate::metadata::target_folder;

/// A guest: a crate in `rtos/`, outside of the workspace.
struct Guest {
    name: &'static str,
    target: &'static str,
}

const GUESTS: [Guest; 2] = [
    Guest {
        name: "freertos",
        target: "thumbv7m-none-eabi",
    },
    Guest {
        name: "rtic",
        target: "thumbv7m-none-eabi",
    },
];

/// Builds every guest, and says where it is and how large.
pub(crate) fn run(workspace: &Path) -> anyhow::Result<()> {
    let linker = linker()?;
    let target_folder = target_folder(workspace)?.join("rtos");
    for guest in &GUESTS {
        let status = debian::cargo(&target_folder)?
            .current_dir(workspace.join("rtos").join(guest.name))
            .args(["build", "--release", "-Zbuild-std=core,alloc"])
            .args(["--target", guest.target])
            .env(linker_variable(guest.target), &linker)
            .status()
            .context("cargo")?;
        ensure!(status.success(), "{}: {status}", guest.name);
        let built = target_folder
            .join(guest.target)
            .join("release")
            .join(format!("rtorb-{}", guest.name));
        let placed = target_folder.join(guest.name);
        let octets = fs::copy(&built, &placed).with_context(|| built.display().to_string())?;
        println!("{}: {octets} octets with symbols", placed.display());
    }
    Ok(())
}

/// Where cargo looks for the linker of a target.
fn linker_variable(target: &str) -> String {
    let target = target.to_uppercase().replace('-', "_");
    format!("CARGO_TARGET_{target}_LINKER")
}

/// The linker that comes with the toolchain of this workspace: Debian's has none for other processors.
fn linker() -> anyhow::Result<PathBuf> {
    let answer = Command::new("rustc")
        .args(["--print", "target-libdir"])
        .output()
        .context("rustc")?;
    let libraries = PathBuf::from(String::from_utf8_lossy(&answer.stdout).trim());
    let linker = libraries
        .parent()
        .map(|target| target.join("bin/rust-lld"))
        .filter(|linker| linker.exists());
    linker.with_context(|| {
        format!(
            "no rust-lld beside {}: install Rust by rustup",
            libraries.display()
        )
    })
}
