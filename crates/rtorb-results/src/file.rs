//! Files that are written in whole or not at all.

use std::io::{Error, ErrorKind};
use std::path::Path;

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

/// Returns true if the path is the cause: nothing is there, it is of another kind or not text, or this user may not use it.
#[must_use]
pub fn is_wrong_path(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::NotFound
            | ErrorKind::PermissionDenied
            | ErrorKind::AlreadyExists
            | ErrorKind::NotADirectory
            | ErrorKind::IsADirectory
            | ErrorKind::ReadOnlyFilesystem
            | ErrorKind::InvalidFilename
            | ErrorKind::InvalidInput
            | ErrorKind::InvalidData
    )
}
