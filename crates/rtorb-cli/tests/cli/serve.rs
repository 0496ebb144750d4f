//! `rtorb serve` and `rtorb record`.

use std::io::Write as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rtorb_tests::loopback::own_endpoint;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{PATIENT, Running, json as json_of, rtorb, within};

/// A folder with the files of the manual, in which commands run.
struct Bench {
    folder: tempfile::TempDir,
}

/// A server, or a proxy.
struct Server {
    running: Running,
    reference: String,
}

impl Bench {
    fn new() -> Self {
        let bench = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        for (name, language) in [
            ("valve.idl", "idl"),
            ("valve.toml", "toml"),
            ("valve.json", "json"),
            ("session.jsonl", "jsonl"),
        ] {
            std::fs::write(bench.path(name), block(language)).unwrap();
        }
        bench
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    fn records(&self, name: &str) -> Vec<Value> {
        let text = self.text(name);
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// Starts a command that serves, and waits until it is ready. Its reference is in `NAME.ior`.
    fn start(&self, name: &str, arguments: &[&str]) -> Server {
        let ior = self.path(&format!("{name}.ior"));
        // That of an earlier server says nothing.
        let _ = std::fs::remove_file(&ior);
        let idl = self.path("valve.idl");
        let files = [
            "--ior-file",
            ior.to_str().unwrap(),
            "--idl",
            idl.to_str().unwrap(),
        ];
        // A proxy calls.
        let calling: &[&str] = if arguments[0] == "record" {
            &PATIENT
        } else {
            &[]
        };
        let running = Running::start(&[arguments, &files, calling].concat());
        within(Duration::from_secs(20), || ior.exists().then_some(())).expect("it becomes ready");
        let reference = ior.to_str().unwrap().to_owned();
        Server { running, reference }
    }

    /// A server with a table of the manual.
    fn valve(&self, table: &str, more: &[&str]) -> Server {
        let table = self.path(table);
        let arguments = [
            "serve",
            "--interface",
            "Plant::Valve",
            "--answers",
            table.to_str().unwrap(),
        ];
        self.start("valve", &[&arguments, more].concat())
    }

    /// The exit status and the JSON of a call.
    fn call(&self, reference: &str, arguments: &[&str]) -> (i32, Value) {
        let mut command = rtorb();
        command.args(["call", reference, "--interface", "Plant::Valve"]);
        let output = command
            .args(PATIENT)
            .arg("--idl")
            .arg(self.path("valve.idl"))
            .args(arguments)
            .output()
            .unwrap();
        let json = serde_json::from_slice(&output.stdout);
        let text = String::from_utf8_lossy(&output.stderr);
        (
            output.status.code().unwrap(),
            json.unwrap_or_else(|error| panic!("{error}: {text}")),
        )
    }
}

impl Server {
    /// Ends it by SIGTERM, and returns the exit status.
    fn end(mut self) -> Option<i32> {
        self.running.signal(Signal::TERM);
        self.running.ended()
    }
}

/// The first code block of the manual in that language.
fn block(language: &str) -> &'static str {
    let start = format!("```{language}\n");
    let (_, rest) = MANUAL.split_once(&start).unwrap();
    rest.split_once("```").unwrap().0
}

const MANUAL: &str = include_str!("../../../../docs/how-to/serve.md");

#[test]
fn the_examples_of_the_manual_work() {
    let bench = Bench::new();
    let server = bench.valve("valve.toml", &[]);
    let program = assert_cmd::cargo::cargo_bin!("rtorb");
    let folder = program.parent().unwrap().to_str().unwrap();
    let path = format!("{folder}:{}", std::env::var("PATH").unwrap());
    let mut calls = 0;
    for example in block("console").split("$ ").skip(1) {
        let (command, expected) = example.split_once('\n').unwrap();
        let mut shell = Command::new("sh");
        shell
            .args(["-c", command])
            .current_dir(bench.folder.path())
            .env("PATH", &path);
        let output = shell.output().unwrap();
        assert_eq!(
            String::from_utf8_lossy(&output.stdout),
            expected,
            "{command}"
        );
        calls += 1;
    }
    assert_eq!(calls, 5);
    assert_eq!(server.end(), Some(0));
    let server = bench.valve("valve.json", &[]);
    assert_eq!(bench.call(&server.reference, &["twin"]), (0, Value::Null));
}

#[test]
fn the_recorded_session_of_the_manual_is_replayed() {
    let bench = Bench::new();
    let session = bench.path("session.jsonl");
    let server = bench.start(
        "valve",
        &["serve", "--delays", "--replay", session.to_str().unwrap()],
    );
    let stuck = json!({"exception": "IDL:Plant/Stuck:1.0", "reason": "rust", "degrees": 12});
    assert_eq!(bench.call(&server.reference, &["turn", "45"]), (1, stuck));
    assert_eq!(
        bench.call(&server.reference, &["turn", "90"]),
        (0, json!(90))
    );
    assert_eq!(server.end(), Some(0));
}

/// The server copies its calls itself: there is no proxy, and its clients keep its reference.
#[test]
fn calls_that_a_server_copies_replay_as_they_were() {
    let bench = Bench::new();
    std::fs::write(bench.path("orb.toml"), "record_calls = 1048576\n").unwrap();
    let config = bench.path("orb.toml");
    let server = bench.valve("valve.toml", &["--config", config.to_str().unwrap()]);
    let process = server.running.id().to_string();
    let [session, idl] = ["lane.jsonl", "valve.idl"].map(|name| bench.path(name));
    let [out, idl] = [&session, &idl].map(|path| path.to_str().unwrap());
    let record = ["record", "--in-lane", &process, "--idl", idl, "--out", out];
    let mut recording = Running::start(&record);
    // It is made when the server copies.
    within(Duration::from_secs(60), || session.exists().then_some(())).expect("it records");
    let calls: [&[&str]; 3] = [
        &["turn", "90"],
        &["turn", "45"],
        &["move_to", r#"{"degrees": 5, "is_open": true}"#],
    ];
    let run = |reference: &str| calls.map(|arguments| bench.call(reference, arguments));
    let served = run(&server.reference);
    let written = || (bench.text("lane.jsonl").lines().count() == 3).then_some(());
    within(Duration::from_secs(60), written).expect("all calls are recorded");
    recording.signal(Signal::TERM);
    assert_eq!(recording.ended(), Some(0));
    for record in bench.records("lane.jsonl") {
        assert_eq!(record["interface"], "IDL:Plant/Valve:1.0");
        assert!(record["duration_ns"].as_u64() > Some(0), "{record}");
        assert!(record["object"].is_string() && record["missing"].is_null());
    }
    assert_eq!(server.end(), Some(0));

    let replay = bench.start("replay", &["serve", "--replay", out]);
    assert_eq!(run(&replay.reference), served);
    assert_eq!(replay.end(), Some(0));
}

/// A `char` above ASCII passes between ends that have it in their native code sets. A client without that code set gets an exception.
#[test]
fn a_server_and_a_client_are_told_their_native_char_code_set() {
    let bench = Bench::new();
    let idl = "module Plant { interface Valve { char mark(in char sign); }; };";
    std::fs::write(bench.path("valve.idl"), idl).unwrap();
    let table = "[[answers]]\noperation = \"mark\"\nwhen = { sign = \"é\" }\nanswer = \"ü\"\n";
    std::fs::write(bench.path("valve.toml"), table).unwrap();
    let latin = ["--native-char-code-set", "ISO-8859-1"];
    let server = bench.valve("valve.toml", &latin);
    let shown = rtorb().args(["ior", "show", &server.reference]).output();
    let shown = String::from_utf8(shown.unwrap().stdout).unwrap();
    assert!(shown.contains("char_native: ISO 8859-1"), "{shown}");
    let call = ["mark", "\"é\""];
    let both = [&call[..], &latin].concat();
    assert_eq!(bench.call(&server.reference, &both), (0, json!("ü")));
    let (status, refused) = bench.call(&server.reference, &call);
    assert_eq!(status, 1, "{refused}");
    assert_eq!(
        refused["exception"],
        "IDL:omg.org/CORBA/DATA_CONVERSION:1.0"
    );
    assert_eq!(server.end(), Some(0));
}

#[test]
fn a_call_without_an_answer_gets_an_exception_and_fails_the_run() {
    let bench = Bench::new();
    let asked = bench.path("asked.jsonl");
    let server = bench.valve("valve.json", &["--record", asked.to_str().unwrap()]);
    let refused = |kind: &str| {
        let exception = format!("IDL:omg.org/CORBA/{kind}:1.0");
        (
            1,
            json!({"exception": exception, "minor": 0, "completed": "COMPLETED_NO"}),
        )
    };
    assert_eq!(
        bench.call(&server.reference, &["turn", "91"]),
        refused("BAD_PARAM")
    );
    assert_eq!(
        bench.call(&server.reference, &["state"]),
        refused("NO_IMPLEMENT")
    );
    assert_eq!(server.end(), Some(1));
    let records = bench.records("asked.jsonl");
    assert_eq!(records[0]["arguments"], json!({"degrees": 91}));
    assert_eq!(records[1]["raises"], refused("NO_IMPLEMENT").1);
}

#[test]
fn a_request_that_does_not_fit_the_interface_is_reported_and_fails_the_run() {
    let bench = Bench::new();
    let other = bench.path("other.idl");
    std::fs::write(&other, "interface Other { void absent(); void turn(); };").unwrap();
    for (operation, kind, reason) in [
        (
            "absent",
            "BAD_OPERATION",
            "the interface has no such operation",
        ),
        ("turn", "MARSHAL", "the arguments cannot be decoded"),
    ] {
        let (ior, errors) = (bench.path(operation), bench.path("errors"));
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("rtorb"));
        command
            .args(["serve", "--idl", "valve.idl", "--interface", "Plant::Valve"])
            .args(["--answers", "valve.json", "--record", "asked.jsonl"])
            .args(["--ior-file", operation])
            .current_dir(bench.folder.path())
            .stderr(std::fs::File::create(&errors).unwrap());
        let mut running = Running(command.spawn().unwrap());
        within(Duration::from_secs(20), || ior.exists().then_some(())).expect("it becomes ready");
        let mut call = rtorb();
        call.arg("call").arg(&ior).arg(operation);
        call.args(["--interface", "Other", "--idl"]).arg(&other);
        let raised = json_of(&call.output().unwrap().stdout);
        let expected = format!("IDL:omg.org/CORBA/{kind}:1.0");
        assert_eq!(raised["exception"], expected);
        assert_eq!(raised["completed"], "COMPLETED_NO");
        let told = format!("{operation}() gets {kind}: {reason}");
        let is_told = || bench.text("errors").contains(&told).then_some(());
        within(Duration::from_secs(60), is_told).expect(&told);
        running.signal(Signal::TERM);
        assert_eq!(running.ended(), Some(1), "{operation}");
        assert_eq!(bench.records("asked.jsonl")[0]["raises"], raised);
    }
}

#[test]
fn a_key_leads_to_the_server_which_may_return_itself() {
    let bench = Bench::new();
    // While the server is down, no other test can take its port.
    let listen = own_endpoint();
    let key = ["--key", "Valve"];
    let server = bench.valve("valve.toml", &[&key[..], &["--listen", &listen]].concat());
    let shown = rtorb()
        .args(["ior", "show", "--json", &server.reference])
        .output()
        .unwrap();
    let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
    let fields = shown["profiles"][0]["fields"].as_array().unwrap();
    let port = fields.iter().find(|it| it["name"] == "port").unwrap();
    let place = listen.replace(":0", &format!(":{}", port["value"]));
    let by_key = format!("corbaloc::{}/Valve", place.trim_start_matches("iiop://"));
    let (status, twin) = bench.call(&by_key, &["twin"]);
    assert_eq!(status, 0, "{shown} {twin}");
    let text = std::fs::read_to_string(&server.reference).unwrap();
    assert_eq!(twin, json!(text.trim()));
    assert_eq!(server.end(), Some(0));
    let _again = bench.valve("valve.toml", &[&key[..], &["--listen", &place]].concat());
    assert_eq!(bench.call(text.trim(), &["turn", "90"]), (0, json!(90)));
}

#[test]
fn a_condition_may_be_the_reference_of_the_server() {
    let bench = Bench::new();
    let rows = json!([
        {"operation": "bind", "when": {"obj": "IOR:self"}},
        {"operation": "bind", "raises": {"exception": "IDL:omg.org/CosNaming/NamingContext/AlreadyBound:1.0"}},
    ]);
    std::fs::write(
        bench.path("names.json"),
        json!({ "answers": rows }).to_string(),
    )
    .unwrap();
    let table = bench.path("names.json");
    let options = [
        "serve",
        "--interface",
        "CosNaming::NamingContext",
        "--answers",
    ];
    let server = bench.start(
        "names",
        &[&options[..], &[table.to_str().unwrap()]].concat(),
    );
    let bind = |object: &str| {
        let mut command = rtorb();
        command.args([
            "call",
            &server.reference,
            "bind",
            r#"[{"id": "a", "kind": ""}]"#,
        ]);
        command
            .arg(json!(object).to_string())
            .args(PATIENT)
            .output()
            .unwrap()
            .status
            .code()
    };
    let own = std::fs::read_to_string(&server.reference).unwrap();
    assert_eq!(bind(own.trim()), Some(0));
    assert_eq!(bind("corbaloc::127.0.0.1:1/Other"), Some(1));
    assert_eq!(server.end(), Some(0));
}

#[test]
fn a_delay_ends_with_the_server() {
    let bench = Bench::new();
    let table = json!({"answers": [{"operation": "blink", "delay_ms": 3_000_000}]});
    std::fs::write(bench.path("slow.json"), table.to_string()).unwrap();
    let asked = bench.path("asked.jsonl");
    let server = bench.valve("slow.json", &["--record", asked.to_str().unwrap()]);
    assert_eq!(
        bench.call(&server.reference, &["blink", "1"]),
        (0, Value::Null)
    );
    let (status, exception) = bench.call(&server.reference, &["turn", "1"]);
    assert_eq!((status, &exception["minor"]), (1, &json!(0)), "{exception}");
    assert_eq!(server.end(), Some(1));
    let records = bench.records("asked.jsonl");
    assert_eq!(
        records[1]["raises"]["exception"],
        "IDL:omg.org/CORBA/TRANSIENT:1.0"
    );
}

#[test]
fn a_recorded_session_replays_as_it_was() {
    let bench = Bench::new();
    let target = bench.valve("valve.toml", &[]);
    let session = bench.path("own.jsonl");
    let session = session.to_str().unwrap();
    let proxy = bench.start("proxy", &["record", &target.reference, "--out", session]);
    let calls: [&[&str]; 7] = [
        &["turn", "90"],
        &["turn", "45"],
        &["move_to", r#"{"degrees": 5, "is_open": true}"#],
        &["move_to", r#"{"degrees": 5, "is_open": false}"#],
        &["state"],
        &["_set_state", r#"{"degrees": 5, "is_open": false}"#],
        &["blink", "2"],
    ];
    let run = |reference: &str| calls.map(|arguments| bench.call(reference, arguments));
    let recorded = run(&proxy.reference);
    assert_eq!(recorded, run(&target.reference));
    let refused = json!({"exception": "IDL:omg.org/CORBA/NO_PERMISSION:1.0", "minor": 7, "completed": "COMPLETED_NO"});
    assert_eq!(recorded[3], (1, refused));
    within(Duration::from_secs(20), || {
        (bench.text("own.jsonl").lines().count() == 7).then_some(())
    });
    assert_eq!(proxy.end(), Some(0));
    drop(target);

    let records = bench.records("own.jsonl");
    assert_eq!(records.len(), 7, "{records:?}");
    // The row of `turn` by 90 degrees has a delay of 2 ms.
    assert!(
        records[0]["duration_ns"].as_u64() > Some(2_000_000),
        "{records:?}"
    );
    let replay = bench.start("valve", &["serve", "--replay", session]);
    assert_eq!(recorded, run(&replay.reference));
    let (_, used) = bench.call(&replay.reference, &["turn", "90"]);
    assert_eq!(used["exception"], "IDL:omg.org/CORBA/NO_RESOURCES:1.0");
    assert_eq!(replay.end(), Some(1));
}

#[test]
fn clients_do_not_wait_for_a_reader_of_the_calls() {
    let bench = Bench::new();
    let target = bench.valve("valve.json", &[]);
    let (_reader, mut writer) = std::io::pipe().unwrap();
    // The pipe takes nothing more.
    let size = rustix::pipe::fcntl_getpipe_size(&writer).unwrap();
    writer.write_all(&vec![b'x'; size]).unwrap();
    let (ior, errors) = (bench.path("proxy.ior"), bench.path("errors"));
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("rtorb"));
    command
        .args(["record", &target.reference, "--idl", "valve.idl"])
        .args(PATIENT)
        .args(["--ior-file", "proxy.ior", "--out", "own.jsonl"])
        .current_dir(bench.folder.path())
        .stdout(writer)
        .stderr(std::fs::File::create(&errors).unwrap());
    let mut proxy = Running(command.spawn().unwrap());
    within(Duration::from_secs(20), || ior.exists().then_some(())).expect("it becomes ready");
    let direct = bench.call(&target.reference, &["turn", "90"]);
    for _ in 0..2 {
        assert_eq!(bench.call(ior.to_str().unwrap(), &["turn", "90"]), direct);
    }
    proxy.signal(Signal::TERM);
    assert_eq!(proxy.ended(), Some(0));
    let told = "calls that were not printed: 2";
    assert!(
        bench.text("errors").contains(told),
        "{}",
        bench.text("errors")
    );
    assert_eq!(bench.records("own.jsonl").len(), 2);
}

#[test]
fn calls_of_an_unknown_interface_pass_as_bytes() {
    let bench = Bench::new();
    let target = bench.valve("valve.toml", &[]);
    let (ior, session) = (bench.path("proxy.ior"), bench.path("own.jsonl"));
    let [reference, out] = [&ior, &session].map(|path| path.to_str().unwrap());
    let record = ["record", &target.reference, "--ior-file", reference];
    let mut proxy = Running::start(&[&record[..], &["--out", out], &PATIENT].concat());
    within(Duration::from_secs(20), || ior.exists().then_some(())).expect("it becomes ready");
    for arguments in [
        &["turn", "90"][..],
        &["turn", "45"],
        &["move_to", r#"{"degrees": 5, "is_open": true}"#],
        &["_set_state", r#"{"degrees": 5, "is_open": false}"#],
    ] {
        let expected = bench.call(&target.reference, arguments);
        assert_eq!(bench.call(reference, arguments), expected, "{arguments:?}");
    }
    proxy.signal(Signal::TERM);
    assert_eq!(proxy.ended(), Some(0));
    let records = bench.records("own.jsonl");
    let turned = json!({"octets": format!("hex:{}", hex(90))});
    assert_eq!(records[0]["arguments"], turned);
    assert_eq!(records[0]["answer"], turned);
    assert_eq!(records[1]["raises"]["exception"], "IDL:Plant/Stuck:1.0");
    let mut replay = rtorb();
    replay.args(["serve", "--replay", out, "--idl"]);
    let output = replay.arg(bench.path("valve.idl")).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("cannot be replayed"), "{text}");
}

/// The bytes of a `long` in this machine's order.
fn hex(number: i32) -> String {
    let octets = number.to_ne_bytes();
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

#[test]
fn an_operation_that_is_not_in_the_idl_is_recorded() {
    let bench = Bench::new();
    let target = bench.valve("valve.json", &[]);
    let session = bench.path("own.jsonl");
    let session = session.to_str().unwrap();
    let proxy = bench.start("proxy", &["record", &target.reference, "--out", session]);
    let more = bench.path("more.idl");
    std::fs::write(&more, "interface More { long absent(in long number); };").unwrap();
    let absent = |reference: &str| {
        let mut command = rtorb();
        command.args([
            "call",
            reference,
            "absent",
            "1",
            "--interface",
            "More",
            "--idl",
        ]);
        let output = command.arg(&more).args(PATIENT).output().unwrap();
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let refused = absent(&proxy.reference);
    assert_eq!(refused["exception"], "IDL:omg.org/CORBA/BAD_OPERATION:1.0");
    let (status, _) = bench.call(&proxy.reference, &["turn", "90"]);
    assert_eq!((status, proxy.end()), (0, Some(0)));
    let records = bench.records("own.jsonl");
    assert_eq!(
        (&records[0]["operation"], &records[0]["raises"]),
        (&json!("absent"), &refused)
    );
    let replay = bench.start("replay", &["serve", "--replay", session]);
    assert_eq!(absent(&replay.reference), refused);
    assert_eq!(
        bench.call(&replay.reference, &["turn", "90"]),
        (0, json!(90))
    );
    assert_eq!(replay.end(), Some(0), "the recorded server refused it too");
}

#[test]
fn priorities_pass_through_a_recording() {
    let bench = Bench::new();
    let options = [
        "cubit",
        "serve",
        "--priority-model",
        "client_propagated",
        "--best-effort",
    ];
    let target = bench.path("cubit.ior");
    let _running =
        Running::start(&[&options[..], &["--ior-file", target.to_str().unwrap()]].concat());
    within(Duration::from_secs(20), || target.exists().then_some(())).expect("it becomes ready");
    let [near, far] = ["near.jsonl", "far.jsonl"].map(|name| bench.path(name));
    let record = |target: &str, out: &Path, more: &[&str]| {
        let out = [
            "record",
            target,
            "--best-effort",
            "--out",
            out.to_str().unwrap(),
        ];
        let name = out[4].rsplit('/').next().unwrap();
        bench.start(name, &[&out, more].concat())
    };
    let second = record(target.to_str().unwrap(), &far, &[]);
    let first = record(&second.reference, &near, &["--priority", "20"]);
    let call = |reference: &str| {
        let mut command = rtorb();
        command.args([
            "call",
            reference,
            "cube_long",
            "3",
            "--priority",
            "12",
            "--best-effort",
        ]);
        command.args(PATIENT).assert().success().stdout("27\n");
    };
    call(&second.reference);
    call(&first.reference);
    assert_eq!((first.end(), second.end()), (Some(0), Some(0)));
    assert_eq!(bench.records("near.jsonl")[0]["priority"], json!(12));
    let far = bench.records("far.jsonl");
    assert_eq!(
        (&far[0]["priority"], &far[1]["priority"]),
        (&json!(12), &json!(20))
    );
}

#[test]
fn a_recording_has_a_largest_size() {
    let bench = Bench::new();
    let asked = bench.path("asked.jsonl");
    let server = bench.valve(
        "valve.json",
        &["--record", asked.to_str().unwrap(), "--bytes-max", "250"],
    );
    for _ in 0..3 {
        assert_eq!(
            bench.call(&server.reference, &["turn", "90"]),
            (0, json!(90))
        );
    }
    assert_eq!(server.end(), Some(1));
    assert_eq!(bench.records("asked.jsonl").len(), 1);
}

#[test]
fn a_start_that_fails_keeps_the_earlier_recording() {
    let bench = Bench::new();
    std::fs::write(
        bench.path("wrong.json"),
        r#"{"answers": [{"operation": "fly"}]}"#,
    )
    .unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("iiop://{}", taken.local_addr().unwrap());
    let target = bench.valve("valve.json", &[]);
    let idl = ["--idl", "valve.idl", "--interface", "Plant::Valve"];
    let wrong = ["serve", "--answers", "wrong.json", "--record", "kept.jsonl"];
    let beside = ["serve", "--answers", "valve.json", "--record", "kept.jsonl"];
    let proxy = ["record", &target.reference, "--out", "kept.jsonl"];
    let listen = ["--listen", &endpoint];
    for (arguments, listen, status) in [
        (wrong.as_slice(), &[][..], 2),
        (&beside, &listen, 1),
        (&proxy, &listen, 1),
    ] {
        std::fs::write(bench.path("kept.jsonl"), "kept").unwrap();
        let mut command = rtorb();
        command.args(arguments).args(idl).args(listen);
        let output = command.current_dir(bench.folder.path()).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {told}");
        assert_eq!(bench.text("kept.jsonl"), "kept", "{arguments:?}");
    }
}

#[test]
fn a_wrong_table_or_session_is_told_with_its_place() {
    let bench = Bench::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wrong_answers");
    let expected = std::fs::read_to_string(folder.join("messages.txt")).unwrap();
    let files = std::fs::read_dir(&folder)
        .unwrap()
        .map(|it| it.unwrap().path());
    let mut files: Vec<_> = files
        .filter(|it| it.file_name().unwrap() != "messages.txt")
        .collect();
    files.sort();
    let told = files.iter().map(|file| {
        let is_session = file.extension().unwrap() == "jsonl";
        let source = if is_session { "--replay" } else { "--answers" };
        let mut command = rtorb();
        command
            .args(["serve", "--interface", "Plant::Valve", "--idl"])
            .arg(bench.path("valve.idl"));
        let output = command.arg(source).arg(file).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", file.display());
        String::from_utf8(output.stderr)
            .unwrap()
            .replace(&format!("{}/", folder.display()), "")
    });
    let told: String = told.collect();
    assert_eq!(told, expected, "{told}");
}

#[test]
fn wrong_use_is_told_with_what_to_do() {
    let bench = Bench::new();
    let refused = |arguments: &[&str]| {
        let output = rtorb()
            .args(arguments)
            .current_dir(bench.folder.path())
            .output()
            .unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{text}");
        text
    };
    let told = refused(&[
        "serve",
        "--idl",
        "valve.idl",
        "--interface",
        "Plant::Valv",
        "--answers",
        "valve.toml",
    ]);
    assert!(told.contains("did you mean `Plant::Valve`?"), "{told}");
    let told = refused(&["serve", "--idl", "valve.idl", "--replay", "valve.toml"]);
    assert!(told.contains("--interface NAME"), "{told}");
    let told = refused(&["serve", "--idl", "valve.idl", "--answers", "valve.toml"]);
    assert!(told.contains("--interface"), "{told}");
    let options = [
        "--interface",
        "Plant::Valve",
        "--answers",
        "valve.toml",
        "--key",
        "",
    ];
    let told = refused(&[&["serve", "--idl", "valve.idl"], &options[..]].concat());
    assert!(told.contains("1 to 255"), "{told}");
    let server = bench.valve("valve.toml", &[]);
    let told = refused(&["record", &server.reference, "--interface", "Plant::Valve"]);
    assert!(told.contains("no interface `Plant::Valve`"), "{told}");
    // Nobody listens there, so the object cannot be asked: that is no wrong use.
    rtorb()
        .args(["record", "corbaloc::127.0.0.1:1/Valve"])
        .assert()
        .code(1);
}
