//! `crates/rtorb-report/papers.md`: what it says follows from the stored results, every command in it exists, and no item of a
//! paper stands there twice.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use rtorb_lab::experiments;
use tempfile::TempDir;

use crate::support::rtorb;

const COLUMNS: [&str; 6] = [
    "Item",
    "What the paper shows",
    "Command",
    "What we see",
    "Agrees",
    "Why",
];
const PAPERS: [&str; 5] = ["P0", "P1", "P2", "P3", "P4"];
const ANSWERS: [&str; 5] = ["yes", "partly", "no", "open", "-"];

fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The cells of each row of the tables.
fn rows() -> Vec<Vec<String>> {
    let text = fs::read_to_string(project().join("crates/rtorb-report/papers.md")).unwrap();
    let lines = text.lines().filter_map(|line| {
        let inner = line.strip_prefix("| ")?.strip_suffix(" |")?;
        Some(inner.split(" | ").map(str::to_owned).collect())
    });
    let (heads, rows): (Vec<Vec<String>>, Vec<_>) =
        lines.partition(|cells: &Vec<String>| cells[0] == COLUMNS[0]);
    assert_eq!(heads, vec![COLUMNS.map(str::to_owned); PAPERS.len()]);
    rows
}

/// What stands between backquotes.
fn code(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

/// Why this is no command of the project.
fn wrong(command: &str) -> Option<String> {
    let words: Vec<&str> = command.split_whitespace().collect();
    match words.as_slice() {
        ["rtorb", arguments @ ..] => wrong_arguments(arguments),
        ["cargo", "run", "-p", "rtorb-examples", "--bin", name, ..] => {
            let file = format!("examples/src/bin/{name}.rs");
            (!project().join(&file).exists()).then(|| format!("there is no {file}"))
        }
        [option, ..] if option.starts_with("-ORB") => {
            let arguments = words.iter().map(|word| (*word).to_owned());
            let builder = rtorb::Orb::builder().args(arguments);
            if !builder.remaining_arguments().is_empty() {
                return Some("no option of an ORB".to_owned());
            }
            builder.build().err().map(|error| error.to_string())
        }
        _ => Some("neither rtorb, an example nor an option of an ORB".to_owned()),
    }
}

/// Why the command refuses these arguments. With `--help` at the end it parses them, and does nothing else.
pub(crate) fn wrong_arguments(arguments: &[&str]) -> Option<String> {
    let file = arguments
        .iter()
        .find(|word| word.starts_with("examples/") && !project().join(word).exists());
    if let Some(file) = file {
        return Some(format!("there is no {file}"));
    }
    let after = |option| {
        let place = arguments.iter().position(|word| *word == option)?;
        arguments.get(place + 1)
    };
    let run = match arguments {
        ["lab", "run", rest @ ..] => {
            let Some(name) = rest.first() else {
                return Some("it names no experiment".to_owned());
            };
            (*name != "profile").then_some(*name)
        }
        _ => None,
    };
    let listed = after("--experiments").into_iter();
    let listed = listed.flat_map(|names| names.split(','));
    let known = experiments::names();
    if let Some(unknown) = run
        .into_iter()
        .chain(listed)
        .find(|name| !known.contains(name))
    {
        return Some(format!("there is no experiment {unknown}"));
    }
    let assert = rtorb().args(arguments).arg("--help").assert();
    let output = assert.get_output();
    (!output.status.success()).then(|| String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn the_page_says_what_the_stored_results_say() {
    for page in [vec![], vec!["--page", "crates/rtorb-report"]] {
        let check = ["lab", "papers", "--check"].into_iter().chain(page);
        let assert = rtorb()
            .args(check)
            .current_dir(project())
            .assert()
            .success();
        let output = String::from_utf8_lossy(&assert.get_output().stdout).into_owned();
        assert_eq!(output.lines().count(), 1, "{output}");
        let of = |answer: &str| rows().iter().filter(|cells| cells[4] == answer).count();
        let counts =
            ["yes", "partly", "no", "open"].map(|answer| format!("{answer} {}", of(answer)));
        assert_eq!(output.trim_end(), counts.join(", "));
    }
}

/// A copy of the page with its rows and results.
fn copy() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let from = project().join("crates/rtorb-report");
    fs::create_dir(folder.path().join("papers")).unwrap();
    fs::copy(from.join("papers.md"), folder.path().join("papers.md")).unwrap();
    for file in fs::read_dir(from.join("papers")).unwrap() {
        let file = file.unwrap();
        fs::copy(
            file.path(),
            folder.path().join("papers").join(file.file_name()),
        )
        .unwrap();
    }
    folder
}

#[test]
fn a_page_that_says_something_else_fails_the_check_until_it_is_written() {
    let folder = copy();
    let page = folder.path().join("papers.md");
    let text = fs::read_to_string(&page).unwrap();
    let row = rows()
        .into_iter()
        .find(|cells| cells[0] == "P0 Figure 4")
        .unwrap();
    let seen = row[3].replacen("us", "ms", 1);
    fs::write(&page, text.replacen(&row[3], &seen, 1)).unwrap();
    let lab = |task: &str| {
        let mut command = rtorb();
        command
            .args(["lab", "papers", task, "--page"])
            .arg(folder.path());
        command.assert()
    };
    let assert = lab("--check").code(1);
    let output = String::from_utf8_lossy(&assert.get_output().stdout).into_owned();
    assert!(output.starts_with("P0 Figure 4\n"), "{output}");
    assert!(
        output.contains(&seen) && output.contains(&row[3]),
        "{output}"
    );
    assert!(
        output.lines().last().unwrap().starts_with("yes "),
        "{output}"
    );
    lab("--write").success();
    assert_eq!(fs::read_to_string(&page).unwrap(), text);
    lab("--check").success();
}

#[test]
fn a_folder_without_the_page_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let write = rtorb()
        .args(["lab", "papers", "--write"])
        .current_dir(folder.path())
        .assert();
    let error = String::from_utf8_lossy(&write.code(2).get_output().stderr).into_owned();
    assert!(error.contains("--page FOLDER"), "{error}");
}

#[test]
fn every_command_of_the_papers_exists() {
    for cells in rows() {
        assert_eq!(cells.len(), COLUMNS.len(), "{cells:?}");
        let (item, command) = (&cells[0], &cells[2]);
        assert!(PAPERS.iter().any(|paper| item.starts_with(paper)), "{item}");
        assert!(ANSWERS.contains(&cells[4].as_str()), "{item}: {}", cells[4]);
        let commands = code(command);
        assert_eq!(commands.is_empty(), command == "none", "{item}: {command}");
        for command in commands {
            assert_eq!(wrong(command), None, "{item}: {command}");
        }
    }
}

#[test]
fn no_item_of_a_paper_stands_there_twice() {
    let mut seen = BTreeSet::new();
    for cells in rows() {
        assert!(seen.insert(cells[0].clone()), "{} twice", cells[0]);
    }
    for paper in PAPERS {
        assert!(seen.iter().any(|item| item.starts_with(paper)), "{paper}");
    }
}

#[test]
fn every_experiment_belongs_to_a_paper() {
    let rows = rows();
    for name in experiments::names() {
        let command = format!("rtorb lab run {name}");
        let of = |cells: &Vec<String>| code(&cells[2]).iter().any(|run| run.starts_with(&command));
        assert!(rows.iter().any(of), "{name}");
    }
}

#[test]
fn a_command_that_does_not_exist_is_found() {
    for command in [
        "rtorb lab run orb/nothing",
        "rtorb lab run",
        "rtorb lab run orb/edge --fastest",
        "rtorb lab kernel run --kernel 6.12 --experiments os/nothing",
        "rtorb measures",
        "rtorb model check examples/model/nothing.toml",
        "cargo run -p rtorb-examples --bin nothing",
        "-ORBPreset nothing",
        "-ORBNothing yes",
        "make",
    ] {
        assert!(wrong(command).is_some(), "{command}");
    }
}
