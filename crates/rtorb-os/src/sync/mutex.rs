//! A mutex whose holder inherits the priority of who waits for it.
//!
//! `std::sync::Mutex` does not (rust-lang/rust#128231): a low-priority holder can be kept from the CPU by a medium one
//! while a high one waits. This one is a PI futex: without contention one atomic instruction, with contention the
//! kernel lends the waiter's priority to the holder, and to whom the holder waits for, and so on.

use super::calls;
use crate::clock::timespec;
use crate::thread::thread_id;
use core::cell::UnsafeCell;
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use rustix::io::Errno;
use rustix::thread::futex;

/// Mutual exclusion with priority inheritance.
///
/// It is not poisoned by a panic: what it guards must be whole after every statement that can panic.
///
/// A thread that ends while it holds the mutex (it forgot or leaked the guard) leaves it *abandoned*: from then on every
/// lock panics instead of waiting for ever. It is never handed on, since the leaked guard's reference to the value may
/// still be in use somewhere. (One case is not seen: nobody waited, and a later thread got the dead one's number from the
/// kernel; who locks then waits until that one ends.)
///
/// A child made by fork(2) must not touch a mutex that existed before: its threads have other numbers.
pub struct Mutex<T: ?Sized> {
    lock: PiLock,
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
            lock: PiLock::new(),
            value: UnsafeCell::new(value),
        }
    }

    /// The value, of a mutex that nobody can hold any more.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> Mutex<T> {
    /// The value, when nobody else can reach it.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    /// Waits until the calling thread holds it; the holder runs at least at the caller's priority meanwhile.
    ///
    /// # Panics
    /// If the calling thread holds it already, or holds one that its holder waits for: that would wait for ever. If it is
    /// abandoned.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        let held = self.lock.lock(None);
        debug_assert!(held, "it waits until it has it");
        self.guard()
    }

    /// Holds it if nobody does.
    ///
    /// # Panics
    /// If it is abandoned and this is noticed.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.lock.try_lock().then(|| self.guard())
    }

    /// As [`lock`](Self::lock), at the latest until `deadline_ns` of [`monotonic_ns`](crate::clock::monotonic_ns); `None`
    /// if that passed.
    ///
    /// # Panics
    /// As [`lock`](Self::lock), and on Linux before 5.14, which has no FUTEX_LOCK_PI2: the older FUTEX_LOCK_PI waits on the
    /// time of day, which jumps, so it is not taken instead.
    pub fn lock_until(&self, deadline_ns: u64) -> Option<MutexGuard<'_, T>> {
        self.lock.lock(Some(deadline_ns)).then(|| self.guard())
    }

    pub(super) fn lock_word(&self) -> &PiLock {
        &self.lock
    }

    fn guard(&self) -> MutexGuard<'_, T> {
        MutexGuard {
            mutex: self,
            not_send: PhantomData,
        }
    }

    /// True if some thread waits for who holds it; for that one, which may then do less.
    pub fn has_waiters(&self) -> bool {
        self.lock.owner.load(Ordering::Relaxed) & futex::WAITERS != 0
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

impl<'m, T: ?Sized> MutexGuard<'m, T> {
    pub(super) fn lock_word(&self) -> &'m PiLock {
        self.mutex.lock_word()
    }
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
        self.mutex.lock.unlock();
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// The lock without what it guards.
pub(super) struct PiLock {
    /// 0, or the holder's thread id, with the kernel's FUTEX_WAITERS and FUTEX_OWNER_DIED bits.
    owner: AtomicU32,
    /// A holder ended; written and read by holders alone.
    abandoned: AtomicBool,
}

impl PiLock {
    const fn new() -> Self {
        Self {
            owner: AtomicU32::new(0),
            abandoned: AtomicBool::new(false),
        }
    }

    #[inline]
    fn lock(&self, deadline_ns: Option<u64>) -> bool {
        calls::count();
        self.take_free() || self.wait(deadline_ns)
    }

    fn try_lock(&self) -> bool {
        calls::count();
        self.take_free()
    }

    pub(super) fn unlock(&self) {
        let id = thread_id();
        if self
            .owner
            .compare_exchange(id, 0, Ordering::Release, Ordering::Relaxed)
            .is_err()
        {
            // Someone waits: only the kernel knows who is next.
            let unlocked = futex::unlock_pi(&self.owner, futex::Flags::PRIVATE);
            debug_assert!(
                unlocked.is_ok() || std::thread::panicking(),
                "the guard's thread holds the mutex"
            );
        }
    }

    /// Takes the lock again after a wait that ended without it.
    pub(super) fn lock_again(&self) {
        let held = self.lock(None);
        debug_assert!(held, "it waits until it has it");
    }

    /// Looks at a lock that the kernel made ours while we slept.
    pub(super) fn woken_as_holder(&self) {
        calls::count();
        calls::count_contended();
        self.look_whether_the_last_holder_died();
    }

    /// The word that the kernel knows the lock by.
    pub(super) fn word(&self) -> &AtomicU32 {
        &self.owner
    }

    #[inline]
    fn take_free(&self) -> bool {
        let free = self
            .owner
            .compare_exchange(0, thread_id(), Ordering::Acquire, Ordering::Relaxed)
            .is_ok();
        if free && self.abandoned.load(Ordering::Relaxed) {
            self.refuse();
        }
        free
    }

    #[cold]
    fn wait(&self, deadline_ns: Option<u64>) -> bool {
        calls::count_contended();
        let deadline = deadline_ns.map(timespec);
        loop {
            let locked = match &deadline {
                None => futex::lock_pi(&self.owner, futex::Flags::PRIVATE, None),
                Some(_) => futex::lock_pi2(&self.owner, futex::Flags::PRIVATE, deadline.as_ref()),
            };
            match locked {
                Ok(()) => {
                    self.look_whether_the_last_holder_died();
                    return true;
                }
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(Errno::TIMEDOUT) => return false,
                Err(errno) => explain(errno),
            }
        }
    }

    fn look_whether_the_last_holder_died(&self) {
        if self.owner.load(Ordering::Acquire) & futex::OWNER_DIED != 0 {
            self.abandoned.store(true, Ordering::Relaxed);
        }
        if self.abandoned.load(Ordering::Relaxed) {
            self.refuse();
        }
    }

    #[cold]
    fn refuse(&self) -> ! {
        self.unlock();
        explain(Errno::SRCH)
    }
}

/// Why the kernel does not let us wait.
#[cold]
pub(super) fn explain(errno: Errno) -> ! {
    match errno {
        Errno::SRCH => panic!("a mutex is abandoned: a thread ended while it held it"),
        Errno::DEADLK => panic!(
            "a mutex is locked by a thread that holds it, or whose own locks its holder waits for"
        ),
        Errno::NOSYS => panic!("locking until a deadline needs Linux 5.14 (FUTEX_LOCK_PI2)"),
        _ => panic!("the kernel refused to wait for a mutex: {errno}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::monotonic_ns;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn counts_right_under_contention() {
        let count = Mutex::new(0u64);
        std::thread::scope(|scope| {
            for n in 0..4 {
                let count = &count;
                scope.spawn(move || {
                    for _ in 0..10_000 {
                        if n % 2 == 0 {
                            *count.lock() += 1;
                        } else {
                            *count.lock_until(u64::MAX >> 1).expect("far away") += 1;
                        }
                    }
                });
            }
        });
        assert_eq!(count.into_inner(), 40_000);
    }

    #[test]
    fn a_lock_with_a_deadline_is_given_up_then_and_not_before() {
        let mutex = Mutex::new(());
        let held = mutex.lock();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let deadline_ns = monotonic_ns() + 5_000_000;
                assert!(mutex.lock_until(deadline_ns).is_none());
                assert!(monotonic_ns() >= deadline_ns);
                assert!(mutex.lock_until(0).is_none(), "long past");
            });
        });
        drop(held);
        assert!(mutex.lock_until(0).is_some(), "it is free");
    }

    #[test]
    fn locking_twice_panics_instead_of_waiting_for_ever() {
        let mutex = Mutex::new(());
        let held = mutex.lock();
        assert!(catch_unwind(AssertUnwindSafe(|| drop(mutex.lock()))).is_err());
        drop(held);
        assert!(mutex.try_lock().is_some());
    }

    #[test]
    fn two_threads_that_lock_in_opposite_order_are_told_so() {
        let (one, two) = (Mutex::new(()), Mutex::new(()));
        let both_hold = std::sync::Barrier::new(2);
        let in_turn = |first: &Mutex<()>, second: &Mutex<()>| {
            let _first = first.lock();
            both_hold.wait();
            catch_unwind(AssertUnwindSafe(|| drop(second.lock()))).is_err()
        };
        let (ours, theirs) = std::thread::scope(|scope| {
            let other = scope.spawn(|| in_turn(&two, &one));
            (in_turn(&one, &two), other.join().expect("caught"))
        });
        assert!(ours || theirs);
    }

    #[test]
    fn a_mutex_whose_holder_ended_is_never_handed_on() {
        let mutex = Mutex::new(());
        let is_held = std::sync::Barrier::new(2);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                core::mem::forget(mutex.lock());
                is_held.wait();
                while !mutex.has_waiters() {
                    std::thread::yield_now();
                }
            });
            is_held.wait();
            let waiting = catch_unwind(AssertUnwindSafe(|| drop(mutex.lock())));
            assert!(waiting.is_err());
        });
        for _ in 0..2 {
            assert!(catch_unwind(AssertUnwindSafe(|| drop(mutex.lock()))).is_err());
        }
    }

    #[test]
    fn a_mutex_whose_holder_ended_unseen_is_never_handed_on() {
        let mutex = Mutex::new(());
        std::thread::scope(|scope| {
            scope.spawn(|| core::mem::forget(mutex.lock()));
        });
        assert!(mutex.try_lock().is_none());
        for _ in 0..2 {
            assert!(catch_unwind(AssertUnwindSafe(|| drop(mutex.lock()))).is_err());
        }
    }
}
