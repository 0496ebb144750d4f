//! The features of `rtorb-services`: each alone, and none, compile without warnings, and the clients alone bring no package beside
//! those of the ORB.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};

use crate::metadata::Metadata;

/// Checks each feature by clippy.
pub(crate) fn run(workspace: &Path) -> anyhow::Result<()> {
    let metadata = Metadata::of(workspace)?;
    let services = metadata.members().find(|member| member.name == SERVICES);
    let services = services.with_context(|| format!("{SERVICES} is no package"))?;
    let features = services.features.keys().filter(|name| *name != "default");
    for feature in features.map(String::as_str).chain([""]) {
        println!("{SERVICES} with feature `{feature}`");
        let alone = ["--no-default-features", "--features", feature];
        let clippy = ["clippy", "-p", SERVICES, "--lib", "--quiet"];
        let mut command = Command::new("cargo");
        command.current_dir(workspace).args(clippy).args(alone);
        let status = command.args(["--", "-D", "warnings"]).status();
        let status = status.context("cargo clippy")?;
        ensure!(status.success(), "{SERVICES} with `{feature}`: {status}");
    }
    let clients = packages(workspace, &[SERVICES, "--no-default-features"])?;
    let orb = packages(workspace, &["rtorb"])?;
    let more: Vec<_> = clients.difference(&orb).collect();
    ensure!(
        more == [SERVICES],
        "the clients alone bring packages: {more:?}"
    );
    Ok(())
}

/// The names of all packages that a package links.
fn packages(workspace: &Path, package: &[&str]) -> anyhow::Result<BTreeSet<String>> {
    let tree = ["tree", "--edges", "normal", "--prefix", "none", "--package"];
    let mut command = Command::new("cargo");
    command.current_dir(workspace).args(tree).args(package);
    let output = command.output().context("cargo tree")?;
    ensure!(output.status.success(), "cargo tree: {}", output.status);
    let text = String::from_utf8(output.stdout).context("cargo tree")?;
    let names = text.lines().filter_map(|line| line.split(' ').next());
    Ok(names.map(str::to_owned).collect())
}

const SERVICES: &str = "rtorb-services";
