//! `rtorb model apply` with files of systems: nodes, components and behaviours.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;
use tempfile::TempDir;

use crate::support::{PATIENT, Running, json, rtorb, within};

fn example(name: &str) -> PathBuf {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    examples.join(name)
}

/// A scheduling service in a folder of its own.
struct Service {
    folder: TempDir,
    reference: String,
    running: Running,
}

impl Service {
    fn start(options: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let reference = folder.path().join("scheduler.ior");
        let reference = reference.to_str().unwrap().to_owned();
        let arguments = ["scheduling", "serve", "--ior-file", &reference];
        let running = Running::start(&[&arguments[..], options].concat());
        let ready = || Path::new(&reference).exists().then_some(());
        within(Duration::from_secs(30), ready).expect("the service becomes ready");
        Self {
            folder,
            reference,
            running,
        }
    }

    /// Applies a file, and returns the exit status with what the command said.
    fn apply(&self, file: &Path, options: &[&str]) -> (Option<i32>, String) {
        let output = rtorb()
            .args(["model", "apply"])
            .args([file, Path::new("--to"), Path::new(&self.reference)])
            .args(options)
            .output()
            .unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8(said).unwrap())
    }

    fn apply_text(&self, text: &str) -> (Option<i32>, String) {
        let file = self.folder.path().join("new.toml");
        std::fs::write(&file, text).unwrap();
        self.apply(&file, &["--ideal"])
    }

    /// The priority of an operation.
    fn priority(&self, name: &str) -> serde_json::Value {
        let shown = rtorb()
            .args(["scheduling", "show", &self.reference, "--json"])
            .args(PATIENT)
            .output()
            .unwrap();
        let shown = json(&shown.stdout);
        let mut operations = shown["operations"].as_array().unwrap().iter();
        let known = operations.find(|known| known["name"] == name).unwrap();
        known["priority"].clone()
    }
}

#[test]
fn a_call_that_may_have_changed_the_system_says_so() {
    let service = Service::start(&[]);
    service.running.stop();
    let file = example("scheduling/avionics.toml");
    // The request is sent before, also by a busy host.
    let (status, said) = service.apply(&file, &["--timeout", "1s"]);
    service.running.signal(Signal::CONT);
    assert_eq!(status, Some(1), "{said}");
    let words = [
        "TIMEOUT",
        "unknown whether the system has changed",
        "rtorb scheduling show",
    ];
    assert!(words.iter().all(|word| said.contains(word)), "{said}");
}

#[test]
fn deadlines_that_need_preemption_are_told_with_the_condition() {
    let service = Service::start(&[]);
    let file = service.folder.path().join("edf.toml");
    let text = r#"
strategy = "edf"
operation = [
    { name = "a", period = "10ms", worst = "5ms" },
    { name = "b", period = "14ms", worst = "6ms" },
]
"#;
    std::fs::write(&file, text).unwrap();
    service.apply(&file, &[]);
    let (status, said) = service.apply(&file, &[]);
    assert_eq!(status, Some(0), "{said}");
    let words = "every deadline holds where the lane of the most urgent level preempts";
    assert!(said.contains(words), "{said}");
    let computed = rtorb()
        .args(["scheduling", "compute"])
        .arg(&file)
        .output()
        .unwrap();
    let said = String::from_utf8(computed.stdout).unwrap();
    assert!(said.contains("all deadlines hold where the lane"), "{said}");
}

#[test]
fn a_running_system_of_components_changes_as_its_analysis_says() {
    let service = Service::start(&[]);
    let file = example("model/robot-arm.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    let (status, said) = service.apply(&file, &["--ideal"]);
    assert_eq!(status, Some(0), "{said}");
    let checked = rtorb()
        .args(["model", "check", "--ideal", "--json"])
        .arg(&file)
        .output()
        .unwrap();
    let checked = json(&checked.stdout);
    let behaviours = checked["behaviours"].as_array().unwrap();
    let of = |name: &str| {
        let mut all = behaviours.iter();
        all.find(|one| one["behaviour"] == name).unwrap()["priority"].clone()
    };
    for name in ["joints.shoulder", "joints.elbow", "sensors.sense"] {
        assert_eq!(service.priority(name), of(name), "{name}");
    }

    // The same again: the answer has the bound of the longest old job.
    let (status, said) = service.apply(&file, &["--ideal"]);
    assert_eq!(status, Some(0), "{said}");
    assert!(
        said.starts_with("0 operations changed\nevery deadline holds"),
        "{said}"
    );

    // A broken deadline is named, with what would help, and nothing changes.
    let before = service.priority("joints.elbow");
    let broken = text.replace("deadline = \"8ms\"", "deadline = \"2ms\"");
    assert_ne!(broken, text);
    let (status, said) = service.apply_text(&broken);
    assert_eq!(status, Some(1), "{said}");
    let words = [
        "joints.elbow misses its deadline of 2ms",
        "what would help: ",
    ];
    assert!(words.iter().all(|word| said.contains(word)), "{said}");
    assert_eq!(service.priority("joints.elbow"), before);

    // The elbow becomes the more urgent one, and neither may wait for the other during the change.
    let exchanged = text
        .replace("deadline = \"5ms\"", "deadline = \"9ms\"")
        .replace("deadline = \"8ms\"", "deadline = \"4ms\"");
    let (status, said) = service.apply_text(&exchanged);
    assert_eq!(status, Some(0), "{said}");
    assert!(said.contains("every deadline holds"), "{said}");
    let [elbow, shoulder] =
        ["joints.elbow", "joints.shoulder"].map(|name| service.priority(name).as_i64());
    assert!(elbow > shoulder, "{elbow:?} {shoulder:?}");

    // Both modes hold, and not the change: 6 ms in each 10 ms, or 4 ms of the shoulder in each 5 ms.
    let longer = exchanged.replacen("execution = \"1500us\"", "execution = \"4500us\"", 1);
    let (status, said) = service.apply_text(&longer);
    assert_eq!(status, Some(0), "{said}");
    let other = exchanged.replacen(
        "period = \"10ms\"\n  execution = \"1500us\"\n  deadline = \"4ms\"",
        "period = \"10ms\"\n  execution = \"3900us\"\n  deadline = \"4ms\"",
        1,
    );
    assert_ne!(other, exchanged);
    let (status, said) = service.apply_text(&other);
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains("change in two steps"), "{said}");

    // What cannot change while it runs is named too.
    let moved = exchanged.replacen(
        "name = \"joints\"\nnode = \"arm\"",
        "name = \"joints\"\nnode = \"control\"",
        1,
    );
    let (status, said) = service.apply_text(&moved);
    assert_eq!(status, Some(1), "{said}");
    assert!(
        said.contains("the CPU of the component joints cannot change"),
        "{said}"
    );
}

