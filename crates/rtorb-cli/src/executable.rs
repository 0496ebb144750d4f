//! The path of this program's file, which the measured processes run too.

use std::path::PathBuf;

use anyhow::Context as _;

/// Returns the path. On a target without /proc, the command line has it.
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
