//! What the ORBs of the process know of the calling thread.
//!
//! It is one thread-local variable, because a call pays for finding each.

use core::cell::Cell;

thread_local! {
    /// The state of the calling thread.
    pub(crate) static THREAD: ThreadState = const {
        ThreadState {
            priority: Cell::new(NO_PRIORITY),
            upcall: Cell::new(NO_UPCALL),
            collocated_calls: Cell::new(0),
            reads_replies: Cell::new(false),
        }
    };
}

/// The state of a thread that calls objects or serves them.
pub(crate) struct ThreadState {
    /// Its CORBA priority; [`NO_PRIORITY`] until it is set.
    pub(crate) priority: Cell<i16>,
    /// The ORB whose servant it executes, in the upper half, and the number of the connection; [`NO_UPCALL`] if it executes none.
    pub(crate) upcall: Cell<u64>,
    /// The number of collocated calls in progress, of all ORBs.
    pub(crate) collocated_calls: Cell<usize>,
    /// True for the I/O thread of an ORB with bidirectional connections: it must not wait for a reply that only it can read.
    pub(crate) reads_replies: Cell<bool>,
}

/// The thread has no CORBA priority.
pub(crate) const NO_PRIORITY: i16 = -1;

/// The thread executes no servant.
pub(crate) const NO_UPCALL: u64 = 0;
