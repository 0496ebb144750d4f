//! `rtorb lab kernel run`: repetition, refused arguments, and files and processes after the run.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rtorb_kernels::catalogue;
use rtorb_results::Results;
use rtorb_results::campaign::Record;
use rustix::process::Signal;

use crate::support::{rtorb, skip, within};
use crate::traces::{Marked, settings};

#[test]
fn two_runs_of_a_campaign_are_equal_to_the_octet_however_many_guests_run_side_by_side() {
    let Some(program) = guest_program() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let run = |out: &Path, seeds: &str, guests: &str, explain: &str| {
        let mut command = rtorb();
        command.timeout(CAMPAIGN_MAX);
        command
            .args(["lab", "kernel", "run", "--kernel", KERNEL])
            .args(["--experiments", "os/wakeup", "--loads", LOAD])
            .args(["--seeds", seeds, "--guests", guests])
            .args(["--explain", explain, "--program"])
            .arg(&program)
            .arg("--out")
            .arg(out);
        command.assert()
    };
    let (a, b) = (folder.path().join("a"), folder.path().join("b"));
    let settings = settings();
    // The boot under load, the same again, and of one campaign the worst sample once more.
    run(&a, "1", "2", "worst").success();
    run(&b, "1", "1", "none").success();
    assert_eq!(self::settings(), settings);
    let (of_a, of_b) = (bytes_below(&a), bytes_below(&b));
    assert_eq!(of_a.len(), 3, "{:?}", of_a.keys());
    for (name, octets) in &of_a {
        let text = |octets: &[u8]| String::from_utf8_lossy(octets).into_owned();
        let (ours, theirs) = (text(octets), text(&of_b[name]));
        let mut lines = ours.lines().zip(theirs.lines());
        let differing = lines.find(|(ours, theirs)| ours != theirs);
        assert_eq!(differing, None, "{}: two runs differ", name.display());
    }
    assert!(of_a == of_b, "two runs of a campaign differ");
    let record = Record::read(&a).unwrap();
    assert_eq!(record.self_check.repeats, Some(true));
    assert_eq!(record.self_check.sha256.len(), 2);
    assert!(record.complete);
    let compared = Results::read(&Results::path(&a, "kernel/os/wakeup")).unwrap();
    assert_eq!(compared.run, record.id);
    let of_load = [("load", LOAD), ("kernel", KERNEL)];
    let mut series = compared.matching(&of_load);
    assert!(series.any(|series| series.count > 0));
    assert!(a.join("index.html").is_file());
    // Other seeds are another campaign, which is not mixed with this one: nothing is booted.
    let assert = run(&a, "2", "2", "none").code(2);
    let said = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
    assert!(said.contains("seeds: there 1, now 2"), "{said}");
    assert!(bytes_below(&a) == of_a);
}

/// The guests of `cargo xtask rtos`: each is no Linux, and needs nothing of one.
#[test]
fn two_campaigns_of_guests_are_equal_to_the_octet_and_have_what_their_kernels_have() {
    let guests = catalogue::GUESTS.map(|guest| guest.name);
    let missing = guests.iter().find_map(|name| catalogue::cached(name).err());
    let emulator = Command::new("qemu-system-arm").arg("--version").output();
    if let Some(why) = missing.map(|error| error.to_string()) {
        return skip(&why);
    }
    if emulator.is_err() {
        return skip("there is no qemu-system-arm: apt install qemu-system-arm");
    }
    let folder = tempfile::tempdir().unwrap();
    let run = |name: &str| {
        let out = folder.path().join(name);
        let mut command = rtorb();
        command.timeout(CAMPAIGN_MAX);
        command
            .args(["lab", "kernel", "run", "--seeds", "1", "--kernel"])
            .arg(guests.join(","))
            .arg("--out")
            .arg(&out);
        command.assert().success();
        out
    };
    let (a, b) = (run("a"), run("b"));
    assert!(bytes_below(&a) == bytes_below(&b), "two runs differ");
    let record = Record::read(&a).unwrap();
    assert!(record.complete);
    assert_eq!(record.self_check.repeats, Some(true));
    let compared = Results::read(&Results::path(&a, "kernel/os/operations")).unwrap();
    for guest in guests {
        for operation in [
            "yield",
            "synchronized",
            "mutex",
            "message",
            "wakeup",
            "cube_any",
        ] {
            let of = [("kernel", guest), ("operation", operation)];
            for labels in [("instructions", "Thumb-2"), ("in", "yields")] {
                let of = [&of[..], &[labels]].concat();
                let series = compared.matching(&of).next().expect(operation);
                assert!(series.statistics.p50 > 0.0, "{guest}: {operation}");
            }
        }
    }
}

