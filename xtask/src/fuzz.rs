//! `cargo xtask fuzz`: runs the fuzz targets for a bounded time under libFuzzer, with the stable compiler.
//!
//! The compiler counts covered edges and traces comparisons through an LLVM pass, which needs no nightly compiler; only sanitizers do.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use xshell::{Shell, cmd};

use crate::metadata::target_folder;

/// What a run does.
pub(crate) struct Options {
    /// The seconds of the whole run, which all targets share.
    pub(crate) seconds: u64,
    /// The only target to run, if not all.
    pub(crate) target: Option<String>,
    /// Whether inputs that reach new code are added to those of the repository.
    pub(crate) keeps: bool,
}

/// Runs the targets one after another, prints a line for each, and fails if one did.
pub(crate) fn run(sh: &Shell, options: &Options) -> anyhow::Result<()> {
    let fuzzer = Fuzzer::build(sh)?;
    let all = target_names(sh)?;
    let names = match &options.target {
        Some(name) if all.contains(name) => vec![name.clone()],
        Some(name) => bail!("no target is called {name:?}: there are {}", all.join(", ")),
        None => all,
    };
    let seconds = (options.seconds / names.len() as u64).max(1);
    let mut failed = Vec::new();
    println!(
        "{:<10} {:>12} {:>10} {:>9}",
        "target", "executions", "a second", "failures"
    );
    for name in names {
        let outcome = fuzzer.run(sh, &name, seconds)?;
        println!("{}", outcome.line(&name));
        if let Some(failure) = outcome.failure {
            failed.push(failure);
        } else if options.keeps {
            fuzzer.keep(sh, &name)?;
        }
    }
    for failure in &failed {
        println!("{failure}");
    }
    ensure!(failed.is_empty(), "{} targets failed", failed.len());
    Ok(())
}

/// The built program, and the folder for its new inputs.
struct Fuzzer {
    program: PathBuf,
    inputs: PathBuf,
}

impl Fuzzer {
    fn build(sh: &Shell) -> anyhow::Result<Self> {
        let folder = target_folder(sh)?.join("fuzz");
        let host = cmd!(sh, "rustc --print host-tuple").quiet().read()?;
        // Build scripts must not be instrumented: they are not linked with libFuzzer. So the target is named.
        cmd!(
            sh,
            "cargo build --quiet --release -p rtorb-fuzz --features libfuzzer --target {host} --config {QUICK}"
        )
        .env("CARGO_TARGET_DIR", &folder)
        .env("RUSTFLAGS", FLAGS.join(" "))
        .run()
        .context("libFuzzer needs a C++ compiler")?;
        Ok(Self {
            program: folder.join(host).join("release/fuzz"),
            inputs: folder.join("inputs"),
        })
    }

    /// Runs one target until the time is over or an input fails.
    fn run(&self, sh: &Shell, name: &str, seconds: u64) -> anyhow::Result<Outcome> {
        let found = self.inputs.join(name);
        let failures = Path::new("fuzz/failures").join(name);
        let new_failures = self.inputs.join(format!("{name}-failure-"));
        fs::create_dir_all(&found)?;
        let mut stored = vec![Path::new("fuzz/corpus").join(name), failures.clone()];
        stored.retain(|folder| sh.path_exists(folder));
        let program = &self.program;
        let prefix = format!("-artifact_prefix={}", new_failures.display());
        let seconds = format!("-max_total_time={seconds}");
        let run = cmd!(
            sh,
            "{program} {prefix} {seconds} {OPTIONS...} {found} {stored...}"
        );
        let output = run
            .env("RTORB_FUZZ_TARGET", name)
            .quiet()
            .ignore_status()
            .output()?;
        let text = String::from_utf8_lossy(&output.stderr);
        let mut outcome = Outcome::of_text(&text);
        if !output.status.success() {
            outcome.failure = Some(failure(sh, name, &failures, &text)?);
        }
        Ok(outcome)
    }

