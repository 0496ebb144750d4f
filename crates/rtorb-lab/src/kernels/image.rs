//! What a kernel image says of itself, before it is booted.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::error::LabError;

/// Whether it is a PREEMPT_RT kernel, by its own version text.
///
/// # Errors
/// That it cannot be read, or is no kernel image for x86.
pub fn is_real_time(image: &Path) -> Result<bool, LabError> {
    Ok(version(image)?.contains("PREEMPT_RT"))
}

/// Such as `6.12.117+deb12-rt-amd64 (...) #1 SMP PREEMPT_RT Debian ...`.
///
/// # Errors
/// As [`is_real_time`].
pub fn version(image: &Path) -> Result<String, LabError> {
    let mut octets = Vec::new();
    File::open(image)
        .and_then(|file| file.take(HEAD_OCTETS).read_to_end(&mut octets))
        .map_err(LabError::file(image))?;
    version_of(&octets).ok_or_else(|| LabError::Incomplete {
        what: format!(
            "{} is no kernel image for x86-64: give a `vmlinuz`, or the name of a kernel",
            image.display()
        ),
    })
}

/// As the Linux/x86 boot protocol has it: a magic word, and where the text begins.
fn version_of(octets: &[u8]) -> Option<String> {
    (octets.get(0x202..0x206)? == b"HdrS").then_some(())?;
    let offset = octets.get(0x20e..0x210)?;
    let begin = usize::from(u16::from_le_bytes([offset[0], offset[1]])) + 0x200;
    let text = octets.get(begin..)?.split(|octet| *octet == 0).next()?;
    Some(String::from_utf8_lossy(text).into_owned())
}

/// More than the header and its text.
const HEAD_OCTETS: u64 = 1 << 17;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_read_out_of_the_header() {
        let mut image = vec![0; 0x1000];
        image[0x202..0x206].copy_from_slice(b"HdrS");
        image[0x20e..0x210].copy_from_slice(&0x600u16.to_le_bytes());
        let text = b"6.12-rt (x) #1 SMP PREEMPT_RT\0more";
        image[0x800..0x800 + text.len()].copy_from_slice(text);
        assert_eq!(
            version_of(&image).as_deref(),
            Some("6.12-rt (x) #1 SMP PREEMPT_RT")
        );
        assert_eq!(version_of(&image[..0x700]), None, "cut off");
        assert_eq!(version_of(&[0; 0x1000]), None, "something else");
    }

    #[test]
    fn what_is_no_image_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("vmlinuz");
        std::fs::write(&file, "text").unwrap();
        let error = is_real_time(&file).unwrap_err().to_string();
        assert!(error.contains("no kernel image"), "{error}");
    }
}
