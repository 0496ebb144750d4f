//! `rtorb idl`: checks IDL, and generates Rust from it.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, anyhow};
use clap::{Args, Subcommand, ValueEnum};
use rtorb_idl::diagnostic::Diagnostic;
use rtorb_idl::rust::Additions;
use rtorb_idl::{OperationTiming, Options, OtherCompiler, Outcome, Tree, python, rust};
use rtorb_results::table::Table;
use rtorb_sched::times::text_of_ns;
use serde_json::json;

use crate::colour;
use crate::exit_status::FAILED;
use crate::named_file;
use crate::orb_options::usage;
use crate::output::{line, note, print_beside, print_json, print_table};

/// Check IDL files, and generate Rust or Python from them.
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

/// Check each file as a separate specification. Show every error and warning, and the timing of annotated operations.
///
/// Exit status 0: no errors. 1: at least one error.
#[derive(Debug, Args)]
struct Check {
    #[command(flatten)]
    sources: SourceOptions,
    /// Also warn of what another compiler refuses, which reads the same files. They are read with that compiler's macros, so what
    /// stands in `#ifdef __RTORB_IDL__` is left out.
    #[arg(long = "for", value_name = "COMPILER")]
    shared_with: Option<SharedWith>,
    /// Print one JSON object: the files, each with its diagnostics and the timings of its operations in nanoseconds.
    #[arg(long)]
    json: bool,
}

/// Generate Rust from files, as `rtorb_idl::compile` does in a build script, or what Python's editors need.
///
/// Exit status 1: a file has an error, or a name cannot be that of Rust.
#[derive(Debug, Args)]
struct Build {
    #[command(flatten)]
    sources: SourceOptions,
    /// Folder for the generated files: NAME.rs for each NAME.idl. Without it, the text is printed.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write NAME_idl.py and its stub NAME_idl.pyi for Python instead: editors and type checkers then know the classes of the package
    /// rtorb, which reads the IDL file itself. Without --out, the stub is printed.
    #[arg(long, conflicts_with_all = ["start_calls", "defer_replies", "async_servants", "ami"])]
    python: bool,
    #[command(flatten)]
    additions: AdditionOptions,
}

#[derive(Debug, Args)]
struct AdditionOptions {
    /// Also generate calls that are started: motor.start().turn(90) returns a future.
    #[arg(long)]
    start_calls: bool,
    /// Also generate traits of servants that answer later: MotorDeferredServant.
    #[arg(long)]
    defer_replies: bool,
    /// Generate a third trait of servants, whose operations may be `async fn`; it includes --defer-replies.
    #[arg(long)]
    async_servants: bool,
    /// Also generate asynchronous calls of CORBA Messaging: sendc_turn and sendp_turn. This includes --start-calls.
    #[arg(long)]
    ami: bool,
}

/// A compiler that may read the same files.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum SharedWith {
    /// omniidl of omniORB 4.2.
    Omniidl,
}

#[derive(Debug, Args)]
struct SourceOptions {
    /// Folder to search for included files. May be given more than once.
    #[arg(short = 'I', value_name = "DIR")]
    include_dirs: Vec<PathBuf>,
    /// Macro to define: NAME or NAME=VALUE. May be given more than once.
    #[arg(short = 'D', value_name = "NAME")]
    defines: Vec<String>,
    /// Macro to undefine, after all definitions. May be given more than once.
    #[arg(short = 'U', value_name = "NAME")]
    undefines: Vec<String>,
    /// Rust name of a declaration: Module::Interface::operation=rust_name. May be given more than once.
    #[arg(long = "rust-name", value_name = "IDL=RUST")]
    rust_names: Vec<String>,
    /// IDL files.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
}

impl Idl {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        let (IdlSubcommand::Check(Check { sources, .. })
        | IdlSubcommand::Build(Build { sources, .. })) = &self.subcommand;
        for file in &sources.files {
            named_file::check_readable(file)?;
        }
        let valid = match &self.subcommand {
            IdlSubcommand::Check(check) => check.run()?,
            IdlSubcommand::Build(build) => build.run()?,
        };
        Ok(if valid {
            ExitCode::SUCCESS
        } else {
            ExitCode::from(FAILED)
        })
    }
}

impl Check {
    fn run(&self) -> anyhow::Result<bool> {
        let outcomes: Vec<(&PathBuf, Outcome)> = self
            .sources
            .files
            .iter()
            .map(|file| (file, self.sources.check(file, self.shared_with)))
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
            outcomes
                .iter()
                .for_each(|(_, outcome)| print_diagnostics(outcome));
            let timings = outcomes.iter().flat_map(|(_, outcome)| outcome.timings());
            print_timings(&timings.collect::<Vec<_>>())?;
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
        self.check_names()?;
        let mut valid = true;
        for file in &self.sources.files {
            let outcome = self.sources.check(file, None);
            print_diagnostics(&outcome);
            let Some(tree) = &outcome.tree else {
                valid = false;
                continue;
            };
            if self.python {
                self.write_python(file, tree)?;
                continue;
            }
            match rust::generate_with(tree, self.additions.chosen()) {
                Ok(text) => self.write(file, &text)?,
                Err(diagnostics) => {
                    print_all_diagnostics(&diagnostics, &outcome);
                    valid = false;
                }
            }
        }
        Ok(valid)
    }

