//! `rtorb scheduling`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;

use crate::support::{Running, json, rtorb, within};

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
        .code(1);
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
        .assert()
        .code(1);
    let text = String::from_utf8_lossy(&assert.get_output().stdout).into_owned();
    assert!(text.contains("no schedule was computed yet"), "{text}");
}