#[test]
fn a_system_brings_the_times_of_its_idl() {
    let service = Service::start(&[]);
    let file = example("model/avionics.toml");
    let (status, said) = service.apply(&file, &["--ideal"]);
    assert_eq!(status, Some(0), "{said}");
    // `filter.smooth` has its time from IDL alone.
    let (status, said) = service.apply(&example("model/only-edf.toml"), &["--ideal"]);
    assert_eq!(status, Some(0), "what has left was there: {said}");
}

#[test]
fn a_file_of_the_other_kind_is_refused_with_a_reason() {
    let operations = example("scheduling/avionics.toml");
    let system = example("model/robot-arm.toml");
    let running_operations = Service::start(&["--file", operations.to_str().unwrap()]);
    let (status, said) = running_operations.apply(&system, &["--ideal"]);
    assert_eq!(status, Some(1), "{said}");
    let told =
        "the service runs operations of one processor, and the new file has a system of components";
    assert!(said.contains(told), "{said}");
    let running_system = Service::start(&[]);
    assert_eq!(running_system.apply(&system, &["--ideal"]).0, Some(0));
    let (status, said) = running_system.apply(&operations, &[]);
    assert_eq!(status, Some(1), "{said}");
    let told =
        "the service runs a system of components, and the new file has operations of one processor";
    assert!(said.contains(told), "{said}");
    assert_eq!(running_system.apply(&operations, &["--ideal"]).0, Some(2));
}

#[test]
fn mistakes_of_a_system_are_told_before_the_service_is_asked() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("wrong.toml");
    let text = std::fs::read_to_string(example("model/robot-arm.toml")).unwrap();
    let misspelt = text.replace("to = \"planner.plan\"", "to = \"planner.pan\"");
    std::fs::write(&file, misspelt).unwrap();
    let without_profiles = example("model/robot-arm.toml");
    for (file, words) in [
        (file, ["planner.plan", "wrong.toml"]),
        (without_profiles, ["no profile", "--ideal"]),
    ] {
        let output = rtorb()
            .args([
                "model",
                "apply",
                "--to",
                "corbaloc::127.0.0.1:1/ScheduleService",
            ])
            .arg(&file)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2));
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(words.iter().all(|word| said.contains(word)), "{said}");
    }
}

/// A system of one behaviour with an operation in IDL.
const LAMPS: &str = r#"
name = "lamps"
idl = ["lamps.idl"]

[[node]]
name = "here"

[[component]]
name = "lamps"

  [[component.behaviour]]
  name = "answer"
  period = "100ms"
  operation = "Harbour::Lamp::answer"
"#;

#[test]
fn the_requirements_of_operations_are_sent_or_refused() {
    let service = Service::start(&[]);
    let apply = |annotations: &str| {
        let idl = format!(
            "module Harbour {{ interface Lamp {{ @worst_case_time(\"1ms\") @deadline(\"40ms\") {annotations} void answer(); }}; }};\n"
        );
        std::fs::write(service.folder.path().join("lamps.idl"), idl).unwrap();
        service.apply_text(LAMPS)
    };
    let late = || {
        let idl = concat!(env!("CARGO_MANIFEST_DIR"), "/../rtorb-idl/idl");
        let output = rtorb()
            .args([
                "call",
                &service.reference,
                "miss_ratios",
                "-I",
                idl,
                "--idl",
            ])
            .arg(Path::new(idl).join("changeable_scheduler.idl"))
            .args(PATIENT)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        json(&output.stdout)
    };
    let ratio = |ratio: serde_json::Value| serde_json::json!([{ "operation": "Harbour::Lamp::answer", "ratio": ratio }]);
    let (status, said) = apply("@statistical(\"1/1000\") @queue(4)");
    assert_eq!(status, Some(0), "{said}");
    let one = serde_json::json!([{ "misses": 1, "calls": 1000 }]);
    assert_eq!(late(), ratio(one));
    let (status, said) = apply("@queue(4)");
    assert_eq!(status, Some(0), "{said}");
    assert_eq!(late(), ratio(serde_json::json!([])));
    for (annotations, annotation) in [
        ("@queue(5)", "@queue"),
        ("@queue(4) @largest_message(256)", "@largest_message"),
        ("@queue(4) @network_priority(46)", "@network_priority"),
    ] {
        let (status, said) = apply(annotations);
        assert_eq!(status, Some(1), "{said}");
        let words = format!("{annotation} of Harbour::Lamp::answer cannot change");
        assert!(said.contains(&words), "{said}");
    }
    let (status, said) = apply("@queue(4)");
    assert_eq!(status, Some(0), "nothing has changed: {said}");
}
