//! `cargo xtask portability`: checks the types of the portable crates for the systems of the table in docs/reference/portability.md, and compares
//! the result with the table. Nothing is linked: that needs the makers' tools.

use std::path::Path;
use std::time::Instant;

use anyhow::{bail, ensure};
use xshell::Shell;

use crate::debian;
use crate::metadata::target_folder;

const TABLE: &str = "docs/reference/portability.md";
/// The crates of the table's columns. The second has the first one as it is without the standard library.
const CRATES: [&str; 3] = ["rtorb-wire", "rtorb-embedded", "rtorb-os"];
const BUILDS: &str = "builds";
const REFUSED: &str = "refused";
/// The beginning of the message of rtorb-os that it does not support a system (`crates/rtorb-os/build.rs`).
const REFUSAL: &str = "rtorb-os has no host module for";

/// A row of the table: a system, and the cell of each crate.
#[derive(Debug, PartialEq)]
struct Row {
    target: String,
    cells: Vec<String>,
}

/// Checks each system, prints the result, and fails where the table has another one.
pub(crate) fn run(sh: &Shell) -> anyhow::Result<()> {
    let rows = rows(&sh.read_file(TABLE)?);
    ensure!(!rows.is_empty(), "{TABLE} has no row of a system");
    let built = target_folder(sh)?.join("portability");
    let mut wrong = Vec::new();
    for row in &rows {
        let start = Instant::now();
        let portable = check(sh, &built, &row.target, "rtorb-embedded")?;
        let whole = check(sh, &built, &row.target, "rtorb-os")?;
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

/// `builds`, or `refused` if the crate itself says that it does not support the system.
fn check(sh: &Shell, built: &Path, target: &str, name: &str) -> anyhow::Result<&'static str> {
    let check = debian::cargo(sh, built)?
        .args(["check", "--locked", "--quiet", "-Zbuild-std=core,alloc"])
        .args(["--target", target, "-p", name]);
    let output = check.quiet().ignore_status().output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    if output.status.success() {
        Ok(BUILDS)
    } else if errors.contains(REFUSAL) {
        Ok(REFUSED)
    } else {
        bail!("{name} for {target}:\n{errors}")
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
