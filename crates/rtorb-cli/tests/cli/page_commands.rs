//! The commands on the pages of the project: each exists, and each that can run here does what the page says. Those of the tutorial are
//! run by `examples/thermostat`.

use std::path::Path;
use std::process::Command;
use std::thread;

use rtorb_tests::pages::{Page, Reading, Session, project};

use crate::papers::wrong_arguments;
use crate::support::skip;

#[test]
fn every_command_on_a_page_exists() {
    let mut count = 0;
    for page in Page::all() {
        for command in commands(&page) {
            let words = words(&command);
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let fault = match words.as_slice() {
                ["rtorb", arguments @ ..] | ["ssh", "board", "./rtorb", arguments @ ..] => {
                    wrong_arguments(arguments)
                }
                ["cargo", "run", "-p", package, "--bin", name, ..] => missing(package, name),
                _ => continue,
            };
            assert_eq!(fault, None, "{}: {command}", page.name);
            count += 1;
        }
    }
    assert!(count > 50, "{count}");
}

#[test]
fn every_command_that_is_left_out_stands_on_a_page() {
    let pages = pages();
    let all: Vec<String> = pages.iter().flat_map(commands).collect();
    let left_out = LEFT_OUT.iter().map(|(beginning, _)| *beginning);
    for beginning in left_out.chain(VERDICTS) {
        let is_there = all.iter().any(|command| command.starts_with(beginning));
        assert!(is_there, "no page has a command {beginning}");
    }
    for (name, _) in PREPARED {
        assert!(pages.iter().any(|page| page.name == name), "{name}");
    }
}

/// Each page has a thread, because most commands wait.
#[test]
fn the_commands_of_the_pages_do_what_the_pages_say() {
    let mut pages = pages();
    pages.retain(|page| page.name != TLS);
    do_what_they_say(&pages);
}

/// The gate builds the command with the feature for this test.
#[cfg(feature = "tls")]
#[test]
fn the_commands_of_a_page_do_what_it_says_with_tls() {
    do_what_they_say(&[Page::read(TLS)]);
}

fn do_what_they_say(pages: &[Page]) {
    let mut left_out: Vec<&str> = LEFT_OUT.iter().map(|(beginning, _)| *beginning).collect();
    if !has_tango() {
        left_out.push(TANGO);
        skip("PyTango is not installed: apt-get install python3-tango");
    }
    let reading = Reading {
        left_out: &left_out,
        verdicts: &VERDICTS,
        ..Reading::default()
    };
    let failed: Vec<&str> = thread::scope(|scope| {
        let runs = pages.iter().map(|page| {
            let thread = thread::Builder::new().name(page.name.clone());
            let run = thread.spawn_scoped(scope, move || follow(page, &reading));
            (page, run.expect("a thread for each page"))
        });
        let runs: Vec<_> = runs.collect();
        let ended = runs.into_iter().map(|(page, run)| (page, run.join()));
        let failed = ended.filter(|(_, result)| result.is_err());
        failed.map(|(page, _)| page.name.as_str()).collect()
    });
    assert!(failed.is_empty(), "{failed:?}: see above");
}

/// Runs the commands of a page, after what its reader has done before.
fn follow(page: &Page, reading: &Reading<'_>) {
    let is_run = |command: &String| !reading.left_out.iter().any(|it| command.starts_with(it));
    if !commands(page).iter().any(is_run) {
        return;
    }
    let programs = Path::new(assert_cmd::cargo::cargo_bin!("rtorb"));
    let programs = programs.parent().expect("it is in a folder");
    let Some(mut session) = Session::isolated(programs, HOSTS) else {
        return skip("namespaces of the network and of processes take root and iproute2");
    };
    session.prepare(SLEEP);
    if let Some((_, before)) = PREPARED.iter().find(|(name, _)| *name == page.name) {
        session.write_files(&Page::read("docs/how-to/serve.md"));
        session.prepare(before);
    }
    session.follow(page, reading);
}

/// The pages whose commands are run here.
fn pages() -> Vec<Page> {
    let mut pages = Page::all();
    pages.retain(|page| !page.name.starts_with("docs/tutorial/"));
    pages
}

fn commands(page: &Page) -> Vec<String> {
    let blocks = page.blocks();
    let dialogues = blocks.iter().flat_map(|block| block.commands());
    dialogues.map(|dialogue| dialogue.command).collect()
}

/// The page whose commands need the feature `tls`.
const TLS: &str = "docs/how-to/tls.md";

