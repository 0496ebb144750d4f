//! `rtorb trace` and `rtorb why`.

use std::path::Path;
use std::time::Duration;

use crate::support::{CubitServer, Running, json, rtorb, within};

/// A server and a client that calls it all the time, both recorded.
fn calling(folder: &Path) -> (CubitServer, Running) {
    let config = folder.join("orb.toml");
    std::fs::write(&config, "recorder = true\n").unwrap();
    let config = config.to_str().unwrap();
    let server = CubitServer::start(folder, &["--config", config]);
    let count = ["--count", "4000000", "--config", config];
    let client = Running::start(&[&["cubit", "bench", server.reference()], &count[..]].concat());
    (server, client)
}

#[test]
fn what_runs_is_recorded_and_each_late_call_is_an_object_in_json() {
    let folder = tempfile::tempdir().unwrap();
    let (server, client) = calling(folder.path());
    let file = folder.path().join("calls.pftrace");
    let file = file.to_str().unwrap();
    let ids = [server.running.0.id(), client.0.id()].map(|id| id.to_string());
    let trace = |options: &[&str]| {
        let mut command = rtorb();
        command.args(["trace", &ids[0], &ids[1], "--out", file]);
        command.args(options).output().unwrap()
    };
    // The last calls, once there are some at both ends.
    let both = within(Duration::from_secs(60), || {
        let output = trace(&["--for", "0s"]);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let has_calls = output.status.success() && !said.contains(" 0 calls");
        (has_calls && said.contains("Written: ")).then_some(said)
    });
    assert!(both.is_some(), "both ends are recorded");
    assert!(trace(&["--for", "300ms", "--no-kernel"]).status.success());
    let why = |options: &[&str]| {
        let mut command = rtorb();
        command.args(["why", file]).args(options).output().unwrap()
    };
    let late = why(&["--limit", "1ns", "--json"]);
    assert_eq!(late.status.code(), Some(1));
    let lines: Vec<&[u8]> = late.stdout.split(|byte| *byte == b'\n').collect();
    assert!(lines.len() > 10, "{}", lines.len());
    for line in lines.iter().filter(|line| !line.is_empty()) {
        let call = json(line);
        assert_eq!(call["behaviour"], "cube_void");
        // Without the kernel's record, nothing but the other calls of a thread is evidence.
        let evidence = call["evidence"].to_string();
        assert!(
            call["cause"] == "queue" || evidence.contains("it was not wanted"),
            "{call}"
        );
        assert!(call["late_by_ns"].as_u64().unwrap() > 0);
    }
    let text = String::from_utf8(why(&["--limit", "1ns"]).stdout).unwrap();
    assert!(text.contains("Cause: unknown") && text.contains("recorded calls were late."));
    let none = why(&["--limit", "1000s"]);
    assert!(none.status.success());
    assert!(String::from_utf8_lossy(&none.stdout).starts_with("0 of "));
}
