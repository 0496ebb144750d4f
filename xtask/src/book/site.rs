//! The links of the built site, as a browser follows them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};

use super::beside;
use super::markdown::is_elsewhere;
use crate::sources::files_below;

/// The links to a file or to an anchor that the site does not have.
pub(super) fn faults(site: &Path) -> anyhow::Result<Vec<String>> {
    let mut pages = BTreeMap::new();
    for path in files_below(site)? {
        // The server shows that page in the place of any other one, so its links are those of the root.
        let is_page =
            path.extension().is_some_and(|it| it == "html") && !path.ends_with("404.html");
        if is_page {
            let html = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            pages.insert(path, html);
        }
    }
    ensure!(!pages.is_empty(), "{} has no page", site.display());
    let anchors: BTreeMap<&Path, BTreeSet<&str>> = pages
        .iter()
        .map(|(path, html)| (path.as_path(), values(html, "id").collect()))
        .collect();
    let mut faults = Vec::new();
    for (path, html) in &pages {
        let links: BTreeSet<&str> = values(html, "href").chain(values(html, "src")).collect();
        for link in links {
            if let Some(reason) = fault(path, link, &anchors) {
                let page = path.strip_prefix(site).unwrap_or(path);
                faults.push(format!("{}: {link}: {reason}", page.display()));
            }
        }
    }
    Ok(faults)
}

/// Why a link leads nowhere.
fn fault(
    page: &Path,
    link: &str,
    anchors: &BTreeMap<&Path, BTreeSet<&str>>,
) -> Option<&'static str> {
    if is_elsewhere(link) || link.starts_with("data:") {
        return None;
    }
    let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target: PathBuf = match file {
        "" => page.to_owned(),
        file => match beside(page, file) {
            Some(target) => target,
            None => return Some("it leaves the site"),
        },
    };
    if !target.is_file() {
        return Some("the site has no such file");
    }
    let is_there = |anchors: &BTreeSet<&str>| anchors.contains(anchor);
    let has_anchor = anchor.is_empty() || anchors.get(target.as_path()).is_some_and(is_there);
    (!has_anchor).then_some("the page has no such anchor")
}

/// The values of an attribute in all tags. Text has `<` as an entity; the text of a script has no tags.
fn values<'a>(html: &'a str, attribute: &'a str) -> impl Iterator<Item = &'a str> {
    let outside = html.split("<script").enumerate().flat_map(|(at, part)| {
        let [own, rest] = match at {
            0 => [part, ""],
            _ => {
                let own = part.split('>').next().unwrap_or_default();
                let end = part.find("</script").unwrap_or(part.len());
                [own, &part[end..]]
            }
        };
        [own, rest]
    });
    let tags = outside.flat_map(|part| part.split('<').filter_map(|rest| rest.split('>').next()));
    let words = tags.flat_map(str::split_whitespace);
    words.filter_map(move |word| {
        let value = word.strip_prefix(attribute)?.strip_prefix("=\"")?;
        value.split('"').next()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_that_the_site_lacks_is_found() {
        let site = std::env::temp_dir().join(format!("rtorb-site-{}", std::process::id()));
        fs::create_dir_all(site.join("b")).expect("a folder of our own");
        for (name, text) in [
            (
                "a.html",
                "<h1 id=\"top\">&lt;a href=\"text\"&gt;</h1><script src=\"no.js\">x = '<a href=\"code\">';</script>\
                 <a class=\"c\" href=\"b/c.html#here\"><a href=\"b/c.html#there\"><a\nhref=\"#top\"><a href=\"https://a.b\">",
            ),
            (
                "b/c.html",
                "<p id=\"here\"><a href=\"../d.html\"><a href=\"../../e\">",
            ),
            ("404.html", "<a href=\"none.html\">"),
        ] {
            fs::write(site.join(name), text).expect("a file of our own");
        }
        let found = faults(&site);
        fs::remove_dir_all(&site).expect("it is ours");
        assert_eq!(
            found.expect("the pages can be read"),
            [
                "a.html: b/c.html#there: the page has no such anchor",
                "a.html: no.js: the site has no such file",
                "b/c.html: ../../e: the site has no such file",
                "b/c.html: ../d.html: the site has no such file",
            ]
        );
    }
}
