//! Words of memory that one process writes and others may read at any time.
//!
//! The file has no name in the file system: a reader opens it by `/proc/PID/fd`, which the host permits to those who may trace the process
//! (`ptrace(2)`, PTRACE_MODE_READ). So it is gone when the process is, however that ends.

use crate::refused::{Refused, Resource};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering};
use rustix::fs::{
    MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate, memfd_create,
};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Words that this process writes. They stay until it ends, so any thread may keep a reference.
#[derive(Debug)]
pub struct SharedWords {
    words: &'static [AtomicU64],
    /// Kept open, so that readers find it.
    file: OwnedFd,
}

/// Words that another process writes, for reading.
#[derive(Debug)]
pub struct WordsOfOther {
    words: NonNull<AtomicU64>,
    count: usize,
}

/// Words that another process made, for reading and writing.
#[derive(Debug)]
pub struct WritableWordsOfOther(WordsOfOther);

// SAFETY: all access to the words is atomic, so any thread may read them.
unsafe impl Send for WordsOfOther {}
// SAFETY: as above.
unsafe impl Sync for WordsOfOther {}

/// The size of the file cannot change, so that no access can fault.
const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW);

impl SharedWords {
    /// Makes a file of `count` words, all 0, that readers see as `/memfd:NAME`. A page takes memory once it is written.
    ///
    /// # Errors
    /// [`Refused`] when the host has no file or no memory for it, by `NOMEM` also when there is no memory of that size: no word, or more
    /// than `isize::MAX` bytes.
    pub fn create(name: &str, count: usize) -> Result<Self, Refused> {
        let refused = |errno: Errno| Resource::SharedMemory.refused(errno);
        let bytes = bytes_of(count).map_err(refused)?;
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = memfd_create(name, flags).map_err(refused)?;
        ftruncate(&file, bytes as u64).map_err(refused)?;
        fcntl_add_seals(&file, SEALS).map_err(refused)?;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let base = map(&file, bytes, access).map_err(refused)?;
        // SAFETY: the mapping has `count` words, is never removed, and is only reached through these atomics.
        let words = unsafe { core::slice::from_raw_parts(base.as_ptr(), count) };
        Ok(Self { words, file })
    }

    /// Returns the words.
    pub fn words(&self) -> &'static [AtomicU64] {
        self.words
    }
}

/// The file, which can be mapped once more.
impl AsFd for SharedWords {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl WordsOfOther {
    /// Maps a file that another process [made](SharedWords::create).
    ///
    /// # Errors
    /// `PERM` if its size may change, `INVAL` if it has no whole words; otherwise the host's refusal.
    pub fn open(file: impl AsFd) -> Result<Self, Errno> {
        Self::open_for(file, ProtFlags::READ)
    }

    fn open_for(file: impl AsFd, access: ProtFlags) -> Result<Self, Errno> {
        let is_sealed = fcntl_get_seals(&file).is_ok_and(|found| found.contains(SEALS));
        if !is_sealed {
            return Err(Errno::PERM);
        }
        let bytes = usize::try_from(fstat(&file)?.st_size).map_err(|_| Errno::INVAL)?;
        let count = bytes / size_of::<AtomicU64>();
        if count == 0 {
            return Err(Errno::INVAL);
        }
        let words = map(&file, bytes_of(count)?, access)?;
        Ok(Self { words, count })
    }

    /// Returns the number of words.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns the word at `index` as it is now; 0 beyond the end.
    #[inline]
    pub fn get(&self, index: usize) -> u64 {
        self.words()
            .get(index)
            .map_or(0, |word| word.load(Ordering::Acquire))
    }

    /// The words. They are only loaded, unless the mapping is [writable](WritableWordsOfOther).
    #[inline]
    fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping has `count` words and stays while `self` does.
        unsafe { core::slice::from_raw_parts(self.words.as_ptr(), self.count) }
    }
}

