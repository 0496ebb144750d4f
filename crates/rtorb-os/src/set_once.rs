//! A value that is set once, by one of several threads, without a wait.

use crate::atomics::{AtomicPtr, Ordering};
use core::fmt;
use core::marker::PhantomData;
use core::ptr;

/// A value that is set once. No thread waits for another, so there is no priority to inherit.
///
/// `std::sync::OnceLock` lets a thread wait for the one that makes the value, which a thread of medium priority may keep from the
/// CPU. Here each of several threads that need the value at once makes one. The first is kept, and the others are dropped.
pub struct SetOnce<T> {
    /// Null, or the value, in a box of its own.
    place: AtomicPtr<T>,
    owned: PhantomData<*mut T>,
}

// SAFETY: it owns its value, so sending it sends a `T`, which is `Send`.
unsafe impl<T: Send> Send for SetOnce<T> {}
// SAFETY: threads that share it share its value (`Sync`), and one sets the value that another drops (`Send`).
unsafe impl<T: Send + Sync> Sync for SetOnce<T> {}

impl<T> SetOnce<T> {
    /// An empty place.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self {
            place: AtomicPtr::new(ptr::null_mut()),
            owned: PhantomData,
        }
    }

    /// An empty place.
    #[cfg(loom)]
    pub fn new() -> Self {
        Self {
            place: AtomicPtr::new(ptr::null_mut()),
            owned: PhantomData,
        }
    }

    /// The value, once it is set.
    #[inline]
    pub fn get(&self) -> Option<&T> {
        let place = self.place.load(Ordering::Acquire);
        // SAFETY: it is null, or leads to a value that was whole when it was published, and stays until `self` is dropped.
        unsafe { place.as_ref() }
    }

    /// Returns the value, and makes it if it is not set. If another thread has set it meanwhile, the new one is dropped.
    #[inline]
    pub fn get_or_make(&self, make: impl FnOnce() -> T) -> &T {
        match self.get() {
            Some(value) => value,
            None => self.make(make),
        }
    }

    /// Makes the value, and sets it. Out of line, so that a reader of the value saves no registers for it.
    #[cold]
    #[inline(never)]
    fn make(&self, make: impl FnOnce() -> T) -> &T {
        self.put(Box::new(make()))
    }

    /// Sets the value, or drops it if another one is set already. Returns the one that is set.
    pub(crate) fn put(&self, value: Box<T>) -> &T {
        let ours = Box::into_raw(value);
        let (empty, success) = (ptr::null_mut(), Ordering::AcqRel);
        let set = self
            .place
            .compare_exchange(empty, ours, success, Ordering::Acquire);
        let place = match set {
            Ok(_) => ours,
            Err(theirs) => {
                // SAFETY: `ours` came out of a box just now, and nobody else has it.
                drop(unsafe { Box::from_raw(ours) });
                theirs
            }
        };
        // SAFETY: it leads to the value that is set, which stays until `self` is dropped.
        unsafe { &*place }
    }
}

impl<T> Drop for SetOnce<T> {
    fn drop(&mut self) {
        let place = self.place.load(Ordering::Acquire);
        if !place.is_null() {
            // SAFETY: the value came out of a box, and no reference to it outlives `self`.
            drop(unsafe { Box::from_raw(place) });
        }
    }
}

impl<T> Default for SetOnce<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: fmt::Debug> fmt::Debug for SetOnce<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SetOnce").field(&self.get()).finish()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn the_first_value_is_kept_and_every_value_is_dropped_once() {
        let values: Vec<_> = (0..8).map(|_| Arc::new(())).collect();
        let cell = SetOnce::new();
        assert!(cell.get().is_none());
        std::thread::scope(|scope| {
            for value in &values {
                scope.spawn(|| {
                    let set = cell.get_or_make(|| Arc::clone(value));
                    assert!(Arc::ptr_eq(set, cell.get().expect("it is set")));
                });
            }
        });
        let kept = || values.iter().filter(|value| Arc::strong_count(value) == 2);
        assert_eq!(kept().count(), 1);
        drop(cell);
        assert_eq!(kept().count(), 0);
    }
}
