//! OMG IDL to Rust: preprocessor, lexer, parser, checker and back end.
#![forbid(unsafe_code)]

pub mod diagnostic;
pub mod rust;
pub mod source;
pub mod tree;

pub use diagnostic::Diagnostic;
pub use source::SourceMap;
pub use tree::Tree;
