//! Reads an ELF file to find out whether it is statically linked.

use anyhow::Context;
use object::LittleEndian;
use object::elf::{DT_NEEDED, FileHeader64, PT_INTERP};
use object::read::elf::{Dyn, FileHeader, ProgramHeader};

/// Whether the kernel can start this executable with no other file: it names no interpreter (PT_INTERP) and needs no
/// library (DT_NEEDED).
///
/// # Errors
/// The file is no 64-bit little-endian ELF file, or is cut off.
pub(crate) fn is_static(file: &[u8]) -> anyhow::Result<bool> {
    let header =
        FileHeader64::<LittleEndian>::parse(file).context("it is no ELF file of 64 bits")?;
    let endian = header.endian().context("it is not little-endian")?;
    for segment in header.program_headers(endian, file)? {
        let entries = segment.dynamic(endian, file)?.unwrap_or_default();
        let needs_library = entries.iter().any(|entry| entry.d_tag(endian) == DT_NEEDED);
        if segment.p_type(endian) == PT_INTERP || needs_library {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An executable with program headers of these types and, as PT_DYNAMIC, these tags.
    fn executable(types: &[u32], tags: &[u64]) -> Vec<u8> {
        let mut file = vec![0; 0x40];
        file[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        file[0x20] = 0x40;
        file[0x36] = 56;
        file[0x38] = u8::try_from(types.len()).unwrap();
        let dynamic = 0x40 + 56 * types.len();
        for kind in types {
            let mut header = [0; 56];
            header[..4].copy_from_slice(&kind.to_le_bytes());
            header[8..16].copy_from_slice(&(dynamic as u64).to_le_bytes());
            header[32..40].copy_from_slice(&(16 * tags.len() as u64).to_le_bytes());
            file.extend(header);
        }
        for tag in tags {
            file.extend(tag.to_le_bytes());
            file.extend([0; 8]);
        }
        file
    }

    #[test]
    fn a_loader_or_a_library_is_seen() {
        assert!(is_static(&executable(&[1], &[])).unwrap());
        assert!(is_static(&executable(&[1, 2], &[5, 0])).unwrap());
        assert!(!is_static(&executable(&[1, 3], &[])).unwrap());
        assert!(!is_static(&executable(&[1, 2], &[5, 1, 0])).unwrap());
    }

    #[test]
    fn what_is_no_executable_is_an_error() {
        assert!(is_static(b"#!/bin/sh").is_err());
        assert!(is_static(&executable(&[1], &[])[..0x50]).is_err());
    }

    #[test]
    fn these_tests_are_linked_with_libraries_of_the_host() {
        let own = std::env::current_exe().unwrap();
        let needs_loader = cfg!(not(target_feature = "crt-static"));
        assert_eq!(
            is_static(&std::fs::read(own).unwrap()).unwrap(),
            !needs_loader
        );
    }
}
