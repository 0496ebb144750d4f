//! Keeps the CPUs out of deep idle states while it is measured, as the kernel offers it: a file that is held open.
//!
//! Whoever has /dev/cpu_dma_latency open may say how many microseconds a CPU may take to wake up; 0 allows only states
//! that cost nothing to leave (Documentation/power/pm_qos_interface.rst). The kernel takes it back when the file is
//! closed, also when the process is killed.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// No CPU sleeps deeply as long as this lives.
#[derive(Debug)]
pub struct DmaLatency {
    _device: File,
}

impl DmaLatency {
    /// The kernel's device.
    pub const DEVICE: &str = "/dev/cpu_dma_latency";

    /// Asks for a wake-up within 0 microseconds until it is dropped.
    ///
    /// # Errors
    /// Why the device cannot be written: it belongs to root, or the kernel has none.
    pub fn hold() -> io::Result<Self> {
        Self::hold_at(Path::new(Self::DEVICE))
    }

    /// Whether it can be held; nothing is asked for.
    pub(crate) fn may_be_held(device: &Path) -> io::Result<()> {
        open(device).map(drop)
    }

    fn hold_at(device: &Path) -> io::Result<Self> {
        let mut file = open(device)?;
        file.write_all(&WAKE_WITHIN_US.to_ne_bytes())?;
        Ok(Self { _device: file })
    }
}

fn open(device: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).open(device)
}

const WAKE_WITHIN_US: i32 = 0;

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn four_bytes_of_zero_are_written() {
        let file = tempfile::NamedTempFile::new().unwrap();
        DmaLatency::may_be_held(file.path()).unwrap();
        assert_eq!(std::fs::read(file.path()).unwrap(), [0u8; 0]);
        let held = DmaLatency::hold_at(file.path()).unwrap();
        assert_eq!(std::fs::read(file.path()).unwrap(), [0; 4]);
        drop(held);
    }

    #[test]
    fn what_is_not_there_is_refused_and_not_made() {
        let folder = tempfile::tempdir().unwrap();
        let device = folder.path().join("cpu_dma_latency");
        assert!(DmaLatency::hold_at(&device).is_err());
        assert!(!device.exists());
    }

    #[test]
    fn the_kernel_says_0_while_it_is_held() {
        let held = match DmaLatency::hold() {
            Ok(held) => held,
            Err(error) => {
                println!("skipped: {}: {error}", DmaLatency::DEVICE);
                return;
            }
        };
        let mut now_us = [0xff; 4];
        let mut device = File::open(DmaLatency::DEVICE).unwrap();
        device.read_exact(&mut now_us).unwrap();
        assert_eq!(i32::from_ne_bytes(now_us), 0);
        drop(held);
    }
}
