//! The load in the background: it runs, and leaves no process and no file, however its owner ends.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rtorb_lab::LabError;
use rtorb_lab::experiment::{Context, Effort};
use rtorb_lab::processes::interrupt::Interrupt;
use rtorb_lab::processes::load::{Generator, Kind, Load, RunningLoad};
use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Running, rtorb, skip, within};

#[test]
fn each_kind_runs_until_it_is_dropped() {
    let context = context();
    for generator in generators() {
        let kinds: &[Kind] = match generator {
            Generator::Own => Kind::ALL,
            // The others are our own in any case.
            Generator::StressNg { .. } => &Kind::MIX,
        };
        for &kind in kinds {
            let load: Load = kind.name().parse().unwrap();
            let mut running = start(&load, &context, &generator).unwrap();
            let [(_, group)] = running.groups()[..] else {
                panic!("one group for one kind")
            };
            let (before, nice) = (work(kind, group), nice(group));
            assert!(nice.iter().all(|nice| nice == "19"), "{nice:?}");
            let grown = within(WITHIN, || (work(kind, group) > before).then_some(()));
            assert!(grown.is_some(), "{kind:?} by {generator:?} does nothing");
            running.check().unwrap();
            assert!(
                running.generator().contains("; "),
                "{}",
                running.generator()
            );
            drop(running);
            assert!(ends(group), "{kind:?} by {generator:?}");
        }
    }
    let left = fs::read_dir(context.folder()).unwrap().count();
    assert_eq!(left, 0, "files stayed");
}

#[test]
fn the_mix_is_what_suits_the_place_and_none_is_nothing() {
    let mut context = context();
    let kinds = |running: &RunningLoad| -> Vec<Kind> {
        running.groups().into_iter().map(|(kind, _)| kind).collect()
    };
    let running = start(&Load::mix(), &context, &Generator::Own).unwrap();
    assert_eq!(kinds(&running), Kind::MIX);
    drop(running);
    context.effort = Effort::Emulated {
        seeds: 1,
        full: false,
    };
    let mut running = context.start_load(&Load::mix(), 0).unwrap();
    assert_eq!(kinds(&running), Kind::EMULATED_MIX);
    assert!(
        running.generator().starts_with("rtorb "),
        "{}",
        running.generator()
    );
    running.check().unwrap();
    let groups = running.groups();
    drop(running);
    assert!(groups.iter().all(|(_, group)| ends(*group)));
    assert!(
        context
            .start_load(&Load::none(), 0)
            .unwrap()
            .groups()
            .is_empty()
    );
}

#[test]
fn a_load_that_dies_is_noticed() {
    let context = context();
    for generator in generators() {
        let mut running: RunningLoad = start(&Load::mix(), &context, &generator).unwrap();
        let (_, group) = running.groups()[1];
        kill(group);
        let noticed = within(WITHIN, || running.check().err());
        let text = noticed.expect("it is noticed").to_string();
        assert!(
            text.contains("load disk") && text.contains("signal"),
            "{text}"
        );
    }
}

#[test]
fn an_interrupt_ends_the_start() {
    let context = context();
    context.launcher.interrupt.request();
    let started = start(&Load::mix(), &context, &Generator::Own);
    assert!(matches!(started, Err(LabError::Interrupted)));
}

#[test]
fn nothing_is_left_when_the_laboratory_is_killed() {
    let (stress_ng, own) = (
        std::env::var_os("PATH").unwrap_or_default(),
        "/nowhere".into(),
    );
    // Those that make processes of their own are the ones that could leave some.
    for (path, load, count) in [(stress_ng, "mix", 3), (own, "disk,fork,tmpfs,exec,unix", 5)] {
        let temporary = tempfile::tempdir().unwrap();
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("rtorb"));
        command
            .args(["lab", "run", "orb/latency-jitter", "--load", load, "--out"])
            .arg(temporary.path().join("report"))
            .env("TMPDIR", temporary.path())
            .env("PATH", path)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut owner = Running(command.spawn().unwrap());
        let groups = within(WITHIN, || {
            let groups = load_groups(&owner.0);
            let begun = groups.len() == count && groups.iter().all(|group| tasks_work(*group) > 0);
            begun.then_some(groups)
        })
        .expect("the load begins");
        owner.signal(Signal::KILL);
        owner.0.wait().unwrap();
        assert!(groups.iter().all(|group| ends(*group)), "processes stayed");
        assert!(bytes_below(temporary.path()) < 1 << 20, "files stayed");
    }
}

