//! `cargo xtask book`: the pages below `docs/` as a site, at `target/book/index.html`.
//!
//! The pages are also read as files, so they link to code by its place in the repository. The site gets a copy of each such file.

mod markdown;
mod site;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, bail, ensure};
use xshell::{Shell, cmd};

use crate::metadata::target_folder;
use crate::sources::{files_below, rust_files};
use markdown::{anchors, fragments, has_doc_tests, is_elsewhere, targets, with_targets};

/// Checks the pages, builds the site, and checks its links.
pub(crate) fn run(sh: &Shell) -> anyhow::Result<()> {
    let workspace = sh.current_dir();
    refuse(&check(&workspace)?, "the pages and their links")?;
    let target = target_folder(sh)?;
    let mdbook = installed(sh, &target)?;
    let (source, site) = (target.join("book-source"), target.join("book"));
    sh.remove_path(&source)?;
    stage(&workspace, &source)?;
    cmd!(sh, "{mdbook} build {source} --dest-dir {site}").run()?;
    refuse(&site::faults(&site)?, "the links of the site")?;
    println!("Book: {}", site.join("index.html").display());
    Ok(())
}

/// Prints the faults; fails if there is one.
fn refuse(faults: &[String], what: &str) -> anyhow::Result<()> {
    for fault in faults {
        eprintln!("{fault}");
    }
    ensure!(faults.is_empty(), "{} faults in {what}", faults.len());
    Ok(())
}

/// The folder of the pages.
const DOCS: &str = "docs";
/// The table of contents, below [`DOCS`].
const SUMMARY: &str = "SUMMARY.md";
/// Pages outside of the book, whose links are checked too.
const OTHER_PAGES: [&str; 5] = [
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "SECURITY.md",
];
/// The folder of the site that has files from outside of [`DOCS`].
const COPIES: &str = "files";
/// The builder of the site. It is a program of its own, so that the workspace does not build its dependencies.
const MDBOOK: &str = "mdbook";
const MDBOOK_VERSION: &str = "0.5.4";

/// The program that builds the site. Installs it below the target folder if it is missing or has another version.
fn installed(sh: &Shell, target: &Path) -> anyhow::Result<PathBuf> {
    let root = target.join("tools");
    let program = root.join("bin").join(MDBOOK);
    let version = cmd!(sh, "{program} --version").quiet().read();
    if version.is_ok_and(|version| version == format!("{MDBOOK} v{MDBOOK_VERSION}")) {
        return Ok(program);
    }
    let features = ["--no-default-features", "--features", "search"];
    // Not optimised: the site is small, and to compile takes most of the time.
    cmd!(
        sh,
        "cargo install {MDBOOK} --debug --locked --version {MDBOOK_VERSION} {features...} --root {root}"
    )
    .run()?;
    Ok(program)
}

/// What is wrong with the pages: links without a target, pages that the table of contents does not have.
fn check(workspace: &Path) -> anyhow::Result<Vec<String>> {
    let mut faults = Vec::new();
    let mut pages = BTreeMap::new();
    let in_book = pages_below(&workspace.join(DOCS))?;
    let listed = listed(workspace)?;
    let others = OTHER_PAGES.iter().map(|name| workspace.join(name));
    for path in in_book.iter().chain(&listed).cloned().chain(others) {
        if path.exists() {
            pages.insert(path.clone(), read(&path)?);
        }
    }
    for (path, text) in &pages {
        for target in targets(text).into_iter().filter(|it| !is_elsewhere(it)) {
            if let Err(reason) = resolve(path, target, &pages) {
                let place = path.strip_prefix(workspace).unwrap_or(path);
                faults.push(format!("{}: {target}: {reason}", place.display()));
            }
        }
    }
    faults.extend(never_locked(workspace, &pages));
    faults.extend(never_compiled(workspace, &pages)?);
    faults.extend(in_no_file(workspace, &pages)?);
    let once: BTreeSet<&PathBuf> = listed.iter().collect();
    if once.len() != listed.len() {
        faults.push(format!("{DOCS}/{SUMMARY} lists a page twice"));
    }
    let summary = workspace.join(DOCS).join(SUMMARY);
    let missing = in_book
        .iter()
        .filter(|page| **page != summary && !once.contains(page));
    faults.extend(missing.map(|page| {
        let page = page.strip_prefix(workspace).unwrap_or(page);
        format!("{DOCS}/{SUMMARY} does not list {}", page.display())
    }));
    Ok(faults)
}

/// The pages of the table of contents.
fn listed(workspace: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let summary = workspace.join(DOCS).join(SUMMARY);
    let text = read(&summary)?;
    let pages = targets(&text).into_iter();
    Ok(pages.filter_map(|page| beside(&summary, page)).collect())
}

