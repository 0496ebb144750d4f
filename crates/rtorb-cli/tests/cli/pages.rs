//! The page of the command is what its help says.

use rtorb_tests::pages::check_part;

use crate::support::rtorb;

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

/// The long help of a command, as wide as it is without a terminal.
fn help(path: &[&str]) -> String {
    let assert = rtorb().args(path).arg("--help").assert().success();
    let output = String::from_utf8(assert.get_output().stdout.clone());
    let help = output.expect("help is text");
    let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
    lines.join("\n")
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
