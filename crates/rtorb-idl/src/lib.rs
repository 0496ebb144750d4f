//! OMG IDL to Rust: preprocessor, lexer, parser, checker and back end.
//!
//! In a `build.rs` one line is enough:
//!
//! ```no_run
//! rtorb_idl::compile("idl/cubit.idl");
//! ```
//!
//! Tools call [`check()`], show the diagnostics of the [`Outcome`], and pass its tree to [`rust::generate`].
//!
//! The language is IDL as defined in CORBA 3.3 part 1, chapter 7, with components and the additions of IDL 4.2.
//!
//! # Built-in declarations
//! * `CORBA::TypeCode`, and other names of module CORBA that a specification uses: they are taken from a built-in `orb.idl`,
//!   one declaration at a time. `#include <orb.idl>`, `TypeCode.idl`, `IOP.idl` and `Components.idl` are built in, and are used
//!   if no include directory has them; so are the files `tao/*.pidl` and `tao/orb.idl` of TAO as far as they are in module CORBA.
//! * The macros `__RTORB_IDL__`, `_PRE_3_0_COMPILER_` (with it the OMG's files use `#include` instead of `import`),
//!   `HAS_LongLong` and `HAS_LongDouble` (for omniORB's files), `__FILE__` and `__LINE__`. [`Options::undefines`] removes them.
//! * `int8` to `uint64`, unless the specification declares types of these names.
//! * The annotations of IDL 4.2, and `@rust_name` of any declaration ([`rust::generate`]). `@optional`, `@bit_bound`, `@position`
//!   and `@oneway` change the mapping. The tree keeps all annotations as written. Annotations that have no effect but may seem to
//!   have one, and those that are neither known nor declared, cause one warning for each name.
//! * The annotations of operations, attributes and interfaces that state requirements: `@worst_case_time`, `@deadline`, `@period`,
//!   `@criticality`, `@critical`, `@best_effort`, `@network_priority`, `@largest_message`, `@queue`, `@statistical` ([`timings()`]).
//!
//! # Deviations from the standard
//! Accepted with a warning: a name that differs only in case from a name used in its scope, before or behind it (`Color color`),
//! from the enclosing scope, or from a keyword younger than CORBA 2.2 (`Factory`); `CORBA::Object`; `import` of a declaration that is
//! not included; a semicolon behind a pragma; a definition with another prefix than its forward declaration, if one of the two
//! is `omg.org` (this one applies); a member of a union with the name of an enumerator that is a label; a `default` behind labels that
//! cover all values; anonymous types of parameters and attributes; a local interface in the state of a valuetype.
//!
//! An instance of a template module is the module's text with the arguments in the place of the parameters. Other names in it
//! have the meaning that they have at the place of the instance. An instance of a template that is not declared (in a file that
//! was not found) has unknown contents.
//!
//! Accepted without a warning: anonymous sequences, arrays and strings in other types; an integer as the value of a floating-point
//! constant, and both in one expression; words of components and of IDL 4 as names (`port`, `map`, `int16`); enumerators
//! written as `Color::red`, or used as labels where their enum is not visible; a comma behind the last enumerator.
//!
//! # Limits
//! 100 levels of nesting, 300 operators in a row, 200 generations of inheritance, 64 levels of included files,
//! 10,000 files and 64 MiB in all, 1,000,000 tokens from macros, 200,000 from instances of
//! template modules, 8,000,000 tokens. Beyond a limit there is an error.
#![doc = concat!(
    "\n\nPages whose names begin with `docs/` are in the repository, <",
    env!("CARGO_PKG_REPOSITORY"),
    ">."
)]
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
pub mod project;
pub mod python;
mod renames;
pub mod rust;
pub mod source;
pub mod suggest;
mod timing;
pub mod tree;

use std::path::PathBuf;

use diagnostic::Diagnostics;
use parser::Specification;
use preprocess::ParserInput;
use source::SourceFile;

pub use compile::{CompileError, Compiled, Compiler, compile};
pub use diagnostic::Diagnostic;
pub use source::SourceMap;
pub use timing::{OperationTiming, timings};
pub use tree::Tree;

/// The options of a run.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Directories to search for included files, in order. A file in quotes is first searched beside the including file.
    pub include_dirs: Vec<PathBuf>,
    /// Macros: `NAME` or `NAME=VALUE`.
    pub defines: Vec<String>,
    /// Names of macros to undefine, predefined ones too.
    pub undefines: Vec<String>,
    /// Rust names of declarations, as if each had the annotation `@rust_name`: `Module::Interface::operation=rust_name`.
    pub rust_names: Vec<String>,
    /// Another compiler that also reads the files. The preprocessor then defines its macros instead of `__RTORB_IDL__` and the
    /// other predefined ones, and each construct that it refuses causes a warning.
    pub shared_with: Option<OtherCompiler>,
}

/// A compiler that may read the same files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OtherCompiler {
    /// omniidl of omniORB 4.2.
    Omniidl,
}

/// The result of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The checked tree; `None` if there is an error among the diagnostics.
    pub tree: Option<Tree>,
    /// Errors and warnings in source order, at most a few hundred.
    pub diagnostics: Vec<Diagnostic>,
    /// Every file read: what the locations in the tree and in the diagnostics refer to.
    pub sources: SourceMap,
}

impl Outcome {
    /// The text of all diagnostics for users, with an empty line behind each, and with colours if `styled`.
    pub fn render(&self, styled: bool) -> String {
        diagnostic::render_all(&self.diagnostics, &self.sources, styled)
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

/// Checks `files` as one specification. Does not read a file again that an earlier one includes.
pub fn check(files: &[PathBuf], options: &Options) -> Outcome {
    run(options, |sources, diagnostics| {
        preprocess::preprocess(files, options, sources, diagnostics)
    })
}

/// Checks a text that is not in a file. `name` is its name in messages.
pub fn check_text(name: &str, text: &str, options: &Options) -> Outcome {
    let file = SourceFile::new(name, text).main();
    run(options, |sources, diagnostics| {
        preprocess::preprocess_file(file, options, sources, diagnostics)
    })
}

fn run(
    options: &Options,
    read: impl FnOnce(&mut SourceMap, &mut Diagnostics) -> ParserInput,
) -> Outcome {
    let mut sources = SourceMap::default();
    let mut diagnostics = Diagnostics::default();
    let tokens = read(&mut sources, &mut diagnostics);
    let specification = parser::parse(tokens, &mut diagnostics);
    let orb = builtin_orb(&mut sources);
    let mut tree = check::check(
        &specification,
        &orb.definitions,
        options,
        &sources,
        &mut diagnostics,
    );
    if !diagnostics.has_errors() {
        let wrong = renames::apply(&options.rust_names, &mut tree);
        wrong.into_iter().for_each(|one| diagnostics.push(one));
    }
    let tree = (!diagnostics.has_errors()).then_some(tree);
    Outcome {
        tree,
        diagnostics: diagnostics.into_sorted(),
        sources,
    }
}

/// Module CORBA. The checker takes declarations from it that a specification uses but does not declare.
fn builtin_orb(sources: &mut SourceMap) -> Specification {
    let file = SourceFile::new("<built in>/orb.idl", builtin::ORB);
    let mut nothing = Diagnostics::default();
    let tokens = preprocess::preprocess_file(file, &Options::default(), sources, &mut nothing);
    parser::parse(tokens, &mut nothing)
}
