//! OMG IDL to Rust: preprocessor, lexer, parser, checker and back end.
//!
//! In a `build.rs` one line is enough:
//!
//! ```no_run
//! rtorb_idl::compile("idl/cubit.idl");
//! ```
//!
//! Tools call [`check()`], look at the [`Outcome`], and give its tree to [`rust::generate`].
//!
//! The language is IDL as CORBA 3.3 part 1, chapter 7 defines it, with components and what IDL 4.2 adds.
//!
//! # What is there without being declared
//! * `CORBA::TypeCode`, and whatever else a specification names of module CORBA: it is taken from a built-in `orb.idl`,
//!   one declaration at a time. `#include <orb.idl>`, `TypeCode.idl`, `IOP.idl` and `Components.idl` are built in where
//!   no include directory has them.
//! * The macros `__RTORB_IDL__`, `_PRE_3_0_COMPILER_` (the OMG's files then include and do not `import`),
//!   `HAS_LongLong` and `HAS_LongDouble` (omniORB's files), `__FILE__` and `__LINE__`.
//! * `int8` to `uint64`, unless the specification declares types of these names.
//! * The annotations `@worst_case_time`, `@deadline`, `@period` and `@criticality` of operations and attributes ([`timings()`]).
//!   Other annotations are kept as they are written.
//!
//! # What is accepted though the standard forbids it
//! With a warning: a name that differs in case only from a name used before it in the scope (`Color color`), from the
//! scope it stands in, or from a keyword younger than CORBA 2.2 (`Factory`); `CORBA::Object`; `import` of what is not
//! included.
//! Without: anonymous sequences, arrays and strings everywhere; an integer where a constant is floating-point, and both
//! in one expression; words of components and of IDL 4 as names (`port`, `map`, `int16`); enumerators that are written
//! `Color::red`, or stand as labels where their enum is out of sight; a comma behind the last enumerator.
//!
//! # Limits
//! 100 levels of anything within itself, 300 operators in a row, 200 generations of inheritance, 64 files within each
//! other, 10,000 files and 64 MiB in all, 1,000,000 tokens out of macros, 8,000,000 tokens: beyond them there is an error.
#![forbid(unsafe_code)]

mod ast;
mod builtin;
mod check;
mod compile;
pub mod diagnostic;
mod keywords;
mod lexer;
mod literal;
mod parser;
mod preprocess;
pub mod rust;
pub mod source;
mod suggest;
mod timing;
pub mod tree;

use std::path::PathBuf;

use diagnostic::Diagnostics;
use parser::Specification;
use preprocess::Preprocessed;
use source::SourceFile;

pub use compile::{CompileError, Compiled, Compiler, compile};
pub use diagnostic::Diagnostic;
pub use source::SourceMap;
pub use timing::{OperationTiming, timings};
pub use tree::Tree;

/// What a run may be told.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Where included files are looked for, in order; quoted ones first beside the including file.
    pub include_dirs: Vec<PathBuf>,
    /// Macros: `NAME` or `NAME=VALUE`.
    pub defines: Vec<String>,
}

/// What a run found.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The checked tree; `None` if there is an error among the diagnostics.
    pub tree: Option<Tree>,
    /// Errors and warnings in the order of the source, at most a few hundred.
    pub diagnostics: Vec<Diagnostic>,
    /// Every file read: what the locations in the tree and in the diagnostics refer to.
    pub sources: SourceMap,
}

impl Outcome {
    /// All diagnostics as a person reads them, an empty line between each two; colours only if `styled`.
    pub fn render(&self, styled: bool) -> String {
        self.diagnostics
            .iter()
            .map(|diagnostic| diagnostic.render(&self.sources, styled) + "\n\n")
            .collect()
    }

    /// The timing of every annotated operation; nothing if there is no tree.
    pub fn timings(&self) -> Vec<OperationTiming> {
        let tree = self.tree.as_ref();
        tree.map(|tree| timing::of_tree(tree, &self.sources))
            .unwrap_or_default()
    }

    /// All diagnostics for a machine.
    pub fn reports(&self) -> Vec<diagnostic::Report> {
        self.diagnostics
            .iter()
            .map(|diagnostic| diagnostic.report(&self.sources))
            .collect()
    }
}

/// Checks `files` as one specification. A file that an earlier one includes is not read again.
pub fn check(files: &[PathBuf], options: &Options) -> Outcome {
    run(|sources, diagnostics| preprocess::preprocess(files, options, sources, diagnostics))
}

/// Checks a text that is in no file; `name` is what messages call it.
pub fn check_text(name: &str, text: &str, options: &Options) -> Outcome {
    let file = SourceFile::new(name, text).main();
    run(|sources, diagnostics| preprocess::preprocess_file(file, options, sources, diagnostics))
}

fn run(read: impl FnOnce(&mut SourceMap, &mut Diagnostics) -> Preprocessed) -> Outcome {
    let mut sources = SourceMap::default();
    let mut diagnostics = Diagnostics::default();
    let tokens = read(&mut sources, &mut diagnostics);
    let specification = parser::parse(tokens, &mut diagnostics);
    let orb = builtin_orb(&mut sources);
    let tree = check::check(&specification, &orb.definitions, &sources, &mut diagnostics);
    let tree = (!diagnostics.has_errors()).then_some(tree);
    Outcome {
        tree,
        diagnostics: diagnostics.into_sorted(),
        sources,
    }
}

/// Module CORBA, of which the checker takes what a specification names without declaring it.
fn builtin_orb(sources: &mut SourceMap) -> Specification {
    let file = SourceFile::new("<built in>/orb.idl", builtin::ORB);
    let mut nothing = Diagnostics::default();
    let tokens = preprocess::preprocess_file(file, &Options::default(), sources, &mut nothing);
    parser::parse(tokens, &mut nothing)
}
