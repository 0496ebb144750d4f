//! Diagnostics: what is wrong with a specification, where, and how to correct it.

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use serde::Serialize;

use crate::source::{Location, SourceFile, SourceMap};

/// One error or warning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Error or warning.
    pub severity: Severity,
    /// What is wrong, in one line.
    pub message: String,
    /// The places that matter. The first is the place of the error.
    pub labels: Vec<Label>,
    /// Facts that explain it.
    pub notes: Vec<String>,
    /// How to correct it.
    pub help: Vec<String>,
}

/// The severity of a diagnostic. Only errors stop the compilation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The specification is wrong: there is no tree.
    Error,
    /// The specification is accepted, but may not mean what its author wanted.
    Warning,
}

/// A place and a remark on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// The place.
    pub location: Location,
    /// The remark; may be empty.
    pub text: String,
}

impl Diagnostic {
    /// An error that says `message`.
    pub fn error(message: impl Into<String>) -> Self {
        Self::new(Severity::Error, message.into())
    }

    /// A warning that says `message`.
    pub fn warning(message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, message.into())
    }

    /// Adds a place. The first one is the place of the error.
    #[must_use]
    pub fn at(mut self, location: Location, text: impl Into<String>) -> Self {
        self.labels.push(Label {
            location,
            text: shortened(text.into()),
        });
        self
    }

    /// Adds a fact that explains it.
    #[must_use]
    pub fn note(mut self, text: impl Into<String>) -> Self {
        self.notes.push(shortened(text.into()));
        self
    }

    /// Adds a hint how to correct it.
    #[must_use]
    pub fn help(mut self, text: impl Into<String>) -> Self {
        self.help.push(shortened(text.into()));
        self
    }

    /// True for an error: there is no tree.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// The place of the error, if it has one.
    pub fn location(&self) -> Option<Location> {
        self.labels.first().map(|label| label.location)
    }

    /// The text for users, with source lines, and with colours if `styled`.
    pub fn render(&self, sources: &SourceMap, styled: bool) -> String {
        let level = match self.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let mut group = Group::with_title(level.primary_title(self.message.as_str()));
        let mut notes = Vec::new();
        for labels in self.by_file() {
            let Some(file) = sources.file(labels[0].location) else {
                continue;
            };
            if labels
                .iter()
                .all(|label| file.line(label.location.line).len() <= LINE_SHOWN_MAX)
            {
                group = group.element(snippet(file, &labels, self.labels.first()));
            } else {
                let (name, line) = file.presumed(labels[0].location.line);
                let origin = Origin::path(name)
                    .line(line as usize)
                    .char_column(labels[0].location.column as usize);
                group = group.element(origin);
                let texts = labels.iter().map(|label| label.text.clone());
                notes.extend(texts.filter(|text| !text.is_empty()));
            }
        }
        for note in notes
            .into_iter()
            .chain(self.include_trail(sources))
            .chain(self.notes.iter().cloned())
        {
            group = group.element(Level::NOTE.message(note));
        }
        for help in &self.help {
            group = group.element(Level::HELP.message(help.as_str()));
        }
        let renderer = if styled {
            Renderer::styled()
        } else {
            Renderer::plain()
        };
        let groups: [Group<'_>; 1] = [group];
        renderer.render(&groups)
    }

    /// The diagnostic as data, for `--json`.
    pub fn report(&self, sources: &SourceMap) -> Report {
        let place = |label: &Label| {
            let position = sources.position(label.location);
            let source = sources
                .file(label.location)
                .map(|file| file.line(label.location.line));
            ReportedPlace {
                file: position.file,
                line: position.line,
                column: position.column,
                length: label.location.length,
                source: source
                    .filter(|line| line.len() <= LINE_SHOWN_MAX)
                    .unwrap_or_default()
                    .to_owned(),
                text: label.text.clone(),
            }
        };
        Report {
            severity: self.severity,
            message: self.message.clone(),
            place: self.labels.first().map(place),
            related: self.labels.iter().skip(1).map(place).collect(),
            notes: self
                .include_trail(sources)
                .into_iter()
                .chain(self.notes.iter().cloned())
                .collect(),
            help: self.help.clone(),
        }
    }

    fn new(severity: Severity, message: String) -> Self {
        Self {
            severity,
            message: shortened(message),
            labels: Vec::new(),
            notes: Vec::new(),
            help: Vec::new(),
        }
    }

    /// The labels of each file. The file with the error is first.
    fn by_file(&self) -> Vec<Vec<&Label>> {
        let mut files: Vec<Vec<&Label>> = Vec::new();
        for label in &self.labels {
            match files
                .iter_mut()
                .find(|labels| labels[0].location.file == label.location.file)
            {
                Some(labels) => labels.push(label),
                None => files.push(vec![label]),
            }
        }
        files
    }

    /// `included from` lines, innermost first.
    fn include_trail(&self, sources: &SourceMap) -> Vec<String> {
        let mut trail = Vec::new();
        let mut next = self
            .location()
            .and_then(|location| sources.file(location)?.includer());
        while let Some(location) = next
            && trail.len() < INCLUDE_TRAIL_MAX
        {
            let position = sources.position(location);
            trail.push(format!("included from {}:{}", position.file, position.line));
            next = sources.file(location).and_then(SourceFile::includer);
        }
        trail
    }
}

/// The text of all diagnostics for users, with an empty line behind each.
pub(crate) fn render_all(diagnostics: &[Diagnostic], sources: &SourceMap, styled: bool) -> String {
    let all = diagnostics.iter();
    all.map(|diagnostic| diagnostic.render(sources, styled) + "\n\n")
        .collect()
}

