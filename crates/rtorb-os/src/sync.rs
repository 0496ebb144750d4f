//! Locks for threads with priorities. A less urgent thread delays a more urgent one for at most one critical section.
//!
//! * [`Mutex`]: the holder inherits the priority of the waiters (priority inheritance). The default choice.
//! * [`Condvar`]: waits with a [`Mutex`] for a condition. Woken threads get the mutex in order of priority.
//! * [`CeilingMutex`]: the holder runs at a fixed priority (priority ceiling), so that on one CPU its users never find it
//!   held. It costs system calls on every lock; use it where an analysis requires it.
//!
//! Both protocols are those of L. Sha, R. Rajkumar, J. P. Lehoczky, *Priority Inheritance Protocols: An Approach to
//! Real-Time Synchronization*, IEEE Transactions on Computers 39 (9), 1990; the ceiling is its immediate form, POSIX's
//! PTHREAD_PRIO_PROTECT. The words in memory are PI futexes: futex(2), and `Documentation/locking/pi-futex.rst` and
//! `Documentation/locking/futex-requeue-pi.rst` of Linux.
//!
//! With the feature `count-locks`, `thread_lock_calls` counts the locks that a thread took, so that a test can show that a path
//! takes none. Without it, a lock counts nothing.

#[cfg(feature = "count-locks")]
mod calls;
mod ceiling;
mod condvar;
mod mutex;

#[cfg(feature = "count-locks")]
pub use calls::{
    LockCalls, lock_calls, process_lock_calls, start_counting, stop_counting, thread_lock_calls,
};
pub use ceiling::{CeilingError, CeilingGuard, CeilingMutex};
pub use condvar::Condvar;
pub use mutex::{Mutex, MutexGuard};

/// Counts nothing.
#[cfg(not(feature = "count-locks"))]
mod calls {
    #[inline]
    pub(super) fn count() {}

    #[inline]
    pub(super) fn count_contended() {}
}
