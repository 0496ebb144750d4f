//! What a run leaves behind when it is interrupted or killed: results that hold, and nothing else.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rtorb_lab::experiments;
use rtorb_results::Results;
use rustix::process::Signal;

use crate::support::{Running, within};

#[test]
fn an_interrupt_at_any_moment_leaves_a_report_and_nothing_else() {
    let settings = settings();
    for moment in [
        Moment::After(Duration::from_millis(20)),
        Moment::After(Duration::from_millis(700)),
        Moment::WithResults,
    ] {
        let folder = tempfile::tempdir().unwrap();
        let mut run = Marked::start(folder.path(), &["measure", "--load", "mix"]);
        match moment {
            Moment::After(time) => std::thread::sleep(time),
            Moment::WithResults => {
                let measured = || Results::read_folder(&run.out).ok();
                within(Duration::from_secs(120), measured).expect("an experiment is done");
            }
        }
        run.running.signal(Signal::INT);
        let status = run.running.ended();
        // A signal that comes before anybody listens ends the process as it ends any other.
        assert!(matches!(status, Some(1) | None), "{status:?} {moment:?}");
        run.leaves_nothing();
        if status.is_some() {
            run.report_holds(moment);
        }
    }
    assert_eq!(self::settings(), settings);
}

#[test]
fn a_killed_run_leaves_no_process_and_no_load() {
    let settings = settings();
    let folder = tempfile::tempdir().unwrap();
    let mut run = Marked::start(
        folder.path(),
        &["lab", "run", "orb/throughput", "--load", "mix"],
    );
    // The run itself, contestants and load.
    within(Duration::from_secs(60), || {
        (run.left_behind().len() >= 8).then_some(())
    })
    .expect("the run starts its processes");
    run.running.signal(Signal::KILL);
    run.running.ended();
    run.leaves_nothing();
    assert_eq!(self::settings(), settings);
}

/// When a run is interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moment {
    /// While it starts, or in its first experiment.
    After(Duration),
    /// When an experiment has left its results.
    WithResults,
}

/// A run that a variable of its environment, inherited by its descendants, distinguishes from all other processes.
pub(crate) struct Marked {
    pub(crate) running: Running,
    mark: String,
    out: PathBuf,
}

impl Marked {
    pub(crate) fn start(folder: &Path, arguments: &[&str]) -> Self {
        let mark = format!("RTORB_MARK={}", folder.display());
        let (name, value) = mark.split_once('=').unwrap();
        let out = folder.join("report");
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("rtorb"));
        command.args(arguments).arg("--out").arg(&out);
        command.env(name, value).env("TMPDIR", folder);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Self {
            running: Running(command.spawn().unwrap()),
            out,
            mark,
        }
    }

    /// The processes of this run that there are, by their command lines.
    pub(crate) fn left_behind(&self) -> Vec<String> {
        let processes = fs::read_dir("/proc").unwrap().flatten();
        let of_this_run = processes.filter_map(|process| {
            let environment = fs::read(process.path().join("environ")).ok()?;
            let mut variables = environment.split(|byte| *byte == 0);
            variables.find(|variable| *variable == self.mark.as_bytes())?;
            let command = fs::read(process.path().join("cmdline")).ok()?;
            Some(String::from_utf8_lossy(&command).replace('\0', " "))
        });
        of_this_run.filter(|command| !command.is_empty()).collect()
    }

    /// Waits until no process of this run is left. On a busy host, a killed process of the load may need seconds to end.
    pub(crate) fn leaves_nothing(&self) {
        let gone = || self.left_behind().is_empty().then_some(());
        let gone = within(Duration::from_secs(60), gone);
        assert!(gone.is_some(), "left behind: {:?}", self.left_behind());
    }

    /// What was measured can be read, and the page shows it.
    fn report_holds(&self, moment: Moment) {
        let Ok(all) = Results::read_folder(&self.out) else {
            // Nothing was measured yet, and nothing half-written is there.
            assert_ne!(moment, Moment::WithResults);
            return;
        };
        assert!(all.len() < experiments::ALL.len());
        assert!(
            all.iter()
                .flat_map(|results| &results.series)
                .all(|series| series.wrong == 0)
        );
        let page = fs::read_to_string(self.out.join("index.html")).unwrap();
        for results in &all {
            assert!(page.contains(&results.experiment));
        }
    }
}

/// What a run could have changed on this host.
pub(crate) fn settings() -> Vec<(String, String)> {
    let mut paths = vec![
        "/proc/sys/kernel/sched_rt_runtime_us".to_owned(),
        "/proc/sys/kernel/sched_rt_period_us".to_owned(),
        "/proc/sys/vm/swappiness".to_owned(),
        "/proc/sys/kernel/perf_event_paranoid".to_owned(),
        "/sys/kernel/mm/transparent_hugepage/enabled".to_owned(),
        "/sys/devices/system/clocksource/clocksource0/current_clocksource".to_owned(),
        "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor".to_owned(),
    ];
    let interrupts = fs::read_dir("/proc/irq").into_iter().flatten().flatten();
    paths.extend(interrupts.map(|irq| irq.path().join("smp_affinity").display().to_string()));
    paths.sort();
    let read = |path: String| fs::read_to_string(&path).ok().map(|value| (path, value));
    paths.into_iter().filter_map(read).collect()
}
