//! Counters of locks, so that a test can show that a path takes none.

use crate::thread::thread_id;
use core::cell::Cell;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Numbers of lock operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LockCalls {
    /// Attempts to take a lock of this crate, with those of `try_lock` and of a condition variable that relocks its mutex.
    pub all: u64,
    /// The attempts that went to the kernel because another thread held the lock.
    pub contended: u64,
}

impl LockCalls {
    /// The operations since `earlier`.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            all: self.all - earlier.all,
            contended: self.contended - earlier.contended,
        }
    }
}

/// Runs `work` and counts the locks that this thread takes in it.
pub fn lock_calls<T>(work: impl FnOnce() -> T) -> (T, LockCalls) {
    let before = thread_lock_calls();
    let value = work();
    (value, thread_lock_calls().since(before))
}

/// The locks that the calling thread has taken.
pub fn thread_lock_calls() -> LockCalls {
    LockCalls {
        all: ALL.get(),
        contended: CONTENDED.get(),
    }
}

/// Stops counting. While stopped, a lock costs one relaxed load more.
pub fn stop_counting() {
    STOPPED.store(true, Ordering::Relaxed);
}

/// Starts counting again. A program counts from its start.
pub fn start_counting() {
    STOPPED.store(false, Ordering::Relaxed);
}

static STOPPED: AtomicBool = AtomicBool::new(false);

/// The locks that all threads have taken.
pub fn process_lock_calls() -> LockCalls {
    let sum = |which: fn(&Share) -> &AtomicU64| {
        SHARES
            .iter()
            .map(|share| which(share).load(Ordering::Relaxed))
            .sum()
    };
    LockCalls {
        all: sum(|share| &share.all),
        contended: sum(|share| &share.contended),
    }
}

#[inline]
pub(super) fn count() {
    if STOPPED.load(Ordering::Relaxed) {
        return;
    }
    ALL.set(ALL.get() + 1);
    own_share().all.fetch_add(1, Ordering::Relaxed);
}

pub(super) fn count_contended() {
    if STOPPED.load(Ordering::Relaxed) {
        return;
    }
    CONTENDED.set(CONTENDED.get() + 1);
    own_share().contended.fetch_add(1, Ordering::Relaxed);
}

/// Counters of some of the threads, on cache lines that hardly any other thread writes.
#[repr(align(128))]
struct Share {
    all: AtomicU64,
    contended: AtomicU64,
}

const SHARES_MAX: usize = 16;

static SHARES: [Share; SHARES_MAX] = [const {
    Share {
        all: AtomicU64::new(0),
        contended: AtomicU64::new(0),
    }
}; SHARES_MAX];

thread_local! {
    static ALL: Cell<u64> = const { Cell::new(0) };
    static CONTENDED: Cell<u64> = const { Cell::new(0) };
}

#[inline]
fn own_share() -> &'static Share {
    &SHARES[thread_id() as usize % SHARES_MAX]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::Mutex;

    #[test]
    fn every_lock_is_counted_for_its_thread_and_for_the_process() {
        let mutex = Mutex::new(0);
        let before = process_lock_calls();
        let ((), calls) = lock_calls(|| {
            *mutex.lock() += 1;
            *mutex.try_lock().expect("free") += 1;
            let held = mutex.lock();
            assert!(mutex.try_lock().is_none());
            drop(held);
        });
        assert_eq!(
            calls,
            LockCalls {
                all: 4,
                contended: 0
            }
        );
        assert!(process_lock_calls().since(before).all >= 4);
        assert_eq!(lock_calls(|| ()).1, LockCalls::default());
    }

    #[test]
    fn a_lock_that_waits_is_counted_as_contended() {
        let mutex = Mutex::new(());
        let held = mutex.lock();
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| lock_calls(|| drop(mutex.lock())).1);
            while !mutex.has_waiters() {
                std::thread::yield_now();
            }
            drop(held);
            let calls = waiter.join().expect("no panic");
            assert_eq!((calls.all, calls.contended), (1, 1));
        });
    }
}
