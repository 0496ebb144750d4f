//! `rtorb lab` and what a run leaves behind.

use std::path::Path;
use std::time::Duration;

use rtorb_host::idle_states::DmaLatency;
use rtorb_lab::experiments;
use rtorb_results::{Results, SCHEMA};
use rustix::process::Signal;

use crate::support::{Running, children, json, rtorb, waits, within};

#[test]
fn experiments_are_listed() {
    let assert = rtorb().args(["lab", "list"]).assert().success();
    let text = String::from_utf8_lossy(&assert.get_output().stdout).into_owned();
    for experiment in experiments::ALL {
        let line = text
            .lines()
            .find(|line| line.starts_with(experiment.name()));
        let line = line.unwrap_or_else(|| panic!("{} in {text}", experiment.name()));
        assert!(line.contains(experiment.reproduces()), "{line}");
    }
    let assert = rtorb().args(["lab", "list", "--json"]).assert().success();
    let listed = json(&assert.get_output().stdout);
    let mut names = listed.as_array().unwrap().iter().map(|one| &one["name"]);
    assert!(names.any(|name| name == "orb/throughput"), "{listed}");
}

#[test]
fn a_quick_run_of_everything_takes_minutes_and_a_full_one_hours() {
    let assert = rtorb().args(["lab", "list", "--json"]).assert().success();
    let listed = json(&assert.get_output().stdout);
    let paced_s = |parameters: &str| -> u64 {
        let each = listed.as_array().unwrap().iter();
        each.filter_map(|one| one[parameters]["paced_seconds"].as_u64())
            .sum()
    };
    // The others, and what stands between runs, need about as much again when quick, and twenty minutes when full. A third of the
    // full time is that of servers on an agent's host, and is not needed without one.
    let (quick, full) = (paced_s("parameters"), paced_s("parameters_full"));
    assert!((30..=100).contains(&quick), "{quick} s");
    assert!((3_600..=15 * 3_600).contains(&full), "{full} s");
}

#[test]
fn a_former_name_is_accepted_and_says_the_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let assert = rtorb()
        .args(["lab", "run", "os/other-cpu", "--glance", "--out"])
        .arg(folder.path())
        .assert()
        .success();
    let said = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
    assert!(
        said.contains("os/other-cpu is a part of os/services"),
        "{said}"
    );
    assert!(Results::path(folder.path(), "os/services").is_file());
}

#[test]
fn an_unknown_experiment_is_misuse_that_names_the_nearest() {
    let assert = rtorb().args(["lab", "run", "orb/troughput"]).assert();
    let assert = assert.code(2);
    assert!(String::from_utf8_lossy(&assert.get_output().stderr).contains("orb/throughput"));
}

#[test]
fn lines_that_are_none_and_chips_that_are_not_there_are_told() {
    let folder = tempfile::tempdir().unwrap();
    for (lines, status, word) in [
        ("gpiochip0", 2, "CHIP:IN:OUT"),
        ("rtorb-no-such-chip:1:2", 1, "/dev/rtorb-no-such-chip"),
    ] {
        let assert = rtorb()
            .args(["lab", "run", "orb/edge", "--glance", "--gpio", lines])
            .arg("--out")
            .arg(folder.path())
            .assert()
            .code(status);
        let told = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
        assert!(told.contains(word), "{told}");
    }
}

#[test]
fn an_interrupted_run_reports_what_it_has_and_leaves_no_child() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let temporary = tempfile::tempdir().unwrap();
    let mut running = Running::start_with_temporary(
        &["lab", "run", "orb/throughput", "--full", "--out", out],
        temporary.path(),
    );
    let id = running.0.id();
    // Contestants: three raw exchanges and two of ours, a client and a server each.
    let children = within(Duration::from_secs(120), || {
        Some(children(id)).filter(|children| children.len() >= 10)
    });
    let children = children.expect("the measured processes are started");
    // Three pairs have had bursts, each after the last one's was reported: there is something to report.
    let with_bursts = || {
        let switches = children.iter().map(|child| waits(*child));
        (switches.filter(|waits| *waits > 5_000).count() >= 6).then_some(())
    };
    within(Duration::from_secs(120), with_bursts).expect("bursts are measured");
    let held = holds_awake(id);
    running.signal(Signal::INT);
    assert_eq!(running.ended(), Some(1));
    for child in children {
        assert!(
            !Path::new(&format!("/proc/{child}")).exists(),
            "process {child} was left behind"
        );
    }
    let results = Results::read(&Results::path(folder.path(), "orb/throughput")).unwrap();
    assert!(!results.complete);
    assert_eq!(results.schema, SCHEMA);
    assert_eq!(results.host.cpu_dma_latency_held, held);
    assert!(!results.series.is_empty());
    assert!(results.series.iter().all(|series| series.wrong == 0));
    let page = std::fs::read_to_string(folder.path().join("index.html")).unwrap();
    assert!(page.contains("Interrupted."));
    assert!(
        !std::env::temp_dir()
            .join(format!("rtorb-lab-{id}"))
            .exists()
    );
}

#[test]
fn children_of_a_killed_run_end_too() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let temporary = tempfile::tempdir().unwrap();
    let mut running = Running::start_with_temporary(
        &["lab", "run", "orb/throughput", "--out", out],
        temporary.path(),
    );
    let id = running.0.id();
    let children = within(Duration::from_secs(120), || {
        Some(children(id)).filter(|children| children.len() >= 6)
    });
    let children = children.expect("the measured processes are started");
    running.signal(Signal::KILL);
    running.ended();
    let gone = || {
        children
            .iter()
            .all(|child| !Path::new(&format!("/proc/{child}")).exists())
            .then_some(())
    };
    within(Duration::from_secs(60), gone).expect("the kernel ends the children of a killed run");
}

/// Whether a run holds the CPUs out of deep idle states; it does where the host allows it.
fn holds_awake(id: u32) -> bool {
    let mut open = std::fs::read_dir(format!("/proc/{id}/fd"))
        .unwrap()
        .flatten();
    let holds = open.any(|file| {
        std::fs::read_link(file.path()).is_ok_and(|to| to == Path::new(DmaLatency::DEVICE))
    });
    let mut device = std::fs::OpenOptions::new();
    let allowed = device.write(true).open(DmaLatency::DEVICE).is_ok();
    assert_eq!(holds, allowed);
    holds
}
