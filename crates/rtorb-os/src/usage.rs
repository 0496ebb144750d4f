//! What the kernel has counted for a thread or a process: getrusage(2).

use crate::sched::last_error;

/// Of `RUSAGE_THREAD` or `RUSAGE_SELF`.
pub(crate) fn of(whom: libc::c_int) -> libc::rusage {
    let mut usage = core::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the usage is ours to write.
    let answer = unsafe { libc::getrusage(whom, usage.as_mut_ptr()) };
    // It fails for a bad address or an unknown `whom` alone.
    assert_eq!(answer, 0, "getrusage: {}", last_error());
    // SAFETY: it was zeroed, and all its fields are integers.
    unsafe { usage.assume_init() }
}
