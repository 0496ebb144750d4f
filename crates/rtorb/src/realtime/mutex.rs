//! The ORB's mutex for applications (RTCORBA::Mutex), and the table of named mutexes.

use core::fmt;
use core::ops::{Deref, DerefMut};
use rtorb_os::clock::monotonic_ns;
use rtorb_os::sync::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// A mutex with priority inheritance, as the ORB's own locks are (RTCORBA::Mutex), so one bound on priority inversion covers both. It is
/// cheap to clone; dropping the last clone destroys it (destroy_mutex).
///
/// The thread that holds it inherits the priority of threads that wait for it. It guards a value.
///
/// ```
/// # let orb = rtorb::Orb::builder().build()?;
/// let level = orb.rt_orb().create_mutex(0u32);
/// *level.lock() += 1;
/// let held = level.lock();
/// assert_eq!(*held, 1);
/// held.unlock();
/// # Ok::<(), rtorb::OrbError>(())
/// ```
pub struct RtMutex<T = ()> {
    shared: Arc<Mutex<T>>,
}

impl<T> RtMutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self {
            shared: Arc::new(Mutex::new(value)),
        }
    }

    /// Locks the mutex; waits until no other thread holds it.
    ///
    /// # Panics
    /// If the calling thread already holds the mutex, if two threads wait for each other, or if a thread leaked its guard and ended: such a
    /// wait has no end.
    //= RT-CORBA 1.2 §Mutex Interface
    //# A mutex of the ORB inherits priority, as the ORB's own locks do.
    pub fn lock(&self) -> RtMutexGuard<'_, T> {
        RtMutexGuard {
            held: self.shared.lock(),
        }
    }

    /// Locks the mutex within `max_wait`. Zero does not wait.
    ///
    /// The standard's TimeT has units of 100 ns. The clock is CLOCK_MONOTONIC, so setting the time has no effect.
    ///
    /// # Panics
    /// As [`lock`](Self::lock); and on Linux before 5.14, if it has to wait.
    //= RT-CORBA 1.2 §Mutex Interface
    //# try_lock waits for at most `max_wait`; 0 does not wait.
    pub fn try_lock(&self, max_wait: Duration) -> Option<RtMutexGuard<'_, T>> {
        let held = match self.shared.try_lock() {
            None if !max_wait.is_zero() => {
                let wait_ns = u64::try_from(max_wait.as_nanos()).unwrap_or(u64::MAX);
                let deadline_ns = monotonic_ns().saturating_add(wait_ns).min(DEADLINE_NS_MAX);
                self.shared.lock_until(deadline_ns)
            }
            held => held,
        };
        held.map(|held| RtMutexGuard { held })
    }
}

/// The latest deadline that the kernel accepts, in nanoseconds of the monotonic clock: 292 years.
const DEADLINE_NS_MAX: u64 = i64::MAX as u64;

impl<T> Clone for RtMutex<T> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<T> fmt::Debug for RtMutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RtMutex").finish_non_exhaustive()
    }
}

/// Holds an [`RtMutex`] until it is dropped or [unlocked](Self::unlock), on the thread that locked it.
#[must_use]
pub struct RtMutexGuard<'m, T = ()> {
    held: MutexGuard<'m, T>,
}

impl<T> RtMutexGuard<'_, T> {
    /// Unlocks the mutex (RTCORBA::Mutex::unlock), as dropping the guard does.
    pub fn unlock(self) {}
}

impl<T> Deref for RtMutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.held
    }
}

impl<T> DerefMut for RtMutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.held
    }
}

impl<T: fmt::Debug> fmt::Debug for RtMutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// No mutex of that name is in use in the ORB (RTCORBA::RTORB::MutexNotFound).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("MutexNotFound: no mutex `{name}` is in use; make it by create_named_mutex, and keep it")]
pub struct MutexNotFound {
    pub(super) name: String,
}

/// The named mutexes of one ORB that are in use.
#[derive(Debug, Default)]
pub(crate) struct NamedMutexes {
    by_name: Mutex<BTreeMap<String, Weak<Mutex<()>>>>,
}

impl NamedMutexes {
    /// The mutex with that name, and true if this call made it.
    pub(crate) fn create(&self, name: &str) -> (RtMutex, bool) {
        let mut by_name = self.by_name.lock();
        if let Some(shared) = by_name.get(name).and_then(Weak::upgrade) {
            return (RtMutex { shared }, false);
        }
        // Removes unused names, so that the table is no larger than the number of mutexes.
        by_name.retain(|_, shared| shared.strong_count() > 0);
        let made = RtMutex::new(());
        by_name.insert(name.to_owned(), Arc::downgrade(&made.shared));
        (made, true)
    }

    pub(crate) fn open(&self, name: &str) -> Result<RtMutex, MutexNotFound> {
        let shared = self.by_name.lock().get(name).and_then(Weak::upgrade);
        shared
            .map(|shared| RtMutex { shared })
            .ok_or_else(|| MutexNotFound {
                name: name.to_owned(),
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    //= RT-CORBA 1.2 §Mutex Interface
    //% test
    #[test]
    fn try_lock_waits_for_at_most_max_wait() {
        let mutex = RtMutex::new(7);
        let held = mutex.lock();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                assert!(mutex.try_lock(Duration::ZERO).is_none());
                let begun = monotonic_ns();
                assert!(mutex.try_lock(Duration::from_millis(5)).is_none());
                assert!(monotonic_ns() - begun >= 5_000_000);
            });
        });
        held.unlock();
        for wait in [Duration::ZERO, Duration::from_millis(1), Duration::MAX] {
            assert_eq!(*mutex.try_lock(wait).expect("nobody holds it"), 7);
        }
    }

    #[test]
    fn try_lock_without_a_bound_gets_the_mutex_when_it_is_unlocked() {
        let mutex = RtMutex::new(());
        let held = mutex.lock();
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| mutex.try_lock(Duration::MAX).is_some());
            std::thread::sleep(Duration::from_millis(2));
            held.unlock();
            assert!(waiter.join().expect("no panic"));
        });
    }

    #[test]
    fn a_name_refers_to_one_mutex_while_it_is_in_use() {
        let names = NamedMutexes::default();
        assert!(names.open("gate").is_err());
        let (one, is_new) = names.create("gate");
        assert!(is_new);
        let (same, is_new) = names.create("gate");
        assert!(!is_new);
        let held = one.lock();
        assert!(same.try_lock(Duration::ZERO).is_none());
        held.unlock();
        assert!(names.open("gate").is_ok());
        drop((one, same));
        let missing = names.open("gate").expect_err("nobody has it");
        assert!(missing.to_string().contains("`gate`"));
        drop(names.create("other"));
        let (_kept, _) = names.create("third");
        assert_eq!(names.by_name.lock().len(), 1);
    }
}
