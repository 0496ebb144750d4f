//! Words that two processes share.

use crate::refused::{Refused, What};
use core::sync::atomic::AtomicU32;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::os::fd::OwnedFd;
use std::path::Path;

/// A page of words in a file that other processes can open too; put the file under `/dev/shm`.
#[derive(Debug)]
pub struct SharedMemory {
    words: *mut AtomicU32,
}

/// One page holds this many words.
pub const WORDS: usize = PAGE_BYTES / size_of::<AtomicU32>();

const PAGE_BYTES: usize = 4096;

// SAFETY: the page is only reached through atomics, from any thread or process.
unsafe impl Send for SharedMemory {}
// SAFETY: as above.
unsafe impl Sync for SharedMemory {}

impl SharedMemory {
    /// Makes the file, all words 0; a file that is there already is used.
    ///
    /// # Errors
    /// [`Refused`] when the file cannot be made or mapped.
    pub fn create(path: &Path) -> Result<Self, Refused> {
        Self::map(path, OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC)
    }

    /// Opens a file that [`create`](Self::create) made.
    ///
    /// # Errors
    /// [`Refused`] when it is not there or cannot be mapped.
    pub fn open(path: &Path) -> Result<Self, Refused> {
        Self::map(path, OFlags::RDWR | OFlags::CLOEXEC)
    }

    /// The word at `index`, below [`WORDS`].
    ///
    /// # Panics
    /// If there is none.
    pub fn word(&self, index: usize) -> &AtomicU32 {
        // SAFETY: the page is mapped as long as `self` lives and holds that many words.
        let words = unsafe { core::slice::from_raw_parts(self.words, WORDS) };
        &words[index]
    }

    fn map(path: &Path, flags: OFlags) -> Result<Self, Refused> {
        let refused = |errno: Errno| Refused {
            what: What::SharedMemory,
            errno,
        };
        let file: OwnedFd =
            rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR).map_err(refused)?;
        rustix::fs::ftruncate(&file, PAGE_BYTES as u64).map_err(refused)?;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the kernel chooses the address, so nothing that exists is mapped over.
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
        // SAFETY: the page was mapped by `map`, and references to it cannot outlive `self`.
        let _ = unsafe { munmap(self.words.cast(), PAGE_BYTES) };
    }
}
