//! Source files and places in them.

/// A place in a source file, as an editor counts: lines and columns from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Location {
    /// Which file of the run.
    pub file: u32,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// How many characters the thing spans.
    pub length: u32,
}
