//! IDL comments as rustdoc.

use proc_macro2::TokenStream;
use quote::quote;

/// The comment `lines` as doc attributes.
pub(super) fn attributes(lines: &[String]) -> TokenStream {
    let lines = as_markdown(lines);
    quote!(#(#[doc = #lines])*)
}

/// The comment `lines`, or `otherwise` if there are none.
pub(super) fn attributes_or(lines: &[String], otherwise: &str) -> TokenStream {
    if lines.iter().all(|line| line.trim().is_empty()) {
        attributes(&[otherwise.to_owned()])
    } else {
        attributes(lines)
    }
}

/// The lines without blocks that rustdoc would run as Rust code: indented blocks, and fences without a language.
fn as_markdown(lines: &[String]) -> Vec<String> {
    let lines: Vec<String> = lines.iter().map(|line| printable(line)).collect();
    let indent = |line: &String| line.len() - line.trim_start().len();
    let written = lines.iter().filter(|line| !line.is_empty());
    let common = written.map(indent).min().unwrap_or(0);
    let mut fence = None;
    let mut markdown = Vec::new();
    for line in &lines {
        let line = line.get(common..).unwrap_or_default();
        let shown = match (&fence, Fence::of(line)) {
            (None, Some(opened)) => {
                let shown = opened.with_language(line);
                fence = Some(opened);
                shown
            }
            (None, None) => without_wide_gaps(line),
            (Some(opened), Some(other)) if other.closes(opened) => {
                fence = None;
                line.to_owned()
            }
            (Some(_), _) => line.to_owned(),
        };
        markdown.push(if shown.is_empty() {
            shown
        } else {
            format!(" {shown}")
        });
    }
    let blank = |line: &String| line.is_empty();
    while markdown.last().is_some_and(blank) {
        markdown.pop();
    }
    markdown.drain(..markdown.iter().take_while(|line| blank(line)).count());
    markdown
}

/// A line that begins or ends a block of code.
struct Fence {
    mark: char,
    length: usize,
    language: String,
}

impl Fence {
    fn of(line: &str) -> Option<Self> {
        let text = line.trim_start();
        let mark = text
            .chars()
            .next()
            .filter(|mark| ['`', '~'].contains(mark))?;
        let language = text.trim_start_matches(mark);
        let length = text.len() - language.len();
        (length >= 3).then(|| Self {
            mark,
            length,
            language: language.trim().to_owned(),
        })
    }

    fn closes(&self, opened: &Self) -> bool {
        self.mark == opened.mark && self.length >= opened.length && self.language.is_empty()
    }

    /// The line with a language that rustdoc does not run.
    fn with_language(&self, line: &str) -> String {
        match self.language.as_str() {
            "" => format!("{line}text"),
            "rust" => format!("{line},ignore"),
            _ => line.to_owned(),
        }
    }
}

/// Removes wide gaps: four spaces at the beginning of a line or of a list item begin a block of code.
fn without_wide_gaps(line: &str) -> String {
    let mut shown = line.to_owned();
    while let Some(at) = shown.find("    ") {
        shown.remove(at);
    }
    shown
}

/// The line with tabs as spaces, and without characters that a doc comment may not contain: control characters, and those
/// that change the direction of writing.
fn printable(line: &str) -> String {
    let changes_direction =
        |letter| matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let mut printable = String::new();
    for letter in line.trim_end().chars() {
        match letter {
            '\t' => printable.push_str("    "),
            letter if letter.is_control() || changes_direction(letter) => {
                printable.push(char::REPLACEMENT_CHARACTER)
            }
            letter => printable.push(letter),
        }
    }
    printable
}

#[cfg(test)]
mod tests {
    use super::*;

    fn markdown(text: &str) -> String {
        as_markdown(&text.lines().map(str::to_owned).collect::<Vec<_>>()).join("\n")
    }

    #[test]
    fn removes_common_indentation_and_blank_ends() {
        assert_eq!(markdown("\n  First.\n    More.\n\n"), " First.\n   More.");
    }

    #[test]
    fn comments_contain_no_documentation_tests() {
        assert_eq!(markdown("Use:\n\n      call();\n"), " Use:\n\n    call();");
        assert_eq!(markdown("# Use\n\tcall();\n"), " # Use\n    call();");
        assert_eq!(markdown("-      call();\n"), " -   call();");
        assert_eq!(
            markdown("Use:\n```\n~~~\n        call();\n```\n```rust\ncall();\n```\n"),
            " Use:\n ```text\n ~~~\n         call();\n ```\n ```rust,ignore\n call();\n ```"
        );
    }

    #[test]
    fn forbidden_characters_are_replaced() {
        assert_eq!(markdown("a\rb \u{202e}c\r"), " a\u{fffd}b \u{fffd}c");
    }
}
