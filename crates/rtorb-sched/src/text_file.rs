//! Reads files of TOML and JSON that people write, and reports all mistakes with their places.

pub(crate) mod forms;
mod json;

pub use forms::MISTAKES_MAX;

use core::ops::Range;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use serde::de::{DeserializeOwned, IgnoredAny};

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
    /// A mistake at these bytes of a text.
    #[must_use]
    pub fn at(text: &str, bytes: Range<usize>, reason: impl Into<String>) -> Self {
        Self {
            line: Some(line_of(text, bytes.start)),
            bytes,
            reason: reason.into(),
        }
    }

    /// A mistake that is in no single line.
    #[must_use]
    pub fn of_whole(reason: impl Into<String>) -> Self {
        Self {
            line: None,
            bytes: 0..0,
            reason: reason.into(),
        }
    }

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
    remedy: Option<&'static str>,
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
            remedy: None,
        }
    }

    /// Adds how such a file is made.
    #[must_use]
    pub fn with_remedy(self, remedy: &'static str) -> Self {
        Self {
            remedy: Some(remedy),
            ..self
        }
    }

    /// The path as given.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How such a file is made, if a program makes it.
    #[must_use]
    pub fn remedy(&self) -> Option<&'static str> {
        self.remedy
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

impl core::fmt::Display for FileErrors {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        for (index, mistake) in self.mistakes.iter().enumerate() {
            let separator = if index > 0 { "\n" } else { "" };
            write!(f, "{separator}{}:", self.path.display())?;
            if let Some(line) = mistake.line {
                write!(f, "{line}:")?;
            }
            write!(f, " {}", mistake.reason)?;
        }
        match self.remedy {
            Some(remedy) => write!(f, "; {remedy}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for FileErrors {}

/// Reads the text of a file of at most 64 MiB.
///
/// # Errors
/// One mistake in no line: the error of the file system, or that the file is too long or no text.
pub fn read_text(path: &Path) -> Result<String, FileErrors> {
    read_bounded(path, FILE_BYTES_MAX).map_err(|error| {
        let reason = match error.kind() {
            io::ErrorKind::InvalidData => error.to_string(),
            _ => format!("{error}: name a file that this program may read"),
        };
        FileErrors::new(path, String::new(), vec![Mistake::of_whole(reason)])
    })
}

/// Opens a file that the user names. A named pipe is refused, because it may never have a writer; a pipe of a shell (`/dev/stdin`,
/// `<(...)`) is opened.
///
/// # Errors
/// The error of the file system; of the kind `InvalidData`, that it is a named pipe.
pub fn open(path: &Path) -> io::Result<File> {
    let is_of_shell = path.starts_with("/dev") || path.starts_with("/proc");
    if std::fs::metadata(path)?.file_type().is_fifo() && !is_of_shell {
        return Err(invalid(
            "it is a named pipe: write its contents to a file".to_owned(),
        ));
    }
    File::open(path)
}

fn invalid(reason: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

/// Reads the text of a file of at most `bytes_max` bytes.
///
/// # Errors
/// As [`open`]; of the kind `InvalidData`, that the file is too long or no text.
pub fn read_bounded(path: &Path, bytes_max: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    open(path)?
        .take(bytes_max.saturating_add(1))
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        let reason = format!("it has more than {bytes_max} bytes, which are the maximum");
        return Err(invalid(reason));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let line = 1 + error.as_bytes()[..at]
            .iter()
            .filter(|byte| **byte == b'\n')
            .count();
        invalid(format!(
            "it is no text: byte {at}, in line {line}, is not UTF-8"
        ))
    })
}

/// Parses TOML.
///
/// # Errors
/// All mistakes in its form, at least one.
pub fn from_toml<T: DeserializeOwned>(text: &str) -> Result<T, Vec<Mistake>> {
    toml::from_str(text).map_err(|error| {
        let found = forms::of_toml::<T>(text);
        if !found.is_empty() {
            return found;
        }
        // Whatever the second look found, the text is wrong.
        vec![forms::mistake(text, &error)]
    })
}

/// Parses JSON.
///
/// # Errors
/// All mistakes in its form, or the first one if it is not JSON.
pub fn from_json<T: DeserializeOwned>(text: &str) -> Result<T, Vec<Mistake>> {
    serde_json::from_str(text).map_err(|wrong| {
        if let Err(error) = serde_json::from_str::<IgnoredAny>(text) {
            let reason = format!("this is no JSON ({})", without_place(&error));
            return vec![at_place(text, &error, reason)];
        }
        let written = |field: &str| format!("\"{field}\": ...");
        let found = json::tree(text).map(|root| forms::of_tree::<T>(text, root, written));
        found
            .filter(|all| !all.is_empty())
            .unwrap_or_else(|| vec![at_place(text, &wrong, without_place(&wrong))])
    })
}

/// Returns the text of an error without its place.
fn without_place(error: &serde_json::Error) -> String {
    let said = error.to_string();
    let reason = said.rsplit_once(" at line ").map_or(&*said, |(it, _)| it);
    forms::cut(reason.to_owned())
}

fn at_place(text: &str, error: &serde_json::Error, reason: String) -> Mistake {
    let before = text
        .split_inclusive('\n')
        .take(error.line().saturating_sub(1));
    let start: usize = before.map(str::len).sum();
    let byte = (start + error.column().saturating_sub(1)).min(text.len());
    Mistake::at(text, byte..byte + 1, reason)
}

/// Returns the line of a byte of a text, from 1.
#[must_use]
pub fn line_of(text: &str, byte: usize) -> usize {
    let before = text.as_bytes().iter().take(byte);
    1 + before.filter(|byte| **byte == b'\n').count()
}

/// Returns the name that `wrong` may be a misspelling of: at most one letter of three is wrong, missing, too much or swapped with its
/// neighbour. Case does not matter. Only the first of very many names are compared, and no long ones, which bounds the time.
#[must_use]
pub fn nearest<'a>(wrong: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let lower = wrong.to_lowercase();
    names
        .take(COMPARED_MAX)
        .filter(|name| *name != wrong && name.len().max(wrong.len()) <= NAME_BYTES_MAX)
        .map(|name| (strsim::osa_distance(&lower, &name.to_lowercase()), name))
        .filter(|(slips, _)| slips * 3 <= lower.chars().count())
        .min_by_key(|(slips, _)| *slips)
        .map(|(_, name)| name)
}

/// Returns the beginning of a text, enough to recognise it.
#[must_use]
pub fn shortened(text: &str) -> String {
    let mut characters = text.chars();
    let mut short: String = characters.by_ref().take(SHOWN_MAX).collect();
    if characters.next().is_some() {
        short.push_str("...");
    }
    short
}

const COMPARED_MAX: usize = 2_000;
const NAME_BYTES_MAX: usize = 100;
/// The most characters of a shortened text. Most names of files fit.
const SHOWN_MAX: usize = 80;
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
