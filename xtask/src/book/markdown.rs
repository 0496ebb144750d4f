//! The links, headings and Rust code of a page in Markdown.

use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

/// The targets of all links and pictures of a page, in order.
pub(super) fn targets(text: &str) -> Vec<&str> {
    places(text).into_iter().map(|place| &text[place]).collect()
}

/// The page with other targets: `change` returns the new one, or `None` to keep it.
pub(super) fn with_targets(text: &str, mut change: impl FnMut(&str) -> Option<String>) -> String {
    let mut changed = text.to_owned();
    // From the end, so that the places before a change stay as they are.
    for place in places(text).into_iter().rev() {
        if let Some(target) = change(&text[place.clone()]) {
            changed.replace_range(place, &target);
        }
    }
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
    let mut anchors = Vec::new();
    let mut title = None;
    for event in parser(text) {
        match event {
            Event::Start(Tag::Heading { .. }) => title = Some(String::new()),
            Event::End(TagEnd::Heading(_)) => anchors.extend(title.take().map(|it| anchor(&it))),
            Event::Text(part) | Event::Code(part) => title.iter_mut().for_each(|it| *it += &part),
            _ => {}
        }
    }
    anchors
}

/// Whether a page has Rust code for doc tests.
pub(super) fn has_doc_tests(text: &str) -> bool {
    let kinds = ["rust", "rust,no_run"];
    parser(text).any(|event| kinds.iter().any(|kind| begins_block(&event, kind)))
}

/// The blocks of Rust code that no doc test compiles, except those in generated parts.
pub(super) fn fragments(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut is_generated = false;
    for (event, place) in parser(text).into_offset_iter() {
        match &event {
            Event::Html(comment) if comment.starts_with("<!-- generated: ") => is_generated = true,
            Event::Html(comment) if comment.starts_with("<!-- end: ") => is_generated = false,
            event if begins_block(event, "rust,ignore") && !is_generated => {
                let (_, code) = text[place].split_once('\n').unwrap_or_default();
                found.push(code.trim_end_matches('`'));
            }
            _ => {}
        }
    }
    found
}

fn begins_block(event: &Event, kind: &str) -> bool {
    matches!(event, Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(it))) if **it == *kind)
}

fn anchor(title: &str) -> String {
    let kept = title.chars().filter_map(|character| match character {
        ' ' => Some('-'),
        '-' | '_' => Some(character),
        other if other.is_alphanumeric() => Some(other.to_ascii_lowercase()),
        _ => None,
    });
    kept.collect()
}

/// Where the targets stand, in order.
fn places(text: &str) -> Vec<Range<usize>> {
    let links = parser(text)
        .into_offset_iter()
        .filter_map(|(event, place)| {
            let Event::Start(Tag::Link { .. } | Tag::Image { .. }) = event else {
                return None;
            };
            // An address in angle brackets has no `](`.
            let start = place.start + text[place.clone()].rfind("](")? + 2;
            Some(start..place.end - 1)
        });
    let mut places: Vec<_> = links.collect();
    places.sort_by_key(|place| place.start);
    places
}

fn parser(text: &str) -> Parser<'_> {
    Parser::new_ext(text, Options::ENABLE_TABLES)
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
