//! What an ELF file says of itself: whether it needs a loader, and so whether it is statically linked.

use anyhow::{Context, bail, ensure};

/// Whether the kernel can start this executable with no other file: it names no interpreter (PT_INTERP) and needs no
/// library (DT_NEEDED).
///
/// # Errors
/// That it is no 64-bit little-endian ELF file, or is cut off.
pub(crate) fn is_static(file: &[u8]) -> anyhow::Result<bool> {
    ensure!(
        file.get(..4) == Some(b"\x7fELF".as_slice()),
        "it is no ELF file"
    );
    if file.get(4..6) != Some([CLASS_64, LITTLE_ENDIAN].as_slice()) {
        bail!("it is not of 64 bits and little-endian");
    }
    let headers = number(file, 0x20, 8)?;
    let size = number(file, 0x36, 2)?;
    let count = number(file, 0x38, 2)?;
    for index in 0..count {
        let header = headers + index * size;
        // In whole, though of most only the type is of interest.
        number(file, header + PROGRAM_HEADER_OCTETS - 8, 8)?;
        match number(file, header, 4)? {
            PT_INTERP => return Ok(false),
            PT_DYNAMIC => {
                let begin = number(file, header + 0x08, 8)?;
                let octets = number(file, header + 0x20, 8)?;
                for entry in (begin..begin + octets).step_by(DYNAMIC_OCTETS) {
                    if number(file, entry, 8)? == DT_NEEDED {
                        return Ok(false);
                    }
                }
            }
            _ => {}
        }
    }
    Ok(true)
}

/// The little-endian number of so many octets at this place.
fn number(file: &[u8], at: usize, octets: usize) -> anyhow::Result<usize> {
    let end = at.checked_add(octets).context("it makes no sense")?;
    let octets = file.get(at..end).context("it is cut off")?;
    let number = octets
        .iter()
        .rev()
        .fold(0u64, |sum, octet| sum << 8 | u64::from(*octet));
    usize::try_from(number).context("it makes no sense")
}

const CLASS_64: u8 = 2;
const LITTLE_ENDIAN: u8 = 1;
const PT_DYNAMIC: usize = 2;
const PT_INTERP: usize = 3;
const DT_NEEDED: usize = 1;
const DYNAMIC_OCTETS: usize = 16;
const PROGRAM_HEADER_OCTETS: usize = 56;

#[cfg(test)]
mod tests {
    use super::*;

    /// An executable with program headers of these types and, as PT_DYNAMIC, these tags.
    fn executable(types: &[u32], tags: &[u64]) -> Vec<u8> {
        let mut file = vec![0; 0x40];
        file[..6].copy_from_slice(b"\x7fELF\x02\x01");
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
