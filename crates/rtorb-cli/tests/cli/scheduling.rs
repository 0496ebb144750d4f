//! `rtorb scheduling`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;

use crate::support::{PATIENT, Running, json, rtorb, within};

fn example(name: &str) -> PathBuf {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/scheduling");
    examples.join(name)
}

fn compute(file: &Path, options: &[&str]) -> (Option<i32>, serde_json::Value) {
    let output = rtorb()
        .args(["scheduling", "compute"])
        .arg(file)
        .arg("--json")
        .args(options)
        .output()
        .unwrap();
    (output.status.code(), json(&output.stdout))
}

fn operation<'a>(answer: &'a serde_json::Value, name: &str) -> &'a serde_json::Value {
    let mut operations = answer["operations"].as_array().unwrap().iter();
    operations.find(|known| known["name"] == name).unwrap()
}

#[test]
fn the_examples_hold_and_what_calls_is_as_urgent_as_what_is_called() {
    for name in ["avionics.toml", "rate-groups.toml"] {
        let (status, answer) = compute(&example(name), &[]);
        assert_eq!(
            (status, &answer["holds"]),
            (Some(0), &true.into()),
            "{answer}"
        );
    }
    let (_, answer) = compute(&example("avionics.toml"), &[]);
    let [sensors, filter, guidance] = ["sensors.sample", "filter.update", "guidance.step"]
        .map(|name| operation(&answer, name)["priority"].as_i64().unwrap());
    assert_eq!((sensors, filter, guidance), (60, 60, 59));
    // Its samples, twice the filter, and the other operation of its level: 4 + 2 + 5 ms.
    assert_eq!(
        operation(&answer, "sensors.sample")["response_ns"],
        11_000_000
    );
}

#[test]
fn a_deadline_that_will_be_missed_is_no_and_named() {
    let file = example("overloaded.toml");
    let output = rtorb()
        .args(["scheduling", "compute"])
        .arg(&file)
        .assert()
        .code(1);
    let text = String::from_utf8_lossy(&output.get_output().stdout).into_owned();
    for words in [
        "control",
        "misses",
        "105.00 %",
        "first deadline to be missed is that of control",
    ] {
        assert!(text.contains(words), "{words} in {text}");
    }
    let (status, answer) = compute(&file, &["--strategy", "muf"]);
    assert_eq!(
        (status, &answer["first_miss"]),
        (Some(1), &"display".into())
    );
    assert_eq!(operation(&answer, "control")["verdict"], "meets");
}

#[test]
fn an_error_in_a_file_is_a_usage_error_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("wrong.toml");
    std::fs::write(
        &file,
        "[[operation]]\nname = \"a\"\nperiod = \"5 minutes\"\n",
    )
    .unwrap();
    let assert = rtorb()
        .args(["scheduling", "compute"])
        .arg(&file)
        .assert()
        .code(2);
    let text = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
    assert!(
        text.contains("wrong.toml:3:") && text.contains("50ms"),
        "{text}"
    );
    let cycle = "[[operation]]\nname='a'\nperiod='5ms'\ncalls=[{to='b'}]\n[[operation]]\nname='b'\ncalls=[{to='a'}]\n";
    std::fs::write(&file, cycle).unwrap();
    let assert = rtorb()
        .args(["scheduling", "compute"])
        .arg(&file)
        .assert()
        .code(2);
    let text = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
    assert!(text.contains("in a cycle"), "{text}");
}

#[test]
fn a_service_tells_other_processes_what_the_file_gives() {
    let folder = tempfile::tempdir().unwrap();
    let ior_file = folder.path().join("scheduler.ior");
    let reference = ior_file.to_str().unwrap();
    let file = example("avionics.toml");
    let mut running = Running::start(&[
        "scheduling",
        "serve",
        "--ior-file",
        reference,
        "--file",
        file.to_str().unwrap(),
    ]);
    within(Duration::from_secs(20), || ior_file.exists().then_some(())).expect("it becomes ready");
    let assert = rtorb()
        .args(["scheduling", "show", reference, "--json"])
        .args(PATIENT)
        .assert()
        .success();
    let shown = json(&assert.get_output().stdout);
    let (_, computed) = compute(&file, &[]);
    for known in computed["operations"].as_array().unwrap() {
        let told = operation(&shown, known["name"].as_str().unwrap());
        for number in ["handle", "priority", "level", "subpriority", "worst_ns"] {
            assert_eq!(told[number], known[number], "{number} of {known}");
        }
    }
    running.signal(Signal::TERM);
    assert_eq!(running.ended(), Some(0));
}

