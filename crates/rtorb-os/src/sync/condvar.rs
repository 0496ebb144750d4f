//! A condition variable whose waiters get the mutex in order of priority.
//!
//! Built on FUTEX_WAIT_REQUEUE_PI and FUTEX_CMP_REQUEUE_PI: a notified thread does not wake to race for the mutex. The kernel
//! moves it from the queue of the condition to the queue of the mutex, in order of priority, and it wakes as the holder. See D. Hart, D. Guniguntala,
//! *Requeue-PI: Making Glibc Condvars PI-Aware*, Real-Time Linux Workshop 2009, and
//! `Documentation/locking/futex-requeue-pi.rst` of Linux.

use super::mutex::{Mutex, MutexGuard, PiLock, explain};
use crate::clock::timespec;
use core::fmt;
use core::sync::atomic::{AtomicU32, Ordering};
use rustix::io::Errno;
use rustix::thread::futex;

/// A condition variable for one [`Mutex`].
///
/// A wait ends after a notification, and sometimes without one: check the condition in a loop. No notification that follows
/// the change of the condition is lost, whether or not the notifier holds the mutex. If it holds the mutex, threads wake in
/// order of priority (POSIX says the same of pthread_cond_signal). A notifier never blocks: without a waiter it makes one
/// atomic addition, with one a system call.
///
/// ```
/// use rtorb_os::sync::{Condvar, Mutex};
/// let (ready, changed) = (Mutex::new(false), Condvar::new());
/// std::thread::scope(|scope| {
///     scope.spawn(|| {
///         let mut now = ready.lock();
///         while !*now {
///             changed.wait(&mut now);
///         }
///     });
///     *ready.lock() = true;
///     changed.notify_one(&ready);
/// });
/// ```
#[derive(Default)]
pub struct Condvar {
    /// The number of notifications, modulo 2^32. A waiter that is preempted between unlocking the mutex and sleeping for
    /// exactly 2^32 notifications would miss the last one.
    sequence: AtomicU32,
    /// Threads in `wait`.
    waiters: AtomicU32,
}

impl Condvar {
    /// A condition variable without waiters.
    pub const fn new() -> Self {
        Self {
            sequence: AtomicU32::new(0),
            waiters: AtomicU32::new(0),
        }
    }

    /// Unlocks the mutex, waits for a notification, and locks the mutex again.
    ///
    /// # Aborts
    /// If the mutex cannot be locked again, where [`Mutex::lock`] would panic: after a panic, the guard would still give access to
    /// the value, which another thread may use.
    pub fn wait<T: ?Sized>(&self, guard: &mut MutexGuard<'_, T>) {
        self.wait_requeued(guard.lock_word(), None);
    }

    /// As [`wait`](Self::wait), until `deadline_ns` of [`monotonic_ns`](crate::clock::monotonic_ns) at the latest, plus the
    /// time to lock the mutex again. False if the deadline passed without a notification.
    ///
    /// # Aborts
    /// As [`wait`](Self::wait).
    pub fn wait_until<T: ?Sized>(&self, guard: &mut MutexGuard<'_, T>, deadline_ns: u64) -> bool {
        self.wait_requeued(guard.lock_word(), Some(deadline_ns))
    }

    /// Wakes the most urgent waiter as soon as it can have `mutex`, the mutex that it waits with.
    ///
    /// # Panics
    /// If a waiter uses another mutex, or this one is abandoned.
    pub fn notify_one<T: ?Sized>(&self, mutex: &Mutex<T>) {
        self.requeue(mutex.lock_word(), 0);
    }

    /// Wakes all waiters, one after the other in order of priority, as each can have `mutex`.
    ///
    /// # Panics
    /// As [`notify_one`](Self::notify_one).
    pub fn notify_all<T: ?Sized>(&self, mutex: &Mutex<T>) {
        self.requeue(mutex.lock_word(), i32::MAX as u32);
    }