/// The lines that install a package of the workspace with other versions of its dependencies than those that are tested.
fn never_locked(workspace: &Path, pages: &BTreeMap<PathBuf, String>) -> Vec<String> {
    let mut faults = Vec::new();
    for (path, text) in pages {
        let place = path.strip_prefix(workspace).unwrap_or(path);
        for (number, line) in (1..).zip(text.lines()) {
            let has = |word| line.contains(word);
            if has("cargo install") && has("--path") && !has("--locked") {
                faults.push(format!(
                    "{}: line {number} installs without --locked",
                    place.display()
                ));
            }
        }
    }
    faults
}

/// The pages with Rust code that claims to be compiled, but that no crate includes in the tests of its documentation.
fn never_compiled(
    workspace: &Path,
    pages: &BTreeMap<PathBuf, String>,
) -> anyhow::Result<Vec<String>> {
    let mut compiled = BTreeSet::new();
    for file in code_files(workspace)? {
        compiled.extend(included(&file)?);
    }
    let mut faults = Vec::new();
    for (path, text) in pages {
        let Ok(place) = path.strip_prefix(workspace.join(DOCS)) else {
            continue;
        };
        if has_doc_tests(text) && !compiled.contains(path) {
            faults.push(format!(
                "{DOCS}/{}: no crate compiles its Rust code: include the page in a crate's doc tests, or write `rust,ignore`",
                place.display()
            ));
        }
    }
    Ok(faults)
}

/// The fragments of Rust code without doc tests (`rust,ignore`) that are part of no Rust file. White space may differ. Tests compare the
/// generated parts of pages.
fn in_no_file(workspace: &Path, pages: &BTreeMap<PathBuf, String>) -> anyhow::Result<Vec<String>> {
    let mut files = Vec::new();
    for file in code_files(workspace)? {
        files.push(with_single_spaces(&read(&file)?));
    }
    let mut faults = Vec::new();
    for (path, text) in pages {
        let place = path.strip_prefix(workspace).unwrap_or(path);
        for fragment in fragments(text) {
            let wanted = with_single_spaces(fragment);
            if !files.iter().any(|file| file.contains(&wanted)) {
                let line = fragment.lines().next().unwrap_or_default();
                faults.push(format!(
                    "{}: no Rust file has the fragment that begins with {line}",
                    place.display()
                ));
            }
        }
    }
    Ok(faults)
}

/// The folders with code that the checks of this project compile.
const CODE: [&str; 4] = ["crates", "examples", "tests", "rtos"];

fn code_files(workspace: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for folder in CODE.map(|name| workspace.join(name)) {
        if folder.exists() {
            files.extend(rust_files(&folder)?);
        }
    }
    Ok(files)
}

fn with_single_spaces(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ")
}

/// The files that a Rust file includes in its documentation.
fn included(file: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let text = read(file)?;
    let rests = text.split("#[doc = include_str!(\"").skip(1);
    let paths = rests.filter_map(|rest| beside(file, rest.split('"').next()?));
    Ok(paths.collect())
}

/// Whether the target of a link exists, and its anchor.
fn resolve(
    page: &Path,
    target: &str,
    pages: &BTreeMap<PathBuf, String>,
) -> Result<(), &'static str> {
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    let path = match file {
        "" => page.to_owned(),
        file => beside(page, file).ok_or("it leaves the repository")?,
    };
    if !path.exists() {
        return Err("there is no such file");
    }
    if path.ends_with(Path::new(DOCS).join(SUMMARY)) {
        return Err("the site has no such page");
    }
    if anchor.is_empty() {
        return Ok(());
    }
    let text = pages.get(&path).ok_or("an anchor outside of the pages")?;
    if anchors(text).iter().any(|it| it == anchor) {
        Ok(())
    } else {
        Err("the page has no such heading")
    }
}

/// Copies the pages to `source`, with every other file to which they link.
fn stage(workspace: &Path, source: &Path) -> anyhow::Result<()> {
    let mut own: BTreeSet<PathBuf> = files_below(&workspace.join(DOCS))?.into_iter().collect();
    own.extend(listed(workspace)?);
    let mut linked = BTreeSet::new();
    for file in own.iter().filter(|file| is_page(file)) {
        let place = place(workspace, file, &own)?;
        let up = "../".repeat(place.components().count() - 1);
        let text = with_targets(&read(file)?, |target| {
            let path = beside(file, target)?;
            // A copy that is text has no anchors.
            let anchor = target.find('#').filter(|_| own.contains(&path));
            let anchor = anchor.map_or("", |at| &target[at..]);
            let place = self::place(workspace, &path, &own).ok()?;
            linked.insert(path);
            Some(format!("{up}{}{anchor}", place.display()))
        });
        write(&source.join(place), text.as_bytes())?;
    }
    for file in own
        .union(&linked)
        .filter(|file| !own.contains(*file) || !is_page(file))
    {
        if !file.is_file() {
            bail!("a page links to {}, which is no file", file.display());
        }
        let bytes = fs::read(file).with_context(|| file.display().to_string())?;
        write(&source.join(place(workspace, file, &own)?), &bytes)?;
    }
    Ok(())
}

