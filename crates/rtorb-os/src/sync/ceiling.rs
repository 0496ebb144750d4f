//! A mutex whose holder runs at a priority that was fixed beforehand.

use super::{Mutex, MutexGuard};
use crate::refused::{Refused, Resource};
use crate::sched::{SchedPolicy, apply_priority, current_policy};
use core::cell::Cell;
use core::fmt;
use core::ops::{Deref, DerefMut};
use rustix::io::Errno;

/// Mutual exclusion with an immediate priority ceiling, POSIX's PTHREAD_PRIO_PROTECT.
///
/// The ceiling is the priority of the most urgent thread that ever locks it. Who holds it runs there, so on one CPU nobody
/// who would want it runs meanwhile: a thread is held up once at most, by one critical section, and before it begins;
/// and locks cannot be in a circle. On several CPUs a thread may find it taken; then it waits at the ceiling.
///
/// A lock costs up to two system calls and an unlock one, also without contention (together some 2 us, where a [`Mutex`]
/// takes some 15 ns). While a thread holds one, its priority
/// belongs to the mutex: a change made otherwise is undone by the unlock.
pub struct CeilingMutex<T: ?Sized> {
    ceiling: u8,
    mutex: Mutex<T>,
}

impl<T> CeilingMutex<T> {
    /// A mutex that nobody holds. `ceiling` is a priority of SCHED_FIFO, 1 to 99; with another, every lock is refused.
    pub const fn new(ceiling: u8, value: T) -> Self {
        Self {
            ceiling,
            mutex: Mutex::new(value),
        }
    }
}

impl<T: ?Sized> CeilingMutex<T> {
    /// The priority of its holder.
    pub fn ceiling(&self) -> u8 {
        self.ceiling
    }

    /// Raises the calling thread to the ceiling and waits until it holds the mutex.
    ///
    /// # Errors
    /// [`CeilingError`]; the thread's priority is what it was, and the mutex is not held.
    ///
    /// # Panics
    /// As [`Mutex::lock`].
    pub fn lock(&self) -> Result<CeilingGuard<'_, T>, CeilingError> {
        let raised = Raised::to(self.ceiling)?;
        Ok(CeilingGuard {
            guard: self.mutex.lock(),
            raised,
        })
    }

    /// As [`lock`](Self::lock) if nobody holds the mutex, `None` otherwise; the thread is at the ceiling for that look too.
    ///
    /// # Errors
    /// As [`lock`](Self::lock).
    ///
    /// # Panics
    /// As [`Mutex::try_lock`].
    pub fn try_lock(&self) -> Result<Option<CeilingGuard<'_, T>>, CeilingError> {
        let raised = Raised::to(self.ceiling)?;
        let guard = self.mutex.try_lock();
        Ok(guard.map(|guard| CeilingGuard { guard, raised }))
    }

    /// As [`lock`](Self::lock), at the latest until `deadline_ns` of [`monotonic_ns`](crate::clock::monotonic_ns); `None`
    /// if that passed.
    ///
    /// # Errors
    /// As [`lock`](Self::lock).
    ///
    /// # Panics
    /// As [`Mutex::lock_until`].
    pub fn lock_until(
        &self,
        deadline_ns: u64,
    ) -> Result<Option<CeilingGuard<'_, T>>, CeilingError> {
        let raised = Raised::to(self.ceiling)?;
        let guard = self.mutex.lock_until(deadline_ns);
        Ok(guard.map(|guard| CeilingGuard { guard, raised }))
    }
}

impl<T: ?Sized> fmt::Debug for CeilingMutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CeilingMutex")
            .field("ceiling", &self.ceiling)
            .finish_non_exhaustive()
    }
}

/// Why a [`CeilingMutex`] was not locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CeilingError {
    /// The caller is more urgent than the ceiling, which was to be the most urgent of all callers.
    AboveCeiling {
        /// The caller's priority, without what other ceilings add.
        priority: u8,
        /// The mutex's ceiling.
        ceiling: u8,
    },
    /// The caller is neither SCHED_FIFO nor SCHED_RR, so it has no priority to raise.
    NoPriority(SchedPolicy),
    /// The host does not let the caller have the ceiling's priority, or there is no such priority.
    Refused(Refused),
}