    /// Checks that no two files are generated under one name.
    fn check_names(&self) -> anyhow::Result<()> {
        let mut names = BTreeSet::new();
        let mut files = self.sources.files.iter();
        match files.find(|file| !names.insert(file.file_stem())) {
            Some(file) if self.out.is_some() => Err(usage(format!(
                "{}: another file has this name, and both would be written to one: build them into two folders",
                file.display()
            ))),
            _ => Ok(()),
        }
    }

    fn write(&self, file: &Path, text: &str) -> anyhow::Result<()> {
        let Some(folder) = &self.out else {
            return line(text.trim_end());
        };
        let path = folder.join(stem(file)?).with_extension("rs");
        named_file::write(&path, text.as_bytes())?;
        line(path.display().to_string())
    }

    /// Writes the Python module, which finds the IDL from its own place, and its stub.
    fn write_python(&self, file: &Path, tree: &Tree) -> anyhow::Result<()> {
        let stub = python::stub(tree);
        let Some(folder) = &self.out else {
            return line(stub.trim_end());
        };
        let from_folder = |path: &Path| {
            let relative = relative(folder, path);
            relative.with_context(|| format!("cannot write {}", folder.display()))
        };
        let folders = self.sources.include_dirs.iter();
        let folders: Vec<_> = folders
            .map(|it| from_folder(it))
            .collect::<anyhow::Result<_>>()?;
        let module = python::module(&from_folder(file)?, &folders);
        let name = stem(file)?.to_string_lossy().replace(['-', '.', ' '], "_") + "_idl";
        for (extension, text) in [("py", &module), ("pyi", &stub)] {
            let path = folder.join(&name).with_extension(extension);
            named_file::write(&path, text.as_bytes())?;
            line(path.display().to_string())?;
        }
        Ok(())
    }
}

/// Returns the name of a file without its folder and its extension.
fn stem(file: &Path) -> anyhow::Result<&OsStr> {
    file.file_stem()
        .ok_or_else(|| anyhow!("{} has no name", file.display()))
}

/// Returns the path of a file from a folder, which need not exist.
fn relative(folder: &Path, file: &Path) -> std::io::Result<String> {
    let folder = std::path::absolute(folder)?;
    let existing = folder.ancestors().find_map(|it| {
        let inside = folder.strip_prefix(it).ok()?;
        Some(it.canonicalize().ok()?.join(inside))
    });
    let (folder, file) = (existing.unwrap_or(folder), file.canonicalize()?);
    let common = folder.components().zip(file.components());
    let common = common.take_while(|(one, other)| one == other).count();
    let up = folder.components().skip(common).map(|_| "..".as_ref());
    let down = file.components().skip(common).map(|it| it.as_os_str());
    let path: PathBuf = up.chain(down).collect();
    Ok(path.to_string_lossy().into_owned())
}

impl AdditionOptions {
    fn chosen(&self) -> Additions {
        Additions {
            starts_calls: self.start_calls,
            defers_replies: self.defer_replies,
            has_async_servants: self.async_servants,
            has_ami: self.ami,
        }
    }
}

impl SourceOptions {
    fn check(&self, file: &Path, shared_with: Option<SharedWith>) -> Outcome {
        let options = Options {
            include_dirs: self.include_dirs.clone(),
            defines: self.defines.clone(),
            undefines: self.undefines.clone(),
            rust_names: self.rust_names.clone(),
            shared_with: shared_with.map(|SharedWith::Omniidl| OtherCompiler::Omniidl),
        };
        rtorb_idl::check(&[file.to_owned()], &options)
    }
}

/// Prints a line for each annotated operation; nothing if there is none.
fn print_timings(timings: &[OperationTiming]) -> anyhow::Result<()> {
    if timings.is_empty() {
        return Ok(());
    }
    let head = [
        "operation",
        "worst case",
        "deadline",
        "period",
        "criticality",
        "requires",
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
            requirements(timing),
            format!("{}:{}", timing.file, timing.line),
        ]
    };
    print_table(&Table {
        head: head.map(str::to_owned).to_vec(),
        rows: timings.iter().map(row).collect(),
    })
}

/// The requirements of an operation that are no times, in words.
fn requirements(timing: &OperationTiming) -> String {
    let network = timing.network_priority.map(|dscp| format!("DSCP {dscp}"));
    let largest = timing
        .largest_message
        .map(|bytes| format!("messages of {bytes} bytes"));
    let queue = timing.queue.map(|requests| format!("{requests} waiting"));
    let late = (timing.statistical).map(|ratio| format!("{}/{} late", ratio.misses, ratio.calls));
    let stated = [network, largest, queue, late].into_iter().flatten();
    stated.collect::<Vec<_>>().join(", ")
}

/// Prints to standard error, so that generated text can be piped.
fn print_diagnostics(outcome: &Outcome) {
    print_beside(&outcome.render(colour::on_stderr()));
}

fn print_all_diagnostics(diagnostics: &[Diagnostic], outcome: &Outcome) {
    for diagnostic in diagnostics {
        note!(
            "{}\n",
            diagnostic.render(&outcome.sources, colour::on_stderr())
        );
    }
}