    /// Adds the found inputs that reach new code to those of the repository.
    fn keep(&self, sh: &Shell, name: &str) -> anyhow::Result<()> {
        let (program, found) = (&self.program, self.inputs.join(name));
        let kept = Path::new("fuzz/corpus").join(name);
        sh.create_dir(&kept)?;
        cmd!(
            sh,
            "{program} -merge=1 -max_len=1024 -timeout=10 {kept} {found}"
        )
        .env("RTORB_FUZZ_TARGET", name)
        .quiet()
        .ignore_stderr()
        .run()?;
        Ok(())
    }
}

/// Moves the input of a failure into the repository, where a test runs it from then on; returns what is to be said.
fn failure(sh: &Shell, name: &str, folder: &Path, text: &str) -> anyhow::Result<String> {
    let said = text.lines().filter(|line| !line.starts_with('#'));
    let said: Vec<_> = said.skip_while(|line| !is_failure(line)).take(12).collect();
    let said = said.join("\n");
    let written = "Test unit written to ";
    let path = text.lines().find_map(|line| line.split_once(written));
    let Some((_, path)) = path else {
        return Ok(format!("{name} did not start:\n{said}\n{text}"));
    };
    sh.create_dir(folder)?;
    let file = Path::new(path).file_name().context("a file's name")?;
    let kept = folder.join(file);
    fs::copy(path, sh.current_dir().join(&kept))?;
    Ok(format!("{name} failed with {}:\n{said}", kept.display()))
}

/// True for the first line that says why a target failed.
fn is_failure(line: &str) -> bool {
    line.contains("panicked at") || line.contains("ERROR: libFuzzer")
}

/// What libFuzzer counted, and what failed.
#[derive(Debug, Default, PartialEq)]
struct Outcome {
    executions: u64,
    executions_per_second: u64,
    failure: Option<String>,
}

impl Outcome {
    /// Reads the statistics that libFuzzer prints at its end.
    fn of_text(text: &str) -> Self {
        let number = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|line| line.trim().parse().ok()).unwrap_or(0)
        };
        Self {
            executions: number("stat::number_of_executed_units:"),
            executions_per_second: number("stat::average_exec_per_sec:"),
            failure: None,
        }
    }

    fn line(&self, name: &str) -> String {
        let failures = usize::from(self.failure.is_some());
        format!(
            "{name:<10} {:>12} {:>10} {failures:>9}",
            self.executions, self.executions_per_second
        )
    }
}

/// The names of all targets, which have a folder of inputs each; a test of `rtorb-fuzz` compares them.
fn target_names(sh: &Shell) -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    for folder in sh.read_dir("fuzz/corpus")? {
        let name = folder.file_name().context("a folder's name")?;
        names.push(name.to_string_lossy().into_owned());
    }
    Ok(names)
}

/// Options of every run of libFuzzer: at most 4 KiB an input, 10 s and 2 GiB.
const OPTIONS: [&str; 4] = [
    "-max_len=4096",
    "-timeout=10",
    "-rss_limit_mb=2048",
    "-print_final_stats=1",
];

/// One small module of the laboratory is fuzzed, so that it is not worth minutes of optimisation.
const QUICK: &str = "profile.release.package.rtorb-lab.opt-level=0";

/// Flags that instrument the code, and that find overflows.
const FLAGS: [&str; 9] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Ccodegen-units=1",
    "-Cdebug-assertions=on",
    "-Coverflow-checks=on",
    "--cfg=fuzzing",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_statistics_of_libfuzzer_are_read() {
        let text =
            "#12 DONE\nstat::number_of_executed_units: 12\nstat::average_exec_per_sec:     4\n";
        let outcome = Outcome::of_text(text);
        assert_eq!((outcome.executions, outcome.executions_per_second), (12, 4));
        assert_eq!(
            outcome.line("giop"),
            "giop                 12          4         0"
        );
    }
}
