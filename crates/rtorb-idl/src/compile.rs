//! What a `build.rs` calls.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::source::{SourceFile, SourceMap};
use crate::{Diagnostic, Options, Outcome, rust};

/// Compiles the IDL file `path` to `$OUT_DIR/<stem>.rs`, for `rtorb::include_idl!`.
///
/// For a `build.rs`: tells cargo which files were read, prints what is wrong with them, and ends the process with
/// status 1 if there is an error. [`Compiler`] takes include directories and macros.
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
    out_dir: Option<PathBuf>,
}

impl Compiler {
    /// A compiler without include directories.
    pub fn new() -> Self {
        Self::default()
    }

    /// Looks for included files in `dir`, too.
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

    /// Writes to `dir` and not to `$OUT_DIR`.
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
    /// The diagnostics, rendered, if the specification is wrong or cannot be generated; a message if the result
    /// cannot be written.
    pub fn try_compile(&self, path: &Path) -> Result<Compiled, CompileError> {
        let outcome = crate::check(&[path.to_owned()], &self.options);
        let rendered = outcome.render(false);
        let failed = |message: String, sources: SourceMap| Err(CompileError { message, sources });
        let Some(tree) = outcome.tree else {
            return failed(rendered, outcome.sources);
        };
        let text = match rust::generate(&tree) {
            Ok(text) => text,
            Err(diagnostics) => {
                return failed(
                    rendered + &render(&diagnostics, &outcome.sources),
                    outcome.sources,
                );
            }
        };
        let Some(stem) = path.file_stem() else {
            return failed(
                format!("`{}` names no file", path.display()),
                outcome.sources,
            );
        };
        let Some(out_dir) = self
            .out_dir
            .clone()
            .or_else(|| std::env::var_os("OUT_DIR").map(PathBuf::from))
        else {
            return failed(
                "OUT_DIR is not set: call this from build.rs, or give a directory".to_owned(),
                outcome.sources,
            );
        };
        let mut name = stem.to_owned();
        name.push(".rs");
        let output = out_dir.join(name);
        match std::fs::write(&output, text) {
            Ok(()) => Ok(Compiled {
                output,
                warnings: rendered,
                sources: outcome.sources,
            }),
            Err(error) => failed(
                format!("cannot write `{}`: {error}", output.display()),
                outcome.sources,
            ),
        }
    }
}

/// What a compilation made.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The file written.
    pub output: PathBuf,
    /// Warnings, rendered; empty if there are none.
    pub warnings: String,
    /// Every file read.
    pub sources: SourceMap,
}

/// Why a compilation made nothing; its text is what to print.
#[derive(Clone, Debug)]
pub struct CompileError {
    message: String,
    sources: SourceMap,
}

impl CompileError {
    /// All that was found.
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

fn render(diagnostics: &[Diagnostic], sources: &SourceMap) -> String {
    diagnostics
        .iter()
        .map(|diagnostic| diagnostic.render(sources, false) + "\n\n")
        .collect()
}

fn rerun_if_changed(sources: &SourceMap) {
    for path in sources.files().iter().filter_map(SourceFile::path) {
        println!("cargo::rerun-if-changed={}", path.display());
    }
}
