//! Reads TOML files and reports errors with their line.

use std::path::{Path, PathBuf};

/// An error in a file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}:{} {reason}", .path.display(), .line.map(|line| format!("{line}:")).unwrap_or_default())]
pub struct FileError {
    /// The path as given.
    pub path: PathBuf,
    /// The line, from 1; `None` if the error is not in one line.
    pub line: Option<usize>,
    /// The mistake and its correction.
    pub reason: String,
}

/// Reads the text of a file of at most 64 MiB.
///
/// # Errors
/// The error of the file system, or that the file is too long.
pub fn read_text(path: &Path) -> Result<String, FileError> {
    let wrong = |reason: String| FileError {
        path: path.to_owned(),
        line: None,
        reason,
    };
    let unreadable =
        |error: std::io::Error| wrong(format!("{error}: name a file that this program may read"));
    let bytes = std::fs::metadata(path).map_err(unreadable)?.len();
    if bytes > FILE_BYTES_MAX {
        return Err(wrong(format!(
            "the file has {bytes} bytes; the maximum is {FILE_BYTES_MAX}"
        )));
    }
    std::fs::read_to_string(path).map_err(unreadable)
}

/// Parses TOML.
///
/// # Errors
/// The line, from 1, if there is one; and the reason.
pub fn from_toml<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, (Option<usize>, String)> {
    toml::from_str(text).map_err(|error| {
        let line = error.span().map(|span| line_of(text, span.start));
        (line, error.message().replace('\n', "; "))
    })
}

/// Returns the line of a byte of a text, from 1.
#[must_use]
pub fn line_of(text: &str, byte: usize) -> usize {
    let before = text.as_bytes().iter().take(byte);
    1 + before.filter(|byte| **byte == b'\n').count()
}

/// Returns the name most similar to a misspelt one, if any is similar: a suggestion. A name with one slip is always similar.
/// Other names are compared by the Jaro-Winkler measure, in which the first characters count more. Case does not matter. Of very
/// many or very long names only the first ones are compared, which bounds the time.
#[must_use]
pub fn nearest<'a>(wrong: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let wrong = wrong.to_lowercase();
    let a_word = wrong.chars().count() > 2;
    let alike = |name: &str| {
        let name = name.to_lowercase();
        if a_word && strsim::osa_distance(&wrong, &name) <= 1 {
            return 1.0;
        }
        strsim::jaro_winkler(&wrong, &name)
    };
    let mut left = COMPARED_MAX;
    names
        .take_while(|name| {
            let cost = name.len().saturating_mul(wrong.len());
            left = left.saturating_sub(cost);
            left > 0
        })
        .map(|name| (alike(name), name))
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .filter(|(alike, _)| *alike >= ALIKE_AT_LEAST)
        .map(|(_, name)| name)
}

/// Pairs of bytes: 50,000 names of twenty bytes each.
const COMPARED_MAX: usize = 20_000_000;
/// Of 1. Unrelated names of a system reach half of it by chance.
const ALIKE_AT_LEAST: f64 = 0.8;
const FILE_BYTES_MAX: u64 = 64 << 20;

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn nearest_finds_a_slip_at_any_position() {
        let names = [
            "worst",
            "period",
            "deadline",
            "sensors.sample",
            "cpus",
            "arm",
        ];
        for (wrong, meant) in [
            ("wrost", Some("worst")),
            ("Deadlines", Some("deadline")),
            ("dedline", Some("deadline")),
            ("snesors.sample", Some("sensors.sample")),
            ("sensors.smaple", Some("sensors.sample")),
            ("cpu", Some("cpus")),
            ("amr", Some("arm")),
            ("", None),
            ("a", None),
            ("cores", None),
            ("frequency", None),
        ] {
            assert_eq!(nearest(wrong, names.into_iter()), meant, "{wrong}");
        }
        assert_eq!(nearest("worst", [].into_iter()), None);
    }
}
