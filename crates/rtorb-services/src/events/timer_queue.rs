//! The timers of a lane: when it checks each consumer again, for retries and timeouts.
//!
//! A binary heap that knows the position of each consumer, so each has at most one timer and the heap never grows.

/// At most one timer for each slot below a bound; `C` is the consumer in the slot.
#[derive(Debug)]
pub(crate) struct TimerQueue<C> {
    /// A timer is never later than those at twice its index plus one and plus two.
    heap: Vec<Timer<C>>,
    /// The heap index of each slot's timer, or [`NO_TIMER`].
    indices: Vec<usize>,
}

#[derive(Debug)]
struct Timer<C> {
    at_ns: u64,
    slot: usize,
    consumer: C,
}

const NO_TIMER: usize = usize::MAX;

impl<C: Clone> TimerQueue<C> {
    /// An empty queue for the slots below `slots`.
    pub(crate) fn new(slots: usize) -> Self {
        Self {
            heap: Vec::with_capacity(slots),
            indices: vec![NO_TIMER; slots],
        }
    }

    /// Sets the timer of a slot, or removes it if `at_ns` is `None`.
    pub(crate) fn set(&mut self, slot: usize, consumer: &C, at_ns: Option<u64>) {
        match (self.indices[slot], at_ns) {
            (NO_TIMER, None) => {}
            (NO_TIMER, Some(at_ns)) => {
                let index = self.heap.len();
                self.heap.push(Timer {
                    at_ns,
                    slot,
                    consumer: consumer.clone(),
                });
                self.indices[slot] = index;
                self.rise(index);
            }
            (index, None) => drop(self.remove(index)),
            (index, Some(at_ns)) => {
                self.heap[index].at_ns = at_ns;
                self.restore_order(index);
            }
        }
    }

    /// The earliest time.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        self.heap.first().map(|first| first.at_ns)
    }

    /// Takes the consumer of the earliest timer if it is due at `now_ns`.
    pub(crate) fn take_due(&mut self, now_ns: u64) -> Option<C> {
        (self.next_ns()? <= now_ns).then(|| self.remove(0))
    }

    fn remove(&mut self, index: usize) -> C {
        let Timer { slot, consumer, .. } = self.heap.swap_remove(index);
        self.indices[slot] = NO_TIMER;
        if index < self.heap.len() {
            self.note_index(index);
            self.restore_order(index);
        }
        consumer
    }

    fn restore_order(&mut self, index: usize) {
        let index = self.rise(index);
        self.sink(index);
    }

    fn rise(&mut self, mut index: usize) -> usize {
        while index > 0 {
            let parent = (index - 1) / 2;
            if self.heap[parent].at_ns <= self.heap[index].at_ns {
                break;
            }
            self.swap(parent, index);
            index = parent;
        }
        index
    }

    fn sink(&mut self, mut index: usize) {
        loop {
            let left = 2 * index + 1;
            let children = left..self.heap.len().min(left + 2);
            match children.min_by_key(|&child| self.heap[child].at_ns) {
                Some(child) if self.heap[child].at_ns < self.heap[index].at_ns => {
                    self.swap(child, index);
                    index = child;
                }
                _ => return,
            }
        }
    }

    fn swap(&mut self, one: usize, other: usize) {
        self.heap.swap(one, other);
        self.note_index(one);
        self.note_index(other);
    }

    fn note_index(&mut self, index: usize) {
        self.indices[self.heap[index].slot] = index;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rtorb_instruments::heap::heap_calls;
    use std::collections::BTreeMap;

    const SLOTS: usize = 9;

    proptest! {
        #[test]
        fn the_earliest_of_the_times_last_set_comes_first(
            steps in proptest::collection::vec((0..SLOTS, proptest::option::of(0u64..50), 0u64..50), 0..300)
        ) {
            let mut timers = TimerQueue::new(SLOTS);
            let mut model: BTreeMap<usize, u64> = BTreeMap::new();
            for (slot, at_ns, now_ns) in steps {
                let ((), calls) = heap_calls(|| timers.set(slot, &slot, at_ns));
                prop_assert_eq!(calls, 0);
                match at_ns {
                    Some(at_ns) => model.insert(slot, at_ns),
                    None => model.remove(&slot),
                };
                prop_assert_eq!(timers.next_ns(), model.values().min().copied());
                if now_ns % 3 == 0 {
                    let taken = timers.take_due(now_ns);
                    let least = model.values().min().copied().filter(|&least| least <= now_ns);
                    prop_assert_eq!(taken.and_then(|slot| model.remove(&slot)), least);
                }
            }
        }
    }
}
