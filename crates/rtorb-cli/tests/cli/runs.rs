//! What is done with runs that are there: `rtorb lab compare`, `export` and `profile`, and how several runs are made.

use std::path::Path;

use rtorb_results::profile::Profile;

use crate::support::{json, rtorb};

/// Two runs of the quickest experiment with hardly a sample, below `folder`.
fn measure(folder: &Path) {
    rtorb()
        .args([
            "lab",
            "run",
            "orb/demux",
            "--glance",
            "--runs",
            "2",
            "--out",
        ])
        .arg(folder)
        .assert()
        .success();
}

#[test]
fn runs_are_made_one_after_another_and_compared_and_exported() {
    let folder = tempfile::tempdir().unwrap();
    let (a, tables) = (folder.path().join("a"), folder.path().join("tables"));
    measure(&a);
    for run in ["run-1", "run-2"] {
        assert!(a.join(run).join("results/orb/demux.json").is_file());
        assert!(a.join(run).join("index.html").is_file());
    }
    compares_one_run_with_the_other(&a);
    let assert = rtorb()
        .args(["lab", "export", "--format", "parquet", "--json", "--out"])
        .args([&tables, &a])
        .assert()
        .success();
    let files = json(&assert.get_output().stdout);
    assert!(files["files"][0]["rows"].as_u64().unwrap() >= 2, "{files}");
    assert!(tables.join("series.parquet").is_file());
    // A single run would be mixed with these.
    let assert = rtorb()
        .args(["lab", "run", "orb/demux", "--glance", "--out"])
        .arg(&a)
        .assert()
        .code(2);
    let said = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
    assert!(said.contains("another folder"), "{said}");
}

fn compares_one_run_with_the_other(folder: &Path) {
    let (first, second) = (folder.join("run-1"), folder.join("run-2"));
    let assert = rtorb()
        .args(["lab", "compare"])
        .args([&first, &second])
        .assert()
        .code(2);
    let said = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
    assert!(said.contains("effort"), "glances are refused: {said}");
    let assert = rtorb()
        .args(["lab", "compare", "--anyway", "--json"])
        .args([&first, &second])
        .assert()
        .success();
    let compared = json(&assert.get_output().stdout);
    assert_eq!(compared["observations"], "rounds");
    assert_eq!(compared["conditions"][0]["gravity"], "spoils");
    assert!(!compared["series"].as_array().unwrap().is_empty());
}

#[test]
fn a_folder_without_results_is_misuse_that_says_what_to_give() {
    let folder = tempfile::tempdir().unwrap();
    let name = folder.path().to_str().unwrap();
    let commands: [&[&str]; 3] = [
        &["lab", "compare", name, name],
        &["lab", "export", name, "--out", name],
        &["lab", "profile", name],
    ];
    for command in commands {
        let assert = rtorb().args(command).assert().code(2);
        let said = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
        assert!(
            said.contains(name) && said.contains("rtorb measure --out"),
            "{said}"
        );
    }
    assert_eq!(
        folder.path().read_dir().unwrap().count(),
        0,
        "nothing was written"
    );
}

#[test]
fn a_profile_is_run_and_made_again() {
    let folder = tempfile::tempdir().unwrap();
    rtorb()
        .args(["lab", "run", "profile", "--glance", "--out"])
        .arg(folder.path())
        .assert()
        .success();
    let path = folder.path().join("profile.json");
    let made = Profile::read(&path).unwrap();
    assert!(made.services.iter().any(|one| one.component == "orb"));
    assert!(!made.incomplete.is_empty(), "a glance is too short");
    std::fs::remove_file(&path).unwrap();
    rtorb()
        .args(["lab", "profile"])
        .arg(folder.path())
        .assert()
        .success();
    assert_eq!(Profile::read(&path).unwrap().services, made.services);
}
