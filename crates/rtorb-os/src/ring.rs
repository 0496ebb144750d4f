//! A bounded queue that hands values to waiting threads.
//!
//! Made for the request queues of thread pools: any number of threads push, any number pop, who finds it full is told so
//! at once, and who finds it empty may sleep. All memory is taken when it is made.

mod indices;

use crate::atomics::{AtomicU32, Ordering, UnsafeCell, fence, futex};
use core::fmt;
use core::mem::MaybeUninit;
use indices::Indices;

/// The queue: first in, first out, of at most [`capacity`](Self::capacity) values.
///
/// # Priorities
/// There is no lock, so there is none whose holder could need a priority. A thread that is stopped in the middle of a push
/// or pop, by more urgent ones or for good, holds up nobody: it keeps its one slot out of use until it goes on, and what
/// it pushes is not there yet. (That is why a value is written before its place in the order is taken, unlike in the well-known
/// ring of D. Vyukov, where all later values wait for a producer that was stopped after it took its place.) A step is
/// repeated only when another thread has just done its own: lock-free, not wait-free.
///
/// Who sleeps in [`pop_until`](Self::pop_until) is woken in order of priority. But the queue knows no priority of values: one that
/// must not wait behind less urgent ones goes through a ring of its own, with threads of its own (a lane).
pub struct Ring<T> {
    /// Slots without a value.
    free: Indices,
    /// Slots with one, in order.
    filled: Indices,
    slots: Box<[UnsafeCell<MaybeUninit<T>>]>,
    /// Changes whenever someone is woken.
    wakings: AtomicU32,
    sleepers: AtomicU32,
    /// 1 after [`close`](Self::close).
    closed: AtomicU32,
}

// SAFETY: values move from the thread that pushes to the one that pops, and are never shared.
unsafe impl<T: Send> Send for Ring<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Ring<T> {}

impl<T> Ring<T> {
    /// An empty queue of at most `capacity` values (and never more than 2^31).
    pub fn new(capacity: usize) -> Self {
        let capacity = capacity.min(1 << 31);
        let slots = core::iter::repeat_with(|| UnsafeCell::new(MaybeUninit::uninit()));
        Self {
            free: Indices::all(capacity),
            filled: Indices::none(capacity),
            slots: slots.take(capacity).collect(),
            wakings: AtomicU32::new(0),
            sleepers: AtomicU32::new(0),
            closed: AtomicU32::new(0),
        }
    }

    /// Adds a value behind the others and wakes a thread if one sleeps.
    ///
    /// # Errors
    /// The value back, when the queue is full or closed. It is full also while a thread that is stopped in the middle of a
    /// push or pop keeps the last slot.
    pub fn push(&self, value: T) -> Result<(), PushError<T>> {
        if self.is_closed() {
            return Err(PushError::Closed(value));
        }
        let Some(index) = self.free.take() else {
            return Err(PushError::Full(value));
        };
        // SAFETY: the slot came from `free`, so it is ours alone, and it is empty.
        self.slots[index as usize].with_mut(|slot| unsafe { (*slot).write(value) });
        self.filled.put(index);
        self.wake_one();
        Ok(())
    }

    /// Takes the oldest value; `None` when there is none.
    pub fn pop(&self) -> Option<T> {
        let index = self.filled.take()?;
        let value = self.slots[index as usize].with_mut(|slot| {
            // SAFETY: the slot came from `filled`, so it is ours alone.
            let slot = unsafe { &*slot };
            // SAFETY: who put it into `filled` has written it, and it is empty from now on.
            unsafe { slot.assume_init_read() }
        });
        self.free.put(index);
        Some(value)
    }

    /// Takes the oldest value, and sleeps while there is none: until `deadline_ns` of
    /// [`monotonic_ns`](crate::clock::monotonic_ns), or for ever when `None`.
    ///
    /// # Errors
    /// [`PopError`] when there is no value by then, or when the queue is closed and empty.
    pub fn pop_until(&self, deadline_ns: Option<u64>) -> Result<T, PopError> {
        if let Some(value) = self.pop() {
            return Ok(value);
        }
        loop {
            self.sleepers.fetch_add(1, Ordering::Relaxed);
            // With the fence of `wake_one`: either we see the value here, or the one who pushed it sees us.
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
                // Someone may have been stopped between putting a value there and waking one of us for it.
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

    /// Takes no more values and wakes all who sleep; what is in the queue can still be popped.
    ///
    /// A push at the same moment may still succeed after the last pop: its value is dropped with the queue.
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

    /// Values in it at some moment of the call.
    pub fn len(&self) -> usize {
        self.filled.len().min(self.capacity())
    }

    /// True if it held none at some moment of the call.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many values it holds at most.
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

/// Why a value was not pushed, and the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PushError<T> {
    /// There is no slot left.
    Full(T),
    /// The queue takes no more values.
    Closed(T),
}

/// Why there was no value to pop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PopError {
    /// The deadline passed.
    TimedOut,
    /// The queue is closed, and empty.
    Closed,
}

impl<T> fmt::Display for PushError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full(_) => "the queue is full",
            Self::Closed(_) => "the queue is closed",
        })
    }
}

impl fmt::Display for PopError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TimedOut => "nothing was put into the queue in time",
            Self::Closed => "the queue is closed",
        })
    }
}

impl<T: fmt::Debug> std::error::Error for PushError<T> {}
impl std::error::Error for PopError {}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::clock::monotonic_ns;
    use std::sync::Arc;

    #[test]
    fn values_come_in_order_and_a_full_queue_gives_them_back() {
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
                        // One of them also gives up and comes again.
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
    fn a_pop_gives_up_at_its_deadline_and_not_before() {
        let ring = Ring::<()>::new(1);
        let deadline_ns = monotonic_ns() + 5_000_000;
        assert_eq!(ring.pop_until(Some(deadline_ns)), Err(PopError::TimedOut));
        assert!(monotonic_ns() >= deadline_ns);
        ring.push(()).expect("room");
        assert_eq!(ring.pop_until(Some(0)), Ok(()), "it is there");
    }

    #[test]
    fn a_closed_queue_is_emptied_and_takes_no_more() {
        let ring = Ring::new(2);
        ring.push(1).expect("room");
        ring.close();
        assert_eq!(ring.push(2), Err(PushError::Closed(2)));
        assert_eq!(ring.pop_until(None), Ok(1));
        assert_eq!(ring.pop_until(None), Err(PopError::Closed));
    }

    #[test]
    fn what_is_left_is_dropped_with_the_queue() {
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
