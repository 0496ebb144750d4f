//! A cell that one thread at a time may enter, and before which nobody waits.

use crate::atomics::{AtomicU32, Ordering, UnsafeCell};
use core::fmt;
use core::marker::PhantomData;
use core::mem;
use core::ops::{Deref, DerefMut};

/// A value for one thread at a time; who finds it occupied leaves a mark and goes on to other work.
///
/// Made for a connection that several threads are told of: the first one enters and serves it, the others leave their mark,
/// and whoever is inside looks again before it goes. So no event is lost and no thread ever waits, which is why there is no
/// priority to inherit: a thread that must not wait behind less urgent ones has cells of its own.
///
/// Entering and leaving are one atomic instruction each, two when threads meet; neither repeats.
pub struct Turnstile<T> {
    state: AtomicU32,
    value: UnsafeCell<T>,
}

const VACANT: u32 = 0;
const OCCUPIED: u32 = 1;
/// Occupied, and somebody came meanwhile.
const MARKED: u32 = 2;

// SAFETY: the value is reached by one thread at a time, so sending it is all that is asked of it.
unsafe impl<T: Send> Send for Turnstile<T> {}
// SAFETY: as above; a shared turnstile lets one thread at a time to the value.
unsafe impl<T: Send> Sync for Turnstile<T> {}

impl<T> Turnstile<T> {
    /// A vacant one.
    pub fn new(value: T) -> Self {
        Self {
            state: AtomicU32::new(VACANT),
            value: UnsafeCell::new(value),
        }
    }

    /// Enters; `None` if somebody is inside, who then looks again before leaving.
    ///
    /// Whatever the caller did before, who looks again sees.
    #[inline]
    pub fn enter(&self) -> Option<Inside<'_, T>> {
        let entered =
            self.state
                .compare_exchange(VACANT, OCCUPIED, Ordering::Acquire, Ordering::Relaxed);
        // Who was inside may have left since: then the mark is ours, and costs us one look more.
        let is_ours = entered.is_ok() || self.state.swap(MARKED, Ordering::AcqRel) == VACANT;
        is_ours.then(|| Inside {
            turnstile: self,
            not_send: PhantomData,
        })
    }

    /// The value, when nobody else can reach it.
    pub fn get_mut(&mut self) -> &mut T {
        // SAFETY: the turnstile is borrowed alone.
        self.value.with_mut(|value| unsafe { &mut *value })
    }
}

impl<T> fmt::Debug for Turnstile<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turnstile").finish_non_exhaustive()
    }
}

/// The calling thread is inside, until it [leaves](Self::leave).
///
/// One that is dropped leaves without looking: a mark that was made meanwhile is lost.
#[must_use]
pub struct Inside<'t, T> {
    turnstile: &'t Turnstile<T>,
    // Where the value is used may matter to it; who goes elsewhere leaves and enters again.
    not_send: PhantomData<*const ()>,
}

impl<'t, T> Inside<'t, T> {
    /// Leaves, unless somebody left a mark: then the caller is still inside, without the mark, and must look again for what
    /// there is to do.
    #[inline]
    pub fn leave(self) -> Option<Self> {
        let state = &self.turnstile.state;
        let left = state.compare_exchange(OCCUPIED, VACANT, Ordering::Release, Ordering::Relaxed);
        if left.is_ok() {
            mem::forget(self);
            return None;
        }
        state.swap(OCCUPIED, Ordering::Acquire);
        Some(self)
    }
}

impl<T> Deref for Inside<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: this thread alone is inside.
        self.turnstile.value.with(|value| unsafe { &*value })
    }
}

impl<T> DerefMut for Inside<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this thread alone is inside, and this is borrowed alone.
        self.turnstile
            .value
            .with_mut(|value| unsafe { &mut *value })
    }
}

impl<T> Drop for Inside<'_, T> {
    fn drop(&mut self) {
        self.turnstile.state.store(VACANT, Ordering::Release);
    }
}

impl<T: fmt::Debug> fmt::Debug for Inside<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use core::sync::atomic::AtomicU64;

    #[test]
    fn one_enters_and_the_mark_of_another_makes_it_look_once_more() {
        let turnstile = Turnstile::new(1);
        let mut inside = turnstile.enter().expect("vacant");
        assert!(turnstile.enter().is_none());
        assert!(turnstile.enter().is_none());
        *inside += 1;
        let inside = inside.leave().expect("there is a mark");
        assert_eq!(*inside, 2);
        assert!(inside.leave().is_none());
        drop(turnstile.enter().expect("vacant again"));
        assert!(turnstile.enter().is_some());
    }

    #[test]
    fn nothing_that_was_announced_is_left_undone() {
        const EACH: u64 = 50_000;
        let (announced, turnstile) = (AtomicU64::new(0), Turnstile::new(0));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..EACH {
                        announced.fetch_add(1, Ordering::Relaxed);
                        let mut inside = turnstile.enter();
                        while let Some(mut done) = inside {
                            *done = announced.load(Ordering::Relaxed);
                            inside = done.leave();
                        }
                    }
                });
            }
        });
        let mut turnstile = turnstile;
        assert_eq!(*turnstile.get_mut(), 3 * EACH);
    }
}
