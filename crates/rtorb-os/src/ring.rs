//! A bounded queue whose consumers can wait.
//!
//! It serves as the request queue of thread pools. Any number of threads push and pop. A push to a full queue fails at once;
//! a pop from an empty queue may sleep. The constructor allocates all memory.

use crate::atomics::{AtomicU32, Ordering, UnsafeCell, fence, futex};
use crate::indices::Indices;
use core::fmt;
use core::mem::MaybeUninit;

/// The queue: first in, first out, of at most [`capacity`](Self::capacity) values.
///
/// # Priorities
/// There is no lock, so no holder needs a priority. A thread that is preempted in the middle of a push or pop, even for
/// good, delays no other thread: its one slot stays unused until it continues, and its value is not in the queue yet. (For
/// that, a push writes the value before it takes its place in the order. In the well-known ring of D. Vyukov all later
/// values wait for a producer that was preempted after it took its place.) A thread repeats a step only when another thread
/// has just completed one: the queue is lock-free, not wait-free.
///
/// Threads that sleep in [`pop_until`](Self::pop_until) wake in order of priority. Values have no priority: use a ring and
/// threads for each priority (a lane) if a value must not wait behind less urgent ones.
pub struct Ring<T> {
    /// Empty slots.
    free: Indices,
    /// Slots with a value, in order.
    filled: Indices,
    slots: Box<[UnsafeCell<MaybeUninit<T>>]>,
    /// The futex: changes with each waking.
    wakings: AtomicU32,
    sleepers: AtomicU32,
    /// 1 after [`close`](Self::close).
    closed: AtomicU32,
}

// SAFETY: the ring owns its values, so sending the ring sends them (`Send`).
unsafe impl<T: Send> Send for Ring<T> {}
// SAFETY: a value moves from the thread that pushes it to the one that pops it and is never shared, so `Send` is enough.
unsafe impl<T: Send> Sync for Ring<T> {}

impl<T> Ring<T> {
    /// An empty queue of at most `capacity` values (and never more than 2^31).
    pub fn new(capacity: usize) -> Self {
        let capacity = capacity.min(1 << 31);
        let slots = core::iter::repeat_with(|| UnsafeCell::new(MaybeUninit::uninit()));
        Self {
            free: Indices::all(capacity),
            filled: Indices::empty(capacity),
            slots: slots.take(capacity).collect(),
            wakings: AtomicU32::new(0),
            sleepers: AtomicU32::new(0),
            closed: AtomicU32::new(0),
        }
    }

    /// Adds a value at the end and wakes one thread if threads sleep.
    ///
    /// # Errors
    /// Returns the value when the queue is full or closed. It is also full while a thread that was preempted in the middle
    /// of a push or pop holds the last slot.
    pub fn push(&self, value: T) -> Result<(), PushError<T>> {
        #[cfg(simulation)]
        crate::simulation::point();
        if self.is_closed() {
            return Err(PushError::Closed(value));
        }
        let Some(index) = self.free.take() else {
            return Err(PushError::Full(value));
        };
        // SAFETY: this thread took the slot from `free`, so no other thread uses it.
        self.slots[index as usize].with_mut(|slot| unsafe { (*slot).write(value) });
        self.filled.put(index);
        self.wake_one();
        Ok(())
    }

    /// Takes the oldest value; `None` when the queue is empty.
    pub fn pop(&self) -> Option<T> {
        #[cfg(simulation)]
        crate::simulation::point();
        let index = self.filled.take()?;
        let value = self.slots[index as usize].with_mut(|slot| {
            // SAFETY: this thread took the slot from `filled`, so no other thread uses it.
            let slot = unsafe { &*slot };
            // SAFETY: the thread that put the slot into `filled` has written it, and it counts as empty from now on.
            unsafe { slot.assume_init_read() }
        });
        self.free.put(index);
        Some(value)
    }

    /// Takes the oldest value, and sleeps while the queue is empty: until `deadline_ns` of
    /// [`monotonic_ns`](crate::clock::monotonic_ns), or for ever when `None`.
    ///
    /// # Errors
    /// [`PopError`] when the deadline passes, or when the queue is closed and empty.
    pub fn pop_until(&self, deadline_ns: Option<u64>) -> Result<T, PopError> {
        if let Some(value) = self.pop() {
            return Ok(value);
        }
        loop {
            self.sleepers.fetch_add(1, Ordering::Relaxed);
            // Pairs with the fence of `wake_one`: this thread sees the value, or the producer sees this sleeper.
            fence(Ordering::SeqCst);
            let seen = self.wakings.load(Ordering::Acquire);
            let value = self.pop();
            let closed = self.is_closed();
            let timely = value.is_some()
                || closed
                || futex::wait_in_process(&self.wakings, seen, deadline_ns);
            self.sleepers.fetch_sub(1, Ordering::Relaxed);
            let value = value.or_else(|| self.pop());
            if value.is_some() && !self.is_empty() {
                // A producer may have been preempted between adding a value and waking a thread for it.
                self.wake_one();
            }
            match value {
                Some(value) => return Ok(value),
                None if closed => return Err(PopError::Closed),
                None if !timely => return Err(PopError::TimedOut),
                None => {}
            }
        }
    }

