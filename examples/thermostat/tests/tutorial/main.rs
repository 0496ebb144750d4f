//! The pages of the tutorial show the programs as they are, and every command on them prints what the page says.

mod page;
mod session;

use page::Page;
use session::Session;

#[test]
fn the_pages_show_the_files_as_they_are() {
    for (page, files) in SHOWN {
        let page = Page::read(page);
        for file in files {
            let language = match file.rsplit_once('.') {
                Some((_, "rs")) => "rust,ignore",
                Some((_, extension)) => extension,
                None => "text",
            };
            page.shows(language, file);
        }
    }
}

#[test]
fn a_thermostat_in_two_processes() {
    Session::run(&Page::read("first-object"));
}

#[test]
fn what_can_go_wrong() {
    Session::run(&Page::read("exceptions"));
}

#[test]
fn calls_in_the_other_direction() {
    Session::run(&Page::read("callbacks"));
}

#[test]
fn urgent_calls() {
    Session::run(&Page::read("priorities"));
}

#[test]
fn deadlines() {
    Session::run(&Page::read("deadlines"));
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
