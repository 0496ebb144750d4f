//! A queue whose items are bounded in number and in bytes.

use std::collections::VecDeque;

/// A first-in, first-out queue with a bound on its items and one on their bytes.
///
/// What happens when it is full is chosen with each item: [`push`](Self::push) refuses the item, [`push_over`](Self::push_over) drops the
/// oldest ones. Threads share the queue under a lock of their own, with what else belongs to it.
#[derive(Debug)]
pub struct BoundedQueue<T> {
    /// Each item, and its bytes.
    items: VecDeque<(T, usize)>,
    bytes: usize,
    items_max: usize,
    bytes_max: usize,
}

impl<T> BoundedQueue<T> {
    /// Makes an empty queue for at most `items_max` items with at most `bytes_max` bytes together. It takes no memory.
    pub const fn new(items_max: usize, bytes_max: usize) -> Self {
        Self {
            items: VecDeque::new(),
            bytes: 0,
            items_max,
            bytes_max,
        }
    }

    /// Reserves memory for as many items as the queue may hold: no later call allocates for them.
    pub fn with_memory(mut self) -> Self {
        self.items.reserve_exact(self.items_max);
        self
    }

    /// Returns true if there is room for an item of `bytes` bytes.
    pub fn has_room(&self, bytes: usize) -> bool {
        self.items.len() < self.items_max && bytes <= self.bytes_max - self.bytes
    }

    /// Adds an item of `bytes` bytes at the end.
    ///
    /// # Errors
    /// The item, if there is no room for it.
    pub fn push(&mut self, item: T, bytes: usize) -> Result<(), T> {
        if !self.has_room(bytes) {
            return Err(item);
        }
        self.bytes += bytes;
        self.items.push_back((item, bytes));
        Ok(())
    }

    /// Adds an item of `bytes` bytes at the end, after it has passed the oldest items to `dropped` until there is room.
    ///
    /// An item that the empty queue has no room for is passed to `dropped` itself: then the others stay, and the result is false.
    pub fn push_over(&mut self, item: T, bytes: usize, mut dropped: impl FnMut(T)) -> bool {
        let fits = self.items_max > 0 && bytes <= self.bytes_max;
        while fits && !self.has_room(bytes) {
            self.pop().into_iter().for_each(&mut dropped);
        }
        self.push(item, bytes).map_err(dropped).is_ok()
    }

    /// Takes the oldest item.
    pub fn pop(&mut self) -> Option<T> {
        let (item, bytes) = self.items.pop_front()?;
        self.bytes -= bytes;
        Some(item)
    }

    /// Takes the oldest items, `count` of them or as many as there are.
    pub fn drain(&mut self, count: usize) -> impl ExactSizeIterator<Item = T> {
        let count = count.min(self.items.len());
        self.bytes -= self.items.range(..count).map(|item| item.1).sum::<usize>();
        self.items.drain(..count).map(|(item, _)| item)
    }

    /// Takes the oldest item for which `is_it` returns true.
    pub fn remove(&mut self, mut is_it: impl FnMut(&T) -> bool) -> Option<T> {
        let place = self.items.iter().position(|(item, _)| is_it(item))?;
        let (item, bytes) = self.items.remove(place)?;
        self.bytes -= bytes;
        Some(item)
    }

    /// Takes all items for which `is_meant` returns true, the oldest first. The others keep their order.
    pub fn remove_all(&mut self, mut is_meant: impl FnMut(&T) -> bool) -> Vec<T> {
        let mut removed = Vec::new();
        for _ in 0..self.items.len() {
            match self.items.pop_front() {
                Some((item, bytes)) if is_meant(&item) => {
                    self.bytes -= bytes;
                    removed.push(item);
                }
                kept => self.items.extend(kept),
            }
        }
        removed
    }

