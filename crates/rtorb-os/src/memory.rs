//! Memory without page faults: locked, or populated in advance.

use crate::refused::{Refused, Resource};
use core::ffi::c_void;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use rustix::io::Errno;
use rustix::mm::{Advice, MlockAllFlags, madvise, mlockall};

/// Locks all pages of the process into memory, those mapped now and later.
///
/// # Errors
/// [`Refused`] when the limit on locked memory is too low.
pub fn lock_all() -> Result<(), Refused> {
    mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE)
        .map_err(|errno| Resource::MemoryLock.refused(errno))
}

/// Populates at least `bytes` of heap and keeps them, so that later allocations fault no page.
///
/// Call it once, before other threads begin. From then on the allocator of glibc returns no memory to the kernel
/// (M_TRIM_THRESHOLD), makes no separate mapping for large blocks (M_MMAP_MAX), and has one arena for all threads
/// (M_ARENA_MAX), because the populated memory is in that one. The allocator's lock does not inherit priority: on a path
/// with a deadline, make no heap call at all. See mallopt(3), and *Memory for Real-time Applications* in the Linux
/// Foundation's real-time wiki.
///
/// # Errors
/// [`Refused`] when memory is short, or the C library is not glibc (ENOSYS).
pub fn reserve_heap(bytes: usize) -> Result<(), Refused> {
    let refused = |errno| Resource::Heap { bytes }.refused(errno);
    IS_RESERVED.store(true, Ordering::Relaxed);
    keep_heap().map_err(refused)?;
    let mut reserve: Vec<u8> = Vec::new();
    reserve
        .try_reserve_exact(bytes)
        .map_err(|_| refused(Errno::NOMEM))?;
    for page in reserve.spare_capacity_mut()[..bytes].chunks_mut(PAGE_BYTES_MIN) {
        page[0].write(0);
    }
    // Without this the compiler may remove the writes and the allocation.
    core::hint::black_box(&mut reserve);
    Ok(())
}

/// Returns free memory of the heap to the kernel (malloc_trim(3)); does nothing after [`reserve_heap`], and with another C library
/// than glibc.
///
/// It takes milliseconds for a large heap, and threads that allocate wait meanwhile.
pub fn trim_heap() {
    if !IS_RESERVED.load(Ordering::Relaxed) {
        release_heap();
    }
}

/// The heap is to be kept.
static IS_RESERVED: AtomicBool = AtomicBool::new(false);

/// Populates the pages of words, so that no thread faults when it writes them. What they contain stays, also while others write.
///
/// It takes as long as the host needs for its pages: call it before a thread has anything to do in time. If the host has no memory for them, or a
/// kernel before Linux 5.14, they are populated when they are written.
pub fn populate(words: &[AtomicU64]) {
    let bytes = words.as_ptr_range();
    let lowest = bytes.start as usize & !(PAGE_BYTES_MIN - 1);
    let count = bytes.end as usize - lowest;
    // SAFETY: the pages are those of the words; the advice does not change what they or their neighbours in these pages contain.
    let _ = unsafe { madvise(lowest as *mut c_void, count, Advice::LinuxPopulateWrite) };
}

/// Populates the calling thread's stack and returns its size.
pub(crate) fn populate_stack() -> Result<usize, Refused> {
    let refused = |bytes| move |errno| Resource::Stack { bytes }.refused(errno);
    let OwnStack { lowest, bytes } = OwnStack::find().map_err(refused(0))?;
    // SAFETY: the range is this thread's stack, and the advice does not change its contents.
    let populated = unsafe { madvise(lowest, bytes, Advice::LinuxPopulateWrite) };
    populated.map(|()| bytes).map_err(refused(bytes))
}

/// The address range of the calling thread's stack.
struct OwnStack {
    lowest: *mut c_void,
    bytes: usize,
}

impl OwnStack {
    fn find() -> Result<Self, Errno> {
        let mut attributes = core::mem::MaybeUninit::uninit();
        // SAFETY: the call takes no arguments and cannot fail.
        let this = unsafe { libc::pthread_self() };
        // SAFETY: `attributes` is writable and has the right size.
        let returned = unsafe { libc::pthread_getattr_np(this, attributes.as_mut_ptr()) };
        if returned != 0 {
            return Err(Errno::from_raw_os_error(returned));
        }
        let mut lowest = core::ptr::null_mut();
        let mut bytes = 0;
        // SAFETY: the call above initialised `attributes`; `lowest` and `bytes` are writable.
        let returned = unsafe {
            libc::pthread_attr_getstack(attributes.as_ptr(), &raw mut lowest, &raw mut bytes)
        };
        // SAFETY: `attributes` is initialised, and nothing uses it after this.
        let _ = unsafe { libc::pthread_attr_destroy(attributes.as_mut_ptr()) };
        match returned {
            0 => Ok(Self { lowest, bytes }),
            _ => Err(Errno::from_raw_os_error(returned)),
        }
    }
}

#[cfg(target_env = "gnu")]
fn keep_heap() -> Result<(), Errno> {
    let settings = [
        // -1 is "never" (mallopt(3)). With the largest number, glibc would give back a free end of the heap of 2 GiB or more.
        (libc::M_TRIM_THRESHOLD, -1),
        (libc::M_MMAP_MAX, 0),
        (libc::M_ARENA_MAX, 1),
    ];
    for (setting, value) in settings {
        // SAFETY: the allocator is thread-safe, and mallopt(3) defines both numbers.
        let set = unsafe { libc::mallopt(setting, value) };
        if set != 1 {
            return Err(Errno::INVAL);
        }
    }
    Ok(())
}

#[cfg(target_env = "gnu")]
fn release_heap() {
    // SAFETY: the allocator is thread-safe, and the call takes one number.
    let _ = unsafe { libc::malloc_trim(0) };
}

#[cfg(not(target_env = "gnu"))]
fn release_heap() {}

#[cfg(not(target_env = "gnu"))]
fn keep_heap() -> Result<(), Errno> {
    Err(Errno::NOSYS)
}

/// No machine that Linux runs on has smaller pages.
const PAGE_BYTES_MIN: usize = 4096;
