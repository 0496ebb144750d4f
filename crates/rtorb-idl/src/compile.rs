//! The compiler that a `build.rs` calls.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::diagnostic::render_all;
use crate::rust::Additions;
use crate::source::{SourceFile, SourceMap};
use crate::{Options, Outcome, rust};

/// Compiles the IDL file `path` to `$OUT_DIR/<stem>.rs`, for `rtorb::include_idl!`.
///
/// For a `build.rs`: prints the files that cargo has to watch, and warnings. After an error, prints it and ends the process
/// with status 1. [`Compiler`] also takes include directories and macros.
pub fn compile(path: impl AsRef<Path>) {
    Compiler::new().compile(path);
}

/// Compiles IDL files to Rust from a `build.rs`.
///
/// ```no_run
/// rtorb_idl::Compiler::new().include_dir("/usr/share/idl/omniORB").compile("idl/naming.idl");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Compiler {
    options: Options,
    runtime: Option<String>,
    additions: Additions,
    out_dir: Option<PathBuf>,
}

impl Compiler {
    /// A compiler without include directories.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a directory to search for included files.
    #[must_use]
    pub fn include_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.options.include_dirs.push(dir.into());
        self
    }

    /// Defines a macro: `NAME` or `NAME=VALUE`.
    #[must_use]
    pub fn define(mut self, define: impl Into<String>) -> Self {
        self.options.defines.push(define.into());
        self
    }

    /// Undefines a macro, for example the predefined `_PRE_3_0_COMPILER_`.
    #[must_use]
    pub fn undefine(mut self, name: impl Into<String>) -> Self {
        self.options.undefines.push(name.into());
        self
    }

    /// Chooses the Rust name of the declaration `idl`, for example `Logger::setLogLevel`, as the annotation `@rust_name` does.
    #[must_use]
    pub fn rust_name(mut self, idl: &str, rust: &str) -> Self {
        self.options.rust_names.push(format!("{idl}={rust}"));
        self
    }

    /// Sets the path of the ORB in the generated code, instead of `rtorb`: for example `rtorb_embedded`.
    #[must_use]
    pub fn runtime(mut self, path: impl Into<String>) -> Self {
        self.runtime = Some(path.into());
        self
    }

    /// Generates a second form of each two-way operation if `starts` is true: `motor.start().turn(90)` returns an `rtorb::Call`, whose
    /// result is taken later by a thread or a task. Only the ORB `rtorb` has it.
    ///
    /// An operation `start` or `start_at` then has a trailing underscore in Rust.
    #[must_use]
    pub fn start_calls(mut self, starts: bool) -> Self {
        self.additions.starts_calls = starts;
        self
    }

    /// Generates a second trait of servants for each interface if `defers` is true: an operation of `MotorDeferredServant` gets an
    /// `rtorb::Responder`, by which any thread or task answers later, and returns nothing. Only the ORB `rtorb` has it.
    #[must_use]
    pub fn defer_replies(mut self, defers: bool) -> Self {
        self.additions.defers_replies = defers;
        self
    }

    /// Generates a third trait of servants for each interface if `are` is true: the operations of `MotorAsyncServant` may be `async fn`, and
    /// `rtorb::TaskServant` makes each call a task. This also does what [`defer_replies`](Self::defer_replies) does. Only the
    /// ORB `rtorb` has it.
    #[must_use]
    pub fn async_servants(mut self, are: bool) -> Self {
        self.additions.has_async_servants = are;
        self
    }

    /// Generates asynchronous method invocation as CORBA Messaging has it, for programs that use it, if `sends` is true. A reference gets the
    /// methods `sendc_turn(&handler, 90)`, with a trait `AmiMotorHandler` of the handlers that are told the replies, and
    /// `sendp_turn(90)`, which returns an `AmiMotorPoller`. This also does what [`start_calls`](Self::start_calls) does. Only the ORB
    /// `rtorb` has it.
    #[must_use]
    pub fn ami(mut self, sends: bool) -> Self {
        self.additions.has_ami = sends;
        self
    }

    /// Sets the directory of the output, instead of `$OUT_DIR`.
    #[must_use]
    pub fn out_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.out_dir = Some(dir.into());
        self
    }

    /// Like [`compile()`], with these options.
    pub fn compile(&self, path: impl AsRef<Path>) {
        match self.try_compile(path.as_ref()) {
            Ok(compiled) => {
                rerun_if_changed(&compiled.sources);
                for line in compiled.warnings.lines() {
                    println!("cargo::warning={line}");
                }
            }
            Err(error) => {
                println!("cargo::rerun-if-changed={}", path.as_ref().display());
                rerun_if_changed(&error.sources);
                eprintln!("{error}");
                std::process::exit(1);
            }
        }
    }

    /// Compiles without printing anything.
    ///
    /// # Errors
    /// The rendered diagnostics if the specification is wrong or has no Rust form; a message if the output cannot be
    /// written.
    pub fn try_compile(&self, path: &Path) -> Result<Compiled, CompileError> {
        let outcome = crate::check(&[path.to_owned()], &self.options);
        let warnings = outcome.render(false);
        match self.write(path, &outcome, &warnings) {
            Ok(output) => Ok(Compiled {
                output,
                warnings,
                sources: outcome.sources,
            }),
            Err(message) => Err(CompileError {
                message,
                sources: outcome.sources,
            }),
        }
    }

    /// Writes the Rust text of `outcome`. Returns the file, or the message of an error.
    fn write(&self, path: &Path, outcome: &Outcome, rendered: &str) -> Result<PathBuf, String> {
        let tree = outcome.tree.as_ref().ok_or(rendered)?;
        let runtime = self.runtime.as_deref().unwrap_or(rust::RTORB);
        if !rust::is_crate_path(runtime) {
            return Err(format!(
                "`{runtime}` is not the path of a Rust crate: expected a name such as rtorb_embedded"
            ));
        }
        let Additions {
            starts_calls,
            defers_replies,
            has_async_servants,
            has_ami,
        } = self.additions;
        let additions = [
            (starts_calls, "started calls", "start_calls"),
            (defers_replies, "deferred replies", "defer_replies"),
            (has_async_servants, "deferred replies", "async_servants"),
            (has_ami, "asynchronous method invocation", "ami"),
        ];
        let is_embedded = runtime.ends_with("rtorb_embedded");
        if let Some((_, what, option)) = additions.iter().find(|it| it.0 && is_embedded) {
            return Err(format!(
                "rtorb_embedded has no {what}: leave `{option}` out"
            ));
        }
        let text = rust::generate_for(tree, runtime, self.additions)
            .map_err(|all| rendered.to_owned() + &render_all(&all, &outcome.sources, false))?;
        let stem = path
            .file_stem()
            .ok_or_else(|| format!("`{}` is not the path of a file", path.display()))?;
        let out_dir = self.out_dir.clone();
        let out_dir = out_dir
            .or_else(|| std::env::var_os("OUT_DIR").map(PathBuf::from))
            .ok_or(
                "OUT_DIR is not set: call this from build.rs, or set a directory with `out_dir`",
            )?;
        let output = out_dir.join(stem).with_added_extension("rs");
        std::fs::write(&output, text)
            .map_err(|error| format!("cannot write `{}`: {error}", output.display()))?;
        Ok(output)
    }
}

/// The result of a compilation.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The file written.
    pub output: PathBuf,
    /// Warnings, rendered; empty if there are none.
    pub warnings: String,
    /// Every file read.
    pub sources: SourceMap,
}

/// The reason why a compilation failed, as text to print.
#[derive(Clone, Debug)]
pub struct CompileError {
    message: String,
    sources: SourceMap,
}

impl CompileError {
    /// All diagnostics of `outcome`.
    pub(crate) fn of(outcome: Outcome) -> Self {
        Self {
            message: outcome.render(false),
            sources: outcome.sources,
        }
    }
}

impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message.trim_end())
    }
}

impl std::error::Error for CompileError {}

fn rerun_if_changed(sources: &SourceMap) {
    for path in sources.files().iter().filter_map(SourceFile::path) {
        println!("cargo::rerun-if-changed={}", path.display());
    }
}
