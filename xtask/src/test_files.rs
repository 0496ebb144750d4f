//! Finds tests that cargo does not run: files that no test program has as a module, and tests of targets with `test = false`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::Context;
use cargo_metadata::{Package, Target};

use crate::sources::{code, rust_files};

/// The files below `tests/` that no target of `package` compiles.
pub(crate) fn forgotten(package: &Package) -> anyhow::Result<Vec<PathBuf>> {
    let folder = package.manifest_path.with_file_name("tests");
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let mut compiled = BTreeSet::new();
    for target in &package.targets {
        compiled.extend(files(target.src_path.as_std_path())?);
    }
    let mut forgotten = rust_files(&folder.canonicalize()?)?;
    forgotten.retain(|file| !compiled.contains(file));
    Ok(forgotten)
}

/// The files with tests of targets whose tests cargo does not run (`test = false`), unless another target has them for its tests.
pub(crate) fn never_run(package: &Package) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let is_program = |target: &&Target| target.is_lib() || target.is_bin();
    let mut run_by_others = BTreeSet::new();
    for target in package.targets.iter().filter(|target| target.is_test()) {
        run_by_others.extend(files(target.src_path.as_std_path())?);
    }
    for target in package
        .targets
        .iter()
        .filter(is_program)
        .filter(|target| !target.test)
    {
        let mut own = files(target.src_path.as_std_path())?;
        own.retain(|file| !run_by_others.contains(file));
        for file in own {
            let text =
                std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
            if text.lines().any(|line| line.trim() == "#[test]") {
                found.push(file);
            }
        }
    }
    Ok(found)
}

/// The file of a target and those of its modules.
fn files(root: &Path) -> anyhow::Result<BTreeSet<PathBuf>> {
    let mut found = BTreeSet::new();
    let root = root
        .canonicalize()
        .with_context(|| root.display().to_string())?;
    let mut left = vec![root.clone()];
    while let Some(file) = left.pop() {
        if found.contains(&file) {
            continue;
        }
        let folder = file.parent().context("a file is in a folder")?;
        let owns_folder = file == root || file.ends_with("mod.rs");
        let below = if owns_folder {
            folder.to_owned()
        } else {
            file.with_extension("")
        };
        let mut path = None;
        for line in code(&file)? {
            let line = line.trim();
            if let Some(name) = module(line) {
                let named = [format!("{name}.rs"), format!("{name}/mod.rs")];
                let places = named.map(|name| below.join(name));
                let chosen = path.take().map(|path| folder.join::<String>(path));
                let place = chosen
                    .into_iter()
                    .chain(places)
                    .find(|place| place.is_file());
                // A module of generated code has no file here.
                left.extend(place.and_then(|place| place.canonicalize().ok()));
            }
            let named = line.strip_prefix("#[path = \"");
            path = named.and_then(|rest| Some(rest.strip_suffix("\"]")?.to_owned()));
        }
        found.insert(file);
    }
    Ok(found)
}

/// The module that a line declares as a file of its own.
fn module(line: &str) -> Option<&str> {
    let (before, name) = line.strip_suffix(';')?.rsplit_once("mod ")?;
    (before.is_empty() || before.starts_with("pub")).then_some(name)
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::{files, forgotten, module, never_run};
    use crate::metadata::members;

    #[test]
    fn a_line_that_declares_a_file_has_its_name() {
        assert_eq!(module("mod pools;"), Some("pools"));
        assert_eq!(module("pub(crate) mod pools;"), Some("pools"));
        assert_eq!(module("mod tests {"), None);
        assert_eq!(module("use crate::mod_of;"), None);
    }

    #[test]
    fn modules_are_found_in_folders_and_by_path() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/rtorb-wire/tests");
        let root = folder
            .canonicalize()
            .expect("it is there")
            .join("bytes/main.rs");
        let found = files(&root).expect("it can be read");
        assert!(found.contains(&root.with_file_name("hostile.rs")));
        assert!(
            found
                .iter()
                .any(|file| file.ends_with("tests/decoders/mod.rs"))
        );
    }

    #[test]
    fn files_of_no_target_and_tests_that_never_run_are_found() {
        let sh = crate::workspace().expect("the workspace");
        let members = members(&sh).expect("cargo answers");
        let wire = members
            .into_iter()
            .find(|package| *package.name == "rtorb-wire");
        let mut wire = wire.expect("a member");
        assert_eq!(
            forgotten(&wire).expect("it can be read"),
            [""; 0].map(PathBuf::from)
        );
        wire.targets.retain(|target| !target.is_test());
        let forgotten = forgotten(&wire).expect("it can be read");
        assert!(
            forgotten
                .iter()
                .any(|file| file.ends_with("bytes/hostile.rs"))
        );
        assert!(never_run(&wire).expect("it can be read").is_empty());
        wire.targets
            .iter_mut()
            .for_each(|target| target.test = false);
        assert!(!never_run(&wire).expect("it can be read").is_empty());
    }
}
