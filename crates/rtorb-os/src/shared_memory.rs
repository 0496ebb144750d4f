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
    /// Creates the file with all words 0, or opens the one that exists.
    ///
    /// # Errors
    /// [`Refused`] when the file cannot be created or mapped.
    pub fn create(path: &Path) -> Result<Self, Refused> {
        Self::map(path, OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC)
    }

    /// Opens a file that [`create`](Self::create) made.
    ///
    /// # Errors
    /// [`Refused`] when the file does not exist or cannot be mapped.
    pub fn open(path: &Path) -> Result<Self, Refused> {
        Self::map(path, OFlags::RDWR | OFlags::CLOEXEC)
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
        let file: OwnedFd =
            rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR).map_err(refused)?;
        rustix::fs::ftruncate(&file, PAGE_BYTES as u64).map_err(refused)?;
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
