//! Checks of the workspace's own rules: `cargo xtask layers`, and `cargo xtask ci` for all that the gate runs.
#![forbid(unsafe_code)]

mod ci;
mod layers;
mod metadata;
mod sources;

use std::env;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    let task = env::args().nth(1);
    let done = match task.as_deref() {
        Some("layers") => layers::run(&workspace()),
        Some("ci") => ci::run(&workspace()),
        _ => {
            eprintln!("usage: cargo xtask layers|ci");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("{e:#}");
            ExitCode::FAILURE
        }
    }
}

/// The folder of the workspace.
fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask is a folder of the workspace")
        .to_owned()
}
