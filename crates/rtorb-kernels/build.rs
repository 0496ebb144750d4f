//! Makes a shared library of the emulator's observer.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Compiles the observer, or leaves an empty file where it cannot be: the laboratory says so when it needs one.
fn main() {
    println!("cargo::rerun-if-changed={OBSERVER}");
    println!("cargo::rerun-if-changed={BLOCK_END}");
    let folder = env::var_os("OUT_DIR").expect("cargo sets it");
    let library = Path::new(&folder).join("observer.so");
    if let Err(why) = compile_observer(&library) {
        println!("cargo::warning=no sample of an emulated machine can be explained: {why}");
        fs::write(&library, []).expect("cargo's own folder can be written to");
    }
}

fn compile_observer(library: &PathBuf) -> Result<(), String> {
    let variable = |name: &str| env::var(name).map_err(|error| format!("{name}: {error}"));
    let (host, target) = (variable("HOST")?, variable("TARGET")?);
    // The emulator loads it where the laboratory runs, whichever C library that was linked with.
    let machine = |triple: &str| triple.split('-').next().unwrap_or_default().to_owned();
    if machine(&host) != machine(&target) {
        return Err(format!(
            "its observer for {target} cannot be made on {host}"
        ));
    }
    let made = Command::new(variable("RUSTC")?)
        .args(["--crate-name", "rtorb_observer"])
        .args(["--crate-type", "cdylib", "--edition", "2024"])
        .args(["-C", "opt-level=3", "-C", "panic=abort"])
        .args(["-C", "strip=symbols", "-C", "debuginfo=0"])
        .args(["-C", "target-feature=-crt-static"])
        .args(["--target", &host])
        .arg("-o")
        .arg(library)
        .arg(OBSERVER)
        .output()
        .map_err(|error| error.to_string())?;
    if made.status.success() {
        return Ok(());
    }
    let messages = String::from_utf8_lossy(&made.stderr);
    let first = messages.lines().find(|line| line.starts_with("error"));
    Err(format!(
        "its observer was not compiled: {}",
        first.unwrap_or_default()
    ))
}

const OBSERVER: &str = "observer/observer.rs";
const BLOCK_END: &str = "src/explain/block_end.rs";
