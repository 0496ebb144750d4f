//! The top modules of a crate: which uses which, and the cycles among them.
//!
//! A file is read as tokens, so that the arguments and bodies of macros count, and comments and strings do not. Tests do not
//! count. `lib.rs` does not count either: it is the facade. A name that it re-exports counts as its module.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

use crate::sources::rust_files;

/// A place where one top module names another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Edge {
    /// The module that stands in the file.
    pub(crate) from: String,
    /// The module that is named.
    pub(crate) to: String,
    pub(crate) file: PathBuf,
    pub(crate) line: usize,
}

/// The edges that are part of a cycle among the top modules below `src`.
pub(crate) fn cycles(src: &Path) -> anyhow::Result<Vec<Edge>> {
    let edges = edges(src)?;
    let mut uses: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for edge in &edges {
        uses.entry(&edge.from).or_default().insert(&edge.to);
    }
    let in_cycle = |edge: &&Edge| reaches(&uses, &edge.to, &edge.from);
    Ok(edges.iter().filter(in_cycle).cloned().collect())
}

fn reaches(uses: &BTreeMap<&str, BTreeSet<&str>>, from: &str, to: &str) -> bool {
    let mut seen = BTreeSet::new();
    let mut left = vec![from];
    while let Some(module) = left.pop() {
        if module == to {
            return true;
        }
        if seen.insert(module) {
            left.extend(uses.get(module).into_iter().flatten());
        }
    }
    false
}

fn edges(src: &Path) -> anyhow::Result<Vec<Edge>> {
    let facade = Facade::read(&tokens(&src.join("lib.rs"))?);
    let mut files = Vec::new();
    let mut tests = BTreeSet::new();
    for file in rust_files(src)? {
        let path = module_path(src, &file)?;
        let tokens = tokens(&file)?;
        tests.extend(test_modules(&tokens).into_iter().map(|name| {
            let mut path = path.clone();
            path.push(name);
            path
        }));
        files.push((file, path, tokens));
    }
    let mut edges = Vec::new();
    for (file, path, tokens) in &files {
        if path.is_empty() || (1..=path.len()).any(|length| tests.contains(&path[..length])) {
            continue;
        }
        let mut uses = Uses { names: Vec::new() };
        uses.read(tokens, path);
        for (name, line) in uses.names {
            if let Some(to) = facade.module_of(&name)
                && to != path[0]
            {
                edges.push(Edge {
                    from: path[0].clone(),
                    to: to.to_owned(),
                    file: file.clone(),
                    line,
                });
            }
        }
    }
    edges.sort();
    edges.dedup();
    Ok(edges)
}

/// The modules of a file: `src/a/b.rs` is `a::b`, `src/lib.rs` the crate itself.
fn module_path(src: &Path, file: &Path) -> anyhow::Result<Vec<String>> {
    let inside = file.strip_prefix(src)?.with_extension("");
    let mut path: Vec<String> = inside
        .iter()
        .map(|part| part.to_string_lossy().into_owned())
        .collect();
    if path
        .last()
        .is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str()))
    {
        path.pop();
    }
    Ok(path)
}

fn tokens(file: &Path) -> anyhow::Result<Vec<TokenTree>> {
    let text = fs::read_to_string(file).with_context(|| file.display().to_string())?;
    let stream: TokenStream = text
        .parse()
        .map_err(|e| anyhow!("{}: {e}", file.display()))?;
    Ok(stream.into_iter().collect())
}

/// What `lib.rs` declares: the top modules, and the names that it re-exports from them.
#[derive(Debug, Default)]
struct Facade {
    modules: BTreeSet<String>,
    exported: BTreeMap<String, String>,
}

impl Facade {
    fn read(tokens: &[TokenTree]) -> Self {
        let mut facade = Self::default();
        for at in 0..tokens.len() {
            if is_ident(&tokens[at], "mod")
                && let Some(TokenTree::Ident(name)) = tokens.get(at + 1)
            {
                facade.modules.insert(name.to_string());
            }
        }
        for at in 0..tokens.len() {
            if is_ident(&tokens[at], "use")
                && let Some(TokenTree::Ident(module)) = tokens.get(at + 1)
                && facade.modules.contains(&module.to_string())
            {
                let end = tokens[at..].iter().position(|token| is_punct(token, ';'));
                let tree = &tokens[at + 2..at + end.unwrap_or(2)];
                facade.export(&module.to_string(), tree);
            }
        }
        facade
    }