#[test]
fn an_interrupted_or_killed_campaign_leaves_no_guest_and_no_file() {
    let Some(program) = guest_program() else {
        return;
    };
    let settings = settings();
    for signal in [Signal::INT, Signal::KILL] {
        let folder = tempfile::tempdir().unwrap();
        let program = program.to_str().unwrap();
        let arguments = ["lab", "kernel", "run", "--kernel", KERNEL, "--quick"];
        let arguments = [&arguments[..], &["--guests", "2", "--program", program]].concat();
        let mut run = Marked::start(folder.path(), &arguments);
        let guests = || {
            let processes = run.left_behind();
            let emulators = processes.iter().filter(|command| command.starts_with("/"));
            (emulators
                .filter(|command| command.contains("-icount"))
                .count()
                == 2)
                .then_some(())
        };
        within(Duration::from_secs(180), guests).expect("two guests are booted");
        run.running.signal(signal);
        let status = run.running.ended();
        run.leaves_nothing();
        if signal == Signal::INT {
            assert_eq!(status, Some(1));
        }
        let left = fs::read_dir(folder.path()).unwrap().flatten();
        let names: Vec<PathBuf> = left.map(|entry| entry.path()).collect();
        assert_eq!(names, [folder.path().join("report")], "{signal:?}");
    }
    assert_eq!(self::settings(), settings);
}

#[test]
fn what_cannot_be_booted_is_refused_before_anything_is() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("vmlinuz");
    fs::write(&file, "no kernel").unwrap();
    let out = folder.path().join("out");
    let assert = rtorb()
        .args(["lab", "kernel", "run", "--kernel"])
        .arg(&file)
        .arg("--out")
        .arg(&out)
        .assert()
        .failure();
    let said = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
    assert!(said.contains("vmlinuz"), "{said}");
    assert!(!out.exists());
}

/// Every results file of a campaign, by its place.
fn bytes_below(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.join("results"), folder.join("kernels")];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let octets = fs::read(&path).unwrap();
                files.insert(path.strip_prefix(folder).unwrap().to_owned(), octets);
            }
        }
    }
    files
}

#[test]
fn marked_packets_pass_bulk_data_on_the_slow_link_of_an_emulated_machine() {
    let Some(program) = guest_program() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let mut command = rtorb();
    command
        .timeout(CAMPAIGN_MAX)
        .args(["lab", "kernel", "run", "--kernel", KERNEL, "--seeds", "1"])
        .args(["--experiments", "orb/packet-inversion"])
        .args(["--explain", "none", "--program"])
        .arg(&program)
        .arg("--out")
        .arg(folder.path())
        .assert()
        .success();
    let path = Results::path(folder.path(), "kernel/orb/packet-inversion");
    let results = Results::read(&path).unwrap();
    for discipline in ["htb", "prio"] {
        let median = |marks: &str| {
            let wanted = [
                ("discipline", discipline),
                ("network_priority", marks),
                ("bulk", "beside"),
            ];
            let series = results.matching(&wanted).next();
            series.expect(discipline).statistics.p50
        };
        let (unmarked, marked) = (median("off"), median("on"));
        assert!(
            marked < unmarked / 2.0,
            "{discipline}: {marked} and {unmarked} ns"
        );
    }
}

/// The statically linked program, where a kernel and an emulator are there too; otherwise says what is missing.
fn guest_program() -> Option<PathBuf> {
    // The folder of temporary files is in the target folder.
    let built = || Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("static/rtorb");
    let program = std::env::var_os("RTORB_STATIC").map_or_else(built, PathBuf::from);
    let has_emulator = Command::new("qemu-system-x86_64").arg("--version").output();
    let missing = match (program.is_file(), has_emulator) {
        (false, _) => format!(
            "there is no {}: cargo xtask static --try makes it",
            program.display()
        ),
        (true, Err(error)) => format!("qemu-system-x86_64: {error}: apt install qemu-system-x86"),
        (true, Ok(_)) => match catalogue::cached(KERNEL) {
            Ok(_) => return Some(program),
            Err(error) => error.to_string(),
        },
    };
    skip(&missing);
    None
}

const KERNEL: &str = "6.12";
const LOAD: &str = "hog";
/// Boots on a host that does a lot else.
const CAMPAIGN_MAX: Duration = Duration::from_secs(600);
