//! `rtorb idl`: check IDL, and make Rust of it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, anyhow};
use clap::{Args, Subcommand};
use rtorb_idl::diagnostic::Diagnostic;
use rtorb_idl::{OperationTiming, Options, Outcome, rust};
use rtorb_lab::results::summary::Table;
use rtorb_lab::results::write_atomically;
use rtorb_sched::times::text_of_ns;
use serde_json::json;

use crate::NO;
use crate::output::{line, print_json, print_table};

/// Check IDL files, and make Rust of them.
#[derive(Debug, Args)]
pub(crate) struct Idl {
    #[command(subcommand)]
    subcommand: IdlSubcommand,
}

#[derive(Debug, Subcommand)]
enum IdlSubcommand {
    Check(Check),
    Build(Build),
}

/// Check files, each as a specification of its own, and show every error and warning, and the timing of annotated operations.
///
/// Exit status 0: no errors. 1: there are some.
#[derive(Debug, Args)]
struct Check {
    #[command(flatten)]
    reading: Reading,
    /// Print one JSON object: files, each with its diagnostics and the timings of its operations, in nanoseconds.
    #[arg(long)]
    json: bool,
}

/// Make Rust of files, as `rtorb_idl::compile` does in a build script.
#[derive(Debug, Args)]
struct Build {
    #[command(flatten)]
    reading: Reading,
    /// Write NAME.rs into this folder for each NAME.idl; without it, the text is printed.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct Reading {
    /// A folder in which included files are looked for. May be given more than once.
    #[arg(short = 'I', value_name = "DIR")]
    include_dirs: Vec<PathBuf>,
    /// Define a macro: NAME or NAME=VALUE. May be given more than once.
    #[arg(short = 'D', value_name = "NAME")]
    defines: Vec<String>,
    /// The IDL files.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
}

impl Idl {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        let fine = match &self.subcommand {
            IdlSubcommand::Check(check) => check.run()?,
            IdlSubcommand::Build(build) => build.run()?,
        };
        Ok(if fine {
            ExitCode::SUCCESS
        } else {
            ExitCode::from(NO)
        })
    }
}

impl Check {
    fn run(&self) -> anyhow::Result<bool> {
        let outcomes: Vec<(&PathBuf, Outcome)> = self
            .reading
            .files
            .iter()
            .map(|file| (file, self.reading.check(file)))
            .collect();
        if self.json {
            let files: Vec<_> = outcomes
                .iter()
                .map(|(file, outcome)| {
                    json!({
                        "file": file,
                        "valid": outcome.tree.is_some(),
                        "diagnostics": outcome.reports(),
                        "timings": outcome.timings(),
                    })
                })
                .collect();
            print_json(&json!({ "files": files }))?;
        } else {
            outcomes.iter().for_each(|(_, outcome)| tell(outcome));
            let timings = outcomes.iter().flat_map(|(_, outcome)| outcome.timings());
            show_timings(&timings.collect::<Vec<_>>())?;
            let valid = outcomes
                .iter()
                .filter(|(_, outcome)| outcome.tree.is_some())
                .count();
            line(format!("{valid} of {} files are valid", outcomes.len()))?;
        }
        Ok(outcomes.iter().all(|(_, outcome)| outcome.tree.is_some()))
    }
}

impl Build {
    fn run(&self) -> anyhow::Result<bool> {
        let mut fine = true;
        for file in &self.reading.files {
            let outcome = self.reading.check(file);
            tell(&outcome);
            let Some(tree) = &outcome.tree else {
                fine = false;
                continue;
            };
            match rust::generate(tree) {
                Ok(text) => self.write(file, &text)?,
                Err(diagnostics) => {
                    tell_all(&diagnostics, &outcome);
                    fine = false;
                }
            }
        }
        Ok(fine)
    }

    fn write(&self, file: &Path, text: &str) -> anyhow::Result<()> {
        let Some(folder) = &self.out else {
            return line(text.trim_end());
        };
        let stem = file
            .file_stem()
            .ok_or_else(|| anyhow!("{} has no name", file.display()))?;
        let path = folder.join(stem).with_extension("rs");
        write_atomically(&path, text.as_bytes())
            .with_context(|| format!("cannot write {}", path.display()))?;
        line(path.display().to_string())
    }
}

impl Reading {
    fn check(&self, file: &Path) -> Outcome {
        let options = Options {
            include_dirs: self.include_dirs.clone(),
            defines: self.defines.clone(),
        };
        rtorb_idl::check(&[file.to_owned()], &options)
    }
}

/// A line for each annotated operation; nothing if there is none.
fn show_timings(timings: &[OperationTiming]) -> anyhow::Result<()> {
    if timings.is_empty() {
        return Ok(());
    }
    let head = [
        "operation",
        "worst case",
        "deadline",
        "period",
        "criticality",
        "annotated at",
    ];
    let row = |timing: &OperationTiming| {
        let time = |ns: Option<u64>| ns.map(text_of_ns).unwrap_or_default();
        vec![
            timing.operation.clone(),
            time(timing.worst_ns),
            time(timing.deadline_ns),
            time(timing.period_ns),
            timing
                .criticality
                .map_or_else(String::new, |criticality| criticality.name().to_owned()),
            format!("{}:{}", timing.file, timing.line),
        ]
    };
    print_table(&Table {
        head: head.map(str::to_owned).to_vec(),
        rows: timings.iter().map(row).collect(),
    })
}

/// Diagnostics go to standard error, so that generated text can be piped.
fn tell(outcome: &Outcome) {
    eprint!("{}", outcome.render(styled()));
}

fn tell_all(diagnostics: &[Diagnostic], outcome: &Outcome) {
    for diagnostic in diagnostics {
        eprintln!("{}\n", diagnostic.render(&outcome.sources, styled()));
    }
}

fn styled() -> bool {
    std::io::IsTerminal::is_terminal(&std::io::stderr())
}
