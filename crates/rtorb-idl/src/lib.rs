//! OMG IDL to Rust: preprocessor, lexer, parser, checker and back end.
#![forbid(unsafe_code)]

mod builtin;
pub mod diagnostic;
mod lexer;
mod literal;
mod preprocess;
pub mod rust;
pub mod source;
pub mod tree;

pub use diagnostic::Diagnostic;
pub use source::SourceMap;
pub use tree::Tree;

/// What a run may be told.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Where included files are looked for, in order.
    pub include_dirs: Vec<std::path::PathBuf>,
    /// Macros: `NAME` or `NAME=VALUE`.
    pub defines: Vec<String>,
}