#[test]
fn a_service_that_has_computed_nothing_is_no() {
    let folder = tempfile::tempdir().unwrap();
    let ior_file = folder.path().join("scheduler.ior");
    let reference = ior_file.to_str().unwrap();
    let _running = Running::start(&["scheduling", "serve", "--ior-file", reference]);
    within(Duration::from_secs(20), || ior_file.exists().then_some(())).expect("it becomes ready");
    let assert = rtorb()
        .args(["scheduling", "show", reference])
        .args(PATIENT)
        .assert()
        .code(1);
    let text = String::from_utf8_lossy(&assert.get_output().stdout).into_owned();
    assert!(text.contains("no schedule was computed yet"), "{text}");
}

#[test]
fn an_overloaded_system_is_refused_and_served_only_if_that_is_wanted() {
    let file = example("overloaded.toml");
    let refused = rtorb()
        .args(["scheduling", "serve", "--file"])
        .arg(&file)
        .timeout(Duration::from_secs(60))
        .assert()
        .code(1);
    let text = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
    for words in [
        "control misses its deadline of 100ms",
        "What would help: ",
        "display executes for at most",
    ] {
        assert!(text.contains(words), "{words} in {text}");
    }
    let folder = tempfile::tempdir().unwrap();
    let (mut running, _) = serve(folder.path(), &file, &["--admit-anyway"]);
    running.signal(Signal::TERM);
    assert_eq!(running.ended(), Some(0));
}

#[test]
fn a_running_system_changes_by_a_command_and_by_a_signal() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("system.toml");
    let text = std::fs::read_to_string(example("avionics.toml")).unwrap();
    std::fs::write(&file, &text).unwrap();
    let (mut running, reference) = serve(folder.path(), &file, &[]);
    let apply = |file: &Path| {
        rtorb()
            .args(["model", "apply"])
            .args([file, Path::new("--to"), Path::new(&reference)])
            .timeout(Duration::from_secs(60))
            .assert()
    };
    let priority = |name: &str| {
        let shown = rtorb()
            .args(["scheduling", "show", &reference, "--json"])
            .args(PATIENT)
            .output()
            .unwrap();
        operation(&json(&shown.stdout), name)["priority"].clone()
    };
    assert_eq!(priority("guidance.step"), 59);

    // A broken deadline, and a wrong file, change nothing.
    let new = folder.path().join("new.toml");
    std::fs::write(&new, text.replace("worst = \"12ms\"", "worst = \"95ms\"")).unwrap();
    let refused = apply(&new).code(1);
    let said = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
    assert!(
        said.contains("misses its deadline") && said.contains("what would help: "),
        "{said}"
    );
    std::fs::write(&new, "[[operation]]\n").unwrap();
    apply(&new).code(2);
    assert_eq!(priority("guidance.step"), 59);

    // At 25 ms it is the most urgent one.
    let faster = text
        .replace("worst = \"12ms\"", "worst = \"1ms\"")
        .replace("period = \"100ms\"", "period = \"25ms\"");
    std::fs::write(&new, &faster).unwrap();
    let changed = apply(&new).code(1);
    let said = String::from_utf8_lossy(&changed.get_output().stderr).into_owned();
    assert!(
        said.contains("deadline"),
        "12 ms in each 25 ms, during the change: {said}"
    );
    // So it gets shorter first, and then more frequent.
    std::fs::write(&new, text.replace("worst = \"12ms\"", "worst = \"1ms\"")).unwrap();
    let changed = apply(&new).success();
    let said = String::from_utf8_lossy(&changed.get_output().stdout).into_owned();
    assert!(said.contains("every deadline holds"), "{said}");
    std::fs::write(&file, &faster).unwrap();
    running.signal(Signal::HUP);
    let is_first = || (priority("guidance.step") == 60).then_some(());
    within(Duration::from_secs(30), is_first).expect("it reads its file again");
    running.signal(Signal::TERM);
    assert_eq!(running.ended(), Some(0));
}

