//! Memory that is there when it is needed: locked, touched beforehand, and its page faults counted.

use crate::refused::{Refused, What};
use crate::sched::has_capability;
use crate::usage;
use core::ffi::c_void;
use rustix::io::Errno;
use rustix::mm::{Advice, MlockAllFlags, madvise, mlockall, munlockall};
use rustix::process::Resource;
use rustix::thread::CapabilitySet;

/// Keeps all pages of the process in memory, those mapped now and later.
///
/// # Errors
/// [`Refused`] when the limit on locked memory is too low.
pub fn lock_all() -> Result<(), Refused> {
    mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE).map_err(|errno| Refused {
        what: What::MemoryLock,
        errno,
    })
}

/// Lets pages be moved out again.
pub fn unlock_all() {
    // It has no way to fail for a process that exists.
    let _ = munlockall();
}

/// Whether this process may lock `bytes` of memory, as far as its capabilities and limits tell; nothing is changed.
///
/// It needs CAP_IPC_LOCK, or RLIMIT_MEMLOCK of at least all that the process maps (mlock(2)); ask with `usize::MAX` when
/// that is not known.
///
/// # Errors
/// [`Refused`] as [`lock_all`] would answer.
pub fn lock_allowed(bytes: usize) -> Result<(), Refused> {
    let limit = rustix::process::getrlimit(Resource::Memlock).current;
    let below_limit = limit.is_none_or(|limit| bytes as u64 <= limit);
    if below_limit || has_capability(CapabilitySet::IPC_LOCK) {
        return Ok(());
    }
    Err(Refused {
        what: What::MemoryLock,
        errno: Errno::NOMEM,
    })
}

/// Makes the heap keep at least `bytes` of memory whose pages are there, so that taking them later faults no page.
///
/// Call it once, before other threads begin. From then on the allocator of glibc gives nothing back to the kernel
/// (M_TRIM_THRESHOLD), takes no mapping of its own for large pieces (M_MMAP_MAX), and has one arena for all threads
/// (M_ARENA_MAX), since what is kept is in that one. The allocator's lock does not inherit priority: on a path with a
/// deadline, make no heap call at all. See mallopt(3), and *Memory for Real-time Applications* in the Linux Foundation's
/// real-time wiki.
///
/// # Errors
/// [`Refused`] when the memory is not there, or the C library is not glibc (ENOSYS).
pub fn reserve_heap(bytes: usize) -> Result<(), Refused> {
    let refused = |errno| Refused {
        what: What::Heap { bytes },
        errno,
    };
    keep_heap().map_err(refused)?;
    let mut reserve: Vec<u8> = Vec::new();
    reserve
        .try_reserve_exact(bytes)
        .map_err(|_| refused(Errno::NOMEM))?;
    for page in reserve.spare_capacity_mut()[..bytes].chunks_mut(PAGE_BYTES_MIN) {
        page[0].write(0);
    }
    // Without this the compiler may drop the writes, and the memory with them.
    core::hint::black_box(&mut reserve);
    Ok(())
}

/// How often memory was touched that had no page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageFaults {
    /// Served without reading a disk: some microseconds each.
    pub minor: u64,
    /// Read from a disk: milliseconds each.
    pub major: u64,
}

impl PageFaults {
    /// Those since `earlier`.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            minor: self.minor - earlier.minor,
            major: self.major - earlier.major,
        }
    }
}

/// Page faults of the calling thread since it began (getrusage(2), RUSAGE_THREAD).
pub fn thread_page_faults() -> PageFaults {
    page_faults_of(libc::RUSAGE_THREAD)
}

/// Page faults of all threads since the process began (getrusage(2), RUSAGE_SELF).
pub fn process_page_faults() -> PageFaults {
    page_faults_of(libc::RUSAGE_SELF)
}

/// Gives the calling thread's stack all its pages; answers its octets.
pub(crate) fn populate_stack() -> Result<usize, Refused> {
    let stack = OwnStack::find().map_err(|errno| Refused {
        what: What::Stack { bytes: 0 },
        errno,
    })?;
    // SAFETY: the advice leaves what is on the stack as it is, and the range is this thread's whole stack.
    let populated = unsafe { madvise(stack.lowest, stack.bytes, Advice::LinuxPopulateWrite) };
    let refused = |errno| Refused {
        what: What::Stack { bytes: stack.bytes },
        errno,
    };
    populated.map(|()| stack.bytes).map_err(refused)
}

/// Where the calling thread's stack is.
struct OwnStack {
    lowest: *mut c_void,
    bytes: usize,
}

impl OwnStack {
    fn find() -> Result<Self, Errno> {
        let mut attributes = core::mem::MaybeUninit::uninit();
        // SAFETY: it takes no memory.
        let this = unsafe { libc::pthread_self() };
        // SAFETY: the attributes are ours to write.
        let answer = unsafe { libc::pthread_getattr_np(this, attributes.as_mut_ptr()) };
        if answer != 0 {
            return Err(Errno::from_raw_os_error(answer));
        }
        let mut lowest = core::ptr::null_mut();
        let mut bytes = 0;
        // SAFETY: the call before filled the attributes; place and size are ours to write.
        let answer = unsafe {
            libc::pthread_attr_getstack(attributes.as_ptr(), &raw mut lowest, &raw mut bytes)
        };
        // SAFETY: the attributes were filled, and are not used after this.
        let _ = unsafe { libc::pthread_attr_destroy(attributes.as_mut_ptr()) };
        match answer {
            0 => Ok(Self { lowest, bytes }),
            _ => Err(Errno::from_raw_os_error(answer)),
        }
    }
}

#[cfg(target_env = "gnu")]
fn keep_heap() -> Result<(), Errno> {
    let settings = [
        (libc::M_TRIM_THRESHOLD, libc::c_int::MAX),
        (libc::M_MMAP_MAX, 0),
        (libc::M_ARENA_MAX, 1),
    ];
    for (setting, value) in settings {
        // SAFETY: the allocator takes its own lock, and both numbers are of mallopt(3).
        let set = unsafe { libc::mallopt(setting, value) };
        if set != 1 {
            return Err(Errno::INVAL);
        }
    }
    Ok(())
}

#[cfg(not(target_env = "gnu"))]
fn keep_heap() -> Result<(), Errno> {
    Err(Errno::NOSYS)
}

fn page_faults_of(whom: libc::c_int) -> PageFaults {
    let usage = usage::of(whom);
    PageFaults {
        minor: usage.ru_minflt as u64,
        major: usage.ru_majflt as u64,
    }
}

/// No machine that Linux runs on has smaller pages.
const PAGE_BYTES_MIN: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_is_touched_first_is_a_fault_and_a_second_time_is_not() {
        let before = thread_page_faults();
        let mut pages: Vec<u8> = vec![0; 4 << 20];
        pages[1 << 20] = 1;
        let first = thread_page_faults().since(before);
        assert!(first.minor > 0);
        let mut touch_again = || {
            let before = thread_page_faults();
            pages[1 << 20] = 2;
            core::hint::black_box(&mut pages);
            thread_page_faults().since(before)
        };
        // The kernel may take a page away meanwhile, of the memory or of the code; not each time.
        let without = (0..10).filter(|_| touch_again() == PageFaults::default());
        assert!(without.count() > 0);
        assert!(process_page_faults().minor >= first.minor);
    }

    #[test]
    fn locking_nothing_is_always_allowed() {
        assert_eq!(lock_allowed(0), Ok(()));
        if let Err(refused) = lock_allowed(usize::MAX) {
            assert!(refused.to_string().contains("ulimit -l"));
        }
    }
}
