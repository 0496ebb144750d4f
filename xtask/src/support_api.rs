//! The support API of generated code, which is named in generated code alone.

use anyhow::Context;
use cargo_metadata::Package;

use crate::sources::{code, rust_files};

/// The crates that have a support API, and the one that writes generated code.
const MAKERS: [&str; 5] = [
    "rtorb",
    "rtorb-core",
    "rtorb-embedded",
    "rtorb-idl",
    "rtorb-wire",
];

/// Returns the lines of the package, tests included, that name the support API of an ORB.
pub(crate) fn named_by_hand(package: &Package) -> anyhow::Result<Vec<String>> {
    let folder = package.manifest_path.parent();
    let folder = folder.context("a manifest is in a folder")?;
    let mut breaches = Vec::new();
    if MAKERS.contains(&&**package.name) {
        return Ok(breaches);
    }
    let folders = ["src", "tests"].map(|name| folder.join(name));
    for folder in folders.iter().filter(|folder| folder.is_dir()) {
        for file in rust_files(folder.as_std_path())? {
            let named = code(&file)?.into_iter();
            let named = named.filter(|line| names_support_api(line));
            breaches.extend(named.map(|line| {
                let place = file.display();
                let line = line.trim();
                format!(
                    "{place}: {line}: `codegen` is for generated code; take rtorb::skeleton, rtorb::cdr or rtorb::any"
                )
            }));
        }
    }
    Ok(breaches)
}

/// True if code names a module `codegen` that is not one of its own crate. What stands between quotes is no code.
fn names_support_api(code: &str) -> bool {
    let mut parts = code.split('"').step_by(2);
    parts.any(|part| {
        let mut names = part.match_indices("codegen::");
        names.any(|(at, _)| !part[..at].ends_with("crate::"))
    })
}

#[cfg(test)]
mod tests {
    use super::names_support_api;

    #[test]
    fn the_support_api_is_found_in_paths_and_imports() {
        for named in [
            "use rtorb::codegen::ServedBy;",
            "    codegen::ServedBy,",
            "|w| rtorb_embedded::codegen::Encode::encode(&value, w)",
        ] {
            assert!(names_support_api(named), "{named}");
        }
        for other in [
            "use rtorb::skeleton::ServedBy;",
            "use crate::codegen::Any;",
            "let text = \"impl codegen::Interface for Cubit\";",
        ] {
            assert!(!names_support_api(other), "{other}");
        }
    }
}
