//! `rtorb trace` and `rtorb why`.

use std::path::Path;
use std::time::Duration;

use rtorb_recording::{
    CallOutcome, CallRecord, CallSide, HostRecord, ProcessRecord, Recording, ThreadRecord,
};
use rustix::process::Signal;

use crate::support::{CubitServer, PATIENT, Running, json, rtorb, within};

/// A server and a client that calls it all the time, both recorded.
fn calling(folder: &Path) -> (CubitServer, Running) {
    let config = folder.join("orb.toml");
    std::fs::write(&config, "recorder = true\n").unwrap();
    let config = config.to_str().unwrap();
    let server = CubitServer::start(folder, &["--config", config]);
    let count = ["--count", "4000000", "--config", config];
    let bench = ["cubit", "bench", server.reference()];
    let client = Running::start(&[&bench[..], &count, &PATIENT].concat());
    (server, client)
}

/// Returns true if a process has a handler for SIGINT (proc_pid_status(5)).
fn handles_interrupts(process: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let mut lines = status.lines();
    let caught = lines.find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    caught.is_some_and(|mask| mask & 1 << (Signal::INT.as_raw() - 1) != 0)
}

/// The instances of tracefs that a process has made.
fn instances_of(process: u32) -> usize {
    let instances = std::fs::read_dir("/sys/kernel/tracing/instances");
    let names = instances.into_iter().flatten().flatten();
    let own = format!("rtorb-{process}-");
    names
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(&own))
        .count()
}

#[test]
fn an_interrupt_ends_the_recording_and_the_file_has_what_was_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let (server, client) = calling(folder.path());
    let recorded = within(Duration::from_secs(60), || {
        let process = client.id().to_string();
        let output = rtorb().args(["top", &process, "--once"]).output().unwrap();
        output.status.success().then_some(())
    });
    assert!(recorded.is_some(), "the client has a recorder");
    let file = folder.path().join("calls.pftrace");
    let ids = [server.running.id(), client.id()].map(|id| id.to_string());
    let out = file.to_str().unwrap();
    let mut trace = Running::start(&["trace", &ids[0], &ids[1], "--out", out, "--for", "600s"]);
    let process = trace.id();
    let handles = || handles_interrupts(process).then_some(());
    within(Duration::from_secs(60), handles).expect("it handles the signal");
    trace.signal(Signal::INT);
    assert_eq!(trace.ended(), Some(0));
    let recording = Recording::read(&file).unwrap();
    assert_eq!(recording.hosts[0].processes.len(), 2);
    assert_eq!(instances_of(process), 0);
}

#[test]
fn a_file_that_cannot_be_written_is_told_before_the_recording() {
    let trace = [
        "trace",
        "1",
        "--out",
        "/dev/null/calls.pftrace",
        "--for",
        "600s",
    ];
    let mut command = rtorb();
    let refused = command
        .args(trace)
        .timeout(Duration::from_secs(60))
        .assert();
    let told = refused.code(2).get_output().stderr.clone();
    let told = String::from_utf8(told).unwrap();
    assert!(
        told.contains("cannot write /dev/null/calls.pftrace"),
        "{told}"
    );
}

/// A recording of one call, which took 3 ms and ended so.
fn of_one_call(operation: &str, outcome: CallOutcome) -> Recording {
    let call = CallRecord {
        side: CallSide::Client,
        operation: operation.to_owned(),
        outcome,
        cpu: 0,
        priority: -1,
        request_id: 1,
        connection: 1,
        first_ns: 1_000_000,
        second_ns: 1_500_000,
        last_ns: 4_000_000,
    };
    let thread = ThreadRecord {
        tid: 7,
        name: "thread".to_owned(),
        lane: None,
        calls: vec![call],
        lost: 0,
    };
    let process = ProcessRecord {
        pid: 7,
        name: "process".to_owned(),
        threads: vec![thread],
        unrecorded_threads: 0,
    };
    let host = HostRecord {
        name: "host".to_owned(),
        boot_id: None,
        ahead_ns: 0,
        processes: vec![process],
        kernel: Err("none".to_owned()),
    };
    Recording { hosts: vec![host] }
}

/// Returns what `rtorb why` prints of a recording with a late call.
fn why(recording: &Recording, options: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("calls.pftrace");
    recording.write(&file).unwrap();
    let mut command = rtorb();
    let late = command.arg("why").arg(&file).args(options).assert().code(1);
    String::from_utf8(late.get_output().stdout.clone()).unwrap()
}

#[test]
fn the_names_in_a_recording_do_not_act_on_the_terminal() {
    let mut recording = of_one_call("get\u{1b}[2J", CallOutcome::Done);
    recording.hosts[0].processes[0].name = "a\u{9b}1m".to_owned();
    let text = why(&recording, &["--limit", "2ms"]);
    assert!(
        text.starts_with("get\u{fffd}[2J in a\u{fffd}1m: "),
        "{text}"
    );
    assert!(
        !text.chars().any(|one| one.is_control() && one != '\n'),
        "{text:?}"
    );
}

#[test]
fn a_timeout_before_the_limit_is_late_by_no_time_that_is_known() {
    let recording = of_one_call("get", CallOutcome::Timeout);
    let text = why(&recording, &["--limit", "5ms"]);
    assert!(
        text.starts_with("get in process: TIMEOUT after 3ms. Cause: unknown"),
        "{text}"
    );
    let late = json(why(&recording, &["--limit", "5ms", "--json"]).as_bytes());
    let [late_by_ns, limit_ns] = ["late_by_ns", "limit_ns"].map(|name| late[name].as_u64());
    assert_eq!((late_by_ns, limit_ns), (Some(0), Some(3_000_000)));
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
    let why = |options: &[&str]| {
        let mut command = rtorb();
        command.args(["why", file]).args(options).output().unwrap()
    };
    let lines_of = |output: &[u8]| -> Vec<Vec<u8>> {
        let lines = output.split(|byte| *byte == b'\n');
        lines.map(<[u8]>::to_vec).collect()
    };
    // On a busy host, there may be no call in the time of a recording.
    let late = within(Duration::from_secs(60), || {
        assert!(trace(&["--for", "300ms", "--no-kernel"]).status.success());
        let late = why(&["--limit", "1ns", "--json"]);
        (lines_of(&late.stdout).len() > 10).then_some(late)
    });
    let late = late.expect("calls are recorded");
    assert_eq!(late.status.code(), Some(1));
    let lines = lines_of(&late.stdout);
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
