//! What `cargo xtask` has put into the target folder of a checkout: the program of guests, and guests that are no Linux.

use std::path::{Path, PathBuf};

/// Finds a file of the target folder, such as `static/rtorb`. Looks into the folder that `executable` was built in; then into that of
/// CARGO_TARGET_DIR, or `target` in the current folder: an installed program stands in no target folder.
pub(crate) fn find(executable: &Path, file: &str) -> Option<PathBuf> {
    let named = std::env::var_os("CARGO_TARGET_DIR");
    let current = named.map_or_else(|| PathBuf::from("target"), PathBuf::from);
    first(executable, &current, file)
}

fn first(executable: &Path, current: &Path, file: &str) -> Option<PathBuf> {
    let above = executable.ancestors().skip(1);
    let own = above.filter(|folder| folder.ends_with("target") || folder.join(TAG).is_file());
    let mut files = own.chain([current]).map(|folder| folder.join(file));
    files.find(|file| file.is_file())
}

/// Cargo marks each target folder with this file, whatever its name.
const TAG: &str = "CACHEDIR.TAG";

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_is_found_from_a_built_program_and_from_an_installed_one() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let write = |name: &str| {
            let file = folder.join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, "").unwrap();
            file
        };
        write("elsewhere/CACHEDIR.TAG");
        let [there, here] = ["elsewhere/static/rtorb", "checkout/target/static/rtorb"].map(write);
        let current = folder.join("checkout/target");
        for (executable, found) in [
            ("elsewhere/debug/rtorb", &there),
            ("elsewhere/x86_64-unknown-linux-gnu/debug/rtorb", &there),
            ("checkout/target/release/rtorb", &here),
            ("home/.cargo/bin/rtorb", &here),
        ] {
            let executable = folder.join(executable);
            let file = first(&executable, &current, "static/rtorb");
            assert_eq!(file.as_ref(), Some(found), "{}", executable.display());
        }
        let installed = folder.join("home/.cargo/bin/rtorb");
        assert_eq!(first(&installed, &current, "rtos/rtic"), None);
    }
}
