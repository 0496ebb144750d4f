//! Counters of the kernel for a thread or a process: getrusage(2).

/// The counters of `RUSAGE_THREAD` or `RUSAGE_SELF`.
pub(crate) fn of(whom: libc::c_int) -> libc::rusage {
    let mut usage = core::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: `usage` is writable and has the size of the structure that the call fills.
    let returned = unsafe { libc::getrusage(whom, usage.as_mut_ptr()) };
    assert_eq!(
        returned, 0,
        "getrusage fails only for a bad address or an unknown `whom`"
    );
    // SAFETY: all bytes were zeroed, and every field is an integer.
    unsafe { usage.assume_init() }
}
