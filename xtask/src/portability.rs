//! `cargo xtask portability`: checks the types of the portable crates for the systems of the table in docs/reference/portability.md, and compares
//! the result with the table. Nothing is linked: that needs the makers' tools.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, bail, ensure};

use crate::debian;
use crate::metadata::target_folder;

const TABLE: &str = "docs/reference/portability.md";
/// The crates of the table's columns. The second has the first one as it is without the standard library.
const CRATES: [&str; 3] = ["rtorb-wire", "rtorb-embedded", "rtorb-os"];
const BUILDS: &str = "builds";
const REFUSED: &str = "refused";
/// How rtorb-os begins to say what it lacks (`crates/rtorb-os/build.rs`).
const REFUSAL: &str = "rtorb-os has no host module for";

/// A row of the table: a system, and what it says of each crate.
#[derive(Debug, PartialEq)]
struct Row {
    target: String,
    cells: Vec<String>,
}

/// Checks each system, prints what was found, and fails where the table says something else.
pub(crate) fn run(workspace: &Path) -> anyhow::Result<()> {
    let path = workspace.join(TABLE);
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let rows = rows(&text);
    ensure!(!rows.is_empty(), "{TABLE} has no row of a system");
    let mut wrong = Vec::new();
    for row in &rows {
        let start = Instant::now();
        let portable = check(workspace, &row.target, "rtorb-embedded")?;
        let whole = check(workspace, &row.target, "rtorb-os")?;
        let found = [portable, portable, whole];
        let seconds = start.elapsed().as_secs();
        println!("{}: {} ({seconds} s)", row.target, found.join(", "));
        if row.cells != found {
            wrong.push(format!("{}: {}", row.target, row.cells.join(", ")));
        }
    }
    ensure!(
        wrong.is_empty(),
        "{TABLE} says something else:\n{}",
        wrong.join("\n")
    );
    println!("{TABLE} says the same");
    Ok(())
}

/// The rows whose second cell is the name of a target in backticks.
fn rows(text: &str) -> Vec<Row> {
    let row = |line: &str| {
        let mut cells = line.strip_prefix("| ")?.split('|').map(str::trim);
        let target = cells.nth(1)?.strip_prefix('`')?.strip_suffix('`')?;
        let cells: Vec<String> = cells.take(CRATES.len()).map(str::to_owned).collect();
        (target.matches('-').count() >= 2 && cells.len() == CRATES.len()).then(|| Row {
            target: target.to_owned(),
            cells,
        })
    };
    text.lines().filter_map(row).collect()
}

/// `builds`, or `refused` where the crate says itself what it lacks.
fn check(workspace: &Path, target: &str, name: &str) -> anyhow::Result<&'static str> {
    let mut command: Command = debian::cargo(&target_folder(workspace)?.join("portability"))?;
    command
        .current_dir(workspace)
        .args(["check", "--locked", "--quiet", "-Zbuild-std=core,alloc"])
        .args(["--target", target, "-p", name])
        .stdin(Stdio::null());
    let output = command.output().context("cargo")?;
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.success() {
        Ok(BUILDS)
    } else if said.contains(REFUSAL) {
        Ok(REFUSED)
    } else {
        bail!("{name} for {target}:\n{said}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_one_that_names_a_target() {
        let text = "| system | target | rtorb-wire | rtorb-embedded | rtorb-os | runs |\n|---|---|---|---|---|---|\n\
                    | QNX | `x86_64-pc-nto-qnx710` | builds | builds | refused | - |\n| Linux | `any` | builds | builds | builds | x |\n";
        let cells = ["builds", "builds", "refused"].map(str::to_owned);
        let row = Row {
            target: "x86_64-pc-nto-qnx710".to_owned(),
            cells: cells.to_vec(),
        };
        assert_eq!(rows(text), [row]);
    }

    #[test]
    fn the_documentation_has_the_systems_that_are_checked() {
        let text = include_str!("../../docs/reference/portability.md");
        let rows = rows(text);
        for system in ["nto-qnx", "vxworks", "rtems", "freebsd"] {
            assert!(
                rows.iter().any(|row| row.target.contains(system)),
                "{system}"
            );
        }
        let known = |cell: &String| [BUILDS, REFUSED].contains(&cell.as_str());
        assert!(rows.iter().all(|row| row.cells.iter().all(known)));
    }
}
