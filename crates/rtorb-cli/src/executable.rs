//! Where this program's own file is: the measured processes are this program again.

use std::path::PathBuf;

use anyhow::Context as _;

/// The file. On a target without /proc, it is where the command line says.
pub(crate) fn own() -> anyhow::Result<PathBuf> {
    std::env::current_exe()
        .or_else(
            |error| match std::env::args_os().next().map(PathBuf::from) {
                Some(path) if path.components().count() > 1 && path.is_file() => Ok(path),
                _ => Err(error),
            },
        )
        .context("cannot find this program's own file; call it by its path")
}
