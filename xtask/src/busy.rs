//! `cargo xtask busy`: runs all tests beside twice as many busy threads as there are CPUs, and reports what then fails or takes long.

use std::hint::spin_loop;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use cargo_metadata::Message;
use xshell::{Shell, cmd};

/// Runs the test programs of these packages, by default of all, so many times; prints a line for each program.
pub(crate) fn run(sh: &Shell, runs: u32, packages: &[String]) -> anyhow::Result<()> {
    let programs = build(sh, packages)?;
    let spinning = AtomicBool::new(true);
    let reports: Vec<Report> = thread::scope(|scope| {
        let cpus = thread::available_parallelism().map_or(1, usize::from);
        for _ in 0..THREADS_OF_CPU * cpus {
            scope.spawn(|| {
                while spinning.load(Ordering::Relaxed) {
                    spin_loop();
                }
            });
        }
        let reports = programs.iter().map(|program| program.run(runs));
        let reports = reports.collect::<anyhow::Result<_>>();
        spinning.store(false, Ordering::Relaxed);
        reports
    })?;
    let (mut failures, mut runs) = (0, 0);
    for (program, report) in programs.iter().zip(&reports) {
        println!("{}", report.line(&program.name));
        failures += report.failures;
        runs += report.runs;
    }
    println!("{runs} runs of programs, {failures} failed");
    ensure!(failures == 0, "{failures} runs of test programs failed");
    Ok(())
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
    /// Runs the program so many times, and prints each failure and each slow test.
    fn run(&self, runs: u32) -> anyhow::Result<Report> {
        let mut report = Report::default();
        for _ in 0..runs {
            let begun = Instant::now();
            let output = self.command().output()?;
            let took = begun.elapsed();
            let text = [output.stdout, output.stderr].concat();
            let text = String::from_utf8_lossy(&text);
            report.note(took, output.status.success());
            if !output.status.success() {
                println!("== {} failed ({})", self.name, output.status);
                if !text.lines().any(|line| line.ends_with(FAILED)) {
                    let tail: Vec<_> = text.lines().rev().take(20).collect();
                    tail.iter().rev().for_each(|line| println!("{line}"));
                }
            }
            let shown = text.lines().filter(|line| is_shown(line));
            shown.for_each(|line| println!("{}: {line}", self.name));
        }
        Ok(report)
    }

    /// The program as cargo would run it, for at most half an hour.
    fn command(&self) -> Command {
        let mut command = Command::new("timeout");
        command.arg(LONGEST).arg(&self.path);
        command.current_dir(&self.folder);
        command.env("CARGO_MANIFEST_DIR", &self.folder);
        command.stdin(Stdio::null());
        command
    }
}

/// True for a line of the test harness that names a failed or a slow test, and for the reason of a failure.
fn is_shown(line: &str) -> bool {
    line.ends_with(FAILED)
        || line.contains("has been running for over")
        || line.contains("panicked at")
}

/// The runs of a program.
#[derive(Debug, Default, PartialEq)]
struct Report {
    runs: u32,
    failures: u32,
    longest: Duration,
}

impl Report {
    fn note(&mut self, took: Duration, is_success: bool) {
        self.runs += 1;
        self.failures += u32::from(!is_success);
        self.longest = self.longest.max(took);
    }

    fn line(&self, name: &str) -> String {
        let Self {
            runs,
            failures,
            longest,
        } = self;
        format!(
            "{name}: {runs} runs, {failures} failed, the longest took {:.1} s",
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn failures_and_the_longest_run_are_counted() {
        let mut report = Report::default();
        for (seconds, is_success) in [(1, true), (3, false), (2, true)] {
            report.note(Duration::from_secs(seconds), is_success);
        }
        let line = "p/t: 3 runs, 1 failed, the longest took 3.0 s";
        assert_eq!(report.line("p/t"), line);
    }

    #[test]
    fn failed_and_slow_tests_are_shown() {
        assert!(is_shown("test a::b ... FAILED"));
        assert!(is_shown("test a::b has been running for over 60 seconds"));
        assert!(!is_shown("test a::b ... ok"));
    }

    #[test]
    fn a_program_runs_in_the_folder_of_its_package() {
        let program = Program {
            name: "p/t".to_owned(),
            path: "/bin/true".into(),
            folder: Path::new("/").into(),
        };
        let report = program.run(2).expect("it is there");
        assert_eq!((report.runs, report.failures), (2, 0));
    }
}
