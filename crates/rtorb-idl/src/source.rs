//! Source files and places in them.

use std::ops::Range;
use std::path::{Path, PathBuf};

/// A place in a source file, as an editor counts: lines and columns from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Location {
    /// The number of the file in its [`SourceMap`].
    pub file: u32,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// The length in characters.
    pub length: u32,
}

impl Location {
    /// The place of the character behind this one.
    pub(crate) fn behind(self) -> Location {
        Location {
            column: self.column + self.length,
            length: 1,
            ..self
        }
    }

    /// The range from the start of `self` to the end of `last` if both stand on one line; otherwise `self`.
    pub fn to(self, last: Location) -> Location {
        let end = last.column + last.length;
        if self.file == last.file && self.line == last.line && end > self.column {
            Location {
                length: end - self.column,
                ..self
            }
        } else {
            self
        }
    }
}

/// Every file that a run has read, in the order of reading.
#[derive(Clone, Debug, Default)]
pub struct SourceMap {
    files: Vec<SourceFile>,
}

impl SourceMap {
    /// Adds a file and returns its number in a [`Location`].
    pub fn add(&mut self, file: SourceFile) -> u32 {
        self.files.push(file);
        u32::try_from(self.files.len() - 1).expect("the preprocessor bounds the number of files")
    }

    /// All files, by number.
    pub fn files(&self) -> &[SourceFile] {
        &self.files
    }

    /// The file that `location` lies in; `None` if it is of another map.
    pub fn file(&self, location: Location) -> Option<&SourceFile> {
        self.files.get(location.file as usize)
    }

    /// The position that messages show for `location`, with `#line` directives applied.
    pub fn position(&self, location: Location) -> Position {
        let presumed = self.file(location).map(|file| file.presumed(location.line));
        let (name, line) = presumed.unwrap_or(("<unknown>", location.line));
        Position {
            file: name.to_owned(),
            line,
            column: location.column,
        }
    }

    pub(crate) fn file_mut(&mut self, file: u32) -> Option<&mut SourceFile> {
        self.files.get_mut(file as usize)
    }
}

/// A place in a file as messages show it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Position {
    /// The file's name as given, found or declared by `#line`.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

/// One file and its text.
#[derive(Clone, Debug)]
pub struct SourceFile {
    name: String,
    path: Option<PathBuf>,
    text: String,
    line_starts: Vec<usize>,
    included_from: Option<Location>,
    is_main: bool,
    markers: Vec<LineMarker>,
}

impl SourceFile {
    /// A file called `name` in messages.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        let text = text.into();
        let line_starts = std::iter::once(0)
            .chain(text.match_indices('\n').map(|(at, _)| at + 1))
            .collect();
        Self {
            name: name.into(),
            path: None,
            text,
            line_starts,
            included_from: None,
            is_main: false,
            markers: Vec::new(),
        }
    }

    /// Sets its path on disk.
    #[must_use]
    pub fn at_path(mut self, path: impl Into<PathBuf>) -> Self {
        self.path = Some(path.into());
        self
    }

    /// Sets the place of the `#include` that includes the file.
    #[must_use]
    pub fn included_from(mut self, location: Location) -> Self {
        self.included_from = Some(location);
        self
    }

    /// Marks the file as one that the user gave, not an included one.
    #[must_use]
    pub fn main(mut self) -> Self {
        self.is_main = true;
        self
    }

    /// The name for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its path on disk; `None` for built-in files and text given directly.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// All of its text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The place of the `#include` that includes the file.
    pub fn includer(&self) -> Option<Location> {
        self.included_from
    }

    /// True if `line` belongs to a file that the user gave, with `#line` directives applied.
    pub fn is_main(&self, line: u32) -> bool {
        self.is_main
            && match (self.markers.first(), self.marker(line)) {
                (Some(first), Some(marker)) => first.name == marker.name,
                _ => true,
            }
    }

    /// The text of a line, without its end; empty beyond the end of the file.
    pub fn line(&self, line: u32) -> &str {
        let lines = self.line_range(line, line);
        self.text[lines].trim_end_matches(['\n', '\r'])
    }

    /// The byte range of whole lines, their ends included.
    pub fn line_range(&self, first: u32, last: u32) -> Range<usize> {
        let start = self.line_start(first);
        start..self.line_start(last.saturating_add(1)).max(start)
    }

    /// The byte range that `location` covers: never beyond its line.
    pub fn byte_range(&self, location: Location) -> Range<usize> {
        let line = self.line(location.line);
        let base = self.line_start(location.line);
        let byte = |column: usize| {
            base + line
                .char_indices()
                .nth(column)
                .map_or(line.len(), |(at, _)| at)
        };
        let column = location.column.saturating_sub(1) as usize;
        byte(column)..byte(column.saturating_add(location.length as usize))
    }

    /// The name and line that `#line` directives give to a line.
    pub fn presumed(&self, line: u32) -> (&str, u32) {
        match self.marker(line) {
            Some(marker) => (
                marker.name.as_str(),
                marker.presumed.saturating_add(line - marker.from),
            ),
            None => (self.name.as_str(), line),
        }
    }

    /// Applies a `#line` directive: line `from` is shown as line `presumed` of `name`.
    pub(crate) fn mark(&mut self, from: u32, presumed: u32, name: Option<String>) {
        let name = name.unwrap_or_else(|| self.presumed(from).0.to_owned());
        self.markers.push(LineMarker {
            from,
            presumed,
            name,
        });
    }

    fn marker(&self, line: u32) -> Option<&LineMarker> {
        let after = self.markers.partition_point(|marker| marker.from <= line);
        after.checked_sub(1).map(|at| &self.markers[at])
    }

    fn line_start(&self, line: u32) -> usize {
        self.line_starts
            .get(line.saturating_sub(1) as usize)
            .copied()
            .unwrap_or(self.text.len())
    }
}

#[derive(Clone, Debug)]
struct LineMarker {
    from: u32,
    presumed: u32,
    name: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters_and_ranges_count_bytes() {
        let file = SourceFile::new("a.idl", "x\n/* ü */ long\r\nend");
        let location = Location {
            file: 0,
            line: 2,
            column: 9,
            length: 4,
        };
        assert_eq!(&file.text()[file.byte_range(location)], "long");
        assert_eq!(file.line(2), "/* ü */ long");
        assert_eq!(file.line(9), "");
    }

    #[test]
    fn line_directives_change_names_and_lines() {
        let mut file = SourceFile::new("a.i", "1\n2\n3\n4\n").main();
        file.mark(1, 10, Some("a.idl".to_owned()));
        file.mark(3, 1, Some("b.idl".to_owned()));
        assert_eq!(file.presumed(2), ("a.idl", 11));
        assert_eq!(file.presumed(4), ("b.idl", 2));
        assert!(file.is_main(2) && !file.is_main(3));
    }
}
