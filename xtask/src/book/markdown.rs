//! The links and headings of a page in Markdown, as far as the pages of this project use it.

use std::ops::Range;

/// The targets of all links and pictures of a page, in order.
pub(super) fn targets(text: &str) -> Vec<&str> {
    places(text).into_iter().map(|place| &text[place]).collect()
}

/// The page with other targets: `change` returns the new one, or `None` to keep it.
pub(super) fn with_targets(text: &str, mut change: impl FnMut(&str) -> Option<String>) -> String {
    let mut changed = String::with_capacity(text.len());
    let mut done = 0;
    for place in places(text) {
        changed.push_str(&text[done..place.start]);
        done = place.end;
        match change(&text[place.clone()]) {
            Some(target) => changed.push_str(&target),
            None => changed.push_str(&text[place]),
        }
    }
    changed.push_str(&text[done..]);
    changed
}

/// Whether a target is on the web.
pub(super) fn is_elsewhere(target: &str) -> bool {
    ["http:", "https:", "mailto:"]
        .iter()
        .any(|scheme| target.starts_with(scheme))
}

/// The anchors of a page's headings, as the site and the usual hosts of repositories make them.
pub(super) fn anchors(text: &str) -> Vec<String> {
    let shown = without_blocks(text);
    let headings = shown.lines().filter_map(|line| {
        let title = line.trim_start_matches('#');
        (title.len() < line.len()).then(|| title.strip_prefix(' '))?
    });
    headings.map(anchor).collect()
}

/// The blocks of Rust code that no doc test compiles, except those in generated parts.
pub(super) fn fragments(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for part in text.split("<!-- generated: ") {
        let own = part.split_once("<!-- end: ").map_or(part, |(_, own)| own);
        let blocks = own.split("```rust,ignore\n").skip(1);
        found.extend(blocks.filter_map(|block| block.split("```").next()));
    }
    found
}

fn anchor(title: &str) -> String {
    let kept = title
        .trim()
        .chars()
        .filter_map(|character| match character {
            ' ' => Some('-'),
            '-' | '_' => Some(character),
            other if other.is_alphanumeric() => Some(other.to_ascii_lowercase()),
            _ => None,
        });
    kept.collect()
}

/// Where the targets stand.
fn places(text: &str) -> Vec<Range<usize>> {
    let shown = without_code(text);
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(place) = shown[from..].find("](") {
        let start = from + place + 2;
        let end = shown[start..].find([')', ' ', '\n']).map(|end| start + end);
        from = start;
        if let Some(end) = end.filter(|end| shown.as_bytes()[*end] == b')') {
            found.push(start..end);
        }
    }
    found
}

/// The text with spaces in the place of blocks of code and of code within lines.
fn without_code(text: &str) -> String {
    let mut shown = without_blocks(text);
    let mut from = 0;
    while let Some(start) = shown[from..].find('`').map(|place| from + place) {
        let inner = start + 1;
        let paragraph = shown[inner..]
            .find("\n\n")
            .map_or(shown.len(), |end| inner + end);
        let Some(end) = shown[inner..paragraph].find('`').map(|end| inner + end) else {
            from = inner;
            continue;
        };
        let blank = " ".repeat(end + 1 - start);
        shown.replace_range(start..=end, &blank);
        from = end + 1;
    }
    shown
}

/// The text with spaces in the place of blocks of code. Every octet keeps its place.
fn without_blocks(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut is_code = false;
    for line in text.split_inclusive('\n') {
        let is_fence = line.trim_start().starts_with("```");
        if is_code || is_fence {
            let octets = line.trim_end_matches('\n').len();
            shown.push_str(&" ".repeat(octets));
            shown.push_str(&line[octets..]);
        } else {
            shown.push_str(line);
        }
        is_code ^= is_fence;
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# The page's `title`, 1\n\n[`a`](a.md#b) and `[no](c.md)`\n\n```sh\n# no\n[no](d.md)\n```\n![p](p.svg)\n";

    #[test]
    fn links_in_code_are_no_links() {
        assert_eq!(targets(PAGE), ["a.md#b", "p.svg"]);
        assert_eq!(anchors(PAGE), ["the-pages-title-1"]);
    }

    #[test]
    fn only_the_chosen_targets_change() {
        let changed = with_targets(PAGE, |target| {
            (target == "p.svg").then(|| "q.svg".to_owned())
        });
        assert_eq!(changed, PAGE.replace("p.svg", "q.svg"));
    }
}
