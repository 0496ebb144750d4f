//! The pages below `docs/`: their blocks, their commands, and the parts that the code determines, which tests compare or write.

mod page;
mod session;

pub use page::{Block, Dialogue, Page, project};
pub use session::{Reading, Session};

use std::fs;

/// Compares a part of a page with `text`, which the caller makes from the code. The part stands between the comments
/// `<!-- generated: PART -->` and `<!-- end: PART -->`. If the variable `RTORB_WRITE_PAGES` is set, writes the part instead.
///
/// # Panics
///
/// If the part is missing, or if it is not `text`.
pub fn check_part(page: &str, part: &str, text: &str) {
    let path = project().join("docs").join(page);
    let current = fs::read_to_string(&path).unwrap_or_else(|e| panic!("docs/{page}: {e}"));
    let begin = format!("<!-- generated: {part} -->\n");
    let end = format!("<!-- end: {part} -->");
    let (before, rest) = current
        .split_once(&begin)
        .unwrap_or_else(|| panic!("docs/{page} has no line {begin}"));
    let (shown, after) = rest
        .split_once(&end)
        .unwrap_or_else(|| panic!("docs/{page} has no line {end}"));
    let text = format!("\n{}\n\n", text.trim());
    if std::env::var_os("RTORB_WRITE_PAGES").is_some() {
        fs::write(&path, format!("{before}{begin}{text}{end}{after}"))
            .unwrap_or_else(|e| panic!("docs/{page}: {e}"));
        return;
    }
    let different = shown
        .lines()
        .zip(text.lines())
        .find(|(shown, of_code)| shown != of_code);
    assert!(
        shown == text,
        "docs/{page} is not what the code says. Write it with RTORB_WRITE_PAGES=1. The first difference: {different:?}"
    );
}

/// The texts of the comments `///` before the line in which `name` is declared, and before its attributes, joined to one text of
/// Markdown.
///
/// # Panics
///
/// If no line begins with `name`.
pub fn comment_before(source: &str, name: &str) -> String {
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    let place = lines.iter().position(|line| line.starts_with(name));
    let place = place.unwrap_or_else(|| panic!("{name} is not declared"));
    let end = lines[..place]
        .iter()
        .rposition(|line| !line.starts_with("#["));
    let before = &lines[..end.map_or(0, |at| at + 1)];
    let from = before.iter().rposition(|line| !line.starts_with("///"));
    let comment = &before[from.map_or(0, |at| at + 1)..];
    let words = comment.iter().map(|line| line[3..].trim());
    let words: Vec<&str> = words.filter(|line| !line.is_empty()).collect();
    words.join(" ")
}