    /// Refuses further values and wakes all sleepers. Values in the queue can still be popped.
    ///
    /// A concurrent push may succeed after the last pop. Its value is dropped with the queue.
    pub fn close(&self) {
        self.closed.store(1, Ordering::Release);
        fence(Ordering::SeqCst);
        self.wakings.fetch_add(1, Ordering::Release);
        futex::wake_in_process(&self.wakings, i32::MAX as u32);
    }

    /// True after [`close`](Self::close).
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire) != 0
    }

    /// The number of values at some moment of the call.
    pub fn len(&self) -> usize {
        self.filled.len().min(self.capacity())
    }

    /// True if the queue was empty at some moment of the call.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The most values that the queue holds.
    pub fn capacity(&self) -> usize {
        self.slots.len()
    }

    #[inline]
    fn wake_one(&self) {
        fence(Ordering::SeqCst);
        if self.sleepers.load(Ordering::Relaxed) > 0 {
            self.wakings.fetch_add(1, Ordering::Release);
            futex::wake_in_process(&self.wakings, 1);
        }
    }
}

impl<T> Drop for Ring<T> {
    fn drop(&mut self) {
        while self.pop().is_some() {}
    }
}

impl<T> fmt::Debug for Ring<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ring")
            .field("capacity", &self.capacity())
            .finish_non_exhaustive()
    }
}

/// The reason why a value was not pushed, with the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PushError<T> {
    /// All slots are in use.
    #[error("the queue is full")]
    Full(T),
    /// The queue refuses further values.
    #[error("the queue is closed")]
    Closed(T),
}

/// The reason why no value was popped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PopError {
    /// The deadline passed.
    #[error("the queue stayed empty until the deadline")]
    TimedOut,
    /// The queue is closed, and empty.
    #[error("the queue is closed")]
    Closed,
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::clock::monotonic_ns;
    use std::sync::Arc;

    #[test]
    fn values_are_popped_in_order_and_a_full_queue_returns_them() {
        let ring = Ring::new(3);
        for lap in 0..10 {
            for n in 0..3 {
                assert_eq!(ring.push(lap + n), Ok(()));
            }
            assert_eq!(ring.push(99), Err(PushError::Full(99)));
            assert_eq!(ring.len(), 3);
            assert!((0..3).all(|n| ring.pop() == Some(lap + n)));
            assert_eq!(ring.pop(), None);
        }
        assert_eq!(Ring::new(0).push(1), Err(PushError::Full(1)));
    }

    #[test]
    fn each_value_is_popped_once_and_those_of_one_producer_in_order() {
        const EACH: u64 = 20_000;
        let ring = Ring::new(4);
        let popped: Vec<Vec<u64>> = std::thread::scope(|scope| {
            let consumers: Vec<_> = (0..3)
                .map(|n| {
                    let ring = &ring;
                    scope.spawn(move || {
                        let mut seen = Vec::new();
                        // One consumer also times out and tries again.
                        let deadline_ns = || (n == 0).then(|| monotonic_ns() + 20_000);
                        loop {
                            match ring.pop_until(deadline_ns()) {
                                Ok(value) => seen.push(value),
                                Err(PopError::TimedOut) => {}
                                Err(PopError::Closed) => return seen,
                            }
                        }
                    })
                })
                .collect();
            let producers: Vec<_> = (0..3)
                .map(|producer| {
                    let ring = &ring;
                    scope.spawn(move || {
                        for n in 0..EACH {
                            while ring.push(producer << 32 | n).is_err() {
                                std::thread::yield_now();
                            }
                        }
                    })
                })
                .collect();
            for producer in producers {
                producer.join().expect("no panic");
            }
            ring.close();
            let seen = consumers.into_iter();
            seen.map(|consumer| consumer.join().expect("no panic"))
                .collect()
        });
        for producer in 0..3 {
            for seen in &popped {
                let own = seen.iter().filter(|&&value| value >> 32 == producer);
                assert!(own.is_sorted());
            }
        }
        let mut all: Vec<_> = popped.into_iter().flatten().collect();
        all.sort_unstable();
        let sent = (0..3).flat_map(|producer| (0..EACH).map(move |n| producer << 32 | n));
        assert!(all.into_iter().eq(sent));
    }

    #[test]
    fn a_pop_times_out_at_its_deadline_and_not_before() {
        let ring = Ring::<()>::new(1);
        let deadline_ns = monotonic_ns() + 5_000_000;
        assert_eq!(ring.pop_until(Some(deadline_ns)), Err(PopError::TimedOut));
        assert!(monotonic_ns() >= deadline_ns);
        ring.push(()).expect("room");
        assert_eq!(ring.pop_until(Some(0)), Ok(()), "it is there");
    }

    #[test]
    fn a_closed_queue_can_be_emptied_but_not_filled() {
        let ring = Ring::new(2);
        ring.push(1).expect("room");
        ring.close();
        assert_eq!(ring.push(2), Err(PushError::Closed(2)));
        assert_eq!(ring.pop_until(None), Ok(1));
        assert_eq!(ring.pop_until(None), Err(PopError::Closed));
    }

    #[test]
    fn remaining_values_are_dropped_with_the_queue() {
        let value = Arc::new(());
        let ring = Ring::new(4);
        for _ in 0..3 {
            ring.push(Arc::clone(&value)).expect("room");
        }
        drop(ring.pop());
        assert_eq!(Arc::strong_count(&value), 3);
        drop(ring);
        assert_eq!(Arc::strong_count(&value), 1);
    }
}
