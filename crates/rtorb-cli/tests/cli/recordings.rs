//! `rtorb trace` and `rtorb why`.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, Command, Stdio};
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

/// A server that has a recorder. Its operation `turn` misses a deadline, as its own exception says, and `hold` does not.
struct LateServer {
    folder: tempfile::TempDir,
    running: Running,
}

impl LateServer {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        fs::write(
            path("valve.idl"),
            "interface Valve { void turn(); void hold(); };",
        )
        .unwrap();
        fs::write(path("answers.toml"), ANSWERS).unwrap();
        fs::write(path("orb.toml"), "recorder = true\n").unwrap();
        let ready = folder.path().join("valve.ior");
        let [idl, answers, config, ior] =
            ["valve.idl", "answers.toml", "orb.toml", "valve.ior"].map(path);
        let serve = [
            "serve",
            "--idl",
            &idl,
            "--interface",
            "Valve",
            "--answers",
            &answers,
        ];
        let running =
            Running::start(&[&serve[..], &["--config", &config, "--ior-file", &ior]].concat());
        within(Duration::from_secs(60), || ready.exists().then_some(())).expect("it is ready");
        Self { folder, running }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Calls an operation, and waits until the call has ended.
    fn call(&self, operation: &str) {
        let mut command = rtorb();
        let [ior, idl] = ["valve.ior", "valve.idl"].map(|name| self.path(name));
        command.arg("call").arg(ior).arg("--idl").arg(idl);
        let ended = command.arg(operation).args(PATIENT).assert();
        let late = operation == "turn";
        ended.code(i32::from(late));
    }

    /// Waits until the server has recorded a miss: it replies before.
    fn await_miss(&self) {
        let file = self.path("before.pftrace");
        let recorded = within(Duration::from_secs(60), || {
            let mut command = rtorb();
            command.args(["trace", &self.running.id().to_string(), "--for", "0s"]);
            command.arg("--out").arg(&file).assert().success();
            (self.outcomes("before.pftrace", "turn").len() == 1).then_some(())
        });
        recorded.expect("the call is recorded");
    }

    /// Starts `rtorb trace --on-miss` of the server, and waits until it waits.
    fn wait_for_misses(&self, options: &[&str]) -> MissTrace {
        let mut command = Command::new("env");
        // Who runs the tests may ignore it.
        command.arg("--default-signal=HUP");
        command.arg(assert_cmd::cargo::cargo_bin!("rtorb")).args([
            "trace",
            &self.running.id().to_string(),
            "--on-miss",
            "--out",
        ]);
        command.arg(self.path("late.pftrace")).args(options);
        command.args(["--window", "200ms"]);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stderr = child.stderr.take().unwrap();
        let mut trace = MissTrace {
            running: Running(child),
            said: BufReader::new(stderr),
        };
        let mut line = String::new();
        trace.said.read_line(&mut line).unwrap();
        assert!(line.starts_with("Waiting for a missed deadline"), "{line}");
        trace
    }

    /// The recorded calls of an operation, and how they ended.
    fn outcomes(&self, file: &str, operation: &str) -> Vec<CallOutcome> {
        let recording = Recording::read(&self.path(file)).unwrap();
        let threads = recording.hosts[0].processes[0].threads.iter();
        let calls = threads.flat_map(|thread| &thread.calls);
        let calls = calls.filter(|call| call.operation == operation);
        calls.map(|call| call.outcome).collect()
    }
}

const ANSWERS: &str = r#"
[[answers]]
operation = "turn"
raises = { exception = "IDL:omg.org/CORBA/TIMEOUT:1.0", minor = 1, completed = "COMPLETED_NO" }

[[answers]]
operation = "hold"
"#;

/// A command that waits for misses, and what it says.
struct MissTrace {
    running: Running,
    said: BufReader<ChildStderr>,
}

impl MissTrace {
    /// Waits for its end. Returns its exit status, and what it has said on standard error since.
    fn ended(mut self) -> (Option<i32>, String) {
        let status = self.running.ended();
        let mut said = String::new();
        self.said.read_to_string(&mut said).unwrap();
        (status, said)
    }
}

