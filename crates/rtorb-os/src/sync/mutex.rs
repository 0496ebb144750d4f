//! A mutex whose holder inherits the priority of its waiters.
//!
//! `std::sync::Mutex` has no priority inheritance (rust-lang/rust#128231): a medium thread can keep a low-priority holder
//! from the CPU while a high one waits. This one is a PI futex: without contention one atomic instruction; with contention
//! the kernel gives the waiter's priority to the holder, and to the thread that the holder waits for, and so on.

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
/// A panic does not poison it: the value must be consistent after every statement that can panic.
///
/// A thread that ends while it holds the mutex (it leaked the guard) leaves it *abandoned*: from then on every lock panics
/// instead of waiting for ever. The mutex is never passed on, because the leaked guard's reference to the value may still be
/// in use. (One case is not detected: no thread waited, and a later thread got the dead one's number from the kernel. Then a
/// lock waits until that thread ends.)
///
/// A child made by fork(2) must not use a mutex that existed before: its threads have other numbers.
pub struct Mutex<T: ?Sized> {
    lock: PiLock,
    value: UnsafeCell<T>,
}

// SAFETY: the mutex owns its value, so sending the mutex sends a `T`, which is `Send`.
unsafe impl<T: ?Sized + Send> Send for Mutex<T> {}
// SAFETY: one thread at a time holds the mutex and reaches the value, so sharing the mutex only sends a `T` between threads.
unsafe impl<T: ?Sized + Send> Sync for Mutex<T> {}

impl<T> Mutex<T> {
    /// A free mutex.
    pub const fn new(value: T) -> Self {
        Self {
            lock: PiLock::new(),
            value: UnsafeCell::new(value),
        }
    }

    /// The value of a mutex that is no longer used.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> Mutex<T> {
    /// The value, without locking: the exclusive borrow shows that no other thread can reach it.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    /// Waits until the calling thread holds the mutex. Meanwhile the holder runs at least at the caller's priority.
    ///
    /// # Panics
    /// If the calling thread holds the mutex already, or a mutex that the holder waits for, because it would wait for ever.
    /// If the mutex is abandoned.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        let held = self.lock.lock(None);
        debug_assert!(held, "it waits without a deadline");
        self.guard()
    }

    /// Locks the mutex if it is free.
    ///
    /// # Panics
    /// If the mutex is known to be abandoned.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.lock.try_lock().then(|| self.guard())
    }

    /// As [`lock`](Self::lock), at the latest until `deadline_ns` of [`monotonic_ns`](crate::clock::monotonic_ns); `None`
    /// if that passed.
    ///
    /// # Panics
    /// As [`lock`](Self::lock), and on Linux before 5.14, which has no FUTEX_LOCK_PI2. The older FUTEX_LOCK_PI is no
    /// replacement: it waits on the time of day, which can jump.
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

    /// True if a thread waits for the mutex. The holder may use it to do less.
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
    // A PI futex belongs to a thread: another thread cannot unlock it.
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
        // SAFETY: a guard exists only while its thread holds the mutex.
        unsafe { &*self.mutex.value.get() }
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: a guard exists only while its thread holds the mutex, and this borrow of it is exclusive.
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

/// The lock without its value.
pub(super) struct PiLock {
    /// 0, or the holder's thread id, with the kernel's FUTEX_WAITERS and FUTEX_OWNER_DIED bits.
    owner: AtomicU32,
    /// A holder ended. Only holders read and write it.
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
        #[cfg(simulation)]
        crate::simulation::point();
        calls::count();
        self.take_free() || self.wait(deadline_ns)
    }

    fn try_lock(&self) -> bool {
        #[cfg(simulation)]
        crate::simulation::point();
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
            // ThreadSanitizer does not know that the kernel passes the lock on. The next holder reads the word too.
            #[cfg(thread_sanitizer)]
            self.owner.fetch_or(0, Ordering::Release);
            // A thread waits, and only the kernel knows which one is next.
            let unlocked = futex::unlock_pi(&self.owner, futex::Flags::PRIVATE);
            debug_assert!(
                unlocked.is_ok() || std::thread::panicking(),
                "the guard's thread holds the mutex"
            );
        }
        #[cfg(simulation)]
        crate::simulation::point();
    }

    /// Locks again after a wait that ended without the lock.
    pub(super) fn lock_again(&self) {
        let held = self.lock(None);
        debug_assert!(held, "it waits without a deadline");
    }

    /// Checks a lock that the kernel passed to this thread while it slept.
    pub(super) fn woken_as_holder(&self) {
        calls::count();
        calls::count_contended();
        self.check_abandoned();
    }

    /// The futex word.
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
        #[cfg(simulation)]
        while crate::simulation::is_planted("inheritance-lost") {
            crate::clock::sleep_until(crate::clock::monotonic_ns() + 20_000);
            if self.take_free() {
                return true;
            }
        }
        let deadline = deadline_ns.map(timespec);
        loop {
            let locked = match &deadline {
                None => futex::lock_pi(&self.owner, futex::Flags::PRIVATE, None),
                Some(_) => futex::lock_pi2(&self.owner, futex::Flags::PRIVATE, deadline.as_ref()),
            };
            match locked {
                Ok(()) => {
                    self.check_abandoned();
                    return true;
                }
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(Errno::TIMEDOUT) => return false,
                Err(errno) => explain(errno),
            }
        }
    }

    fn check_abandoned(&self) {
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

/// Panics with the reason why the kernel refused to wait.
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
    fn a_counter_is_exact_under_contention() {
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
    fn a_lock_times_out_at_its_deadline_and_not_before() {
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
    fn locking_in_opposite_order_panics() {
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
    fn an_abandoned_mutex_panics_for_waiters_and_later_locks() {
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
    fn a_mutex_abandoned_without_waiters_panics_on_lock() {
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
