//! What cargo knows of the workspace: packages, their targets, who depends on whom.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// The folder that cargo builds into: `target` in the workspace, or what CARGO_TARGET_DIR or a configuration names.
pub(crate) fn target_folder(workspace: &Path) -> anyhow::Result<PathBuf> {
    #[derive(Deserialize)]
    struct Built {
        target_directory: PathBuf,
    }
    let built: Built = ask(workspace, &["--no-deps"])?;
    Ok(built.target_directory)
}

/// What `cargo metadata` says of the workspace.
fn ask<T: DeserializeOwned>(workspace: &Path, options: &[&str]) -> anyhow::Result<T> {
    let mut command = Command::new("cargo");
    command
        .current_dir(workspace)
        .args(["metadata", "--format-version", "1"])
        .args(options);
    let output = command.output().context("cargo metadata")?;
    ensure!(
        output.status.success(),
        "cargo metadata: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).context("cargo metadata")
}

/// The packages of the workspace and of everything that they need on this platform.
#[derive(Debug, Deserialize)]
pub(crate) struct Metadata {
    packages: Vec<Package>,
    workspace_members: BTreeSet<String>,
    resolve: Resolve,
}

impl Metadata {
    /// Asks cargo, for the platform that this program was built for.
    pub(crate) fn of(workspace: &Path) -> anyhow::Result<Self> {
        ask(workspace, &["--filter-platform", PLATFORM])
    }

    /// The packages of the workspace.
    pub(crate) fn members(&self) -> impl Iterator<Item = &Package> {
        self.packages
            .iter()
            .filter(|package| self.workspace_members.contains(&package.id))
    }

    /// The names of all packages that `name` links or that its build scripts do, its tests apart.
    pub(crate) fn reached_from(&self, name: &str) -> BTreeSet<&str> {
        let names: BTreeMap<_, _> = self
            .packages
            .iter()
            .map(|package| (package.id.as_str(), package.name.as_str()))
            .collect();
        let nodes: BTreeMap<_, _> = self
            .resolve
            .nodes
            .iter()
            .map(|node| (node.id.as_str(), node))
            .collect();
        let mut left: Vec<_> = self
            .packages
            .iter()
            .filter(|package| package.name == name)
            .map(|package| package.id.as_str())
            .collect();
        let mut reached = BTreeSet::new();
        while let Some(id) = left.pop() {
            for dependency in nodes.get(id).into_iter().flat_map(|node| &node.deps) {
                let linked = dependency
                    .dep_kinds
                    .iter()
                    .any(|kind| kind.kind.as_deref() != Some("dev"));
                if linked && reached.insert(names[dependency.pkg.as_str()]) {
                    left.push(&dependency.pkg);
                }
            }
        }
        reached
    }
}

/// One package.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Package {
    id: String,
    /// Its name.
    pub(crate) name: String,
    pub(crate) version: String,
    /// The registries that may get it; none for any, an empty list for no registry.
    pub(crate) publish: Option<Vec<String>>,
    /// Where its Cargo.toml is.
    pub(crate) manifest_path: PathBuf,
    /// What it names in its Cargo.toml.
    pub(crate) dependencies: Vec<Dependency>,
    /// What it builds.
    pub(crate) targets: Vec<Target>,
}

/// One line of a package's dependencies.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Dependency {
    /// The package needed.
    pub(crate) name: String,
    /// None is a normal one; `dev`, `build`.
    pub(crate) kind: Option<String>,
}

/// One thing that a package builds.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Target {
    /// `lib`, `bin`, `test`, ...
    pub(crate) kind: Vec<String>,
    /// Its root file.
    pub(crate) src_path: PathBuf,
    /// Whether `cargo test` runs its tests.
    pub(crate) test: bool,
}

#[derive(Debug, Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Debug, Deserialize)]
struct Node {
    id: String,
    deps: Vec<Edge>,
}

#[derive(Debug, Deserialize)]
struct Edge {
    pkg: String,
    dep_kinds: Vec<EdgeKind>,
}

#[derive(Debug, Deserialize)]
struct EdgeKind {
    kind: Option<String>,
}

/// Only Linux is supported, so what other systems would link does not count.
const PLATFORM: &str = "x86_64-unknown-linux-gnu";

#[cfg(test)]
mod tests {
    use std::{env, fs};

    use super::*;
    use crate::sources::{code, rust_files};

    #[test]
    fn the_target_folder_is_the_one_that_cargo_builds_into() {
        let folder = env::temp_dir().join(format!("rtorb-target-{}", std::process::id()));
        for below in ["src", ".cargo"] {
            fs::create_dir_all(folder.join(below)).expect("a folder of our own");
        }
        for (name, text) in [
            ("Cargo.toml", "[package]\nname = \"one\"\n"),
            ("src/lib.rs", ""),
            (
                ".cargo/config.toml",
                "[build]\ntarget-dir = \"elsewhere\"\n",
            ),
        ] {
            fs::write(folder.join(name), text).expect("a file of our own");
        }
        let found = target_folder(&folder);
        fs::remove_dir_all(&folder).expect("it is ours");
        // The variable, where it is set, is stronger than a file.
        let named = env::var_os("CARGO_TARGET_DIR");
        let wanted = folder.join(named.unwrap_or_else(|| "elsewhere".into()));
        assert_eq!(found.expect("cargo knows it"), wanted);
    }

    #[test]
    fn no_command_takes_the_target_folder_for_granted() {
        let folder = crate::workspace().join("xtask/src");
        for file in rust_files(&folder).expect("the sources can be read") {
            for line in code(&file).expect("a file of sources") {
                let guess = line.code.contains("workspace.join(\"target");
                assert!(
                    !guess,
                    "{}: {}: use target_folder",
                    file.display(),
                    line.number
                );
            }
        }
    }
}
