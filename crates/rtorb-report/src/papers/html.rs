//! What the papers show and whether we see it, from `papers.md` of this crate, which is a page of the book too.

use pulldown_cmark::{CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};

use crate::prose;

/// The document as HTML. Links to other documents are text, since these are not beside the page.
pub(crate) fn html() -> String {
    let mut html = String::new();
    html::push_html(
        &mut html,
        Parser::new_ext(DOCUMENT, Options::ENABLE_TABLES).filter_map(shown),
    );
    html
}

/// The event as the page has it; `None` if it leaves it out.
fn shown(event: Event<'static>) -> Option<Event<'static>> {
    let tag = |html: &'static str| Event::Html(CowStr::Borrowed(html));
    Some(match event {
        Event::Start(Tag::Link { .. }) | Event::End(TagEnd::Link) => return None,
        // The page has a heading of its own above the document.
        Event::Start(Tag::Heading {
            level: HeadingLevel::H1,
            ..
        }) => tag("<p><strong>"),
        Event::End(TagEnd::Heading(HeadingLevel::H1)) => tag("</strong></p>"),
        Event::Start(Tag::Heading { .. }) => tag("<h3>"),
        Event::End(TagEnd::Heading(_)) => tag("</h3>"),
        Event::Start(Tag::Table(_)) => {
            tag("<div class=\"card scroll\"><table class=\"words papers\">")
        }
        Event::End(TagEnd::Table) => tag("</tbody></table></div>"),
        Event::Text(text) => Event::Text(prose::plain(&text).into()),
        other => other,
    })
}

const DOCUMENT: &str = include_str!("../../papers.md");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_the_document_is_on_the_page() {
        let html = html();
        let rows = DOCUMENT.lines().filter(|line| line.starts_with("| P"));
        assert!(rows.clone().count() > 100);
        let heads = prose::PAPERS.len();
        assert_eq!(html.matches("<tr>").count(), rows.count() + heads);
        for paper in &prose::PAPERS {
            assert!(
                html.contains(&format!("{}: {}", paper.short, paper.title)),
                "{}",
                paper.key
            );
        }
        assert!(
            !html.contains("<a "),
            "a link to a document that is not beside the page"
        );
    }
}