    /// The leaves of a `use` tree are identifiers that no `::` follows.
    fn export(&mut self, module: &str, tree: &[TokenTree]) {
        for (at, token) in tree.iter().enumerate() {
            match token {
                TokenTree::Ident(name) if !follows_path(tree, at + 1) => {
                    self.exported.insert(name.to_string(), module.to_owned());
                }
                TokenTree::Group(group) => self.export(module, &trees(group)),
                _ => {}
            }
        }
    }

    /// The top module in which a name of the crate stands; none for what `lib.rs` defines.
    fn module_of<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        if self.modules.contains(name) {
            return Some(name);
        }
        self.exported.get(name).map(String::as_str)
    }
}

/// The first names after the crate's root in all paths of a file.
struct Uses {
    names: Vec<(String, usize)>,
}

impl Uses {
    fn read(&mut self, tokens: &[TokenTree], module: &[String]) {
        let mut at = 0;
        while at < tokens.len() {
            if is_test(tokens, at) {
                at = item_end(tokens, at);
                continue;
            }
            if let Some(depth) = root(tokens, at, module) {
                at = self.path(tokens, at, &module[..depth]);
                continue;
            }
            if let TokenTree::Group(group) = &tokens[at] {
                let inline = at >= 2 && is_ident(&tokens[at - 2], "mod");
                let mut inner = module.to_vec();
                if inline {
                    inner.push(tokens[at - 1].to_string());
                }
                self.read(&trees(group), &inner);
            }
            at += 1;
        }
    }

    /// Reads a path that begins with `crate` or `super`, which stands in `module`; returns where it ends.
    fn path(&mut self, tokens: &[TokenTree], mut at: usize, module: &[String]) -> usize {
        let mut depth = module.len();
        at += 1;
        while follows_path(tokens, at) {
            at += 2;
            match tokens.get(at) {
                Some(token) if is_ident(token, "super") => depth = depth.saturating_sub(1),
                Some(TokenTree::Ident(name)) => {
                    if depth == 0 {
                        self.names.push((name.to_string(), line(&tokens[at])));
                    }
                    return at + 1;
                }
                Some(TokenTree::Group(group)) => {
                    if depth == 0 {
                        self.group(group);
                    }
                    return at + 1;
                }
                _ => return at,
            }
            at += 1;
        }
        at
    }

    /// The first names of `{a::b, c, d::{e, f}}`.
    fn group(&mut self, group: &Group) {
        let mut first = true;
        for token in trees(group) {
            match &token {
                TokenTree::Ident(name) if first => {
                    self.names.push((name.to_string(), line(&token)));
                    first = false;
                }
                token => first = is_punct(token, ',') || (first && !is_punct(token, ':')),
            }
        }
    }
}

/// How many segments of `module` a path that begins at `at` starts from; none if no `crate` or `super` begins one there.
fn root(tokens: &[TokenTree], at: usize, module: &[String]) -> Option<usize> {
    if !follows_path(tokens, at + 1) {
        return None;
    }
    if is_ident(&tokens[at], "crate") {
        return Some(0);
    }
    is_ident(&tokens[at], "super").then(|| module.len().saturating_sub(1))
}

/// The modules of tests that stand in files of their own.
fn test_modules(tokens: &[TokenTree]) -> Vec<String> {
    let tests = (0..tokens.len()).filter(|&at| is_test(tokens, at));
    let names = tests.filter_map(|at| {
        let item = &tokens[at..item_end(tokens, at)];
        let name = item.iter().position(|token| is_ident(token, "mod"))? + 1;
        item.get(name).map(ToString::to_string)
    });
    names.collect()
}

/// True if `#[cfg(test)]` or a `#[cfg(all(test, ..))]` stands there.
fn is_test(tokens: &[TokenTree], at: usize) -> bool {
    let Some(TokenTree::Group(attribute)) = tokens.get(at + 1) else {
        return false;
    };
    if !is_punct(&tokens[at], '#') || attribute.delimiter() != Delimiter::Bracket {
        return false;
    }
    let text: String = attribute.to_string().split_whitespace().collect();
    text == "[cfg(test)]" || text.starts_with("[cfg(all(test,") || text == "[test]"
}

