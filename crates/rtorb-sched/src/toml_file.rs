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

/// Of these names the one that is most like a wrong one, if it is like it at all: a suggestion. One slip is always like; more are
/// measured as Jaro and Winkler do, for whom those at the beginning count more. Capitals do not count. Of very many or very long
/// names only the first are compared, so that an answer comes soon.
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

/// Pairs of octets: 50,000 names of twenty each.
const COMPARED_MAX: usize = 20_000_000;
/// Of 1. Unlike words of a system have half of that by chance.
const ALIKE_AT_LEAST: f64 = 0.8;
const FILE_OCTETS_MAX: u64 = 64 << 20;

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_slip_is_seen_wherever_it_is() {
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