/// The beginnings of the commands that are not run, and why.
const LEFT_OUT: &[(&str, &str)] = &[
    ("apt", "it installs packages"),
    ("cargo install", "it builds and installs"),
    ("python3 -m venv", "`cargo xtask python` does that"),
    ("pip ", "the same"),
    ("cargo build", "it builds"),
    ("omniidl", "the tests of omniORB build what it is for"),
    ("g++", "the same"),
    ("target/debug/motor", "the tests of examples/gateway run it"),
    ("target/debug/gateway", "the same"),
    ("curl", "the same, without curl"),
    (
        "rtorb-prometheus",
        "the tests of crates/rtorb-prometheus run it",
    ),
    ("cargo run --release", "it builds, and measures for minutes"),
    (
        "cargo run --bin",
        "it builds the ORB again; `cargo xtask package` builds the template",
    ),
    ("cargo test", "it runs these tests"),
    (
        "cargo xtask",
        "it builds with other tools, which other tests need too",
    ),
    ("systemctl ", "it starts services of the host"),
    ("podman ", "it needs an engine for containers"),
    ("scp ", "there is no other host"),
    ("ssh ", "the same"),
    ("rtorb measure", "it measures for minutes"),
    ("rtorb lab run", "it measures for longer than a test may"),
    (
        "rtorb model check examples/model/avionics.toml --profile",
        "its input is measured for minutes",
    ),
    ("rtorb model run", "it runs for a minute"),
    (
        "rtorb lab kernels",
        "it reads the index of packages, and downloads",
    ),
    ("rtorb lab kernel run", "it boots kernels for minutes"),
    (
        "rtorb lab kernel baseline",
        "its input is what such a run wrote",
    ),
    ("rtorb lab kernel check", "the same"),
    (
        "rtorb naming serve --store etcd",
        "it needs the feature etcd; the tests of crates/rtorb-etcd serve from etcd",
    ),
    (
        "rtorb events federate",
        "it needs the feature zenoh; the tests of crates/rtorb-zenoh run members",
    ),
    ("my-program", "the reader's own program"),
    ("cc -O2 -static -o control-loop", "the same"),
    ("gate ", "the same, in a container"),
    ("alias gate=", "it runs a container"),
    ("git add bounds.json", "the reader's repository"),
    ("rtorb trace plant", "it records the reader's own programs"),
    ("rtorb why plant.pftrace", "the same"),
    ("tc ", "it needs a network device and modules of the kernel"),
    ("ip link set eth0", "the same"),
    ("ethtool ", "the same"),
    ("cpupower ", "it changes the host"),
    ("swapoff ", "the same"),
    ("reboot", "the same"),
];

/// The commands whose exit status is a verdict about this host.
const VERDICTS: [&str; 1] = ["rtorb check"];

/// The `sleep` of these sessions: after its time it goes on until the command in the background waits, in three looks. On a busy host, a
/// server needs more than the second of a page to be ready.
const SLEEP: &str = r#"sleep() { command sleep "$1"; for _ in 1 2 3; do while grep -qs "^State:.[RD]" /proc/$!/task/*/status; do command sleep 0.1; done; command sleep 0.1; done; }"#;

/// The pages whose readers have the files of docs/how-to/serve.md, and what they have done before.
const PREPARED: [(&str, &str); 5] = [
    ("docs/how-to/call.md", ""),
    (
        "docs/how-to/naming.md",
        "rtorb naming serve --listen iiop://127.0.0.2:2809 & sleep 1
rtorb naming serve --listen iiop://127.0.0.3:2809 & sleep 1
rtorb naming serve --listen iiop://127.0.0.4:2809 & sleep 1
rtorb naming bind plant/press.drive corbaloc::berlin.example:4000/drive --parents --name-service corbaloc::berlin.example:2809/NameService
rtorb naming bind old/drive corbaloc::OLD:4000/drive --parents --name-service corbaloc::OLD:2809/NameService",
    ),
    (
        "docs/how-to/omniorb.md",
        "cp valve.idl plant.idl
sed -i '/delay_ms/d' valve.toml
rtorb serve --idl valve.idl --interface Plant::Valve --answers valve.toml --ior-file valve.ior    # keep it running",
    ),
    (
        "docs/how-to/real-time.md",
        "cargo run -p rtorb-examples --bin lanes-server    # keep it running",
    ),
    (
        "docs/how-to/tao.md",
        "rtorb naming serve --listen iiop://127.0.0.5:2809 & sleep 1
cargo run -p rtorb-examples --bin lanes-server > valve.ior & sleep 1",
    ),
];

/// The hosts that pages name.
const HOSTS: &str = "127.0.0.1 localhost
127.0.0.2 berlin.example
127.0.0.3 OLD
127.0.0.4 NEW
127.0.0.5 plant
";

/// The command of the page on Tango that needs its library.
const TANGO: &str = "/usr/bin/python3";

fn has_tango() -> bool {
    let trial = Command::new(TANGO).args(["-c", "import tango"]).output();
    trial.is_ok_and(|output| output.status.success())
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

/// The words of a command, up to a redirection or the end of the command.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for character in line.chars() {
        let word = words.last_mut().expect("there is always one");
        match (quote, character) {
            (Some(open), close) if open == close => quote = None,
            (None, '\'' | '"') => quote = Some(character),
            (None, ' ') => words.push(String::new()),
            (None, '>' | '&' | '|' | ';') => break,
            (_, character) => word.push(character),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}
