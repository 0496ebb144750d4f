//! `cargo xtask book`: the pages below `docs/` as a site, at `target/book/index.html`.
//!
//! The pages are also read as files, so they link to code by its place in the repository. The site gets a copy of each such file.

mod markdown;
mod site;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};

use crate::metadata::target_folder;
use crate::sources::{files_below, rust_files};
use markdown::{anchors, fragments, is_elsewhere, targets, with_targets};

/// Checks the pages, builds the site, and checks its links.
pub(crate) fn run(workspace: &Path) -> anyhow::Result<()> {
    refuse(&check(workspace)?, "the pages and their links")?;
    let target = target_folder(workspace)?;
    let mdbook = installed(&target)?;
    let source = target.join("book-source");
    stage(workspace, &source)?;
    let site = target.join("book");
    let status = Command::new(&mdbook)
        .arg("build")
        .arg(&source)
        .arg("--dest-dir")
        .arg(&site)
        .status()
        .with_context(|| mdbook.display().to_string())?;
    ensure!(status.success(), "{}: {status}", mdbook.display());
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
fn installed(target: &Path) -> anyhow::Result<PathBuf> {
    let root = target.join("tools");
    let program = root.join("bin").join(MDBOOK);
    let version = Command::new(&program).arg("--version").output();
    let is_there = version.is_ok_and(|output| {
        String::from_utf8_lossy(&output.stdout).trim() == format!("{MDBOOK} v{MDBOOK_VERSION}")
    });
    if !is_there {
        println!("== install {MDBOOK} {MDBOOK_VERSION} to {}", root.display());
        let status = Command::new("cargo")
            .args(["install", MDBOOK, "--locked", "--version", MDBOOK_VERSION])
            .args(["--no-default-features", "--features", "search", "--root"])
            .arg(&root)
            .status()
            .context("cargo install")?;
        ensure!(status.success(), "cargo install {MDBOOK}: {status}");
    }
    Ok(program)
}

/// What is wrong with the pages: links without a target, pages that the table of contents does not have.
fn check(workspace: &Path) -> anyhow::Result<Vec<String>> {
    let mut faults = Vec::new();
    let mut pages = BTreeMap::new();
    let in_book = pages_below(&workspace.join(DOCS))?;
    let others = OTHER_PAGES.iter().map(|name| workspace.join(name));
    for path in in_book.iter().cloned().chain(others) {
        pages.insert(path.clone(), read(&path)?);
    }
    for (path, text) in &pages {
        for target in targets(text).into_iter().filter(|it| !is_elsewhere(it)) {
            if let Err(reason) = resolve(path, target, &pages) {
                let place = path.strip_prefix(workspace).unwrap_or(path);
                faults.push(format!("{}: {target}: {reason}", place.display()));
            }
        }
    }
    faults.extend(never_compiled(workspace, &pages)?);
    faults.extend(in_no_file(workspace, &pages)?);
    let summary = workspace.join(DOCS).join(SUMMARY);
    let listed: Vec<PathBuf> = targets(&pages[&summary])
        .into_iter()
        .filter_map(|target| beside(&summary, target))
        .collect();
    let once: BTreeSet<&PathBuf> = listed.iter().collect();
    if once.len() != listed.len() {
        faults.push(format!("{DOCS}/{SUMMARY} lists a page twice"));
    }
    let missing = in_book
        .iter()
        .filter(|page| **page != summary && !once.contains(page));
    faults.extend(missing.map(|page| {
        let page = page.strip_prefix(workspace).unwrap_or(page);
        format!("{DOCS}/{SUMMARY} does not list {}", page.display())
    }));
    Ok(faults)
}

/// The pages with Rust code that claims to be compiled, but that no crate includes in the tests of its documentation.
fn never_compiled(
    workspace: &Path,
    pages: &BTreeMap<PathBuf, String>,
) -> anyhow::Result<Vec<String>> {
    let mut compiled = BTreeSet::new();
    for folder in ["crates", "examples"].map(|name| workspace.join(name)) {
        if folder.exists() {
            for file in rust_files(&folder)? {
                compiled.extend(included(&file)?);
            }
        }
    }
    let mut faults = Vec::new();
    for (path, text) in pages {
        let Ok(place) = path.strip_prefix(workspace.join(DOCS)) else {
            continue;
        };
        let is_compiled = |line: &str| line == "```rust" || line == "```rust,no_run";
        let is_included = fs::canonicalize(path).is_ok_and(|path| compiled.contains(&path));
        if text.lines().any(is_compiled) && !is_included {
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
    for folder in CODE.map(|name| workspace.join(name)) {
        if folder.exists() {
            for file in rust_files(&folder)? {
                files.push(with_single_spaces(&read(&file)?));
            }
        }
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

fn with_single_spaces(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ")
}

/// The files that a Rust file includes in its documentation. A crate has symbolic links to them in its own folder.
fn included(file: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let text = read(file)?;
    let rests = text.split("#[doc = include_str!(\"").skip(1);
    let paths = rests.filter_map(|rest| rest.split('"').next());
    let found = paths.filter_map(|path| fs::canonicalize(file.parent()?.join(path)).ok());
    Ok(found.collect())
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

/// Copies the pages to `source`, with every file outside of `docs` to which they link.
fn stage(workspace: &Path, source: &Path) -> anyhow::Result<()> {
    let docs = workspace.join(DOCS);
    if source.exists() {
        fs::remove_dir_all(source).with_context(|| source.display().to_string())?;
    }
    let mut copies = BTreeSet::new();
    for file in files_below(&docs)? {
        let place = file.strip_prefix(&docs)?;
        if !is_page(&file) {
            copy(&file, &source.join(place))?;
            continue;
        }
        let depth = place.components().count() - 1;
        let text = with_targets(&read(&file)?, |target| {
            let outside = beside(&file, target).filter(|path| !path.starts_with(&docs))?;
            let place = outside.strip_prefix(workspace).ok()?.to_owned();
            let link = format!("{}{COPIES}/{}", "../".repeat(depth), copied(&place));
            copies.insert(place);
            Some(link)
        });
        write(&source.join(place), text.as_bytes())?;
    }
    for place in copies {
        let from = workspace.join(&place);
        if !from.is_file() {
            bail!("a page links to {}, which is no file", place.display());
        }
        copy(&from, &source.join(COPIES).join(copied(&place)))?;
    }
    Ok(())
}

/// The name of a file's copy. It ends in `.txt`, so that a browser shows it, and has no `.md`: the builder would make a page of that link.
fn copied(place: &Path) -> String {
    let name = place.display().to_string();
    format!("{}.txt", name.strip_suffix(".md").unwrap_or(&name))
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

fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    let bytes = fs::read(from).with_context(|| from.display().to_string())?;
    write(to, &bytes)
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
        let faults = check(&crate::workspace()).expect("the pages can be read");
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
                "# Two\n\n```rust\n```\n```rust,ignore\nfn f() {\n}\n```\n```rust,ignore\nfn g() {}\n```\n[e](one.md#one) `[f](none.md)` [g](SUMMARY.md)\n",
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
                "docs/two.md: no crate compiles its Rust code: include the page in a crate's doc tests, or write `rust,ignore`",
                "docs/two.md: no Rust file has the fragment that begins with fn g() {}",
                "docs/SUMMARY.md does not list docs/two.md",
            ]
        );
    }
}
