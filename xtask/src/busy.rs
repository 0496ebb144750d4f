//! `cargo xtask busy`: runs all tests beside twice as many busy threads as there are CPUs, and reports what then fails or takes long.

use std::cmp::Reverse;
use std::hint::spin_loop;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use cargo_metadata::Message;
use xshell::{Shell, cmd};

/// What to run.
#[derive(clap::Args, Debug)]
pub(crate) struct Rounds {
    /// The number of runs of each test program.
    #[arg(long, default_value_t = 1)]
    runs: u32,
    /// The number of test programs that run at the same time.
    #[arg(long, default_value_t = 1)]
    at_once: usize,
    /// The packages; by default all.
    #[arg(short, long = "package")]
    packages: Vec<String>,
}

/// Runs the test programs in rounds; prints each failure and slow test, a line for each round, and one for each program.
pub(crate) fn run(sh: &Shell, rounds: &Rounds) -> anyhow::Result<()> {
    let programs = build(sh, &rounds.packages)?;
    let mut reports = vec![Report::default(); programs.len()];
    let spinning = AtomicBool::new(true);
    thread::scope(|scope| {
        let cpus = thread::available_parallelism().map_or(1, usize::from);
        for _ in 0..THREADS_OF_CPU * cpus {
            scope.spawn(|| {
                while spinning.load(Ordering::Relaxed) {
                    spin_loop();
                }
            });
        }
        let done = (1..=rounds.runs).try_for_each(|number| {
            let begun = Instant::now();
            round(&programs, rounds.at_once, &mut reports)?;
            let faults: u32 = reports.iter().map(Report::faults).sum();
            let (runs, took) = (rounds.runs, begun.elapsed().as_secs());
            println!("round {number} of {runs} took {took} s; failed or slow so far: {faults}");
            anyhow::Ok(())
        });
        spinning.store(false, Ordering::Relaxed);
        done
    })?;
    for (program, report) in programs.iter().zip(&reports) {
        println!("{}", report.line(&program.name));
    }
    let faults: u32 = reports.iter().map(Report::faults).sum();
    ensure!(faults == 0, "{faults} runs or tests failed or were slow");
    Ok(())
}

/// Runs each program once, so many at the same time.
fn round(programs: &[Program], at_once: usize, reports: &mut [Report]) -> anyhow::Result<()> {
    let mut order: Vec<_> = programs.iter().zip(reports).collect();
    // The longest first, so that none of them runs alone at the end.
    order.sort_by_key(|(_, report)| Reverse(report.longest));
    let waiting = Mutex::new(order.into_iter());
    let next = || waiting.lock().ok()?.next();
    thread::scope(|scope| {
        let one_after_another = || -> anyhow::Result<()> {
            while let Some((program, report)) = next() {
                program.run(report)?;
            }
            Ok(())
        };
        let threads: Vec<_> = (0..at_once.max(1))
            .map(|_| scope.spawn(one_after_another))
            .collect();
        let mut ends = threads.into_iter().map(ScopedJoinHandle::join);
        ends.try_for_each(|end| end.unwrap_or_else(|_| bail!("a thread panicked")))
    })
}

/// A program of tests.
#[derive(Debug)]
struct Program {
    name: String,
    path: PathBuf,
    /// The folder of its package, in which cargo runs it.
    folder: PathBuf,
}

/// Builds the test programs.
fn build(sh: &Shell, packages: &[String]) -> anyhow::Result<Vec<Program>> {
    let scope: Vec<String> = if packages.is_empty() {
        vec!["--workspace".to_owned()]
    } else {
        let named = packages.iter();
        named.flat_map(|it| ["-p".to_owned(), it.clone()]).collect()
    };
    let built = cmd!(
        sh,
        "cargo test --no-run --message-format=json-render-diagnostics {scope...}"
    );
    let output = built.read()?;
    let mut programs = Vec::new();
    for message in Message::parse_stream(output.as_bytes()) {
        let Message::CompilerArtifact(artifact) = message? else {
            continue;
        };
        let Some(path) = artifact.executable.filter(|_| artifact.profile.test) else {
            continue;
        };
        let folder = artifact.manifest_path.parent();
        let folder = folder.context("a manifest is in a folder")?;
        let package = folder.file_name().unwrap_or_default();
        programs.push(Program {
            name: format!("{package}/{}", artifact.target.name),
            path: path.into(),
            folder: folder.into(),
        });
    }
    Ok(programs)
}

