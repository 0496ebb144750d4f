//! The examples of the pages on real time work, and the pages show them as they are.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// Where the host allows no real-time scheduling, the way of a call is shown all the same.
const BEST_EFFORT: [&str; 2] = ["-ORBBestEffort", "yes"];

#[test]
fn each_priority_is_served_by_its_lane() {
    let mut server = Server::start();
    let reference = server.reference();
    for priority in ["60", "10"] {
        let output = call(&reference, priority);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        assert_eq!(
            String::from_utf8_lossy(&output.stdout),
            format!("Hello, world! This is priority {priority}.\n")
        );
    }
}

#[test]
fn a_priority_without_a_lane_is_refused() {
    let mut server = Server::start();
    let output = call(&server.reference(), "30");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success());
    assert!(
        said.contains("INV_POLICY") || said.contains("InvPolicy"),
        "{said}"
    );
}

#[test]
fn the_threads_have_the_names_that_the_page_says() {
    let mut server = Server::start();
    server.reference();
    let names = server.thread_names();
    for name in ["rtorb-p1l0-1", "rtorb-p1l1-1", "rtorb-p1l1-2"] {
        assert!(names.iter().any(|thread| thread == name), "{names:?}");
        assert!(
            page("how-to/real-time.md").contains(name),
            "docs/how-to/real-time.md does not name {name}"
        );
    }
}

#[test]
fn the_pages_show_the_examples_as_they_are() {
    for (of, path) in [
        ("how-to/real-time.md", "src/bin/lanes-server.rs"),
        ("how-to/real-time.md", "src/bin/lanes-client.rs"),
        ("how-to/times-in-idl.md", "src/bin/timed-motor.rs"),
    ] {
        let example = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
        let example = fs::read_to_string(example).unwrap_or_else(|e| panic!("{path}: {e}"));
        let block = format!("```rust,ignore\n{example}```\n");
        assert!(
            page(of).contains(&block),
            "docs/{of} does not show {path} as it is"
        );
    }
}

#[test]
fn a_motor_that_computes_too_long_is_told_of() {
    crate::judged(|| {
        let motor = Command::new(env!("CARGO_BIN_EXE_timed-motor")).output();
        let motor = motor.expect("the program runs");
        let said = String::from_utf8_lossy(&motor.stdout).into_owned();
        assert!(motor.status.success(), "{motor:?}");
        for line in [
            "the motor is at 855 degrees",
            "Robot::Motor::turn: WorstCaseTime of 4ms was ",
            "Robot::Motor::turn at the Client: 3 calls, 0 overruns",
            "Robot::Motor::turn at the Server: 3 calls, 1 overruns",
            "Robot::Motor::stop at the Server: 0 calls",
        ] {
            crate::right_if(said.contains(line), &format!("{line} in {said}"))?;
        }
        Ok(())
    });
}

#[test]
fn the_page_names_every_option() {
    let page = page("reference/options.md");
    let unknown = rtorb::Orb::builder().args(["-ORBNone".to_owned(), String::new()]);
    let unknown = unknown.build().map(|_| ());
    let known = unknown.expect_err("no such option").to_string();
    let words = known.split([' ', '\n', ',', ';', '|']);
    for option in words.filter(|word| word.starts_with("-ORB")) {
        let option = option.trim_end_matches(':');
        if option != "-ORBNone" {
            assert!(
                page.contains(option),
                "docs/reference/options.md does not name {option}"
            );
        }
    }
}

/// A page below `docs`.
fn page(name: &str) -> String {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../docs")
        .join(name);
    fs::read_to_string(path).expect("the page can be read")
}

fn call(reference: &str, priority: &str) -> Output {
    let mut client = Command::new(env!("CARGO_BIN_EXE_lanes-client"));
    let client = client.args([reference, priority]).args(BEST_EFFORT);
    client.output().expect("the client runs")
}

/// A running server, killed by its id when dropped.
struct Server(Child);

impl Server {
    fn start() -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lanes-server"));
        let command = command.args(BEST_EFFORT).stdout(Stdio::piped());
        Self(command.spawn().expect("the server runs"))
    }

    /// What it prints when it is ready.
    fn reference(&mut self) -> String {
        let output = self.0.stdout.take().expect("standard output is piped");
        let line = BufReader::new(output).lines().next();
        line.expect("the server prints a line")
            .expect("the line is text")
    }

    fn thread_names(&self) -> Vec<String> {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.0.id())).expect("it runs");
        let names =
            tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("comm")).ok());
        names.map(|name| name.trim().to_owned()).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail when the server has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
