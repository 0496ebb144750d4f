//! The file by which a server tells that it is ready.

use std::fs;
use std::io;

/// Writes a reference to a file, which is there only once it is whole.
pub(crate) fn write(file: &str, reference: &str) -> io::Result<()> {
    let draft = format!("{file}.draft");
    fs::write(&draft, reference)?;
    fs::rename(draft, file)
}
