//! Loads on file systems: `disk`, `tmpfs` and `proc`.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;

use rustix::fs::{MemfdFlags, memfd_create};

use super::MULTIPLIER;
use super::workers::Begun;
use crate::processes::load::{FILE_BYTES, WRITE_BYTES};

/// Each file has no name from the beginning, so that nothing stays when this process is killed.
pub(super) fn write_to_disk(folder: &Path, mut begun: Begun) -> io::Result<()> {
    let octets = octets();
    loop {
        let mut file = tempfile::tempfile_in(folder)?;
        for _ in 0..FILE_BYTES / WRITE_BYTES as u64 {
            file.write_all(&octets)?;
            file.sync_data()?;
            begun.done_something()?;
        }
    }
}

/// In the tmpfs that the kernel keeps for itself, where files have no names and no mount sets a limit.
pub(super) fn write_to_memory(mut begun: Begun) -> io::Result<()> {
    let octets = octets();
    loop {
        let mut file = File::from(memfd_create("load", MemfdFlags::CLOEXEC)?);
        for _ in 0..FILE_BYTES / WRITE_BYTES as u64 {
            file.write_all(&octets)?;
            begun.done_something()?;
        }
    }
}

/// What tells of the system and of this process, again and again.
pub(super) fn read_proc(mut begun: Begun) -> io::Result<()> {
    let mut buffer = vec![0; READ_BYTES];
    loop {
        read_below(Path::new("/proc"), DEPTH_MAX, &mut buffer, &mut begun)?;
    }
}

/// A file or folder that refuses to be read, or is gone, is left out.
fn read_below(folder: &Path, depth: usize, buffer: &mut [u8], begun: &mut Begun) -> io::Result<()> {
    let own = std::process::id().to_string();
    for entry in fs::read_dir(folder)?.flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let is_process = depth == DEPTH_MAX && name.bytes().all(|octet| octet.is_ascii_digit());
        if LEFT_OUT.contains(&&*name) || (is_process && *name != *own) {
            continue;
        }
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && depth > 1 => {
                // It may be gone.
                let _ = read_below(&entry.path(), depth - 1, buffer, begun);
            }
            Ok(kind) if kind.is_file() => {
                read_file(&entry.path(), buffer);
                begun.done_something()?;
            }
            _ => {}
        }
    }
    Ok(())
}

fn read_file(path: &Path, buffer: &mut [u8]) {
    let Ok(mut file) = File::open(path) else {
        return;
    };
    let mut octets = 0;
    while octets < FILE_READ_BYTES_MAX
        && let Ok(count @ 1..) = file.read(buffer)
    {
        octets += count;
    }
}

/// Not all the same, which a file system might store without writing it.
fn octets() -> Vec<u8> {
    let mut number = 1u64;
    let next = || {
        number = number.wrapping_mul(MULTIPLIER).wrapping_add(1);
        number.to_be_bytes()[0]
    };
    std::iter::repeat_with(next).take(WRITE_BYTES).collect()
}

/// `kmsg` waits, or takes messages away from whoever logs them; `sys` is settings, of which some complain to the log when they
/// are read; `bus` has registers of devices, of which some change by being read; the others have no end.
const LEFT_OUT: [&str; 9] = [
    "kmsg",
    "sys",
    "bus",
    "kcore",
    "vmcore",
    "kpagecount",
    "kpageflags",
    "kpagecgroup",
    "pagemap",
];
/// Of /proc itself, of a process, of its threads.
const DEPTH_MAX: usize = 4;
const READ_BYTES: usize = 32 << 10;
/// /proc/kallsyms alone would take most of the time.
const FILE_READ_BYTES_MAX: usize = 128 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_not_all_the_same() {
        let octets = octets();
        assert_eq!(octets.len(), WRITE_BYTES);
        assert!(octets.windows(2).any(|two| two[0] != two[1]));
    }
}
