//! The names of a crate's types: no two types share one, and no module hides `core`, `std` or `alloc`.
//!
//! Tests and generated code do not count, nor do types that a macro names. `docs/reference/glossary.md` has the project's terms.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use cargo_metadata::Package;

use crate::sources::{code, rust_files};

/// The names that several types of a package may share: the package, the folder or file below `src` without its extension (empty for all
/// of it), and the names, or none for all that are declared there.
const SHARED: &[(&str, &str, &[&str])] = &[
    // In a model of loom, its mutex stands in the place of ours.
    ("rtorb-os", "", &["Mutex"]),
    // Each experiment, and each program that it measures, is a program of its own.
    ("rtorb-lab", "contestants", &[]),
    ("rtorb-lab", "experiments", &[]),
    // The arguments of a command have its name, in the module of the command above it: `naming::Serve`, `events::Serve`.
    (
        "rtorb-cli",
        "",
        &["Check", "List", "Run", "Serve", "Subcommands"],
    ),
    // It stands in the place of `laboratory` in a command without one.
    ("rtorb-cli", "no_laboratory", &[]),
];

/// The wrong names in `src` of a package.
pub(crate) fn wrong_names(package: &Package) -> anyhow::Result<Vec<String>> {
    let src = package.manifest_path.with_file_name("src");
    let shared = SHARED.iter().filter(|(of, ..)| *of == *package.name);
    let shared: Vec<_> = shared
        .map(|(_, place, names)| (src.join(place).into_std_path_buf(), *names))
        .collect();
    if !src.is_dir() {
        return Ok(Vec::new());
    }
    let mut files = Vec::new();
    let mut paths = rust_files(src.as_std_path())?;
    // Each file there is a crate of its own.
    paths.retain(|path| !path.starts_with(src.join("bin").as_std_path()));
    for file in paths {
        let lines = code(&file)?;
        files.push((file, lines));
    }
    Ok(check(&files, &shared))
}

fn check(files: &[(PathBuf, Vec<String>)], shared: &[(PathBuf, &[&str])]) -> Vec<String> {
    let tests: BTreeSet<PathBuf> = files
        .iter()
        .flat_map(|(file, lines)| test_modules(file, lines))
        .collect();
    let mut wrong = Vec::new();
    let mut types: BTreeMap<&str, String> = BTreeMap::new();
    for (file, lines) in files {
        if file
            .ancestors()
            .any(|it| tests.contains(&it.with_extension("")))
        {
            continue;
        }
        let mut is_test = false;
        for line in lines {
            let text = line.trim();
            if text.starts_with("#[") {
                is_test |= is_for_tests(text);
                continue;
            }
            let place = file.display().to_string();
            let is_checked = |name: &&str| !is_test && !may_share(file, name, shared);
            if let Some(name) = type_name(line).filter(is_checked) {
                if let Some(first) = types.get(name) {
                    wrong.push(format!(
                        "{place}: `{name}` is also the name of the type in {first}"
                    ));
                } else {
                    types.insert(name, place);
                }
            } else if let Some(name) = module_name(text).filter(|it| HIDDEN.contains(it)) {
                wrong.push(format!(
                    "{place}: the module `{name}` hides the crate of that name"
                ));
            }
            is_test = false;
        }
    }
    wrong
}

/// True if another type may have the name of the one in a file.
fn may_share(file: &Path, name: &str, shared: &[(PathBuf, &[&str])]) -> bool {
    let module = file.with_extension("");
    let mut there = shared.iter().filter(|it| module.starts_with(&it.0));
    there.any(|(_, names)| names.is_empty() || names.contains(&name))
}

/// The paths, without an extension, of the modules of tests that a file declares.
fn test_modules(file: &Path, lines: &[String]) -> Vec<PathBuf> {
    let stem = file.file_stem().unwrap_or_default();
    let folder = match stem.to_str() {
        Some("lib" | "main" | "mod") => file.with_file_name(""),
        _ => file.with_extension(""),
    };
    let pairs = lines.iter().zip(lines.iter().skip(1));
    let modules = pairs.filter(|(line, _)| is_for_tests(line.trim()));
    let names = modules.filter_map(|(_, next)| module_name(next.trim()));
    names.map(|name| folder.join(name)).collect()
}

fn is_for_tests(attribute: &str) -> bool {
    attribute == "#[cfg(test)]" || attribute.starts_with("#[cfg(all(test,")
}

