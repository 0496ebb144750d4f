//! Locks for threads with priorities: none of them lets a less urgent thread hold up a more urgent one for longer than a
//! critical section.
//!
//! * [`Mutex`]: the holder inherits the priority of who waits (priority inheritance). Take it unless there is a reason.
//! * [`Condvar`]: waits with a [`Mutex`] for what it guards to change; who is woken is handed the mutex in order of priority.
//! * [`CeilingMutex`]: the holder runs at a priority fixed beforehand (priority ceiling), so that on one CPU nobody who
//!   would want it ever finds it taken. Costs system calls on every lock; chosen where an analysis asks for it.
//!
//! Both protocols are those of L. Sha, R. Rajkumar, J. P. Lehoczky, *Priority Inheritance Protocols: An Approach to
//! Real-Time Synchronization*, IEEE Transactions on Computers 39 (9), 1990; the ceiling is its immediate form, POSIX's
//! PTHREAD_PRIO_PROTECT. The words in memory are PI futexes: futex(2), and `Documentation/locking/pi-futex.rst` and
//! `Documentation/locking/futex-requeue-pi.rst` of Linux.
//!
//! [`thread_lock_calls`] tells how many locks a thread took, so that a test can say that a path takes none.

mod calls;
mod ceiling;
mod condvar;
mod mutex;

pub use calls::{LockCalls, lock_calls, process_lock_calls, thread_lock_calls};
pub use ceiling::{CeilingError, CeilingGuard, CeilingMutex};
pub use condvar::Condvar;
pub use mutex::{Mutex, MutexGuard};
