//! The pages of the project: every command on them exists, every IDL text is right, and the page of the command is what its help
//! says.

use std::fs;
use std::path::{Path, PathBuf};

use rtorb_tests::pages::check_part;

use crate::papers::wrong_arguments;
use crate::support::rtorb;

#[test]
fn every_command_on_a_page_exists() {
    let mut count = 0;
    for (page, block) in blocks("sh") {
        for line in block.lines() {
            let words = words(line);
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let fault = match words.as_slice() {
                ["rtorb", arguments @ ..] | ["ssh", "board", "./rtorb", arguments @ ..] => {
                    wrong_arguments(arguments)
                }
                ["cargo", "run", "-p", package, "--bin", name, ..] => missing(package, name),
                _ => continue,
            };
            assert_eq!(fault, None, "{}: {line}", page.display());
            count += 1;
        }
    }
    assert!(count > 50, "{count}");
}

#[test]
fn every_idl_text_on_a_page_is_right() {
    let folder = tempfile::tempdir().expect("a folder of our own");
    let file = folder.path().join("page.idl");
    let blocks = blocks("idl");
    assert!(blocks.len() > 2, "{}", blocks.len());
    for (page, block) in blocks {
        fs::write(&file, &block).expect("a file of our own");
        let assert = rtorb().args(["idl", "check"]).arg(&file).assert();
        let output = assert.get_output();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {said}", page.display());
    }
}

#[test]
fn the_readme_shows_the_beginning_of_the_answer_of_a_check() {
    let readme = fs::read_to_string(project().join("README.md")).expect("the README is text");
    let arguments = [
        "model",
        "check",
        "examples/model/overloaded.toml",
        "--ideal",
    ];
    let command = format!("```sh\nrtorb {}\n```\n\n```text\n", arguments.join(" "));
    let (_, rest) = readme
        .split_once(&command)
        .expect("the README has the command");
    let shown = rest.split("```").next().unwrap_or_default();
    let assert = rtorb()
        .args(arguments)
        .current_dir(project())
        .assert()
        .code(1);
    let answer = String::from_utf8_lossy(&assert.get_output().stdout);
    assert!(
        shown.lines().count() > 10 && answer.starts_with(shown),
        "{answer}"
    );
}

/// Why this is no program of an example.
fn missing(package: &str, name: &str) -> Option<String> {
    let folder = match package {
        "rtorb-examples" => "examples".to_owned(),
        other => format!("examples/{}", other.trim_start_matches("rtorb-")),
    };
    let file = format!("{folder}/src/bin/{name}.rs");
    (!project().join(&file).exists()).then(|| format!("there is no {file}"))
}

/// The blocks of a language on all pages and in the README.
fn blocks(language: &str) -> Vec<(PathBuf, String)> {
    let mut pages = vec![project().join("README.md")];
    for kind in ["tutorial", "how-to", "reference", "explanation"] {
        let folder = project().join("docs").join(kind);
        let files = fs::read_dir(&folder).expect("a folder of pages");
        let files = files.map(|file| file.expect("a file").path());
        pages.extend(files.filter(|file| file.extension().is_some_and(|it| it == "md")));
    }
    let mut found = Vec::new();
    for page in pages {
        let text = fs::read_to_string(&page).expect("a page is text");
        let inside = text.split("```").skip(1).step_by(2);
        let chosen = inside.filter_map(|block| {
            let (of, text) = block.split_once('\n')?;
            (of == language).then(|| text.to_owned())
        });
        found.extend(chosen.map(|block| (page.clone(), block)));
    }
    found
}

/// The words of a command, up to a comment, a redirection or the end of the command.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for character in line.trim_start_matches("$ ").chars() {
        let word = words.last_mut().expect("there is always one");
        match (quote, character) {
            (Some(open), close) if open == close => quote = None,
            (None, '\'' | '"') => quote = Some(character),
            (None, ' ') => words.push(String::new()),
            (None, '#') if word.is_empty() => break,
            (None, '>' | '&' | '|' | ';') => break,
            (_, character) => word.push(character),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn the_page_of_the_command_is_what_its_help_says() {
    let mut text = String::new();
    describe(&[], &mut text);
    check_part("reference/command.md", "commands", &text);
}

/// Adds the help of a command, and then of its subcommands.
fn describe(path: &[&str], text: &mut String) {
    let help = help(path);
    let name = ["rtorb"].iter().chain(path).copied();
    let name = name.collect::<Vec<_>>().join(" ");
    text.push_str(&format!(
        "## {name}\n\n```text\n{}\n```\n\n",
        help.trim_end()
    ));
    for subcommand in subcommands(&help) {
        describe(&[path, &[subcommand]].concat(), text);
    }
}

/// The long help of a command. Without a terminal its lines have no bound: here they are cut.
fn help(path: &[&str]) -> String {
    let assert = rtorb().args(path).arg("--help").assert().success();
    let output = String::from_utf8(assert.get_output().stdout.clone());
    let help = output.expect("help is text");
    let lines: Vec<String> = help.lines().flat_map(cut).collect();
    lines.join("\n")
}

/// A line in pieces that fit. The later ones begin where the description in the first one does.
fn cut(line: &str) -> Vec<String> {
    let indent = line.len() - line.trim_start().len();
    let name = line[indent..].find("  ").map_or(0, |end| indent + end);
    let gap = line[name..].len() - line[name..].trim_start().len();
    let column = if name > 0 { name + gap } else { indent };
    let mut pieces = Vec::new();
    let mut piece = String::new();
    for word in line[column..].split(' ') {
        if !piece.is_empty() && column + piece.len() + word.len() >= COLUMNS {
            pieces.push(std::mem::take(&mut piece));
        }
        if !piece.is_empty() {
            piece.push(' ');
        }
        piece.push_str(word);
    }
    pieces.push(piece);
    let blank = " ".repeat(column);
    let starts = std::iter::once(&line[..column]).chain(std::iter::repeat(blank.as_str()));
    let lines = starts
        .zip(&pieces)
        .map(|(start, piece)| format!("{start}{piece}"));
    lines.map(|line| line.trim_end().to_owned()).collect()
}

/// The names in the part "Commands:" of a help text, except `help`.
fn subcommands(help: &str) -> Vec<&str> {
    let listed = help.split("\nCommands:\n").nth(1).unwrap_or_default();
    let listed = listed.lines().take_while(|line| !line.is_empty());
    // A name is indented by two; the lines that go on with its description are indented by more.
    let names = listed.filter_map(|line| {
        line.strip_prefix("  ")
            .filter(|rest| !rest.starts_with(' '))
    });
    let names = names.filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").collect()
}

/// The width of the page's help texts.
const COLUMNS: usize = 110;