#[test]
fn a_system_of_components_is_admitted_at_start_and_changes_by_a_signal() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("arm.toml");
    let robot_arm = example("../model/robot-arm.toml");
    let text = std::fs::read_to_string(&robot_arm).unwrap();
    let broken = text.replace("deadline = \"8ms\"", "deadline = \"1ms\"");
    assert_ne!(broken, text);

    // A broken deadline is named, with what would help.
    std::fs::write(&file, &broken).unwrap();
    let start = |options: &[&str]| {
        rtorb()
            .args(["scheduling", "serve", "--file"])
            .arg(&file)
            .args(options)
            .timeout(Duration::from_secs(60))
            .assert()
    };
    let refused = start(&["--ideal"]).code(1);
    let said = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
    for words in [
        "joints.elbow misses its deadline of 1ms",
        "What would help: ",
    ] {
        assert!(said.contains(words), "{words} in {said}");
    }
    // Its platforms are needed, as for `rtorb model check`.
    let refused = start(&[]).code(2);
    let said = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
    assert!(said.contains("no profile"), "{said}");

    std::fs::write(&file, &text).unwrap();
    let (mut running, reference) = serve(folder.path(), &file, &["--ideal"]);
    let urgent = |name: &str| {
        let shown = rtorb()
            .args(["scheduling", "show", &reference, "--json"])
            .args(PATIENT)
            .output()
            .unwrap();
        operation(&json(&shown.stdout), name)["priority"]
            .as_i64()
            .unwrap()
    };
    let elbow_is_first = || urgent("joints.elbow") > urgent("joints.shoulder");
    assert!(!elbow_is_first());
    let exchanged = text
        .replace("deadline = \"5ms\"", "deadline = \"9ms\"")
        .replace("deadline = \"8ms\"", "deadline = \"4ms\"");
    std::fs::write(&file, &exchanged).unwrap();
    running.signal(Signal::HUP);
    let changed = || elbow_is_first().then_some(());
    within(Duration::from_secs(30), changed).expect("it reads its file again");

    // The command changes it too, and it stays as it is with a broken deadline and with a file of the other kind.
    let apply = |file: &Path, options: &[&str]| {
        rtorb()
            .args(["model", "apply"])
            .args([file, Path::new("--to"), Path::new(&reference)])
            .args(options)
            .timeout(Duration::from_secs(60))
            .assert()
    };
    apply(&robot_arm, &["--ideal"]).success();
    assert!(!elbow_is_first());
    apply(&example("avionics.toml"), &[]).code(1);
    running.signal(Signal::TERM);
    assert_eq!(running.ended(), Some(0));
}

#[test]
fn options_of_components_are_refused_without_components() {
    let operations = example("avionics.toml");
    for arguments in [
        &["--ideal"][..],
        &["--ideal", "--file", operations.to_str().unwrap()],
    ] {
        let refused = rtorb()
            .args(["scheduling", "serve"])
            .args(arguments)
            .timeout(Duration::from_secs(60))
            .assert()
            .code(2);
        let said = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
        assert!(said.contains("--ideal and -I are for"), "{said}");
    }
}

/// Starts a service with a file, and returns it with its reference.
fn serve(folder: &Path, file: &Path, options: &[&str]) -> (Running, String) {
    let reference = folder.join("scheduler.ior").to_str().unwrap().to_owned();
    let arguments = ["scheduling", "serve", "--ior-file", &reference, "--file"];
    let running = Running::start(&[&arguments[..], &[file.to_str().unwrap()], options].concat());
    let ready = || Path::new(&reference).exists().then_some(());
    within(Duration::from_secs(30), ready).expect("the service becomes ready");
    (running, reference)
}