    /// Returns the items to change them, the oldest first. Their bytes stay as they were told.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.items.iter_mut().map(|(item, _)| item)
    }

    /// Returns the number of items.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Returns true if there is no item.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Step {
        Push(usize),
        PushOver(usize),
        Pop,
        Drain(usize),
        Remove(u32),
        RemoveAll(u32),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            4 => (0usize..50).prop_map(Step::Push),
            4 => (0usize..50).prop_map(Step::PushOver),
            3 => Just(Step::Pop),
            1 => (0usize..5).prop_map(Step::Drain),
            1 => (1u32..9).prop_map(Step::Remove),
            1 => (1u32..9).prop_map(Step::RemoveAll),
        ];
        vec(step, 0..200)
    }

    proptest! {
        /// Items are their numbers; the model has their bytes beside them.
        #[test]
        fn it_keeps_order_and_both_bounds_and_loses_nothing(steps in steps(), items_max in 0usize..6, bytes_max in 0usize..90) {
            let mut queue = BoundedQueue::new(items_max, bytes_max);
            let mut model: Vec<(u32, usize)> = Vec::new();
            let fits = |model: &[(u32, usize)], bytes| {
                model.len() < items_max && model.iter().map(|it| it.1).sum::<usize>() + bytes <= bytes_max
            };
            for (number, step) in (0u32..).zip(steps) {
                match step {
                    Step::Push(bytes) => {
                        let has_room = fits(&model, bytes);
                        prop_assert_eq!(queue.has_room(bytes), has_room);
                        let refused = (!has_room).then_some(number);
                        prop_assert_eq!(queue.push(number, bytes).err(), refused);
                        model.extend(has_room.then_some((number, bytes)));
                    }
                    Step::PushOver(bytes) => {
                        let mut dropped = Vec::new();
                        let is_added = queue.push_over(number, bytes, |item| dropped.push(item));
                        prop_assert_eq!(is_added, fits(&[], bytes));
                        let mut expected = vec![number];
                        if is_added {
                            let least = (0..=model.len()).find(|it| fits(&model[*it..], bytes));
                            expected = model.drain(..least.expect("it fits")).map(|it| it.0).collect();
                            model.push((number, bytes));
                        }
                        prop_assert_eq!(dropped, expected);
                    }
                    Step::Pop => {
                        let oldest = (!model.is_empty()).then(|| model.remove(0).0);
                        prop_assert_eq!(queue.pop(), oldest);
                    }
                    Step::Drain(count) => {
                        let drained: Vec<u32> = queue.drain(count).collect();
                        let count = count.min(model.len());
                        let expected: Vec<u32> = model.drain(..count).map(|it| it.0).collect();
                        prop_assert_eq!(drained, expected);
                    }
                    Step::Remove(divisor) => {
                        let place = model.iter().position(|it| it.0 % divisor == 0);
                        let expected = place.map(|place| model.remove(place).0);
                        prop_assert_eq!(queue.remove(|it| it % divisor == 0), expected);
                    }
                    Step::RemoveAll(divisor) => {
                        let expected = model.extract_if(.., |it| it.0 % divisor == 0);
                        let expected: Vec<u32> = expected.map(|it| it.0).collect();
                        prop_assert_eq!(queue.remove_all(|it| it % divisor == 0), expected);
                    }
                }
                prop_assert_eq!((queue.len(), queue.is_empty()), (model.len(), model.is_empty()));
                let bytes: usize = model.iter().map(|it| it.1).sum();
                prop_assert_eq!(queue.bytes, bytes);
                let items: Vec<u32> = queue.iter_mut().map(|it| *it).collect();
                prop_assert_eq!(items, model.iter().map(|it| it.0).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn an_item_larger_than_the_queue_drives_no_other_out() {
        let mut queue = BoundedQueue::new(3, 10);
        assert_eq!(queue.push("first", 4), Ok(()));
        assert_eq!(queue.push("second", 4), Ok(()));
        let mut dropped = Vec::new();
        assert!(!queue.push_over("huge", 11, |item| dropped.push(item)));
        assert_eq!(dropped, ["huge"]);
        assert_eq!(queue.push("huge", usize::MAX), Err("huge"));
        assert!(queue.push_over("third", 6, |item| dropped.push(item)));
        assert_eq!(dropped, ["huge", "first"]);
        assert_eq!(queue.drain(9).collect::<Vec<_>>(), ["second", "third"]);
    }
}
