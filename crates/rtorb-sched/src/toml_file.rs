//! Reads TOML files and reports errors with their line.

use core::ops::Range;
use std::path::{Path, PathBuf};

use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Origin, Renderer, Snippet};

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

/// A mistake in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The line, from 1; `None` if the mistake is not in one line.
    pub line: Option<usize>,
    /// The bytes of the text; none for the whole line.
    pub bytes: Range<usize>,
    /// The mistake and its correction.
    pub reason: String,
}

impl Mistake {
    /// Returns the mistake, and its correction if there is one.
    fn parts(&self) -> (&str, Option<&str>) {
        let parts = self.reason.split_once(": ");
        match parts.filter(|(mistake, _)| !mistake.starts_with("invalid ")) {
            Some((mistake, correction)) => (mistake, Some(correction)),
            None => (&self.reason, None),
        }
    }
}

/// All mistakes in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileErrors {
    path: PathBuf,
    text: String,
    mistakes: Vec<Mistake>,
}

impl FileErrors {
    /// Joins the mistakes in the text of a file. Those of earlier lines come first.
    #[must_use]
    pub fn new(path: &Path, text: String, mut mistakes: Vec<Mistake>) -> Self {
        mistakes.sort_by_key(|mistake| (mistake.line, mistake.bytes.start));
        mistakes.dedup();
        Self {
            path: path.to_owned(),
            text,
            mistakes,
        }
    }

    /// The path as given.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The mistakes, those of earlier lines first.
    #[must_use]
    pub fn mistakes(&self) -> &[Mistake] {
        &self.mistakes
    }

    /// Formats all mistakes for people, each with its line of the file and a mark below the place; with colours if `styled`.
    #[must_use]
    pub fn render(&self, styled: bool) -> String {
        let renderer = if styled {
            Renderer::styled()
        } else {
            Renderer::plain()
        };
        let each = self.mistakes.iter().map(|mistake| {
            let (message, help) = mistake.parts();
            let mut group = Group::with_title(Level::ERROR.primary_title(message));
            group = match self.line_of(mistake) {
                Some(snippet) => group.element(snippet),
                None => {
                    let origin = Origin::path(self.path.display().to_string());
                    group.element(match mistake.line {
                        Some(line) => origin.line(line).char_column(1),
                        None => origin,
                    })
                }
            };
            if let Some(help) = help {
                group = group.element(Level::HELP.message(help));
            }
            renderer.render(&[group])
        });
        let all: Vec<String> = each.collect();
        all.join("\n\n")
    }

    /// Returns the line of a mistake with its mark; nothing if the line is unknown, or too long to be shown.
    fn line_of(&self, mistake: &Mistake) -> Option<Snippet<'_, Annotation<'_>>> {
        let line = mistake.line?;
        let before = self.text.split_inclusive('\n').take(line - 1);
        let start = before.map(str::len).sum();
        let shown = self.text.get(start..)?.lines().next()?;
        if shown.len() > LINE_SHOWN_MAX {
            return None;
        }
        let whole = shown.len() - shown.trim_start().len()..shown.trim_end().len();
        let marked = if mistake.bytes.is_empty() {
            whole
        } else {
            let end = mistake.bytes.end.saturating_sub(start).min(shown.len());
            mistake.bytes.start.saturating_sub(start).min(end)..end
        };
        let snippet = Snippet::source(shown)
            .line_start(line)
            .path(self.path.display().to_string());
        Some(snippet.annotation(AnnotationKind::Primary.span(marked)))
    }
}

impl From<FileError> for FileErrors {
    fn from(error: FileError) -> Self {
        let mistake = Mistake {
            line: error.line,
            bytes: 0..0,
            reason: error.reason,
        };
        Self::new(&error.path, String::new(), vec![mistake])
    }
}

impl core::fmt::Display for FileErrors {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        for (index, mistake) in self.mistakes.iter().enumerate() {
            let error = FileError {
                path: self.path.clone(),
                line: mistake.line,
                reason: mistake.reason.clone(),
            };
            let separator = if index > 0 { "\n" } else { "" };
            write!(f, "{separator}{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for FileErrors {}

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
    if wrong.len() > NAME_BYTES_MAX {
        return None;
    }
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
/// Nobody misspells a longer name, and to compare it takes long.
const NAME_BYTES_MAX: usize = 1_000;
/// Of 1. Unrelated names of a system reach half of it by chance.
const ALIKE_AT_LEAST: f64 = 0.8;
/// The most bytes of a line that is shown.
const LINE_SHOWN_MAX: usize = 2_000;
const FILE_BYTES_MAX: u64 = 64 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_are_marked_in_their_lines() {
        let text = "name = \"a\"\n[[noed]]\n  cpus = 0\n".to_owned();
        let mistake = |line, bytes, reason: &str| Mistake {
            line: Some(line),
            bytes,
            reason: reason.to_owned(),
        };
        let mistakes = vec![
            mistake(3, 0..0, "invalid value: integer `0`"),
            mistake(2, 13..17, "unknown field `noed`: did you mean `node`?"),
        ];
        let errors = FileErrors::new(Path::new("a.toml"), text, mistakes);
        let shown = errors.render(false);
        let parts = [
            "error: unknown field `noed`\n",
            "a.toml:2:3",
            "[[noed]]\n  |   ^^^^",
            "help: did you mean `node`?",
            "error: invalid value: integer `0`",
            "a.toml:3:3",
            "  cpus = 0\n  |   ^^^^^^^^",
        ];
        let places = parts.map(|part| {
            shown
                .find(part)
                .unwrap_or_else(|| panic!("{part} in {shown}"))
        });
        assert!(places.is_sorted(), "{shown}");
        assert!(errors.render(true).contains('\u{1b}'));
        let lines = errors.to_string();
        assert_eq!(
            lines,
            "a.toml:2: unknown field `noed`: did you mean `node`?\na.toml:3: invalid value: integer `0`"
        );
    }

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
