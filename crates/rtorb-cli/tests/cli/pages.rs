//! The pages of the project: every IDL text on them is right, and the parts that the command determines are what it says.

use std::fs;

use rtorb_tests::pages::{Page, check_part};

use crate::support::rtorb;

#[test]
fn every_idl_text_on_a_page_is_right() {
    let folder = tempfile::tempdir().expect("a folder of our own");
    let file = folder.path().join("page.idl");
    let mut count = 0;
    for page in Page::all() {
        for block in page.blocks().iter().filter(|it| it.language == "idl") {
            fs::write(&file, block.text).expect("a file of our own");
            let assert = rtorb().args(["idl", "check"]).arg(&file).assert();
            let output = assert.get_output();
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{}: {said}", page.name);
            count += 1;
        }
    }
    assert!(count > 2, "{count}");
}

#[test]
fn the_page_of_the_command_is_what_its_help_says() {
    let mut text = String::new();
    describe(&[], &mut text);
    check_part("reference/command.md", "commands", &text);
}

#[test]
fn the_generated_code_on_the_page_of_the_mapping_is_what_the_command_writes() {
    let page = Page::read("docs/reference/mapping.md");
    let blocks = page.blocks();
    let idl = blocks
        .iter()
        .rfind(|block| block.language == "idl")
        .expect("the page has an interface");
    let folder = tempfile::tempdir().expect("a folder of our own");
    let file = folder.path().join("page.idl");
    fs::write(&file, idl.text).expect("a file of our own");
    let assert = rtorb().args(["idl", "build"]).arg(&file).assert().success();
    let mut code = String::from_utf8(assert.get_output().stdout.clone()).expect("code is text");
    for long in [
        "::rtorb::",
        "::core::result::",
        "::core::option::",
        "::std::string::",
    ] {
        code = code.replace(long, "");
    }
    let mut items: Vec<String> = Vec::new();
    for part in code.split("\n\n") {
        match items.last_mut().filter(|_| part.starts_with(' ')) {
            Some(item) => *item = format!("{item}\n\n{part}"),
            None => items.push(part.to_owned()),
        }
    }
    items.retain(|item| {
        let mut lines = item.lines();
        lines.any(|line| SHOWN.iter().any(|start| line.starts_with(start)))
    });
    assert_eq!(items.len(), SHOWN.len());
    let text = format!("```rust,ignore\n{}\n```", items.join("\n\n"));
    check_part("reference/mapping.md", "code of an interface", &text);
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

/// How the lines begin in the items of generated code that the page of the mapping shows.
const SHOWN: [&str; 5] = [
    "pub struct Cubit(",
    "impl codegen::Interface for Cubit",
    "codegen::reference!(Cubit)",
    "impl Cubit {",
    "impl<S: CubitServant> codegen::ServedBy<S>",
];
/// The width of the page's help texts.
const COLUMNS: usize = 110;
