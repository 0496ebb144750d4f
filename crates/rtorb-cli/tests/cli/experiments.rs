//! Runs each experiment at a glance, once with the rights of root and once without any rights.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use rtorb_lab::experiments;
use rtorb_report::papers::Papers;
use rtorb_results::{Results, Verdicts};
use rtorb_tests::running::copy_program;

use crate::support::rtorb;

/// Two tests for each experiment, so that experiments run side by side.
macro_rules! experiments {
    ($($test:ident: $name:literal,)*) => {
        mod with_rights {
            $(#[test]
            fn $test() {
                super::runs($name);
            })*
        }

        mod without_rights {
            $(#[test]
            fn $test() {
                super::says_what_it_could_not_obtain($name);
            })*
        }

        /// The experiments with tests.
        const TESTED: &[&str] = &[$($name,)*];
    };
}

experiments! {
    context_switch: "os/context-switch",
    ready_queue: "os/ready-queue",
    services: "os/services",
    operations: "os/operations",
    clock_overhead: "os/clock-overhead",
    interruptions: "os/interruptions",
    interval_jitter: "os/interval-jitter",
    wakeup: "os/wakeup",
    mutex: "os/mutex",
    throughput: "orb/throughput",
    demux: "orb/demux",
    whitebox: "orb/whitebox",
    switches: "orb/switches",
    latency_jitter: "orb/latency-jitter",
    architectures: "orb/architectures",
    priority_inversion: "orb/priority-inversion",
    packet_inversion: "orb/packet-inversion",
    receive_inversion: "orb/receive-inversion",
    rt_policies: "orb/rt-policies",
    edge: "orb/edge",
    events: "orb/events",
    footprint: "orb/footprint",
}

#[test]
fn every_experiment_has_its_tests() {
    let all = experiments::ALL.iter().map(|experiment| experiment.name());
    assert_eq!(all.collect::<Vec<_>>(), TESTED);
}

/// A glance beside a busy host may lose a round, or have no sample of something: it may be repeated. What is wrong is so each time.
fn runs(name: &str) {
    let mut faults = Vec::new();
    for _ in 0..GLANCES_MAX {
        faults = faults_of_a_run(name);
        if faults.is_empty() {
            return;
        }
        eprintln!("{name}: {faults:#?}");
    }
    panic!("{name}: {faults:#?}");
}

/// Runs an experiment, and returns what its results lack.
fn faults_of_a_run(name: &str) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let mut command = rtorb();
    command.args(["lab", "run", name, "--glance", "--out"]);
    let output = command.arg(folder.path()).output().unwrap();
    let printed = [output.stdout, output.stderr].concat();
    let printed = String::from_utf8_lossy(&printed).into_owned();
    let mut faults = Vec::new();
    if !output.status.success() {
        faults.push(printed.clone());
    }
    let Ok(results) = Results::read(&Results::path(folder.path(), name)) else {
        faults.push(format!("it has no results: {printed}"));
        return faults;
    };
    assert!(
        results.series.iter().all(|series| series.wrong == 0),
        "{printed}"
    );
    assert!(results.notes.iter().any(|note| note.contains("A glance")));
    if !results.complete {
        faults.push("it is not complete".to_owned());
    }
    let excuses = results
        .notes
        .iter()
        .filter(|note| note.contains("not measured") || note.contains("left out: "))
        .filter(|note| !note.to_lowercase().contains("omniorb"))
        // It is a feature that is off by default.
        .filter(|note| !note.starts_with("iceoryx2 was left out: "))
        // The kernel may have no such discipline.
        .filter(|note| !note.starts_with("The discipline prio was left out: "))
        // The host's setting decides between it and the others.
        .filter(|note| !note.starts_with("busy_polling was left out: "));
    faults.extend(excuses.cloned());
    // Without SCHED_FIFO there are no priorities to measure mutexes, queues and policies with.
    let needs_priorities = ["os/mutex", "os/ready-queue", "orb/rt-policies"].contains(&name);
    // Without root there is no link of its own.
    let needs_a_link = name.ends_with("-inversion") && name != "orb/priority-inversion";
    if results.series.is_empty() && !needs_priorities && !needs_a_link {
        faults.push("it has no series".to_owned());
    }
    // The page about the papers reads what the experiment has today.
    let mut misfits = Papers::built_in().unwrap().misfits(&results);
    // On a busy host, too many ticks come late for a grid.
    let has_no_tick = |note: &String| note.starts_with("No tick was found");
    if results.notes.iter().any(has_no_tick) {
        misfits.retain(|misfit| !misfit.contains("what=tick"));
    }
    faults.extend(misfits);
    faults
}

/// How often an experiment may be run until its results lack nothing.
const GLANCES_MAX: usize = 3;

fn says_what_it_could_not_obtain(name: &str) {
    if !rustix::process::geteuid().is_root() {
        // Without root, the other tests have run without rights already.
        eprintln!("skipped: only root can give up rights");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("report");
    let said = without_rights(folder.path(), &["lab", "run", name, "--glance"], &out);
    assert!(said.contains("SCHED_FIFO is refused"), "{said}");
    let results = Results::read(&Results::path(&out, name)).unwrap();
    assert!(results.complete);
    let verdicts = Verdicts::of(&results.claims);
    assert_eq!((verdicts.held, verdicts.missed), (0, 0));
    for scheduling in &results.scheduling {
        assert!(!scheduling.real_time, "{scheduling:?}");
    }
    for series in &results.series {
        let label = series.labels.get("real_time");
        assert_ne!(label, Some(&true.into()), "{:?}", series.labels);
    }
    assert!(!results.series.is_empty() || !results.notes.is_empty());
    let page = fs::read_to_string(out.join("index.html")).unwrap();
    assert!(page.contains("Not measured in real time."));
}

/// Runs the command as somebody without rights, its results in `out`; returns what it said.
fn without_rights(folder: &Path, arguments: &[&str], out: &Path) -> String {
    fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).unwrap();
    let program = folder.join("rtorb");
    copy_program(assert_cmd::cargo::cargo_bin!("rtorb"), &program);
    let output = Command::new("setpriv")
        .args([
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
            "--inh-caps=-all",
            "--bounding-set=-all",
        ])
        .args(["prlimit", "--rtprio=0", "--memlock=65536"])
        .arg(&program)
        .args(arguments)
        .arg("--out")
        .arg(out)
        .env("TMPDIR", folder)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    said
}
