//! Words of memory that processes share.

use crate::refused::{Refused, Resource};
use core::sync::atomic::AtomicU32;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::os::fd::OwnedFd;
use std::path::Path;

/// A page of words in a file that other processes can open too. Put the file under `/dev/shm`.
#[derive(Debug)]
pub struct SharedMemory {
    words: *mut AtomicU32,
}

/// The number of words in the page.
pub const WORDS: usize = PAGE_BYTES / size_of::<AtomicU32>();

const PAGE_BYTES: usize = 4096;

// SAFETY: all access to the page is atomic, so any thread may use it.
unsafe impl Send for SharedMemory {}
// SAFETY: all access to the page is atomic, so several threads may use it at once.
unsafe impl Sync for SharedMemory {}

impl SharedMemory {
    /// Creates the file with all words 0, or opens the one that exists. A file that is too short grows; none becomes shorter.
    ///
    /// # Errors
    /// [`Refused`] when the file cannot be created or mapped.
    pub fn create(path: &Path) -> Result<Self, Refused> {
        Self::map(path, OFlags::CREATE)
    }

    /// Opens a file that [`create`](Self::create) made.
    ///
    /// # Errors
    /// [`Refused`] when the file does not exist, is shorter than the page (INVAL), or cannot be mapped.
    pub fn open(path: &Path) -> Result<Self, Refused> {
        Self::map(path, OFlags::empty())
    }

    /// The word at `index`, below [`WORDS`].
    ///
    /// # Panics
    /// If `index` is too large.
    pub fn word(&self, index: usize) -> &AtomicU32 {
        // SAFETY: the page has `WORDS` words and stays mapped while `self` is borrowed.
        let words = unsafe { core::slice::from_raw_parts(self.words, WORDS) };
        &words[index]
    }

    fn map(path: &Path, flags: OFlags) -> Result<Self, Refused> {
        let refused = |errno: Errno| Resource::SharedMemory.refused(errno);
        let access = flags | OFlags::RDWR | OFlags::CLOEXEC;
        let file: OwnedFd =
            rustix::fs::open(path, access, Mode::RUSR | Mode::WUSR).map_err(refused)?;
        let bytes = rustix::fs::fstat(&file).map_err(refused)?.st_size;
        if bytes < PAGE_BYTES as i64 {
            // Beyond its end, an access to the page would end the process.
            if !flags.contains(OFlags::CREATE) {
                return Err(refused(Errno::INVAL));
            }
            rustix::fs::ftruncate(&file, PAGE_BYTES as u64).map_err(refused)?;
        }
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the address is null, so the kernel chooses a range that is free.
        let page = unsafe {
            mmap(
                core::ptr::null_mut(),
                PAGE_BYTES,
                access,
                MapFlags::SHARED,
                &file,
                0,
            )
        };
        Ok(Self {
            words: page.map_err(refused)?.cast(),
        })
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        // SAFETY: `map` mapped the page, and no reference to it outlives `self`.
        let _ = unsafe { munmap(self.words.cast(), PAGE_BYTES) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::Ordering;

    #[test]
    fn a_file_of_another_length_is_refused_or_grows_and_loses_nothing() {
        let path = std::env::temp_dir().join(format!("rtorb-os-{}", std::process::id()));
        std::fs::write(&path, [1; 5]).expect("a file");
        let refused = SharedMemory::open(&path).expect_err("it is too short");
        assert_eq!(refused.errno, Errno::INVAL);
        let memory = SharedMemory::create(&path).expect("it grows");
        assert_eq!(memory.word(0).load(Ordering::Relaxed), 0x0101_0101);
        assert_eq!(memory.word(WORDS - 1).load(Ordering::Relaxed), 0);
        std::fs::write(&path, [2; 2 * PAGE_BYTES]).expect("the file");
        for made in [SharedMemory::create(&path), SharedMemory::open(&path)] {
            let last = made
                .expect("long enough")
                .word(WORDS - 1)
                .load(Ordering::Relaxed);
            assert_eq!(last, 0x0202_0202);
        }
        let length = std::fs::metadata(&path).expect("the file").len();
        std::fs::remove_file(&path).expect("the file");
        assert_eq!(length, 2 * PAGE_BYTES as u64);
    }
}
