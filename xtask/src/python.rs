//! `cargo xtask python`: the Python package of `bindings/python`: its wheel, installed in a fresh environment, and its tests.

use std::path::PathBuf;

use anyhow::Context;
use xshell::{Shell, cmd};

use crate::metadata::target_folder;

/// Builds the wheel without optimisation, installs it, and runs its tests. Prints the interpreter.
pub(crate) fn run(sh: &Shell) -> anyhow::Result<()> {
    let Installed { python, .. } = install(sh, "dev")?;
    let command = target_folder(sh)?.join("debug/rtorb");
    if !command.exists() {
        cmd!(sh, "cargo build -p rtorb-cli").run()?;
    }
    cmd!(
        sh,
        "{python} -m unittest discover --start-directory bindings/python/tests"
    )
    .env("RTORB_COMMAND", command)
    .run()?;
    println!("{}: has the package", python.display());
    Ok(())
}

/// A wheel that is installed in an environment of its own.
pub(crate) struct Installed {
    /// The interpreter of the environment.
    pub(crate) python: PathBuf,
    pub(crate) wheel: PathBuf,
}

/// Builds the wheel with a profile of cargo, and installs it into an environment below the target folder.
pub(crate) fn install(sh: &Shell, profile: &str) -> anyhow::Result<Installed> {
    let folder = target_folder(sh)?.join("python");
    let (environment, wheels) = (folder.join("environment"), folder.join("wheels"));
    let python = environment.join("bin/python");
    if !python.exists() {
        cmd!(sh, "python3 -m venv {environment}").run()?;
    }
    let pip = ["-m", "pip", "--disable-pip-version-check", "--quiet"];
    // Stated, so that no gate fails by a release.
    cmd!(sh, "{python} {pip...} install maturin==1.16.0").run()?;
    sh.remove_path(&wheels)?;
    let scripts = environment.join("bin");
    let path = match sh.var_os("PATH") {
        Some(path) => {
            std::env::join_paths([scripts].into_iter().chain(std::env::split_paths(&path)))?
        }
        None => scripts.into_os_string(),
    };
    cmd!(
        sh,
        "{python} {pip...} wheel --no-build-isolation --no-deps --wheel-dir {wheels} bindings/python"
    )
    .env("CARGO_TARGET_DIR", &folder)
    .env("MATURIN_PEP517_ARGS", format!("--profile {profile}"))
    .env("PATH", path)
    .run()?;
    let wheel = sh.read_dir(&wheels)?.into_iter().next();
    let wheel = wheel.context("pip made no wheel")?;
    cmd!(
        sh,
        "{python} {pip...} install --force-reinstall --no-deps {wheel}"
    )
    .run()?;
    Ok(Installed { python, wheel })
}
