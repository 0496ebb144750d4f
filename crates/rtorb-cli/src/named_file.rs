//! Files that the command line names: errors that say the name, and reading with a bound.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use rtorb_results::write_atomically;

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
        if File::open(path)?.metadata()?.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        Ok(())
    };
    check().map_err(unreadable(path))
}

/// Reads the text of a file of at most `bytes_max` bytes.
pub(crate) fn read_text(path: &Path, bytes_max: u64) -> Result<String, NamedFileError> {
    let read = || {
        let mut text = String::new();
        let bytes = File::open(path)?
            .take(bytes_max.saturating_add(1))
            .read_to_string(&mut text)?;
        if bytes as u64 > bytes_max {
            let reason = format!("it has more than {bytes_max} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
        }
        Ok(text)
    };
    read().map_err(unreadable(path))
}

/// Adds what could not be done, and the name of the file or folder.
pub(crate) fn failed(
    verb: &'static str,
    path: &Path,
) -> impl FnOnce(io::Error) -> NamedFileError + use<> {
    let path = path.to_owned();
    move |error| NamedFileError { verb, path, error }
}