/// The place after the item whose attribute stands at `at`: its `;` or its braces end it.
fn item_end(tokens: &[TokenTree], at: usize) -> usize {
    let ends = |token: &TokenTree| match token {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        token => is_punct(token, ';'),
    };
    let imports = tokens[at..]
        .iter()
        .take(6)
        .any(|token| is_ident(token, "use"));
    let length = tokens[at..].iter().position(|token| {
        if imports {
            is_punct(token, ';')
        } else {
            ends(token)
        }
    });
    length.map_or(tokens.len(), |length| at + length + 1)
}

fn follows_path(tokens: &[TokenTree], at: usize) -> bool {
    tokens.get(at).is_some_and(|token| is_punct(token, ':'))
        && tokens.get(at + 1).is_some_and(|token| is_punct(token, ':'))
}

fn is_ident(token: &TokenTree, word: &str) -> bool {
    matches!(token, TokenTree::Ident(ident) if ident == word)
}

fn is_punct(token: &TokenTree, character: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == character)
}

fn trees(group: &Group) -> Vec<TokenTree> {
    group.stream().into_iter().collect()
}

fn line(token: &TokenTree) -> usize {
    token.span().start().line
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::{cycles, edges};

    /// A crate's `src` in a folder of this test's own.
    fn source(name: &str, files: &[(&str, &str)]) -> PathBuf {
        let folder =
            std::env::temp_dir().join(format!("xtask-modules-{}-{name}", std::process::id()));
        for (file, text) in files {
            let file = folder.join(file);
            fs::create_dir_all(file.parent().expect("a folder")).expect("a folder can be made");
            fs::write(file, text).expect("a file can be written");
        }
        folder
    }

    fn pairs(source: &PathBuf) -> Vec<String> {
        let edges = edges(source).expect("the source is read");
        fs::remove_dir_all(source).expect("the folder is there");
        let pair = |edge: &super::Edge| format!("{} {} {}", edge.from, edge.to, edge.line);
        edges.iter().map(pair).collect()
    }

    #[test]
    fn paths_trees_and_macros_are_uses() {
        let source = source(
            "uses",
            &[
                (
                    "lib.rs",
                    "mod a; mod b; mod c; mod d; mod e;\npub use c::{inner::{C, D}, F as G};",
                ),
                (
                    "a.rs",
                    "use crate::{b::{x, c}, G};\nfn f() { assert!(crate::d::t()); super::e::u() }",
                ),
                (
                    "b/inner.rs",
                    "use super::super::a::y;\nuse super::c;\nmod m { use super::super::super::d; }",
                ),
            ],
        );
        assert_eq!(
            pairs(&source),
            ["a b 1", "a c 1", "a d 2", "a e 2", "b a 1", "b d 3"]
        );
    }

    #[test]
    fn tests_comments_strings_and_visibilities_are_no_uses() {
        let source = source(
            "none",
            &[
                ("lib.rs", "mod a; mod b; use crate::a::x;"),
                (
                    "a.rs",
                    "//! See [`crate::b`].\npub(crate) fn f() -> &'static str { \"crate::b\" }\n#[cfg(test)]\nuse crate::b::{x};\n\
                     #[cfg(test)]\nmod tests { use crate::b; }\n#[cfg(test)]\nmod more;",
                ),
                ("a/more.rs", "use crate::b;"),
                ("b.rs", "use crate::b::c;"),
            ],
        );
        assert!(pairs(&source).is_empty());
    }

    #[test]
    fn only_the_edges_of_a_cycle_are_told() {
        let source = source(
            "cycle",
            &[
                ("lib.rs", "mod a; mod b; mod c;"),
                ("a.rs", "use crate::b;"),
                ("b.rs", "use crate::a; use crate::c;"),
                ("c.rs", ""),
            ],
        );
        let found = cycles(&source).expect("the source is read");
        fs::remove_dir_all(&source).expect("the folder is there");
        let pairs: Vec<_> = found
            .iter()
            .map(|edge| (edge.from.as_str(), edge.to.as_str()))
            .collect();
        assert_eq!(pairs, [("a", "b"), ("b", "a")]);
    }
}