/// The type that a line declares. An indented `type` is an associated type.
fn type_name(line: &str) -> Option<&str> {
    let (keyword, rest) = without_visibility(line.trim_start()).split_once(' ')?;
    let is_type = match keyword {
        "struct" | "enum" | "union" | "trait" => true,
        "type" => !line.starts_with(' '),
        _ => false,
    };
    let end = rest.find(|it: char| !it.is_alphanumeric() && it != '_');
    let name = &rest[..end.unwrap_or(rest.len())];
    (is_type && !name.is_empty()).then_some(name)
}

fn module_name(line: &str) -> Option<&str> {
    let name = without_visibility(line).strip_prefix("mod ")?;
    Some(name.trim_end_matches([';', '{', ' ']))
}

/// The line without `pub` or `pub(...)`, and without `unsafe`.
fn without_visibility(line: &str) -> &str {
    let rest = line.strip_prefix("pub").map_or(line, |rest| {
        let inside = rest.strip_prefix('(').and_then(|it| it.split_once(')'));
        inside.map_or(rest, |(_, rest)| rest)
    });
    let rest = rest.trim_start();
    rest.strip_prefix("unsafe ").unwrap_or(rest)
}

/// The crates that every program has.
const HIDDEN: [&str; 3] = ["core", "std", "alloc"];

#[cfg(test)]
mod tests {
    use super::{check, type_name};
    use std::path::PathBuf;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<_> = files
            .iter()
            .map(|(file, text)| {
                let lines = text.lines().map(str::to_owned);
                (PathBuf::from(file), lines.collect())
            })
            .collect();
        let everywhere: (_, &[_]) = ("src/".into(), &["Step"]);
        check(&files, &[everywhere, ("src/programs".into(), &[])])
    }

    #[test]
    fn a_line_that_declares_a_type_has_its_name() {
        assert_eq!(type_name("pub(crate) struct Host<'h> {"), Some("Host"));
        assert_eq!(type_name("pub unsafe trait Plain {}"), Some("Plain"));
        assert_eq!(type_name("    pub enum Side {"), Some("Side"));
        assert_eq!(type_name("type Records = Vec<Record>;"), Some("Records"));
        assert_eq!(type_name("    type Item = u8;"), None);
        assert_eq!(type_name("pub struct $name;"), None);
        assert_eq!(type_name("let structure = 1;"), None);
    }

    #[test]
    fn two_types_of_one_name_are_found_in_all_modules() {
        let files = [
            ("src/lib.rs", "mod a;\nmod b;\npub struct Host;"),
            ("src/a.rs", "enum Host {\n}\nstruct Link;\nenum Step {}"),
            (
                "src/b/c.rs",
                "pub(super) trait Host {\n}\nstruct Wire;\nstruct Step;",
            ),
        ];
        assert_eq!(
            found(&files),
            [
                "src/a.rs: `Host` is also the name of the type in src/lib.rs",
                "src/b/c.rs: `Host` is also the name of the type in src/lib.rs",
            ]
        );
    }

    #[test]
    fn programs_of_their_own_share_names_with_each_other_only() {
        let files = [
            ("src/a.rs", "struct Run;"),
            ("src/b.rs", "struct Run;"),
            ("src/programs.rs", "struct Run;"),
            ("src/programs/c.rs", "struct Run;"),
        ];
        assert_eq!(
            found(&files),
            ["src/b.rs: `Run` is also the name of the type in src/a.rs"]
        );
    }

    #[test]
    fn types_for_tests_do_not_count() {
        let files = [
            (
                "src/lib.rs",
                "#[cfg(test)]\nmod fake;\nmod a;\nstruct Host;\n#[cfg(test)]\n#[derive(Debug)]\nstruct Link;",
            ),
            (
                "src/a.rs",
                "#[cfg(all(test, loom))]\nmod model;\nstruct Link;",
            ),
            ("src/a/model.rs", "struct Host;"),
            ("src/fake/clock.rs", "struct Host;"),
            ("src/fake.rs", "struct Host;"),
        ];
        assert_eq!(found(&files), [""; 0]);
    }

    #[test]
    fn a_module_must_not_hide_a_crate() {
        let files = [("src/lib.rs", "pub(crate) mod core;\nmod core_files;")];
        assert_eq!(
            found(&files),
            ["src/lib.rs: the module `core` hides the crate of that name"]
        );
    }
}
