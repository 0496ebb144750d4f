//! The layers of the workspace: who may depend on whom, within a crate too, and what a root file must say.
//!
//! `xtask/layers.toml` has the rules, and ARCHITECTURE.md the reasons. `cargo test --workspace` checks them too.

use anyhow::{Context, bail};
use cargo_metadata::{DependencyKind, Package, Target};
use serde::Deserialize;
use xshell::Shell;

use crate::metadata::{members, needed};
use crate::modules::cycles;
use crate::sources::{code, links_below};
use crate::support_api::named_by_hand;
use crate::test_files::{forgotten, never_run};
use crate::type_names::wrong_names;

/// Prints the breaches, and fails if there is one.
pub(crate) fn run(sh: &Shell) -> anyhow::Result<()> {
    let breaches = check(sh)?;
    for breach in &breaches {
        eprintln!("{breach}");
    }
    if !breaches.is_empty() {
        bail!("{} breaches of the layers", breaches.len());
    }
    println!("the layers hold");
    Ok(())
}

/// The rules: `xtask/layers.toml`, which explains them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rules {
    layer: Vec<Layer>,
    no_runtime: NoRuntime,
    root_line: Vec<RootLine>,
}

impl Rules {
    fn read() -> anyhow::Result<Self> {
        toml::from_str(include_str!("../layers.toml")).context("xtask/layers.toml")
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Layer {
    name: String,
    #[serde(default)]
    needs: Vec<String>,
    #[serde(default)]
    builds_with: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NoRuntime {
    below: Vec<String>,
    runtimes: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RootLine {
    text: String,
    only: Option<Vec<String>>,
    #[serde(default)]
    but: Vec<String>,
}

impl RootLine {
    fn is_of(&self, package: &str) -> bool {
        let is_chosen = |only: &Vec<String>| only.iter().any(|name| name == package);
        self.only.as_ref().is_none_or(is_chosen) && !self.but.iter().any(|name| name == package)
    }
}

fn check(sh: &Shell) -> anyhow::Result<Vec<String>> {
    let rules = Rules::read()?;
    let mut breaches = Vec::new();
    for package in &members(sh)? {
        let Some(layer) = rules.layer.iter().find(|it| it.name == *package.name) else {
            let name = &package.name;
            breaches.push(format!(
                "{name} is in no layer: give it a place in xtask/layers.toml and ARCHITECTURE.md"
            ));
            continue;
        };
        breaches.extend(dependencies(layer, package, &rules));
        for target in package
            .targets
            .iter()
            .filter(|it| it.is_lib() || it.is_bin())
        {
            breaches.extend(root_lines(package, target, &rules)?);
            breaches.extend(acyclic(package, target)?);
        }
        breaches.extend(tested(package)?);
        breaches.extend(named_by_hand(package)?);
        breaches.extend(wrong_names(package)?);
    }
    let links = links_below(&sh.current_dir())?.into_iter();
    breaches.extend(links.map(|link| {
        format!(
            "{}: is a symbolic link, which a package cannot contain; CONTRIBUTING.md says where shared files stand",
            link.display()
        )
    }));
    for package in &rules.no_runtime.below {
        let needed = needed(sh, &["--edges", "normal,build", "--package", package])?;
        let runtimes = rules.no_runtime.runtimes.iter();
        let reached = runtimes.filter(|runtime| needed.contains(*runtime));
        breaches.extend(reached.map(|runtime| {
            format!("{package} reaches {runtime}, which starts threads of its own")
        }));
    }
    Ok(breaches)
}

fn dependencies(layer: &Layer, package: &Package, rules: &Rules) -> Vec<String> {
    let is_wrong = |name: &String, kind| {
        let allowed = match kind {
            DependencyKind::Normal => &layer.needs,
            DependencyKind::Build => &layer.builds_with,
            _ => return false,
        };
        rules.layer.iter().any(|it| it.name == *name) && !allowed.contains(name)
    };
    let wrong = package
        .dependencies
        .iter()
        .filter(|it| is_wrong(&it.name, it.kind));
    wrong
        .map(|it| format!("{} may not depend on {}", package.name, it.name))
        .collect()
}

fn root_lines(package: &Package, target: &Target, rules: &Rules) -> anyhow::Result<Vec<String>> {
    let lines = code(target.src_path.as_std_path())?;
    let has = |text: &String| lines.iter().any(|line| line.trim() == *text);
    let needed = rules
        .root_line
        .iter()
        .filter(|line| line.is_of(&package.name));
    let missing = needed.filter(|line| !has(&line.text));
    Ok(missing
        .map(|line| format!("{} lacks {}", target.src_path, line.text))
        .collect())
}

/// No top module of a library uses one that uses it, directly or through others. Cargo and the layers keep cycles of crates out.
fn acyclic(package: &Package, library: &Target) -> anyhow::Result<Vec<String>> {
    if !library.is_lib() || CYCLES_ALLOWED.contains(&&**package.name) {
        return Ok(Vec::new());
    }
    let cycles = cycles(
        library
            .src_path
            .parent()
            .context("a file is in a folder")?
            .as_std_path(),
    )?;
    let described = cycles.iter().map(|edge| {
        let place = format!("{}:{}", edge.file.display(), edge.line);
        format!(
            "{place}: `{}` uses `{}`, which uses it in turn",
            edge.from, edge.to
        )
    });
    Ok(described.collect())
}

/// Values and types contain each other in every reader of them.
const CYCLES_ALLOWED: [&str; 1] = ["rtorb-dynamic"];

/// Every test that is written is run.
fn tested(package: &Package) -> anyhow::Result<Vec<String>> {
    let forgotten = forgotten(package)?.into_iter();
    let forgotten =
        forgotten.map(|file| format!("{}: is a module of no test program", file.display()));
    let never_run = never_run(package)?.into_iter().map(|file| {
        format!(
            "{}: has tests, but its target has `test = false`",
            file.display()
        )
    });
    Ok(forgotten.chain(never_run).collect())
}

#[cfg(test)]
mod tests {
    use super::{Rules, check};

    #[test]
    fn the_workspace_keeps_its_layers() {
        let sh = crate::workspace().expect("the workspace");
        let breaches = check(&sh).expect("cargo answers");
        assert!(breaches.is_empty(), "\n{}", breaches.join("\n"));
    }

    #[test]
    fn a_layer_needs_only_what_stands_below_it() {
        let layers = Rules::read().expect("the rules").layer;
        for (at, layer) in layers.iter().enumerate() {
            for need in layer.needs.iter().chain(&layer.builds_with) {
                let below = layers[at + 1..].iter().any(|lower| lower.name == *need);
                assert!(below, "{} needs {need}, which is not below it", layer.name);
            }
        }
    }
}
