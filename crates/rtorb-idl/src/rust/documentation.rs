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

/// The lines without what rustdoc would take for Rust code to be tested: indented blocks, and fences without a language.
fn as_markdown(lines: &[String]) -> Vec<String> {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let common = lines
        .iter()
        .filter(|line| !line.trim().is_empty())
        .map(|line| indent(line))
        .min()
        .unwrap_or(0);
    let mut fenced = false;
    let mut after_blank = true;
    let mut markdown = Vec::new();
    for line in lines {
        let line = line.get(common..).unwrap_or_default().trim_end();
        let text = line.trim_start();
        let is_fence = text.starts_with("```") || text.starts_with("~~~");
        let mut shown = line.to_owned();
        if is_fence && !fenced && text.trim_matches(['`', '~']).is_empty() {
            shown.push_str("text");
        }
        if !fenced && after_blank && indent(line) > INDENT_MAX {
            shown = format!("{:INDENT_MAX$}{text}", "");
        }
        fenced ^= is_fence;
        after_blank = text.is_empty();
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

/// One more space, and Markdown sees a block of code.
const INDENT_MAX: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    fn markdown(text: &str) -> String {
        as_markdown(&text.lines().map(str::to_owned).collect::<Vec<_>>()).join("\n")
    }

    #[test]
    fn common_indentation_and_blank_ends_go_away() {
        assert_eq!(markdown("\n  First.\n    More.\n\n"), " First.\n   More.");
    }

    #[test]
    fn nothing_in_a_comment_becomes_a_documentation_test() {
        assert_eq!(markdown("Use:\n\n      call();\n"), " Use:\n\n    call();");
        assert_eq!(
            markdown("Use:\n```\ncall();\n```\n"),
            " Use:\n ```text\n call();\n ```"
        );
    }
}
