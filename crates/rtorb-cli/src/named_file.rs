//! Files that the command line names: errors that say the name, all mistakes of a file, and reading with a bound.

use std::io;
use std::path::{Path, PathBuf};

use rtorb_results::write_atomically;
use rtorb_sched::text_file::{FileErrors, open, read_bounded};

use crate::colour;
use crate::orb_options::usage;
use crate::output::note;

/// An error of a file that the command line names.
#[derive(Debug, thiserror::Error)]
#[error("cannot {verb} {}: {error}", path.display())]
pub(crate) struct NamedFileError {
    verb: &'static str,
    path: PathBuf,
    pub(crate) error: io::Error,
}

/// Adds the name of a file that could not be read.
pub(crate) fn unreadable(path: &Path) -> impl FnOnce(io::Error) -> NamedFileError + use<> {
    failed("read", path)
}

/// Adds the name of a file that could not be written.
pub(crate) fn unwritable(path: &Path) -> impl FnOnce(io::Error) -> NamedFileError + use<> {
    failed("write", path)
}

/// Writes a file atomically, and makes its folder if there is none.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), NamedFileError> {
    write_atomically(path, bytes).map_err(unwritable(path))
}

/// Checks that a file can be read, for libraries whose errors do not tell a missing file from a wrong one.
pub(crate) fn check_readable(path: &Path) -> Result<(), NamedFileError> {
    let check = || {
        if open(path)?.metadata()?.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        Ok(())
    };
    check().map_err(unreadable(path))
}

/// Reads the text of a file of at most `bytes_max` bytes.
pub(crate) fn read_text(path: &Path, bytes_max: u64) -> Result<String, NamedFileError> {
    read_bounded(path, bytes_max).map_err(unreadable(path))
}

/// Prints the mistakes of a file with their lines, and returns the error that counts them. A file that cannot be read has none.
pub(crate) fn file_error(errors: FileErrors) -> anyhow::Error {
    let mistakes = errors.mistakes();
    if mistakes.iter().all(|mistake| mistake.line.is_none()) {
        return usage(errors);
    }
    let counted = match mistakes.len() {
        1 => "1 mistake".to_owned(),
        count => format!("{count} mistakes"),
    };
    let remedy = errors.remedy().map(|remedy| format!("; {remedy}"));
    note!("{}\n", errors.render(colour::on_stderr()));
    usage(format!(
        "{}: {counted}{}",
        errors.path().display(),
        remedy.unwrap_or_default()
    ))
}

/// Adds what could not be done, and the name of the file or folder.
pub(crate) fn failed(
    verb: &'static str,
    path: &Path,
) -> impl FnOnce(io::Error) -> NamedFileError + use<> {
    let path = path.to_owned();
    move |error| NamedFileError { verb, path, error }
}