#[test]
fn a_missed_deadline_is_recorded_with_the_calls_around_it() {
    let server = LateServer::start();
    // Before the wait: it is no miss of that.
    server.call("turn");
    server.await_miss();
    let trace = server.wait_for_misses(&[]);
    server.call("hold");
    server.call("turn");
    let (status, said) = trace.ended();
    assert_eq!(status, Some(0), "{said}");
    let missed = server.outcomes("late.pftrace", "turn");
    assert_eq!(missed, [CallOutcome::Timeout]);
    let recording = Recording::read(&server.path("late.pftrace")).unwrap();
    assert_eq!(recording.hosts[0].processes[0].pid, server.running.id());
}

#[test]
fn several_misses_are_recorded_one_by_one_into_numbered_files() {
    let server = LateServer::start();
    let trace = server.wait_for_misses(&["--count", "2", "--no-kernel"]);
    for file in ["late-1.pftrace", "late-2.pftrace"] {
        server.call("turn");
        let written = || {
            let written = fs::metadata(server.path(file)).is_ok_and(|it| it.len() > 0);
            written.then_some(())
        };
        within(Duration::from_secs(60), written).expect("it is recorded");
    }
    let (status, said) = trace.ended();
    assert_eq!(status, Some(0), "{said}");
    assert!(!server.path("late.pftrace").exists());
    for file in ["late-1.pftrace", "late-2.pftrace"] {
        assert!(
            server
                .outcomes(file, "turn")
                .contains(&CallOutcome::Timeout),
            "{file}"
        );
    }
}

#[test]
fn a_wait_without_a_miss_ends_by_its_timeout_or_by_an_interrupt_and_leaves_no_file() {
    let server = LateServer::start();
    let trace = server.wait_for_misses(&["--timeout", "200ms"]);
    server.call("hold");
    let (status, said) = trace.ended();
    assert_eq!(status, Some(1), "{said}");
    let expected = "no operation missed its deadline";
    assert!(
        said.contains("timeout has passed") && said.contains(expected),
        "{said}"
    );

    for signal in [Signal::INT, Signal::HUP] {
        let trace = server.wait_for_misses(&["--timeout", "600s"]);
        trace.running.signal(signal);
        let process = trace.running.id();
        let (status, said) = trace.ended();
        assert_eq!(status, Some(1), "{signal:?}: {said}");
        assert!(
            said.contains("interrupted") && said.contains(expected),
            "{said}"
        );
        assert!(!server.path("late.pftrace").exists());
        assert_eq!(instances_of(process), 0, "{signal:?}");
    }
}

#[test]
fn a_wait_ends_with_its_processes() {
    let server = LateServer::start();
    let trace = server.wait_for_misses(&[]);
    server.running.signal(Signal::KILL);
    let (status, said) = trace.ended();
    assert_eq!(status, Some(1), "{said}");
    assert!(
        said.contains("no process has a recorder any more"),
        "{said}"
    );
}

#[test]
fn a_signal_has_the_last_calls_written_and_the_wait_goes_on() {
    let server = LateServer::start();
    let trace = server.wait_for_misses(&["--no-kernel"]);
    let file = server.path("late-signal-1.pftrace");
    trace.running.signal(Signal::USR1);
    let written = || {
        fs::metadata(&file)
            .is_ok_and(|it| it.len() > 0)
            .then_some(())
    };
    within(Duration::from_secs(60), written).expect("it is written");
    server.call("turn");
    let (status, said) = trace.ended();
    assert_eq!(status, Some(0), "{said}");
    assert!(server.outcomes("late-signal-1.pftrace", "turn").is_empty());
    let missed = server.outcomes("late.pftrace", "turn");
    assert_eq!(missed, [CallOutcome::Timeout]);
}

#[test]
fn a_recording_for_a_signal_that_cannot_be_written_does_not_end_the_wait() {
    let server = LateServer::start();
    let mut trace = server.wait_for_misses(&["--no-kernel"]);
    fs::create_dir(server.path("late-signal-1.pftrace")).unwrap();
    trace.running.signal(Signal::USR1);
    let mut line = String::new();
    trace.said.read_line(&mut line).unwrap();
    assert!(line.contains("late-signal-1.pftrace"), "{line}");
    server.call("turn");
    let (status, said) = trace.ended();
    assert_eq!(status, Some(0), "{said}");
    let missed = server.outcomes("late.pftrace", "turn");
    assert_eq!(missed, [CallOutcome::Timeout]);
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
