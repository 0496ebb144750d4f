//! The pages of the tutorial show the programs as they are, and every command on them prints what the page says.

use std::path::Path;

use rtorb_tests::pages::{Page, Reading, Session};

#[test]
fn the_pages_show_the_files_as_they_are() {
    for (page, files) in SHOWN {
        let page = read(page);
        for file in files {
            let language = match file.rsplit_once('.') {
                Some((_, "rs")) => "rust,ignore",
                Some((_, extension)) => extension,
                None => "text",
            };
            page.shows(language, &format!("examples/thermostat/{file}"));
        }
    }
}

#[test]
fn a_thermostat_in_two_processes() {
    follow("first-object");
}

#[test]
fn what_can_go_wrong() {
    follow("exceptions");
}

#[test]
fn calls_in_the_other_direction() {
    follow("callbacks");
}

#[test]
fn urgent_calls() {
    follow("priorities");
}

#[test]
fn deadlines() {
    follow("deadlines");
}

/// Runs the commands of a page. Each block of text there is an output.
fn follow(page: &str) {
    let programs = Path::new(env!("CARGO_BIN_EXE_thermostat-server"));
    let programs = programs.parent().expect("it is in a folder");
    let reading = Reading {
        left_out: &LEFT_OUT,
        all_texts: true,
        ..Reading::default()
    };
    Session::new(programs).follow(&read(page), &reading);
}

fn read(name: &str) -> Page {
    Page::read(&format!("docs/tutorial/{name}.md"))
}

/// The files that each page shows.
const SHOWN: [(&str, &[&str]); 5] = [
    (
        "first-object",
        &[
            "idl/thermostat.idl",
            "build.rs",
            "src/lib.rs",
            "src/bin/thermostat-server.rs",
            "src/bin/thermostat-read.rs",
        ],
    ),
    ("exceptions", &["src/bin/thermostat-set.rs"]),
    ("callbacks", &["src/bin/thermostat-display.rs"]),
    (
        "priorities",
        &[
            "src/bin/thermostat-lanes.rs",
            "src/bin/thermostat-shut-off.rs",
        ],
    ),
    ("deadlines", &["system.toml"]),
];

/// Commands that measure or run for longer than a test may, or need the result of one that does.
const LEFT_OUT: [&str; 3] = [
    "rtorb lab run",
    "rtorb model check examples/thermostat/system.toml --profile",
    "rtorb model run",
];
