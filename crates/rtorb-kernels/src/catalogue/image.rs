//! What a kernel image says of itself: that a PC boots it, and its release (Linux, Documentation/arch/x86/boot.rst).

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use rtorb_lab::LabError;

/// What the kernel in this file calls itself: the first word of its version, as `uname -r` has it.
///
/// # Errors
/// That it cannot be read, or is no such image.
pub(super) fn release(image: &Path) -> Result<String, LabError> {
    let version = version(image)?;
    let release = version.split_whitespace().next();
    release
        .map(str::to_owned)
        .ok_or_else(|| no_boot_image(image))
}

/// All that it says of itself: `6.12.117+deb12-rt-amd64 (...) #1 SMP PREEMPT_RT Debian ...`.
///
/// # Errors
/// As [`release`].
pub(super) fn version(image: &Path) -> Result<String, LabError> {
    let mut head = Vec::new();
    let read = |head: &mut Vec<u8>| -> io::Result<()> {
        File::open(image)?.take(HEAD_BYTES).read_to_end(head)?;
        Ok(())
    };
    read(&mut head).map_err(LabError::file(image))?;
    version_in(&head).ok_or_else(|| no_boot_image(image))
}

fn no_boot_image(image: &Path) -> LabError {
    LabError::file(image)(io::Error::other(
        "is no x86 boot image: name a bzImage or vmlinuz, not the vmlinux that it was made of",
    ))
}

fn version_in(head: &[u8]) -> Option<String> {
    if head.get(MAGIC_AT..)?.get(..MAGIC.len())? != MAGIC {
        return None;
    }
    let pointer = head.get(VERSION_AT..VERSION_AT + 2)?;
    let start = usize::from(u16::from_le_bytes([pointer[0], pointer[1]])) + BOOT_SECTOR_BYTES;
    let text = head.get(start..)?.split(|octet| *octet == 0).next()?;
    let text = std::str::from_utf8(text.get(..text.len().min(VERSION_BYTES_MAX))?).ok()?;
    (!text.is_empty()).then(|| text.to_owned())
}

/// `HdrS`, since the boot protocol of 1995.
const MAGIC: &[u8] = b"HdrS";
const MAGIC_AT: usize = 0x202;
/// Where the version's text is, less the boot sector, in two octets.
const VERSION_AT: usize = 0x20e;
const BOOT_SECTOR_BYTES: usize = 0x200;
/// The pointer reaches no farther than 64 KiB; a version is shorter than the rest.
const HEAD_BYTES: u64 = 0x200 + (1 << 16) + 1024;
const VERSION_BYTES_MAX: usize = 512;

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The first octets of an image of this version.
    pub(in super::super) fn image_of(version: &str) -> Vec<u8> {
        let mut head = vec![0; 0x400];
        head[MAGIC_AT..MAGIC_AT + 4].copy_from_slice(MAGIC);
        head[VERSION_AT..VERSION_AT + 2].copy_from_slice(&0x200_u16.to_le_bytes());
        head.extend_from_slice(version.as_bytes());
        head.push(0);
        head
    }

    #[test]
    fn an_image_says_its_release() {
        let version = "6.12.117+deb12-amd64 (debian-kernel@lists.debian.org) #1 SMP";
        let image = image_of(version);
        assert_eq!(version_in(&image).as_deref(), Some(version));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vmlinuz");
        std::fs::write(&path, image).unwrap();
        assert_eq!(release(&path).unwrap(), "6.12.117+deb12-amd64");
    }

    #[test]
    fn what_is_no_image_is_refused() {
        let mut not = image_of("6.12");
        not[MAGIC_AT] = b'h';
        assert_eq!(version_in(&not), None);
        assert_eq!(version_in(b"\x7fELF"), None);
        let mut beyond = image_of("6.12");
        beyond[VERSION_AT + 1] = 0xff;
        assert_eq!(version_in(&beyond), None, "a pointer to nothing");
        assert_eq!(version_in(&image_of("")), None);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bzImage");
        std::fs::write(&path, b"text").unwrap();
        let error = release(&path).unwrap_err().to_string();
        assert!(
            error.contains("bzImage") && error.contains("no x86 boot image"),
            "{error}"
        );
    }
}
