//! Files that are written in whole or not at all, and read with a bound.

use std::io::{Error, ErrorKind};
use std::path::Path;

use rtorb_sched::text_file::read_bounded;

/// Reads the text of a file of results, or of what was made of them.
///
/// # Errors
/// What the file system said, or that it is no such file.
pub fn read_text(path: &Path) -> std::io::Result<String> {
    read_bounded(path, FILE_BYTES_MAX)
}

/// Far more than the results of the longest campaign.
const FILE_BYTES_MAX: u64 = 256 << 20;

/// Writes a file beside its final name, then renames it: a reader never sees half of it.
///
/// # Errors
/// What the file system said.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    std::fs::create_dir_all(folder).map_err(|error| {
        let name = folder.display();
        let reason = match error.kind() {
            ErrorKind::AlreadyExists | ErrorKind::NotADirectory => format!("{name} is no folder"),
            _ => format!("its folder {name} cannot be made: {error}"),
        };
        Error::new(error.kind(), reason)
    })?;
    let name = path
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    let temporary = folder.join(format!(".{name}.{}", std::process::id()));
    let written =
        std::fs::write(&temporary, bytes).and_then(|()| std::fs::rename(&temporary, path));
    if written.is_err() {
        // Best effort: the first error is the one worth telling.
        let _ = std::fs::remove_file(&temporary);
    }
    written
}