/// A [`Diagnostic`] with names and lines instead of locations, for `--json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// `error` or `warning`.
    pub severity: Severity,
    /// What is wrong, in one line.
    pub message: String,
    /// The place of the error.
    pub place: Option<ReportedPlace>,
    /// Other places that matter.
    pub related: Vec<ReportedPlace>,
    /// Facts that explain it.
    pub notes: Vec<String>,
    /// How to correct it.
    pub help: Vec<String>,
}

/// A place of a [`Report`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReportedPlace {
    /// The file's name.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// Length in characters.
    pub length: u32,
    /// The source line; empty if it is longer than 2,000 bytes.
    pub source: String,
    /// The remark; may be empty.
    pub text: String,
}

/// Collects diagnostics up to a limit, so that no input causes endless output.
#[derive(Debug, Default)]
pub(crate) struct Diagnostics {
    errors: Vec<Diagnostic>,
    warnings: Vec<Diagnostic>,
    errors_left_out: usize,
    warnings_left_out: usize,
}

impl Diagnostics {
    pub(crate) fn push(&mut self, diagnostic: Diagnostic) {
        let (list, left_out) = if diagnostic.is_error() {
            (&mut self.errors, &mut self.errors_left_out)
        } else {
            (&mut self.warnings, &mut self.warnings_left_out)
        };
        if list.len() >= DIAGNOSTICS_MAX {
            *left_out += 1;
        } else if !list.contains(&diagnostic) {
            list.push(diagnostic);
        }
    }

    /// Adds an error at one place.
    pub(crate) fn error(
        &mut self,
        at: Location,
        message: impl Into<String>,
        label: impl Into<String>,
    ) {
        self.push(Diagnostic::error(message).at(at, label));
    }

    pub(crate) fn shows_more_errors(&self) -> bool {
        self.errors.len() < DIAGNOSTICS_MAX
    }

    pub(crate) fn has_errors(&self) -> bool {
        !self.errors.is_empty()
    }

    /// All diagnostics in source order.
    pub(crate) fn into_sorted(self) -> Vec<Diagnostic> {
        let mut list = self.errors;
        list.extend(self.warnings);
        list.sort_by_key(Diagnostic::location);
        let (warnings, errors) = (self.warnings_left_out, self.errors_left_out);
        if warnings > 0 {
            let message = format!("{warnings} more warnings are not shown");
            list.push(Diagnostic::warning(message));
        }
        if errors > 0 {
            list.push(Diagnostic::error(format!(
                "{errors} more errors are not shown"
            )));
        }
        list
    }
}

/// The most errors of a run, and the most warnings.
const DIAGNOSTICS_MAX: usize = 200;
const INCLUDE_TRAIL_MAX: usize = 8;
/// The most bytes of a source line that is shown. Longer lines are rarely written by hand, and their layout takes long.
const LINE_SHOWN_MAX: usize = 2_000;
/// The most bytes of a text of a diagnostic: a name in it may be as long as the file.
const TEXT_BYTES_MAX: usize = 2_000;

/// Cuts a text that is too long to read.
fn shortened(mut text: String) -> String {
    if text.len() > TEXT_BYTES_MAX {
        text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
        text.push_str("...");
    }
    text
}

fn snippet<'s>(
    file: &'s SourceFile,
    labels: &[&Label],
    primary: Option<&Label>,
) -> Snippet<'s, annotate_snippets::Annotation<'s>> {
    let lines = labels.iter().map(|label| label.location.line);
    let (first, last) = (lines.clone().min().unwrap_or(1), lines.max().unwrap_or(1));
    let window = file.line_range(first, last);
    let (name, line) = file.presumed(first);
    let annotations = labels.iter().map(|&label| {
        let bytes = file.byte_range(label.location);
        let kind = if primary == Some(label) {
            AnnotationKind::Primary
        } else {
            AnnotationKind::Context
        };
        let text = (!label.text.is_empty()).then(|| label.text.clone());
        kind.span(bytes.start - window.start..bytes.end - window.start)
            .label(text)
    });
    Snippet::source(&file.text()[window.clone()])
        .line_start(line as usize)
        .path(name)
        .annotations(annotations.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_do_not_displace_errors() {
        let mut diagnostics = Diagnostics::default();
        for number in 0..1_000 {
            diagnostics.push(Diagnostic::warning(format!("warning {number}")));
        }
        diagnostics.push(Diagnostic::error("wrong"));
        assert!(diagnostics.has_errors());
        let sorted = diagnostics.into_sorted();
        assert_eq!(sorted.len(), DIAGNOSTICS_MAX + 2);
        assert_eq!(
            sorted[DIAGNOSTICS_MAX + 1].message,
            "800 more warnings are not shown"
        );
    }

    #[test]
    fn a_long_name_does_not_make_a_long_message() {
        let long = "é".repeat(1_000_000);
        let diagnostic = Diagnostic::error(long.as_str())
            .at(Location::default(), long.as_str())
            .note(long.as_str())
            .help(long);
        let shown = diagnostic.render(&SourceMap::default(), false);
        assert!(shown.len() < 10_000, "{}", shown.len());
    }

    #[test]
    fn shows_the_line_and_the_error() {
        let mut sources = SourceMap::default();
        let file = sources.add(SourceFile::new("a.idl", "struct S {\n  lung x;\n};\n"));
        let diagnostic = Diagnostic::error("unknown type `lung`")
            .at(
                Location {
                    file,
                    line: 2,
                    column: 3,
                    length: 4,
                },
                "not declared",
            )
            .help("did you mean `long`?");
        let shown = diagnostic.render(&sources, false);
        assert!(
            shown.contains("a.idl:2:3") && shown.contains("^^^^ not declared"),
            "{shown}"
        );
        assert_eq!(
            diagnostic.report(&sources).place.map(|place| place.source),
            Some("  lung x;".to_owned())
        );
    }
}
