//! `rtorb top` of a running server.

use std::fs;
use std::time::Duration;

use serde_json::Value;

use crate::support::{CubitServer, json, rtorb, within};

/// Calls the server, whose recorder counts each call once it has replied.
fn call(server: &CubitServer, operation: &str, count: &str) {
    let reference = server.reference();
    let arguments = [
        "cubit", "bench", reference, "--op", operation, "--count", count, "--json",
    ];
    rtorb().args(arguments).assert().success();
}

fn top(arguments: &[&str]) -> Vec<u8> {
    let output = rtorb().arg("top").args(arguments).assert().success();
    output.get_output().stdout.clone()
}

#[test]
fn the_calls_of_a_running_server_are_counted_by_operation() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("orb.toml");
    fs::write(&config, "recorder = true\n").unwrap();
    let server = CubitServer::start(folder.path(), &["--config", config.to_str().unwrap()]);
    let process = server.running.id().to_string();

    call(&server, "short", "50");
    let counted = within(Duration::from_secs(20), || {
        let all = json(&top(&[&process, "--once", "--json"]));
        let operations = all[0]["operations"].as_array().cloned().unwrap_or_default();
        let found = operations
            .into_iter()
            .find(|it| it["operation"] == "cube_short");
        found.filter(|it| it["calls"].as_u64() >= Some(50))
    });
    let counted = counted.expect("the calls are counted");
    assert_eq!(counted["side"], "server");
    for failures in [
        "user_exceptions",
        "system_exceptions",
        "timeouts",
        "transients",
        "queued",
    ] {
        assert_eq!(counted[failures], 0, "{failures} of {counted}");
    }
    let ns = |time: &str| counted[time].as_u64().unwrap();
    assert!(
        0 < ns("p50_ns") && ns("p50_ns") <= ns("p99_ns"),
        "{counted}"
    );
    assert!(ns("p99_ns") <= ns("longest_ns") * 5 / 4 + 1, "{counted}");
    assert_eq!(counted["queue_p99_ns"], Value::Null);

    let shown = String::from_utf8(top(&[&process, "--once"])).unwrap();
    let mut lines = shown.lines();
    assert!(
        lines.next().unwrap().contains(&format!("({process}): ")),
        "{shown}"
    );
    assert!(lines.next().unwrap().starts_with("operation"), "{shown}");
    assert!(lines.any(|line| line.starts_with("cube_short")), "{shown}");
}

#[test]
fn a_server_without_a_recorder_is_not_shown() {
    let folder = tempfile::tempdir().unwrap();
    let server = CubitServer::start(folder.path(), &[]);
    let process = server.running.id().to_string();
    let refused = rtorb().args(["top", &process, "--once"]).assert().code(1);
    let text = String::from_utf8(refused.get_output().stderr.clone()).unwrap();
    assert!(text.contains("start it with -ORBRecorder yes"), "{text}");
}
