//! A mutex whose holder inherits the priority of who waits for it.
//!
//! `std::sync::Mutex` does not (rust-lang/rust#128231): a low-priority holder can be kept from the CPU by a medium one
//! while a high one waits. This one is a PI futex: without contention one atomic instruction, with contention the
//! kernel lends the waiter's priority to the holder.

use crate::thread::thread_id;
use core::cell::UnsafeCell;
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicU32, Ordering};
use rustix::io::Errno;
use rustix::thread::futex;

/// Mutual exclusion with priority inheritance.
///
/// It is not poisoned by a panic: what it guards must be whole after every statement that can panic.
pub struct Mutex<T: ?Sized> {
    /// 0, or the holder's thread id, with the kernel's FUTEX_WAITERS bit.
    owner: AtomicU32,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached by one thread at a time, so sending it is all that is asked of it.
unsafe impl<T: ?Sized + Send> Send for Mutex<T> {}
// SAFETY: as above; a shared mutex hands out the value to one thread at a time.
unsafe impl<T: ?Sized + Send> Sync for Mutex<T> {}

impl<T> Mutex<T> {
    /// A mutex that nobody holds.
    pub const fn new(value: T) -> Self {
        Self {
            owner: AtomicU32::new(0),
            value: UnsafeCell::new(value),
        }
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Waits until the calling thread holds it; the holder runs at least at the caller's priority meanwhile.
    ///
    /// # Panics
    /// If the calling thread holds it already: that would wait for ever.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        let id = thread_id();
        if self
            .owner
            .compare_exchange(0, id, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            self.lock_contended();
        }
        MutexGuard {
            mutex: self,
            not_send: PhantomData,
        }
    }

    /// The value, when nobody else can reach it.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    #[cold]
    fn lock_contended(&self) {
        loop {
            match futex::lock_pi(&self.owner, futex::Flags::PRIVATE, None) {
                Ok(()) => return,
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(errno) => panic!(
                    "a mutex is locked twice by one thread, or its memory is damaged: {errno}"
                ),
            }
        }
    }

    fn unlock(&self) {
        let id = thread_id();
        if self
            .owner
            .compare_exchange(id, 0, Ordering::Release, Ordering::Relaxed)
            .is_err()
        {
            // Someone waits: only the kernel knows who is next.
            let unlocked = futex::unlock_pi(&self.owner, futex::Flags::PRIVATE);
            debug_assert!(unlocked.is_ok(), "the guard's thread holds the mutex");
        }
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mutex").finish_non_exhaustive()
    }
}

impl<T: Default> Default for Mutex<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

/// Holds a [`Mutex`] until it is dropped, on the thread that locked it.
#[must_use]
pub struct MutexGuard<'m, T: ?Sized> {
    mutex: &'m Mutex<T>,
    // A PI futex belongs to a thread: another one cannot give it back.
    not_send: PhantomData<*const ()>,
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: the guard's thread holds the mutex.
        unsafe { &*self.mutex.value.get() }
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard's thread holds the mutex, and the guard is borrowed alone.
        unsafe { &mut *self.mutex.value.get() }
    }
}

impl<T: ?Sized> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        self.mutex.unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_right_under_contention() {
        let count = Mutex::new(0u64);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..10_000 {
                        *count.lock() += 1;
                    }
                });
            }
        });
        assert_eq!(*count.lock(), 40_000);
    }
}
