//! `rtorb check`: the exit status says what the JSON says, for root and for a user without rights.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rtorb_tests::running::copy_program;
use serde_json::Value;

use crate::support::{json, rtorb};

#[test]
fn check_answers_by_its_exit_status() {
    let assert = rtorb().args(["check", "--json"]).assert();
    let output = assert.get_output();
    let answer = json(&output.stdout);
    let fit = answer["fit"].as_bool().unwrap();
    assert_eq!(output.status.code(), Some(i32::from(!fit)));
    well_formed(&answer);
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    assert_eq!(answer["host"]["kernel_release"], release.trim());
    // It only looks: nothing is held when it is over, and it says so.
    assert_eq!(answer["host"]["cpu_dma_latency_held"], false);
}

#[test]
fn the_text_says_the_same() {
    let assert = rtorb().arg("check").assert();
    let output = assert.get_output();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let verdict = match output.status.code() {
        Some(0) => "This host is fit for real time:",
        Some(1) => "This host is not fit for real time:",
        other => panic!("{other:?}"),
    };
    assert!(text.contains(verdict), "{text}");
    assert!(output.stderr.is_empty());
}

#[test]
fn what_makes_no_sense_is_misuse() {
    rtorb().args(["check", "--jason"]).assert().code(2);
}

#[test]
fn a_user_without_rights_is_told_what_is_refused() {
    let setpriv = Path::new("/usr/bin/setpriv");
    if !setpriv.exists() || !rustix::process::geteuid().is_root() {
        eprintln!(
            "skipped: needs root and setpriv (apt-get install util-linux) to be a user who may not"
        );
        return;
    }
    // A copy where any user may run it.
    let folder = tempfile::tempdir().unwrap();
    let everybody = fs::Permissions::from_mode(0o755);
    fs::set_permissions(folder.path(), everybody).unwrap();
    let program = folder.path().join("rtorb");
    copy_program(assert_cmd::cargo::cargo_bin!("rtorb"), &program);
    let assert = assert_cmd::Command::new(setpriv)
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .args([
            "--bounding-set=-all",
            "prlimit",
            "--rtprio=0",
            "--memlock=65536",
        ])
        .arg(&program)
        .args(["check", "--json"])
        .assert()
        .code(1);
    let answer = json(&assert.get_output().stdout);
    well_formed(&answer);
    assert_eq!(answer["fit"], false);
    assert_eq!(severity(&answer, "fifo"), "unfit");
    assert_eq!(severity(&answer, "memory-lock"), "unfit");
    assert_eq!(severity(&answer, "rtprio"), "advice");
    assert_eq!(severity(&answer, "capabilities"), "advice");
    assert_eq!(severity(&answer, "cpu-dma-latency"), "advice");
    assert_eq!(answer["host"]["capabilities"], Value::Array(Vec::new()));
}

/// Every finding is complete, and the gravest comes first.
fn well_formed(answer: &Value) {
    let findings = answer["findings"].as_array().unwrap();
    assert!(findings.len() >= 25);
    let severities = ["unfit", "advice", "unknown", "good"];
    let ranks = findings.iter().map(|finding| {
        let severity = finding["severity"].as_str().unwrap();
        let rank = severities.iter().position(|known| *known == severity);
        rank.unwrap_or_else(|| panic!("{finding}"))
    });
    let ranks: Vec<usize> = ranks.collect();
    assert!(ranks.is_sorted(), "{ranks:?}");
    assert_eq!(answer["fit"], !ranks.contains(&0));
    for finding in findings {
        let text = |name: &str| finding[name].as_str().unwrap().to_owned();
        assert!(!text("id").is_empty() && !text("what").is_empty());
        assert!(!text("why").is_empty() && !text("topic").is_empty());
        assert_eq!(
            text("how").is_empty(),
            text("severity") == "good",
            "{finding}"
        );
    }
}

fn severity<'a>(answer: &'a Value, id: &str) -> &'a str {
    let findings = answer["findings"].as_array().unwrap();
    let found = findings.iter().find(|finding| finding["id"] == id).unwrap();
    found["severity"].as_str().unwrap()
}
