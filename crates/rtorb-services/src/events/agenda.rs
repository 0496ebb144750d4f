//! When a lane has to look at its consumers again: retries and timeouts, the earliest first.
//!
//! A heap that knows where each consumer stands in it, so that each is there at most once and nothing grows.

use super::consumer::Consumer;
use std::sync::Arc;

/// A time for some of the consumers, each with the slot that it alone has in the channel.
#[derive(Debug)]
pub(crate) struct Agenda {
    /// A binary heap: none is later than those at twice its place and one or two more.
    heap: Vec<Appointment>,
    /// Where the consumer of a slot stands in the heap; [`NOWHERE`] if it does not.
    places: Vec<usize>,
}

#[derive(Debug)]
struct Appointment {
    at_ns: u64,
    consumer: Arc<Consumer>,
}

const NOWHERE: usize = usize::MAX;

impl Agenda {
    /// An empty one, for slots below `slots`.
    pub(crate) fn new(slots: usize) -> Self {
        Self {
            heap: Vec::with_capacity(slots),
            places: vec![NOWHERE; slots],
        }
    }

    /// The consumer's time is that one now; none where `None`.
    pub(crate) fn set(&mut self, consumer: &Arc<Consumer>, at_ns: Option<u64>) {
        let slot = consumer.slot();
        match (self.places[slot], at_ns) {
            (NOWHERE, None) => {}
            (NOWHERE, Some(at_ns)) => {
                let place = self.heap.len();
                self.heap.push(Appointment {
                    at_ns,
                    consumer: Arc::clone(consumer),
                });
                self.places[slot] = place;
                self.rise(place);
            }
            (place, None) => drop(self.remove(place)),
            (place, Some(at_ns)) => {
                self.heap[place].at_ns = at_ns;
                self.settle(place);
            }
        }
    }

    /// The earliest time.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        self.heap.first().map(|first| first.at_ns)
    }

    /// Takes the earliest consumer whose time is not behind `now_ns`.
    pub(crate) fn take_due(&mut self, now_ns: u64) -> Option<Arc<Consumer>> {
        (self.next_ns()? <= now_ns).then(|| self.remove(0))
    }

    fn remove(&mut self, place: usize) -> Arc<Consumer> {
        let Appointment { consumer, .. } = self.heap.swap_remove(place);
        self.places[consumer.slot()] = NOWHERE;
        if place < self.heap.len() {
            self.note(place);
            self.settle(place);
        }
        consumer
    }

    fn settle(&mut self, place: usize) {
        let place = self.rise(place);
        self.sink(place);
    }

    fn rise(&mut self, mut place: usize) -> usize {
        while place > 0 {
            let above = (place - 1) / 2;
            if self.heap[above].at_ns <= self.heap[place].at_ns {
                break;
            }
            self.exchange(above, place);
            place = above;
        }
        place
    }

    fn sink(&mut self, mut place: usize) {
        loop {
            let left = 2 * place + 1;
            let below = (left..self.heap.len().min(left + 2)).min_by_key(|&it| self.heap[it].at_ns);
            match below {
                Some(below) if self.heap[below].at_ns < self.heap[place].at_ns => {
                    self.exchange(below, place);
                    place = below;
                }
                _ => return,
            }
        }
    }

    fn exchange(&mut self, one: usize, other: usize) {
        self.heap.swap(one, other);
        self.note(one);
        self.note(other);
    }

    fn note(&mut self, place: usize) {
        let slot = self.heap[place].consumer.slot();
        self.places[slot] = place;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::consumer::tests::unconnected;
    use proptest::prelude::*;
    use rtorb_os::heap::heap_calls;
    use std::collections::BTreeMap;

    const SLOTS: usize = 9;

    proptest! {
        #[test]
        fn it_tells_the_earliest_of_the_times_last_set(
            steps in proptest::collection::vec((0..SLOTS, proptest::option::of(0u64..50), 0u64..50), 0..300)
        ) {
            let consumers: Vec<_> = (0..SLOTS).map(unconnected).collect();
            let mut agenda = Agenda::new(SLOTS);
            let mut model: BTreeMap<usize, u64> = BTreeMap::new();
            for (slot, at_ns, now_ns) in steps {
                let ((), calls) = heap_calls(|| agenda.set(&consumers[slot], at_ns));
                prop_assert_eq!(calls, 0);
                match at_ns {
                    Some(at_ns) => model.insert(slot, at_ns),
                    None => model.remove(&slot),
                };
                prop_assert_eq!(agenda.next_ns(), model.values().min().copied());
                if now_ns % 3 == 0 {
                    let taken = agenda.take_due(now_ns).map(|consumer| consumer.slot());
                    let least = model.values().min().copied().filter(|&least| least <= now_ns);
                    prop_assert_eq!(taken.and_then(|slot| model.remove(&slot)), least);
                }
            }
        }
    }
}
