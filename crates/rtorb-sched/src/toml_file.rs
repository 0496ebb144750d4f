//! Reading TOML files so that what is wrong is told with its line.

use std::path::{Path, PathBuf};

/// Why a file is not what it should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}:{} {reason}", .path.display(), .line.map(|line| format!("{line}:")).unwrap_or_default())]
pub struct FileError {
    /// The file as it was named.
    pub path: PathBuf,
    /// The line, from 1; `None` when it is not about a line.
    pub line: Option<usize>,
    /// What is wrong, and what would be right.
    pub reason: String,
}

/// The text of a file of at most 64 MiB.
///
/// # Errors
/// What the file system said, or that it is too long.
pub fn read_text(path: &Path) -> Result<String, FileError> {
    let wrong = |reason: String| FileError {
        path: path.to_owned(),
        line: None,
        reason,
    };
    let unreadable =
        |error: std::io::Error| wrong(format!("{error}; name a file that this program may read"));
    let octets = std::fs::metadata(path).map_err(unreadable)?.len();
    if octets > FILE_OCTETS_MAX {
        return Err(wrong(format!(
            "it has {octets} octets, and {FILE_OCTETS_MAX} are read at most"
        )));
    }
    std::fs::read_to_string(path).map_err(unreadable)
}

/// Reads TOML; else in which line what is wrong.
///
/// # Errors
/// The line, from 1, where there is one; and the reason.
pub fn from_toml<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, (Option<usize>, String)> {
    toml::from_str(text).map_err(|error| {
        let line = error.span().map(|span| line_of(text, span.start));
        (line, error.message().replace('\n', "; "))
    })
}

/// The line of an octet of a text, from 1.
#[must_use]
pub fn line_of(text: &str, octet: usize) -> usize {
    let before = text.as_bytes().iter().take(octet);
    1 + before.filter(|octet| **octet == b'\n').count()
}

/// Of these names the one that begins most like a wrong one, if it does for half of its length: a suggestion.
#[must_use]
pub fn nearest<'a>(wrong: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let alike = |name: &&str| {
        let same = name
            .chars()
            .zip(wrong.chars())
            .take_while(|(a, b)| a.eq_ignore_ascii_case(b));
        same.count()
    };
    let name = names.max_by_key(alike)?;
    (alike(&name) * 2 >= wrong.chars().count()).then_some(name)
}

const FILE_OCTETS_MAX: u64 = 64 << 20;