#[test]
fn results_say_under_which_load_they_were_measured() {
    let folder = tempfile::tempdir().unwrap();
    rtorb()
        .args([
            "lab",
            "run",
            "orb/demux",
            "--glance",
            "--load",
            "hog,network",
        ])
        .arg("--out")
        .arg(folder.path())
        .assert()
        .success();
    let path = rtorb_results::Results::path(folder.path(), "orb/demux");
    let results = rtorb_results::Results::read(&path).unwrap();
    assert_eq!(results.parameters["load"].to_string(), "hog,network");
    let generator = results.parameters["load_generator"].to_string();
    assert!(
        generator.starts_with("stress-ng ") || generator.starts_with("rtorb "),
        "{generator}"
    );
    let labelled = |label: Option<_>| label == Some(&"hog,network".into());
    assert!(
        results
            .series
            .iter()
            .all(|series| labelled(series.labels.get("load")))
    );
}

fn start(load: &Load, context: &Context, generator: &Generator) -> Result<RunningLoad, LabError> {
    load.start_with(
        context.effort,
        &context.launcher,
        context.folder(),
        generator,
    )
}

fn context() -> Context {
    let executable = assert_cmd::cargo::cargo_bin!("rtorb").to_path_buf();
    Context::new(Effort::Glance, executable, Interrupt::new()).unwrap()
}

/// Ours, and stress-ng where it is installed.
fn generators() -> Vec<Generator> {
    match Generator::best(&Interrupt::new()).unwrap() {
        Generator::Own => {
            skip("stress-ng is not installed");
            vec![Generator::Own]
        }
        stress_ng => vec![stress_ng, Generator::Own],
    }
}

/// A counter that grows while the load works.
fn work(kind: Kind, group: u32) -> u64 {
    match kind {
        Kind::Disk => {
            let io = |process: &u32| read(&format!("/proc/{process}/io"));
            let octets = |io: String| {
                let line = io.lines().find_map(|line| line.strip_prefix("wchar: "));
                line.and_then(|octets| octets.parse::<u64>().ok())
            };
            members(group).iter().map(io).filter_map(octets).sum()
        }
        _ => tasks_work(group),
    }
}

/// Processor time of a group, in ticks of the kernel.
fn tasks_work(group: u32) -> u64 {
    let ticks = |process: u32| -> u64 {
        let fields = stat(process);
        let number = |index: usize| {
            fields
                .get(index)
                .and_then(|field| field.parse::<u64>().ok())
        };
        number(UTIME).unwrap_or(0) + number(STIME).unwrap_or(0)
    };
    members(group).into_iter().map(ticks).sum()
}

fn nice(group: u32) -> Vec<String> {
    let nice = |process: u32| stat(process).get(NICE).cloned();
    members(group).into_iter().filter_map(nice).collect()
}

/// The process groups of the load that this process has started.
fn load_groups(owner: &Child) -> Vec<u32> {
    let is_load = |process: &u32| {
        let command = read(&format!("/proc/{process}/cmdline"));
        let has = |word: &str| command.split('\0').any(|found| found == word);
        (has("load") && !has("nothing")) || command.starts_with("stress-ng")
    };
    let parent = owner.id().to_string();
    let children = processes().filter(|process| stat(*process).get(PPID) == Some(&parent));
    children.filter(is_load).collect()
}

/// The processes of a group that have not ended.
fn members(group: u32) -> Vec<u32> {
    let group = group.to_string();
    let is_member = |process: &u32| {
        let fields = stat(*process);
        fields.get(PGRP) == Some(&group) && fields.first().is_some_and(|state| state != "Z")
    };
    processes().filter(is_member).collect()
}

/// Returns whether a group that was killed ends. On a busy host, a process of nice 19 may need seconds to end.
fn ends(group: u32) -> bool {
    let ended = || members(group).is_empty().then_some(());
    within(WITHIN, ended).is_some()
}

fn processes() -> impl Iterator<Item = u32> {
    let names = fs::read_dir("/proc").unwrap().flatten();
    names.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The fields of proc_pid_stat(5) from the third one, the state; none when it is gone.
fn stat(process: u32) -> Vec<String> {
    let stat = read(&format!("/proc/{process}/stat"));
    let after_name = stat.rsplit_once(')').map_or("", |(_, after)| after);
    after_name.split_whitespace().map(str::to_owned).collect()
}

fn bytes_below(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let octets = |entry: fs::DirEntry| match entry.metadata() {
        Ok(found) if found.is_dir() => bytes_below(&entry.path()),
        Ok(found) => found.blocks() * 512,
        Err(_) => 0,
    };
    entries.map(octets).sum()
}

fn kill(process: u32) {
    let pid = Pid::from_raw(i32::try_from(process).unwrap()).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// Other tests may run kernels and loads meanwhile.
const WITHIN: Duration = Duration::from_secs(180);
const PPID: usize = 4 - 3;
const PGRP: usize = 5 - 3;
const UTIME: usize = 14 - 3;
const STIME: usize = 15 - 3;
const NICE: usize = 19 - 3;
