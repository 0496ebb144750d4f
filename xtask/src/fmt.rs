//! `cargo xtask fmt`: the layout of all Rust sources, also of the packages that are no members of the workspace.

use anyhow::ensure;
use xshell::{Shell, cmd};

/// Compares the sources of each workspace of the repository with what rustfmt makes of them.
pub(crate) fn run(sh: &Shell) -> anyhow::Result<()> {
    let manifests = cmd!(sh, "git ls-files Cargo.toml */Cargo.toml")
        .quiet()
        .read()?;
    let mut workspaces = 0;
    for manifest in manifests.lines() {
        if sh
            .read_file(manifest)?
            .lines()
            .any(|line| line == "[workspace]")
        {
            workspaces += 1;
            cmd!(sh, "cargo fmt --all --check --manifest-path {manifest}").run()?;
        }
    }
    ensure!(
        workspaces > 1,
        "no manifest of a workspace beside the first: look for [workspace] in another way"
    );
    Ok(())
}