impl Program {
    /// Runs the program once, and prints each failure and each slow test.
    fn run(&self, report: &mut Report) -> anyhow::Result<()> {
        let begun = Instant::now();
        let output = self.command().output()?;
        let took = begun.elapsed();
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text);
        let slow = text.lines().filter(|line| line.contains(SLOW)).count();
        report.note(took, output.status.success(), slow);
        if !output.status.success() {
            println!("== {} failed ({})", self.name, output.status);
            if shown(&text).next().is_none() {
                let tail: Vec<_> = text.lines().rev().take(20).collect();
                tail.iter().rev().for_each(|line| println!("{line}"));
            }
        }
        for line in shown(&text) {
            println!("{}: {line}", self.name);
        }
        Ok(())
    }

    /// The program as cargo would run it, for at most half an hour.
    ///
    /// It has a session of its own, as if another terminal had started the load: the kernel then shares the CPUs between sessions.
    fn command(&self) -> Command {
        let mut command = Command::new("setsid");
        command.args(["--wait", "timeout", LONGEST]);
        command.arg(&self.path);
        command.current_dir(&self.folder);
        command.env("CARGO_MANIFEST_DIR", &self.folder);
        command.stdin(Stdio::null());
        command
    }
}

/// Returns the lines of the test harness that name a failed or a slow test, and the reasons of failures.
fn shown(text: &str) -> impl Iterator<Item = &str> {
    let mut is_reason = false;
    text.lines().filter(move |line| {
        let is_new = line.contains("panicked at");
        // A reason ends with the stack, or with a word about it.
        is_reason =
            is_new || is_reason && !line.starts_with("stack ") && !line.starts_with("note:");
        is_reason || line.ends_with(FAILED) || line.contains(SLOW)
    })
}

/// The runs of a program.
#[derive(Clone, Debug, Default, PartialEq)]
struct Report {
    runs: u32,
    failures: u32,
    /// Tests that ran for more than a minute.
    slow: u32,
    longest: Duration,
}

impl Report {
    fn note(&mut self, took: Duration, is_success: bool, slow: usize) {
        self.runs += 1;
        self.failures += u32::from(!is_success);
        self.slow += u32::try_from(slow).unwrap_or(u32::MAX);
        self.longest = self.longest.max(took);
    }

    /// The failed runs and the slow tests.
    fn faults(&self) -> u32 {
        self.failures + self.slow
    }

    fn line(&self, name: &str) -> String {
        let Self {
            runs,
            failures,
            slow,
            longest,
        } = self;
        format!(
            "{name}: {runs} runs, {failures} failed, {slow} tests above 60 s, the longest run took {:.1} s",
            longest.as_secs_f64()
        )
    }
}

/// Busy threads for each CPU.
const THREADS_OF_CPU: usize = 2;

/// How long a program may run, in seconds.
const LONGEST: &str = "1800";

/// The end of the harness's line about a failed test.
const FAILED: &str = "... FAILED";

/// What the harness says of a test that takes more than a minute.
const SLOW: &str = "has been running for over";

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn failures_slow_tests_and_the_longest_run_are_counted() {
        let mut report = Report::default();
        for (seconds, is_success, slow) in [(1, true, 0), (3, false, 2), (2, true, 0)] {
            report.note(Duration::from_secs(seconds), is_success, slow);
        }
        let line = "p/t: 3 runs, 1 failed, 2 tests above 60 s, the longest run took 3.0 s";
        assert_eq!((report.line("p/t").as_str(), report.faults()), (line, 3));
    }

    #[test]
    fn failed_and_slow_tests_and_reasons_are_shown() {
        let text = "test a::b ... FAILED\ntest a::c has been running for over 60 seconds\ntest a::d ... ok\n\
                    thread 'a::b' panicked at a.rs:1:1:\nassertion failed\nstack backtrace:\n 0: a";
        let shown: Vec<&str> = shown(text).collect();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(shown, [lines[0], lines[1], lines[3], lines[4]]);
    }

    #[test]
    fn each_program_runs_once_in_a_round() {
        let program = |path: &str| Program {
            name: path.to_owned(),
            path: path.into(),
            folder: Path::new("/").into(),
        };
        let programs = [program("/bin/true"), program("/bin/false")];
        let mut reports = vec![Report::default(); 2];
        for at_once in [0, 1, 3] {
            round(&programs, at_once, &mut reports).expect("they are there");
        }
        let counts = reports.iter().map(|report| (report.runs, report.failures));
        assert!(counts.eq([(3, 0), (3, 3)]));
    }
}