    fn wait_requeued(&self, lock: &PiLock, deadline_ns: Option<u64>) -> bool {
        let deadline = deadline_ns.map(timespec);
        // A notifier that sees no waiter comes before this addition in the order of SeqCst. Then this thread sees the new
        // `sequence`, and the notifier changed the condition before this thread had the mutex.
        self.waiters.fetch_add(1, Ordering::SeqCst);
        let seen = self.sequence.load(Ordering::SeqCst);
        lock.unlock();
        let woken = futex::wait_requeue_pi(
            &self.sequence,
            futex::Flags::PRIVATE,
            seen,
            deadline.as_ref(),
            lock.word(),
        );
        let without_mutex = AbortIfDropped;
        match woken {
            Ok(()) => lock.woken_as_holder(),
            // Notified before it slept, interrupted or timed out: the thread does not hold the mutex.
            Err(_) => lock.lock_again(),
        }
        core::mem::forget(without_mutex);
        self.waiters.fetch_sub(1, Ordering::SeqCst);
        match woken {
            Ok(()) | Err(Errno::AGAIN | Errno::INTR) => true,
            // The thread may have been notified, and then not got the mutex in time. The notification must not get lost.
            Err(Errno::TIMEDOUT) => self.sequence.load(Ordering::SeqCst) != seen,
            Err(errno) => explain(errno),
        }
    }

    fn requeue(&self, lock: &PiLock, others_max: u32) {
        #[cfg(simulation)]
        if crate::simulation::is_planted("notification-lost")
            && self.waiters.load(Ordering::SeqCst) > 1
        {
            return;
        }
        self.sequence.fetch_add(1, Ordering::SeqCst);
        if self.waiters.load(Ordering::SeqCst) == 0 {
            return;
        }
        loop {
            let now = self.sequence.load(Ordering::SeqCst);
            let requeued = futex::cmp_requeue_pi(
                &self.sequence,
                futex::Flags::PRIVATE,
                others_max,
                lock.word(),
                now,
            );
            match requeued {
                Ok(_) => return,
                // Another thread notified in between. That one made progress, and the waiters are still there.
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(Errno::INVAL) => panic!("a condition variable is used with two mutexes"),
                Err(errno) => explain(errno),
            }
        }
    }
}

/// Ends the process if a panic drops it.
struct AbortIfDropped;

impl Drop for AbortIfDropped {
    fn drop(&mut self) {
        std::process::abort();
    }
}

