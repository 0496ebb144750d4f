//! Builds a peer once, however many tests ask for it at the same time.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of peer `name`, filled by `make` when it is not up to date with `sources`.
///
/// # Panics
///
/// `make` does, or the folder cannot be written.
pub(crate) fn once(name: &str, sources: &[PathBuf], make: impl FnOnce(&Path)) -> PathBuf {
    let folder = Path::new(env!("OUT_DIR")).join(name);
    fs::create_dir_all(&folder).expect("the output folder can be written");
    let lock = File::create(folder.join("lock")).expect("the output folder can be written");
    lock.lock().expect("a file can be locked");
    let stamp = folder.join("stamp");
    let wanted = digest(sources);
    if fs::read_to_string(&stamp).is_ok_and(|made| made == wanted) {
        return folder;
    }
    make(&folder);
    fs::write(&stamp, wanted).expect("the output folder can be written");
    folder
}

/// Every file of `folder`, in the order of their names.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut files: Vec<_> = entries
        .map(|entry| entry.expect("a folder can be listed").path())
        .collect();
    files.sort();
    files
}

/// Runs one step of a build in `folder`.
///
/// # Panics
///
/// The step fails: then with what it printed.
pub(crate) fn step<A: AsRef<OsStr>>(
    folder: &Path,
    program: &str,
    arguments: impl IntoIterator<Item = A>,
) {
    let mut command = Command::new(program);
    command.current_dir(folder).args(arguments);
    let output = command
        .output()
        .unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{command:?}: {}\n{printed}",
        output.status
    );
}

/// Whether `program` is in the search path.
pub(crate) fn has(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

fn digest(sources: &[PathBuf]) -> String {
    let mut hasher = DefaultHasher::new();
    for source in sources {
        let text = fs::read(source).unwrap_or_else(|e| panic!("{}: {e}", source.display()));
        (source, text).hash(&mut hasher);
    }
    format!("{:016x}", hasher.finish())
}