impl fmt::Display for CeilingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AboveCeiling { priority, ceiling } => write!(
                f,
                "a thread of priority {priority} may not lock a mutex of ceiling {ceiling}: raise the ceiling"
            ),
            Self::NoPriority(policy) => write!(
                f,
                "a thread of {policy} has no priority to raise to a ceiling: give it SCHED_FIFO or SCHED_RR"
            ),
            Self::Refused(refused) => refused.fmt(f),
        }
    }
}

impl std::error::Error for CeilingError {}

/// Holds a [`CeilingMutex`] until it is dropped, on the thread that locked it.
///
/// Guards may be dropped in any order: the thread keeps the highest ceiling of those it still holds.
#[must_use]
pub struct CeilingGuard<'m, T: ?Sized> {
    // Dropped in this order: who waits gets the mutex before the holder can be displaced.
    guard: MutexGuard<'m, T>,
    #[expect(dead_code, reason = "it lowers the thread when it is dropped")]
    raised: Raised,
}

impl<T: ?Sized> Deref for CeilingGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T: ?Sized> DerefMut for CeilingGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for CeilingGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// The calling thread runs at this ceiling or above until it is dropped.
struct Raised {
    ceiling: u8,
}

impl Raised {
    fn to(ceiling: u8) -> Result<Self, CeilingError> {
        if ceiling > PRIORITY_MAX {
            let refused = Resource::Policy(SchedPolicy::Fifo(ceiling)).refused(Errno::INVAL);
            return Err(CeilingError::Refused(refused));
        }
        HELD.with(|held| {
            let highest = held.highest();
            let own = match highest {
                Some(_) => held.own_priority.get(),
                None => own_priority()?,
            };
            if own > ceiling {
                return Err(CeilingError::AboveCeiling {
                    priority: own,
                    ceiling,
                });
            }
            if ceiling > highest.unwrap_or(own) {
                apply_priority(ceiling).map_err(CeilingError::Refused)?;
            }
            held.own_priority.set(own);
            held.add(ceiling, 1);
            Ok(Self { ceiling })
        })
    }
}

impl Drop for Raised {
    fn drop(&mut self) {
        HELD.with(|held| {
            let before = held.highest();
            held.add(self.ceiling, -1);
            let after = held.highest().unwrap_or(held.own_priority.get());
            if before != Some(after) {
                // Lowering is always allowed.
                let lowered = apply_priority(after);
                debug_assert!(lowered.is_ok(), "{lowered:?}");
            }
        });
    }
}

/// The ceilings that a thread holds now.
struct Held {
    /// What it had before the first of them.
    own_priority: Cell<u8>,
    /// How many of each ceiling.
    counts: [Cell<i32>; PRIORITY_MAX as usize + 1],
}

impl Held {
    fn highest(&self) -> Option<u8> {
        let highest = self.counts.iter().rposition(|count| count.get() > 0);
        highest.map(|ceiling| ceiling as u8)
    }

    fn add(&self, ceiling: u8, change: i32) {
        let count = &self.counts[usize::from(ceiling)];
        count.set(count.get() + change);
    }
}

const PRIORITY_MAX: u8 = 99;

thread_local! {
    static HELD: Held = const {
        Held {
            own_priority: Cell::new(0),
            counts: [const { Cell::new(0) }; PRIORITY_MAX as usize + 1],
        }
    };
}