impl WritableWordsOfOther {
    /// Maps a file that another process [made](SharedWords::create), and that is open for reading and writing.
    ///
    /// # Errors
    /// As [`WordsOfOther::open`].
    pub fn open(file: impl AsFd) -> Result<Self, Errno> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        WordsOfOther::open_for(file, access).map(Self)
    }

    /// Returns the words.
    pub fn words(&self) -> &[AtomicU64] {
        self.0.words()
    }
}

impl Drop for WordsOfOther {
    fn drop(&mut self) {
        let bytes = self.count * size_of::<AtomicU64>();
        // SAFETY: `open` mapped these words, and no reference to them outlives `self`.
        let _ = unsafe { munmap(self.words.as_ptr().cast(), bytes) };
    }
}

/// Returns the size of `count` words in bytes.
///
/// # Errors
/// `NOMEM` if there is no word, or if the words have more than `isize::MAX` bytes, the most of a slice.
fn bytes_of(count: usize) -> Result<usize, Errno> {
    let bytes = count.checked_mul(size_of::<AtomicU64>());
    let bytes = bytes.filter(|bytes| (1..=isize::MAX as usize).contains(bytes));
    bytes.ok_or(Errno::NOMEM)
}

fn map(file: impl AsFd, bytes: usize, access: ProtFlags) -> Result<NonNull<AtomicU64>, Errno> {
    let anywhere = core::ptr::null_mut();
    // SAFETY: the address is null, so the kernel chooses a range that is free.
    let base = unsafe { mmap(anywhere, bytes, access, MapFlags::SHARED, file, 0) }?;
    NonNull::new(base.cast()).ok_or(Errno::NOMEM)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory;
    use rtorb_instruments::usage;
    use std::fs::File;

    #[test]
    fn a_reader_sees_what_is_written_and_nothing_beyond_the_end() {
        let made = SharedWords::create("rtorb-os-test", 1000).expect("memory");
        made.words()[999].store(7, Ordering::Release);
        let read = WordsOfOther::open(&made).expect("a sealed file");
        assert_eq!(
            (read.count(), read.get(0), read.get(999), read.get(1000)),
            (1000, 0, 7, 0)
        );
        made.words()[999].store(8, Ordering::Release);
        assert_eq!(read.get(999), 8);
    }

    #[test]
    fn a_reader_that_may_write_is_seen_by_the_process_that_made_the_words() {
        let made = SharedWords::create("rtorb-os-test", 10).expect("memory");
        let other = WritableWordsOfOther::open(&made).expect("a sealed file");
        other.words()[9].store(7, Ordering::Release);
        assert_eq!(made.words()[9].load(Ordering::Acquire), 7);
    }

    #[test]
    fn populated_words_keep_their_contents_and_are_written_without_page_faults() {
        let made = SharedWords::create("rtorb-os-test", 1 << 20).expect("memory");
        made.words()[1000].store(7, Ordering::Relaxed);
        let populated = &made.words()[100..1 << 19];
        memory::populate(populated);
        assert_eq!(made.words()[1000].load(Ordering::Relaxed), 7);
        let before = usage::of_thread().page_faults;
        for word in populated {
            word.store(1, Ordering::Relaxed);
        }
        let faults = usage::of_thread().page_faults.since(before).minor;
        assert!(faults <= 2, "{faults} of 1,024 pages");
    }

    #[test]
    fn a_count_whose_bytes_no_memory_has_is_refused() {
        // The bytes of the second are 8 if they are counted modulo 2^64: a page is enough for them, and not for the words.
        for count in [0, (1 << 61) + 1, 1 << 60, usize::MAX] {
            let refused =
                SharedWords::create("rtorb-os-test", count).map(|made| made.words().len());
            assert_eq!(refused.map_err(|it| it.errno), Err(Errno::NOMEM), "{count}");
        }
    }

    #[test]
    fn a_file_that_may_become_shorter_is_refused() {
        let file = File::open("/proc/self/exe").expect("the program");
        assert_eq!(
            WordsOfOther::open(&file).err(),
            Some(Errno::PERM),
            "an access beyond its end would end the reader"
        );
    }
}
