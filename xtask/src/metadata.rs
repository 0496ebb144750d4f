//! What cargo knows of the workspace: packages, their targets, who depends on whom.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::Context;
use cargo_metadata::{Metadata, MetadataCommand, Package};
use xshell::{Shell, cmd};

/// The packages of the workspace.
pub(crate) fn members(sh: &Shell) -> anyhow::Result<Vec<Package>> {
    Ok(metadata(sh)?.packages)
}

/// The folder that cargo builds into: `target` in the workspace, or what CARGO_TARGET_DIR or a configuration names.
pub(crate) fn target_folder(sh: &Shell) -> anyhow::Result<PathBuf> {
    Ok(metadata(sh)?.target_directory.into())
}

fn metadata(sh: &Shell) -> anyhow::Result<Metadata> {
    let mut command = MetadataCommand::new();
    command.current_dir(sh.current_dir()).no_deps();
    command.exec().context("cargo metadata")
}

/// The names of a package and of all that it needs, by the options of `cargo tree`.
pub(crate) fn needed(sh: &Shell, options: &[&str]) -> anyhow::Result<BTreeSet<String>> {
    let tree = cmd!(sh, "cargo tree --prefix none {options...}");
    let text = tree.quiet().read()?;
    let names = text.lines().filter_map(|line| line.split(' ').next());
    Ok(names.map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use std::env;
    use std::path::Path;

    use super::*;
    use crate::sources::{code, rust_files};

    #[test]
    fn the_target_folder_is_the_one_that_cargo_builds_into() {
        let sh = Shell::new().expect("a folder to start in");
        let folder = sh.create_temp_dir().expect("a folder of our own");
        sh.change_dir(folder.path());
        for (name, text) in [
            ("Cargo.toml", "[package]\nname = \"one\"\n"),
            ("src/lib.rs", ""),
            (
                ".cargo/config.toml",
                "[build]\ntarget-dir = \"elsewhere\"\n",
            ),
        ] {
            sh.write_file(name, text).expect("a file of our own");
        }
        // The variable, where it is set, is stronger than a file.
        let named = env::var_os("CARGO_TARGET_DIR");
        let wanted = folder
            .path()
            .join(named.unwrap_or_else(|| "elsewhere".into()));
        assert_eq!(target_folder(&sh).expect("cargo knows it"), wanted);
    }

    #[test]
    fn no_command_takes_the_target_folder_for_granted() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        for file in rust_files(&folder).expect("the sources can be read") {
            for line in code(&file).expect("a file of sources") {
                let guesses = ["(\"target\"", "(\"target/"];
                let guess = guesses.iter().any(|guess| line.contains(guess));
                assert!(!guess, "{}: {line}: use target_folder", file.display());
            }
        }
    }
}
