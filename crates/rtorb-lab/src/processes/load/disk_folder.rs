//! Where the disk load writes: on a disk, not in memory, and only where there is room.

use std::path::Path;

use rustix::fs::{statfs, statvfs};
use tempfile::TempDir;

use super::FILE_BYTES;
use crate::error::LabError;

/// A new folder in the run's own one, or in `/var/tmp` where that is in memory.
///
/// # Errors
/// [`LabError::Refused`] if neither is on a disk with room enough, or may be written to.
pub(super) fn make(own: &Path) -> Result<TempDir, LabError> {
    let refused = |what: String| LabError::Refused {
        what: format!("load disk: {what}"),
    };
    let place = place(own).map_err(refused)?;
    let folder = tempfile::Builder::new()
        .prefix("rtorb-load-")
        .tempdir_in(place);
    folder.map_err(|error| refused(format!("{}: {error}", place.display())))
}

/// This folder, or `/var/tmp` where it is in memory.
///
/// # Errors
/// That neither is on a disk with room enough.
pub(super) fn place(own: &Path) -> Result<&Path, String> {
    let mut unfit = Vec::new();
    for place in [own, Path::new("/var/tmp")] {
        match suits(place) {
            Ok(()) => return Ok(place),
            Err(why) => unfit.push(why),
        }
    }
    Err(format!(
        "{}; set TMPDIR to a folder on a disk with {} MiB free",
        unfit.join(", "),
        FREE_BYTES_MIN >> 20
    ))
}

fn suits(place: &Path) -> Result<(), String> {
    let named = |error: rustix::io::Errno| format!("{}: {error}", place.display());
    let kind = statfs(place).map_err(named)?.f_type as u64 & 0xffff_ffff;
    if [TMPFS_MAGIC, RAMFS_MAGIC].contains(&kind) {
        return Err(format!("{} is in memory", place.display()));
    }
    let space = statvfs(place).map_err(named)?;
    let free = space.f_bavail.saturating_mul(space.f_frsize);
    match free {
        0..FREE_BYTES_MIN => Err(format!(
            "{} has only {} MiB free",
            place.display(),
            free >> 20
        )),
        _ => Ok(()),
    }
}

/// The rest of the run shall not find the disk full.
const FREE_BYTES_MIN: u64 = 8 * FILE_BYTES;
/// statfs(2).
const TMPFS_MAGIC: u64 = 0x0102_1994;
const RAMFS_MAGIC: u64 = 0x8584_58f6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_no_disk() {
        match statfs("/dev/shm") {
            Ok(found) if found.f_type as u64 == TMPFS_MAGIC => {
                assert!(suits(Path::new("/dev/shm")).unwrap_err().contains("memory"));
            }
            _ => println!("skipped: /dev/shm is no tmpfs here"),
        }
        assert!(suits(Path::new("/no/such/place")).is_err());
    }
}
