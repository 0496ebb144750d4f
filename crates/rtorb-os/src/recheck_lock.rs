//! A try-lock whose holder checks again before it unlocks.

use crate::atomics::{AtomicU32, Ordering, UnsafeCell};
use core::fmt;
use core::marker::PhantomData;
use core::mem;
use core::ops::{Deref, DerefMut};

/// A try-lock for a value that several threads get events for. A thread that finds it held sets a pending flag and goes on
/// to other work.
///
/// The holder sees the flag when it unlocks, and then looks for events again. So no event is lost and no thread waits. There
/// is no priority to inherit, because a thread never blocks here: use a lock for each priority if a thread must not depend on
/// a less urgent one.
///
/// Locking and unlocking are one atomic instruction each, two when threads meet. Neither loops.
pub struct RecheckLock<T> {
    state: AtomicU32,
    value: UnsafeCell<T>,
}

const FREE: u32 = 0;
const HELD: u32 = 1;
/// Held, and another thread has tried to lock it since.
const PENDING: u32 = 2;

// SAFETY: the lock owns its value, so sending the lock sends a `T`, which is `Send`.
unsafe impl<T: Send> Send for RecheckLock<T> {}
// SAFETY: one thread at a time holds the lock and reaches the value, so sharing the lock only sends a `T` between threads.
unsafe impl<T: Send> Sync for RecheckLock<T> {}

impl<T> RecheckLock<T> {
    /// A free lock.
    pub fn new(value: T) -> Self {
        Self {
            state: AtomicU32::new(FREE),
            value: UnsafeCell::new(value),
        }
    }

    /// Locks; `None` if another thread holds the lock, which then checks again before it unlocks.
    ///
    /// That check sees all that this thread did before the call.
    #[inline]
    pub fn try_lock(&self) -> Option<RecheckGuard<'_, T>> {
        #[cfg(simulation)]
        crate::simulation::point();
        let locked = self
            .state
            .compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed);
        // The holder may have unlocked since. Then this thread has locked, and checks once more than it needs to.
        let is_locked = locked.is_ok() || self.state.swap(PENDING, Ordering::AcqRel) == FREE;
        is_locked.then(|| RecheckGuard {
            lock: self,
            not_send: PhantomData,
        })
    }

    /// The value, without locking: the exclusive borrow shows that no other thread can reach it.
    pub fn get_mut(&mut self) -> &mut T {
        // SAFETY: `self` is borrowed exclusively, so no guard exists.
        self.value.with_mut(|value| unsafe { &mut *value })
    }
}

impl<T> fmt::Debug for RecheckLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecheckLock").finish_non_exhaustive()
    }
}

/// Access to the value of a [`RecheckLock`], until [`unlock`](Self::unlock).
///
/// Dropping it unlocks without a check: a pending flag is lost.
#[must_use]
pub struct RecheckGuard<'t, T> {
    lock: &'t RecheckLock<T>,
    // The value may depend on the thread that uses it. To move to another thread, unlock and lock there.
    not_send: PhantomData<*const ()>,
}

impl<'t, T> RecheckGuard<'t, T> {
    /// Unlocks, unless the pending flag is set: then clears the flag and returns the guard, and the caller must look for
    /// events again.
    #[inline]
    pub fn unlock(self) -> Option<Self> {
        #[cfg(simulation)]
        crate::simulation::point();
        let state = &self.lock.state;
        #[cfg(simulation)]
        if crate::simulation::is_planted("recheck-forgotten") {
            state.store(FREE, Ordering::Release);
        }
        let unlocked = state.compare_exchange(HELD, FREE, Ordering::Release, Ordering::Relaxed);
        if unlocked.is_ok() {
            mem::forget(self);
            return None;
        }
        state.swap(HELD, Ordering::Acquire);
        Some(self)
    }
}

impl<T> Deref for RecheckGuard<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: a guard exists only while its thread holds the lock.
        self.lock.value.with(|value| unsafe { &*value })
    }
}

impl<T> DerefMut for RecheckGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: a guard exists only while its thread holds the lock, and this borrow of it is exclusive.
        self.lock.value.with_mut(|value| unsafe { &mut *value })
    }
}

impl<T> Drop for RecheckGuard<'_, T> {
    fn drop(&mut self) {
        self.lock.state.store(FREE, Ordering::Release);
    }
}

impl<T: fmt::Debug> fmt::Debug for RecheckGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use core::sync::atomic::AtomicU64;

    #[test]
    fn an_attempt_while_it_is_held_makes_the_holder_check_once_more() {
        let lock = RecheckLock::new(1);
        let mut guard = lock.try_lock().expect("free");
        assert!(lock.try_lock().is_none());
        assert!(lock.try_lock().is_none());
        *guard += 1;
        let guard = guard.unlock().expect("pending");
        assert_eq!(*guard, 2);
        assert!(guard.unlock().is_none());
        drop(lock.try_lock().expect("free again"));
        assert!(lock.try_lock().is_some());
    }

    #[test]
    fn no_event_is_lost_among_three_threads() {
        const EACH: u64 = 50_000;
        let (events, mut lock) = (AtomicU64::new(0), RecheckLock::new(0));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..EACH {
                        events.fetch_add(1, Ordering::Relaxed);
                        let mut guard = lock.try_lock();
                        while let Some(mut seen) = guard {
                            *seen = events.load(Ordering::Relaxed);
                            guard = seen.unlock();
                        }
                    }
                });
            }
        });
        assert_eq!(*lock.get_mut(), 3 * EACH);
    }
}