fn own_priority() -> Result<u8, CeilingError> {
    match current_policy() {
        SchedPolicy::Fifo(priority) | SchedPolicy::RoundRobin(priority) => Ok(priority),
        policy => Err(CeilingError::NoPriority(policy)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sched::allowed;
    use crate::thread::{ThreadConfig, spawn};

    /// The highest that a test uses.
    const CEILING_MAX: u8 = 30;

    /// Runs `work` on a thread of this policy; not at all, with the reason printed, where the host refuses that.
    fn on(policy: SchedPolicy, work: impl FnOnce() + Send + 'static) {
        let config = ThreadConfig {
            policy: Some(policy),
            ..ThreadConfig::default()
        };
        if let Err(refused) = allowed(SchedPolicy::Fifo(CEILING_MAX)) {
            println!("skipped: {refused}");
            return;
        }
        let thread = spawn("ceiling", &config, work).expect("allowed");
        thread.join().expect("no panic").expect("it was begun");
    }

    #[test]
    fn the_holder_has_the_ceiling_and_then_its_own_priority_again() {
        for policy in [SchedPolicy::Fifo(10), SchedPolicy::RoundRobin(10)] {
            on(policy, move || {
                let mutex = CeilingMutex::new(20, 0);
                for _ in 0..2 {
                    let mut held = mutex.lock().expect("below the ceiling");
                    *held += 1;
                    assert_eq!(current_policy().priority(), 20);
                    assert_eq!(current_policy().name(), policy.name());
                    drop(held);
                    assert_eq!(current_policy(), policy);
                }
            });
        }
    }

    #[test]
    fn nested_ceilings_leave_the_highest_of_those_still_held() {
        on(SchedPolicy::Fifo(10), || {
            let priority = || current_policy().priority();
            let (low, high, same) = (
                CeilingMutex::new(20, ()),
                CeilingMutex::new(CEILING_MAX, ()),
                CeilingMutex::new(10, ()),
            );
            let first = low.lock().expect("below");
            let second = high.lock().expect("below");
            let third = same
                .lock()
                .expect("its own priority, not the ceiling's, counts");
            assert_eq!(priority(), 30);
            drop(third);
            assert_eq!(priority(), 30);
            drop(second);
            assert_eq!(priority(), 20);
            let second = high.lock().expect("below");
            drop(first);
            assert_eq!(priority(), 30);
            drop(second);
            assert_eq!(priority(), 10);
        });
    }

    #[test]
    fn a_try_that_fails_leaves_the_thread_as_it_was() {
        on(SchedPolicy::Fifo(10), || {
            let mutex = CeilingMutex::new(20, ());
            let held = mutex.try_lock().expect("below").expect("free");
            assert_eq!(current_policy(), SchedPolicy::Fifo(20));
            drop(held);
            let held = mutex.lock_until(0).expect("below").expect("free");
            // On another thread: on this one the first would keep the ceiling.
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    crate::sched::apply_policy(SchedPolicy::Fifo(11)).expect("allowed");
                    assert!(mutex.try_lock().expect("below").is_none());
                    assert_eq!(current_policy(), SchedPolicy::Fifo(11));
                    assert!(mutex.lock_until(0).expect("below").is_none());
                    assert_eq!(current_policy(), SchedPolicy::Fifo(11));
                });
            });
            drop(held);
            assert_eq!(current_policy(), SchedPolicy::Fifo(10));
        });
    }

    #[test]
    fn a_caller_above_the_ceiling_is_refused_and_stays_as_it_is() {
        on(SchedPolicy::Fifo(21), || {
            let mutex = CeilingMutex::new(20, ());
            let refused = CeilingError::AboveCeiling {
                priority: 21,
                ceiling: 20,
            };
            assert_eq!(mutex.lock().expect_err("above"), refused);
            assert_eq!(current_policy(), SchedPolicy::Fifo(21));
            let no_ceiling = CeilingMutex::new(100, ());
            assert!(matches!(no_ceiling.lock(), Err(CeilingError::Refused(_))));
            assert_eq!(current_policy(), SchedPolicy::Fifo(21));
        });
    }

    #[test]
    fn a_thread_without_a_priority_is_refused() {
        on(SchedPolicy::Other, || {
            let refused = CeilingMutex::new(20, ()).lock().map(|_| ());
            assert_eq!(refused, Err(CeilingError::NoPriority(SchedPolicy::Other)));
        });
    }
}