/// The place of a file in the site's source. The copy of a file that is not the book's `own` ends in `.txt`, so that a browser shows it, and
/// has no `.md`: the builder would make a page of that link.
fn place(workspace: &Path, file: &Path, own: &BTreeSet<PathBuf>) -> anyhow::Result<PathBuf> {
    let place = file.strip_prefix(workspace)?;
    if let Ok(place) = place.strip_prefix(DOCS) {
        return Ok(place.to_owned());
    }
    let copy = Path::new(COPIES).join(place);
    if own.contains(file) {
        return Ok(copy);
    }
    let name = copy.display().to_string();
    Ok(format!("{}.txt", name.strip_suffix(".md").unwrap_or(&name)).into())
}

/// The path of a link's target beside a page, without `..`; `None` for a place on the web, or outside of everything.
fn beside(page: &Path, target: &str) -> Option<PathBuf> {
    if is_elsewhere(target) || target.starts_with('#') {
        return None;
    }
    let file = target.split('#').next()?;
    let mut path = page.parent()?.to_owned();
    for part in Path::new(file).components() {
        match part {
            Component::Normal(name) => path.push(name),
            Component::ParentDir => {
                if !path.pop() {
                    return None;
                }
            }
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(path)
}

fn is_page(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "md")
}

fn pages_below(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = files_below(folder)?;
    files.retain(|file| is_page(file));
    Ok(files)
}

fn read(path: &Path) -> anyhow::Result<String> {
    fs::read_to_string(path).with_context(|| path.display().to_string())
}

fn write(to: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let folder = to.parent().context("a file has a folder")?;
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    fs::write(to, bytes).with_context(|| to.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_link_has_a_target_and_every_page_is_listed() {
        let sh = crate::workspace().expect("the workspace");
        let faults = check(&sh.current_dir()).expect("the pages can be read");
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }

    #[test]
    fn a_link_without_a_target_and_an_unlisted_page_are_found() {
        let folder = std::env::temp_dir().join(format!("rtorb-book-{}", std::process::id()));
        for name in OTHER_PAGES {
            write(&folder.join(name), b"# Nothing\n").expect("a page");
        }
        for (name, text) in [
            ("docs/SUMMARY.md", "# Summary\n\n- [One](one.md)\n"),
            (
                "docs/one.md",
                "# One\n\n[a](#one) [b](#none) [c](../none.rs) [d](../README.md#nothing)\n",
            ),
            (
                "docs/two.md",
                "# Two\n\n    cargo install --path a\n\n\n```rust\n```\n```rust,ignore\nfn f() {\n}\n```\n```rust,ignore\nfn g() {}\n```\n[e](one.md#one) `[f](none.md)` [g](SUMMARY.md)\n",
            ),
        ] {
            write(&folder.join(name), text.as_bytes()).expect("a page");
        }
        write(&folder.join("tests/f.rs"), b"// one\n  fn f() { }\n").expect("a file");
        let faults = check(&folder);
        fs::remove_dir_all(&folder).expect("it is ours");
        assert_eq!(
            faults.expect("the pages can be read"),
            [
                "docs/one.md: #none: the page has no such heading",
                "docs/one.md: ../none.rs: there is no such file",
                "docs/two.md: SUMMARY.md: the site has no such page",
                "docs/two.md: line 3 installs without --locked",
                "docs/two.md: no crate compiles its Rust code: include the page in a crate's doc tests, or write `rust,ignore`",
                "docs/two.md: no Rust file has the fragment that begins with fn g() {}",
                "docs/SUMMARY.md does not list docs/two.md",
            ]
        );
    }

    #[test]
    fn a_page_of_a_crate_is_a_page_of_the_site_and_other_files_are_text() {
        let folder = std::env::temp_dir().join(format!("rtorb-stage-{}", std::process::id()));
        for (name, text) in [
            (
                "docs/SUMMARY.md",
                "- [One](one.md)\n- [Two](../crates/a/two.md)\n",
            ),
            (
                "docs/one.md",
                "[a](../crates/a/two.md#x) [b](../crates/a/f.rs) [c](#y)\n",
            ),
            ("crates/a/two.md", "[d](../../docs/one.md) [e](f.rs)\n"),
            ("crates/a/f.rs", "fn f() {}\n"),
        ] {
            write(&folder.join(name), text.as_bytes()).expect("a file");
        }
        let site = folder.join("site");
        stage(&folder, &site).expect("every file is there");
        let staged = [
            "SUMMARY.md",
            "one.md",
            "files/crates/a/two.md",
            "files/crates/a/f.rs.txt",
        ]
        .map(|name| read(&site.join(name)).expect("it is staged"));
        fs::remove_dir_all(&folder).expect("it is ours");
        assert_eq!(
            staged,
            [
                "- [One](one.md)\n- [Two](files/crates/a/two.md)\n",
                "[a](files/crates/a/two.md#x) [b](files/crates/a/f.rs.txt) [c](#y)\n",
                "[d](../../../one.md) [e](../../../files/crates/a/f.rs.txt)\n",
                "fn f() {}\n",
            ]
        );
    }
}
