//! Colours: on a terminal, and nowhere else.

use std::process::Command;

use crate::support::{rtorb, skip};

/// Runs the command on a terminal, and returns what it showed there.
fn on_terminal(arguments: &str, no_color: &str) -> Option<String> {
    let program = assert_cmd::cargo::cargo_bin!("rtorb");
    let command = format!("{} {arguments}", program.display());
    let mut terminal = Command::new("script");
    terminal
        .args(["-qec", &command, "/dev/null"])
        .env("TERM", "xterm")
        .env("NO_COLOR", no_color);
    let output = terminal.output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn errors_and_verdicts_have_colours_on_a_terminal_only() {
    let example = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../examples/model/overloaded.toml"
    );
    let checked = format!("model check --ideal {example}");
    for (arguments, coloured) in [
        ("ior show nowhere", "\u{1b}[1m\u{1b}[31mrtorb:"),
        (checked.as_str(), "\u{1b}[1m\u{1b}[31moverloaded will miss"),
    ] {
        let Some(shown) = on_terminal(arguments, "") else {
            return skip("script (apt-get install bsdutils) makes the terminal");
        };
        assert!(shown.contains(coloured), "{shown:?}");
        let shown = on_terminal(arguments, "1").unwrap();
        assert!(!shown.contains('\u{1b}'), "{shown:?}");
        let output = rtorb().args(arguments.split(' ')).output().unwrap();
        for stream in [output.stdout, output.stderr] {
            assert!(!stream.contains(&0x1b), "{arguments} in a pipe");
        }
    }
    let shown = on_terminal(&format!("{checked} --json"), "").unwrap();
    assert!(!shown.contains('\u{1b}'), "{shown:?}");
}

#[test]
fn the_list_of_experiments_fits_the_terminal() {
    let Some(shown) = on_terminal("lab list", "1") else {
        return skip("script (apt-get install bsdutils) makes the terminal");
    };
    for line in shown.lines() {
        assert!(line.trim_end().chars().count() <= 100, "{line}");
    }
    let output = rtorb().args(["lab", "list"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let names = rtorb_lab::experiments::names();
    assert_eq!(text.lines().count(), names.len(), "one line for grep");
}
