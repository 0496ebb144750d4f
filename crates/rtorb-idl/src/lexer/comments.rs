//! Comments: documentation comments are kept, others are skipped.

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::source::Location;

use super::Lexer;

/// A documentation comment, markers removed.
#[derive(Clone, Debug)]
pub(crate) struct Comment {
    pub(crate) lines: Vec<String>,
    /// True for `///<` and `/**<`: it documents the declaration before it.
    pub(crate) trailing: bool,
}

impl Lexer {
    pub(super) fn line_comment(&mut self, diagnostics: &mut Diagnostics) {
        let text = self.line_comment_text(diagnostics);
        let body = text.strip_prefix("//");
        let body = body.and_then(|body| body.strip_prefix(['/', '!']));
        let Some(body) = body.filter(|body| !body.starts_with('/')) else {
            return;
        };
        let (trailing, body) = strip_trailing_mark(body);
        let line = body.strip_prefix(' ').unwrap_or(body).trim_end().to_owned();
        match self.comments.last_mut() {
            Some(last) if last.trailing == trailing => last.lines.push(line),
            _ => self.comments.push(Comment {
                lines: vec![line],
                trailing,
            }),
        }
    }

    /// Reads a `//` comment, with the lines that backslashes join with it.
    pub(super) fn line_comment_text(&mut self, diagnostics: &mut Diagnostics) -> String {
        let (start, start_at) = (self.here(), self.at);
        let text = self.take_while(|next| next != '\n');
        if self.line > start.line && !self.quiet {
            let warning = continued(start, &self.text[start_at..self.at]);
            warning.into_iter().for_each(|one| diagnostics.push(one));
        }
        text
    }

    pub(super) fn block_comment(&mut self, diagnostics: &mut Diagnostics) {
        let start = Location {
            length: 2,
            ..self.here()
        };
        self.bump();
        self.bump();
        let mut text = String::new();
        loop {
            match self.peek() {
                None => {
                    if !self.quiet {
                        diagnostics.push(
                            Diagnostic::error("this comment has no end")
                                .at(start, "starts here")
                                .help("close it with `*/`"),
                        );
                    }
                    return;
                }
                Some('*') if self.peek_second() == Some('/') => break,
                Some(next) => {
                    text.push(next);
                    self.bump();
                }
            }
        }
        self.bump();
        self.bump();
        self.keep_block(&text);
    }

    fn keep_block(&mut self, text: &str) {
        let Some(body) = text.strip_prefix('*').or_else(|| text.strip_prefix('!')) else {
            return;
        };
        if body.is_empty() || body.starts_with('*') {
            return;
        }
        let (trailing, body) = strip_trailing_mark(body);
        let mut lines: Vec<String> = body.lines().map(strip_star).collect();
        while lines.first().is_some_and(String::is_empty) {
            lines.remove(0);
        }
        while lines.last().is_some_and(String::is_empty) {
            lines.pop();
        }
        if !lines.is_empty() {
            self.comments.push(Comment { lines, trailing });
        }
    }
}

/// The warning about a `//` comment that begins at `start`, if a backslash at the end of its line hides text of the next line.
fn continued(start: Location, comment: &str) -> Option<Diagnostic> {
    let mut lines = comment.lines();
    let first = lines.next()?.strip_suffix('\\')?;
    let is_hidden = |line: &str| !line.trim().is_empty() && !line.trim_start().starts_with("//");
    lines.find(|line| is_hidden(line))?;
    let backslash = Location {
        column: start
            .column
            .saturating_add(u32::try_from(first.chars().count()).ok()?),
        ..start
    };
    let warning = Diagnostic::warning("this comment continues on the next line").at(
        backslash,
        "a backslash at the end of a line joins it with the next one",
    );
    let is_of_two_bytes = first.ends_with(|last| ('\u{80}'..='\u{ff}').contains(&last));
    Some(if is_of_two_bytes {
        warning
            .note("in Shift-JIS the second byte of some characters is the byte of a backslash, 0x5c: the compiler reads bytes and sees a backslash")
            .help("write a full stop behind the character, or store the file as UTF-8")
    } else {
        warning.help("write another character behind the backslash, or a comment `/* ... */`")
    })
}

fn strip_trailing_mark(body: &str) -> (bool, &str) {
    match body.strip_prefix('<') {
        Some(rest) => (true, rest),
        None => (false, body),
    }
}

/// A line of a block comment without the star that decorates it.
fn strip_star(line: &str) -> String {
    let line = line.trim();
    let line = line.strip_prefix('*').unwrap_or(line);
    line.strip_prefix(' ').unwrap_or(line).trim_end().to_owned()
}
