//! `rtorb top` of a running server.

use std::fs;
use std::io::Write as _;
use std::net::TcpStream;
use std::process;
use std::time::Duration;

use rtorb_tests::running::Running;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use serde_json::{Value, json as value};

use crate::support::{CubitServer, PATIENT, json, rtorb, within};

/// Calls the server, whose recorder counts each call once it has replied.
fn call(server: &CubitServer, operation: &str, count: &str) {
    let reference = server.reference();
    let arguments = [
        "cubit", "bench", reference, "--op", operation, "--count", count, "--json",
    ];
    rtorb().args(arguments).args(PATIENT).assert().success();
}

fn top(arguments: &[&str]) -> Vec<u8> {
    let mut command = rtorb();
    let output = command.arg("top").args(PATIENT).args(arguments).assert();
    output.success().get_output().stdout.clone()
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
        "deadline_misses",
        "demotions",
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
    // Connections of clients that have ended may be between them.
    assert!(lines.any(|line| line.starts_with("operation")), "{shown}");
    assert!(lines.any(|line| line.starts_with("cube_short")), "{shown}");
}

#[test]
fn the_bytes_of_each_connection_are_shown() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("orb.toml");
    fs::write(&config, "recorder = true\n").unwrap();
    let server = CubitServer::start(folder.path(), &["--config", config.to_str().unwrap()]);
    let process = server.running.id().to_string();
    let mut client = TcpStream::connect(("127.0.0.1", port(server.reference()))).unwrap();
    // CancelRequest of a request that nobody has sent: it has no answer.
    client
        .write_all(b"GIOP\x01\x02\x01\x02\x04\0\0\0\x07\0\0\0")
        .unwrap();
    let own = client.local_addr().unwrap().to_string();
    let row = within(Duration::from_secs(20), || {
        let look = json(&top(&[&process, "--once", "--json"]))[0].clone();
        let rows = look["connections"].as_array().cloned().unwrap_or_default();
        let found = rows.iter().find(|row| row["peer"] == own).cloned();
        assert!(rows.iter().all(|row| row["own"] != own), "{rows:?}");
        found.filter(|row| row["received_bytes"] == 16 && row["unread_bytes"] == 0)
    });
    let row = row.expect("the server has read the message");
    assert_eq!(row["own"], client.peer_addr().unwrap().to_string());
    assert_eq!(
        (&row["sent_bytes"], &row["unacknowledged_bytes"]),
        (&value!(0), &value!(0))
    );
    let shown = String::from_utf8(top(&[&process, "--once"])).unwrap();
    let line = shown.lines().find(|line| line.contains(&own));
    let line = line.expect("the connection has a line");
    assert!(line.contains(": 16 B in, 0 B out, round trip "), "{line}");
}

/// Returns the port in a reference.
fn port(reference: &str) -> u16 {
    let shown = rtorb().args(["ior", "show", reference, "--json"]).assert();
    let shown = json(&shown.success().get_output().stdout);
    let mut fields = shown["profiles"][0]["fields"].as_array().unwrap().iter();
    let port = fields.find(|field| field["name"] == "port").unwrap()["value"].clone();
    let port = port.as_u64().or_else(|| port.as_str()?.parse().ok());
    u16::try_from(port.unwrap()).unwrap()
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

/// This process has a file that looks like the recorder of another version.
#[test]
fn without_targets_what_cannot_be_read_is_left_out() {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = memfd_create("rtorb-recorder", flags).unwrap();
    rustix::io::write(&file, &[1; 8]).unwrap();
    fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("orb.toml");
    fs::write(&config, "recorder = true\n").unwrap();
    let server = CubitServer::start(folder.path(), &["--config", config.to_str().unwrap()]);
    let shown = json(&top(&["--once", "--json"]));
    let shown = shown.as_array().unwrap().iter();
    let ids: Vec<u64> = shown.map(|it| it["process"].as_u64().unwrap()).collect();
    assert!(ids.contains(&server.running.id().into()), "{ids:?}");
    assert!(!ids.contains(&process::id().into()), "{ids:?}");
    drop(file);
}

#[test]
fn a_server_on_another_host_is_asked_for_its_counters_by_a_call() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("orb.toml");
    fs::write(&config, "recorder = true\n").unwrap();
    let ready = folder.path().join("naming.ior");
    let mut command = process::Command::new(assert_cmd::cargo::cargo_bin!("rtorb"));
    command
        .args(["naming", "serve", "--listen", "iiop://127.0.0.1:0"])
        .args(["--config", config.to_str().unwrap(), "--ior-file"])
        .arg(&ready);
    let (naming, reference) = Running::until_written(&mut command, &ready);
    let port = port(&reference);
    let listed = ["naming", "list", "--name-service", &reference];
    rtorb().args(listed).args(PATIENT).assert().success();

    let there = format!("corbaloc::127.0.0.1:{port}/Recorder");
    let called = within(Duration::from_secs(20), || {
        let by_call = json(&top(&[&there, "--once", "--json"]))[0].clone();
        let operations = by_call["operations"].as_array().cloned();
        let operations = operations.unwrap_or_default();
        let has = |name: &str| operations.iter().any(|it| it["operation"] == name);
        // A call is counted once it has ended, that of `list` too.
        (has("counters") && has("list")).then_some(by_call)
    });
    let called = called.expect("its own calls are counted");
    let process = naming.id().to_string();
    let read = json(&top(&[&process, "--once", "--json"]))[0].clone();
    for same in ["process", "name", "refused_threads", "lanes"] {
        assert_eq!(called[same], read[same], "{same}");
    }
    for none in ["refused", "shed", "expired"] {
        assert_eq!(
            (&called[none], &read[none]),
            (&0.into(), &0.into()),
            "{none}"
        );
    }
    let of = |counters: &Value, name: &str| {
        let operations = counters["operations"].as_array().unwrap().iter();
        let mut found = operations.filter(|it| it["operation"] == name && it["side"] == "server");
        let found = found.next().unwrap_or_else(|| panic!("{counters}"));
        let counted = [
            "calls",
            "p50_ns",
            "p99_ns",
            "longest_ns",
            "system_exceptions",
        ];
        counted.map(|name| found[name].clone())
    };
    // Since then, only `top` has called the service. The measured length of a tick differs a little from look to look.
    let (here, there) = (of(&read, "list"), of(&called, "list"));
    assert_eq!(here[0], there[0]);
    for (here, there) in here.iter().zip(&there) {
        let (here, there) = (here.as_f64().unwrap(), there.as_f64().unwrap());
        assert!((here - there).abs() <= 0.01 * here + 2.0, "{here} {there}");
    }
}
