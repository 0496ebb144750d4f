//! A mutex whose holder runs at a fixed priority.

use super::{Mutex, MutexGuard};
use crate::refused::{Refused, Resource};
use crate::sched::{SchedPolicy, apply_priority, current_policy};
use core::cell::Cell;
use core::fmt;
use core::ops::{Deref, DerefMut};
use rustix::io::Errno;

/// Mutual exclusion with an immediate priority ceiling, POSIX's PTHREAD_PRIO_PROTECT.
///
/// The ceiling is the priority of the most urgent thread that ever locks it. The holder runs at that priority, so on one CPU
/// no other user of the mutex runs meanwhile. A thread is delayed at most once, by one critical section, before it begins,
/// and locks cannot deadlock. On several CPUs a thread may find the mutex held; then it waits at the ceiling.
///
/// A lock costs up to two system calls and an unlock one, also without contention (together some 2 us, where a [`Mutex`]
/// takes some 15 ns). While a thread holds the mutex, the mutex controls its priority: the unlock undoes any other
/// change, unless the ceiling is the priority that the thread had before.
pub struct CeilingMutex<T: ?Sized> {
    ceiling: u8,
    mutex: Mutex<T>,
}

impl<T> CeilingMutex<T> {
    /// A free mutex. `ceiling` is a priority of SCHED_FIFO, 1 to 99; every lock fails with another one.
    pub const fn new(ceiling: u8, value: T) -> Self {
        Self {
            ceiling,
            mutex: Mutex::new(value),
        }
    }
}

impl<T: ?Sized> CeilingMutex<T> {
    /// The priority of the holder.
    pub fn ceiling(&self) -> u8 {
        self.ceiling
    }

    /// Raises the calling thread to the ceiling and locks.
    ///
    /// # Errors
    /// [`CeilingError`]; then the thread has its old priority and does not hold the mutex.
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
}

impl<T: ?Sized> fmt::Debug for CeilingMutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CeilingMutex")
            .field("ceiling", &self.ceiling)
            .finish_non_exhaustive()
    }
}

/// The reason why a [`CeilingMutex`] was not locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CeilingError {
    /// The caller is more urgent than the ceiling.
    #[error(
        "a thread of priority {priority} may not lock a mutex of ceiling {ceiling}: raise the ceiling"
    )]
    AboveCeiling {
        /// The priority of the caller, without other ceilings.
        priority: u8,
        /// The ceiling of the mutex.
        ceiling: u8,
    },
    /// The caller is neither SCHED_FIFO nor SCHED_RR, so it has no priority to raise.
    #[error(
        "a thread of {0} has no priority to raise to the ceiling: give it SCHED_FIFO or SCHED_RR"
    )]
    NoPriority(SchedPolicy),
    /// The host refuses the priority of the ceiling, or it does not exist.
    #[error("the thread cannot be raised to the ceiling")]
    Refused(#[source] Refused),
}

/// Holds a [`CeilingMutex`] until it is dropped, on the thread that locked it.
///
/// Guards may be dropped in any order: the thread keeps the highest ceiling of those it still holds.
#[must_use]
pub struct CeilingGuard<'m, T: ?Sized> {
    // Dropped in this order: the mutex is passed on before the holder can be preempted.
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

/// Keeps the calling thread at this ceiling or above until it is dropped.
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
                // The host always allows a lower priority.
                let lowered = apply_priority(after);
                debug_assert!(lowered.is_ok(), "{lowered:?}");
            }
        });
    }
}

/// The ceilings that a thread holds.
struct Held {
    /// The priority of the thread without ceilings.
    own_priority: Cell<u8>,
    /// The number of mutexes held, by ceiling.
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

    /// The highest ceiling that a test uses.
    const CEILING_MAX: u8 = 30;

    /// Runs `work` on a thread of this policy. Prints the reason and returns where the host refuses the policy.
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
    fn the_holder_has_the_ceiling_until_it_unlocks() {
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
    fn a_thread_has_the_highest_ceiling_that_it_holds() {
        on(SchedPolicy::Fifo(10), || {
            let priority = || current_policy().priority();
            let (low, high, same) = (
                CeilingMutex::new(20, ()),
                CeilingMutex::new(CEILING_MAX, ()),
                CeilingMutex::new(10, ()),
            );
            let first = low.lock().expect("below");
            let second = high.lock().expect("below");
            let third = same.lock().expect("its own priority counts, not a ceiling");
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
    fn a_caller_above_the_ceiling_is_refused_and_keeps_its_priority() {
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