impl fmt::Debug for Condvar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Condvar").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::monotonic_ns;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn no_notification_is_lost_between_two_threads_that_take_turns() {
        const TURNS: u32 = 20_000;
        let (turn, changed) = (Mutex::new(0u32), Condvar::new());
        let play = |parity: u32, hold: bool| {
            for _ in 0..TURNS / 2 {
                let mut now = turn.lock();
                while *now % 2 != parity {
                    changed.wait(&mut now);
                }
                *now += 1;
                if hold {
                    changed.notify_one(&turn);
                } else {
                    drop(now);
                    changed.notify_one(&turn);
                }
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(|| play(0, true));
            scope.spawn(|| play(1, false));
        });
        assert_eq!(turn.into_inner(), TURNS);
    }

    #[test]
    fn a_bounded_store_of_two_condition_variables_loses_no_item() {
        const EACH: u64 = 4_000;
        let store = Mutex::new(Vec::with_capacity(3));
        let (not_full, not_empty) = (Condvar::new(), Condvar::new());
        let taken = std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for n in 1..=EACH {
                        let mut items = store.lock();
                        while items.len() == 3 {
                            not_full.wait(&mut items);
                        }
                        items.push(n);
                        drop(items);
                        not_empty.notify_one(&store);
                    }
                });
            }
            let take = || {
                let mut sum = 0;
                for _ in 0..EACH {
                    let mut items = store.lock();
                    while items.is_empty() {
                        not_empty.wait_until(&mut items, monotonic_ns() + 50_000);
                    }
                    sum += items.pop().expect("not empty");
                    not_full.notify_one(&store);
                }
                sum
            };
            let takers: Vec<_> = (0..3).map(|_| scope.spawn(take)).collect();
            let sums = takers
                .into_iter()
                .map(|taker| taker.join().expect("no panic"));
            sums.sum::<u64>()
        });
        assert_eq!(taken, 3 * EACH * (EACH + 1) / 2);
    }

    #[test]
    fn notifying_all_wakes_all() {
        let (open, changed) = (Mutex::new(false), Condvar::new());
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let mut now = open.lock();
                    while !*now {
                        changed.wait(&mut now);
                    }
                });
            }
            while changed.waiters.load(Ordering::SeqCst) < 8 {
                std::thread::yield_now();
            }
            *open.lock() = true;
            changed.notify_all(&open);
        });
    }

    #[test]
    fn a_wait_that_times_out_holds_the_mutex_again() {
        let (mutex, changed) = (Mutex::new(()), Condvar::new());
        let mut guard = mutex.lock();
        let deadline_ns = monotonic_ns() + 5_000_000;
        while changed.wait_until(&mut guard, deadline_ns) {}
        assert!(monotonic_ns() >= deadline_ns);
        assert!(mutex.try_lock().is_none());
        drop(guard);
        assert!(mutex.try_lock().is_some());
    }

    /// In a process of its own, which is to be aborted.
    #[test]
    fn a_thread_that_cannot_have_its_mutex_back_gets_no_access_to_the_value() {
        const IN_CHILD: &str = "RTORB_OS_LEAKS_A_GUARD";
        /// The status of a child whose other thread has not begun in time.
        const TOO_EARLY: i32 = 3;
        if std::env::var_os(IN_CHILD).is_some() {
            let (mutex, changed) = (Mutex::new(()), Condvar::new());
            let is_leaked = core::sync::atomic::AtomicBool::new(false);
            let mut guard = mutex.lock();
            let waited = catch_unwind(AssertUnwindSafe(|| {
                std::thread::scope(|scope| {
                    // It leaks its guard, and with it what a reference to the value may be.
                    scope.spawn(|| {
                        let leaked = mutex.lock();
                        is_leaked.store(true, Ordering::SeqCst);
                        core::mem::forget(leaked);
                    });
                    let waited = changed.wait_until(&mut guard, monotonic_ns() + 50_000_000);
                    if !is_leaked.load(Ordering::SeqCst) {
                        std::process::exit(TOO_EARLY);
                    }
                    waited
                })
            }));
            println!("goes on with {guard:?}: {waited:?}");
            std::process::exit(0);
        }
        let name = "sync::condvar::tests::a_thread_that_cannot_have_its_mutex_back_gets_no_access_to_the_value";
        let own = std::env::current_exe().expect("a program");
        let run = || {
            let mut child = std::process::Command::new(&own);
            let ran = child
                .args(["--exact", name, "--nocapture"])
                .env(IN_CHILD, "1");
            ran.output().expect("it runs")
        };
        let mut outputs = (0..100).map(|_| run());
        let output = outputs.find(|it| it.status.code() != Some(TOO_EARLY));
        let output = output.expect("its other thread begins in time");
        let status = std::os::unix::process::ExitStatusExt::signal(&output.status);
        assert_eq!(status, Some(libc::SIGABRT), "{output:?}");
    }

    #[test]
    fn a_second_mutex_makes_notify_panic() {
        let (mutex, other, changed) = (Mutex::new(false), Mutex::new(()), Condvar::new());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut done = mutex.lock();
                while !*done {
                    changed.wait(&mut done);
                }
            });
            let sleeps = || changed.waiters.load(Ordering::SeqCst) == 1;
            // A waiter that is counted but does not sleep yet has no mutex in the kernel.
            let noticed = (0..30_000).any(|_| {
                std::thread::sleep(core::time::Duration::from_millis(1));
                sleeps() && catch_unwind(AssertUnwindSafe(|| changed.notify_one(&other))).is_err()
            });
            *mutex.lock() = true;
            changed.notify_one(&mutex);
            assert!(noticed);
        });
    }
}
