//! A table with lock-free lookup by index and generation, while other threads add and remove entries.
//!
//! A lookup adds one to a counter of its entry, and leaving subtracts one: no lock, no list of readers, and the same cost
//! for one entry or a million. An entry that is removed while threads use it is dropped when the last of them leaves.

use crate::atomics::{AtomicU64, Mutex, Ordering, UnsafeCell};
use core::fmt;
use core::ops::Deref;
use std::sync::OnceLock;

/// The table.
pub struct Slab<T> {
    /// Segment `n` holds `FIRST << n` slots, so slots never move and growth copies nothing.
    segments: [OnceLock<Box<[Slot<T>]>>; SEGMENTS],
    vacancies: Mutex<Vacancies>,
    entries_max: usize,
}

/// The name of an entry: its place, and its generation at that place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// Place in the table.
    pub index: u32,
    /// The number of earlier entries at this place, modulo 2^32.
    pub generation: u32,
}

struct Slot<T> {
    /// Generation (upper half), [`LIVE`], [`RETIRED`], and the number of threads that use the entry.
    state: AtomicU64,
    value: UnsafeCell<Option<T>>,
}

#[derive(Default)]
struct Vacancies {
    /// Free slots that were used before.
    indices: Vec<u32>,
    /// Slots below this were used at least once.
    first_unused: u32,
    /// The number of entries.
    entries: usize,
}

const FIRST: usize = if cfg!(loom) { 2 } else { 64 };
const SEGMENTS: usize = 26;
/// The slot has an entry that threads may enter.
const LIVE: u64 = 1 << 31;
/// The entry is removed, and is dropped when no thread uses it.
const RETIRED: u64 = 1 << 30;
const USERS: u64 = RETIRED - 1;

// SAFETY: the slab owns its entries; threads share them (`Sync`) and any of them may drop one (`Send`).
unsafe impl<T: Send + Sync> Send for Slab<T> {}
// SAFETY: threads that share the slab share its entries (`Sync`), add them and drop them (`Send`).
unsafe impl<T: Send + Sync> Sync for Slab<T> {}

impl<T> Slab<T> {
    /// An empty table of at most `entries_max` entries (and never more than 2^31).
    pub fn new(entries_max: usize) -> Self {
        Self {
            segments: [const { OnceLock::new() }; SEGMENTS],
            vacancies: Mutex::new(Vacancies::default()),
            entries_max: entries_max.min(1 << 31),
        }
    }

    /// Adds an entry that `make` builds from its key; `None` when the table is full.
    pub fn insert_with(&self, make: impl FnOnce(Key) -> T) -> Option<Key> {
        let index = {
            let mut vacancies = self.vacancies.lock();
            if vacancies.entries == self.entries_max {
                return None;
            }
            vacancies.entries += 1;
            vacancies.indices.pop().unwrap_or_else(|| {
                vacancies.first_unused += 1;
                vacancies.first_unused - 1
            })
        };
        let slot = self.slot_or_grow(index);
        let generation = (slot.state.load(Ordering::Acquire) >> 32) as u32;
        let key = Key { index, generation };
        let value = make(key);
        // SAFETY: the slot is not live, so no other thread reaches the value, and only this thread took its index.
        slot.value.with_mut(|place| unsafe { *place = Some(value) });
        slot.state.fetch_or(LIVE, Ordering::Release);
        Some(key)
    }

    /// Adds an entry; `None` when the table is full.
    pub fn insert(&self, value: T) -> Option<Key> {
        self.insert_with(|_| value)
    }

    /// Looks up an entry and keeps it until the guard is dropped; `None` if it was removed.
    #[inline]
    pub fn enter(&self, key: Key) -> Option<Entered<'_, T>> {
        let slot = self.slot(key.index)?;
        let state = slot.state.fetch_add(1, Ordering::Acquire);
        if state & LIVE == 0 || (state >> 32) as u32 != key.generation {
            self.leave(slot, key.index);
            return None;
        }
        // SAFETY: the entry was live when this thread was counted, so it stays until the count goes down.
        let value = slot.value.with(|place| unsafe { &*place });
        let Some(value) = value else {
            unreachable!("a live slot has a value")
        };
        Some(Entered {
            slab: self,
            slot,
            index: key.index,
            value,
        })
    }

    /// Removes an entry, so that no thread enters it from now on. False if the entry did not exist.
    ///
    /// The entry is dropped here, or by the last thread that leaves it.
    pub fn remove(&self, key: Key) -> bool {
        let Some(slot) = self.slot(key.index) else {
            return false;
        };
        let removed = slot
            .state
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |state| {
                let is_same = state & LIVE != 0 && (state >> 32) as u32 == key.generation;
                is_same.then_some(state & !LIVE | RETIRED)
            });
        if removed.is_ok() {
            self.reclaim_if_unused(slot, key.index);
        }
        removed.is_ok()
    }

    /// Removes every entry. An entry that is added during the call may stay.
    pub fn clear(&self) {
        let used = self.vacancies.lock().first_unused;
        for index in 0..used {
            if let Some(slot) = self.slot(index) {
                let generation = (slot.state.load(Ordering::Acquire) >> 32) as u32;
                self.remove(Key { index, generation });
            }
        }
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.vacancies.lock().entries
    }

    /// True if there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline]
    fn slot(&self, index: u32) -> Option<&Slot<T>> {
        let (segment, offset) = place(index);
        self.segments.get(segment)?.get()?.get(offset)
    }

    fn slot_or_grow(&self, index: u32) -> &Slot<T> {
        let (segment, offset) = place(index);
        let slots = self.segments[segment].get_or_init(|| {
            let vacant = || Slot {
                state: AtomicU64::new(1 << 32),
                value: UnsafeCell::new(None),
            };
            core::iter::repeat_with(vacant)
                .take(FIRST << segment)
                .collect()
        });
        &slots[offset]
    }

    #[inline]
    fn leave(&self, slot: &Slot<T>, index: u32) {
        let state = slot.state.fetch_sub(1, Ordering::AcqRel);
        if state & (LIVE | RETIRED | USERS) == RETIRED | 1 {
            self.reclaim_if_unused(slot, index);
        }
    }

    /// Empties a retired slot that no thread uses. Exactly one of the threads that try succeeds.
    #[cold]
    fn reclaim_if_unused(&self, slot: &Slot<T>, index: u32) {
        let state = slot.state.load(Ordering::Acquire);
        if state & (LIVE | RETIRED | USERS) != RETIRED {
            return;
        }
        let next = (state >> 32).wrapping_add(1) << 32;
        if slot
            .state
            .compare_exchange(state, next, Ordering::AcqRel, Ordering::Relaxed)
            .is_err()
        {
            return;
        }
        // SAFETY: the slot is neither live nor retired, no thread uses it, and its index is not free yet.
        let value = slot.value.with_mut(|place| unsafe { (*place).take() });
        let mut vacancies = self.vacancies.lock();
        vacancies.entries -= 1;
        vacancies.indices.push(index);
        drop(vacancies);
        drop(value);
    }
}

impl<T> fmt::Debug for Slab<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slab")
            .field("entries_max", &self.entries_max)
            .finish_non_exhaustive()
    }
}

/// Access to an entry, which stays until this is dropped.
pub struct Entered<'s, T> {
    slab: &'s Slab<T>,
    slot: &'s Slot<T>,
    index: u32,
    value: &'s T,
}

impl<T> Deref for Entered<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        self.value
    }
}

impl<T> Drop for Entered<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // This tells loom that the value was read until now. It does nothing to a real cell.
        self.slot.value.with(|_| ());
        self.slab.leave(self.slot, self.index);
    }
}

impl<T: fmt::Debug> fmt::Debug for Entered<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}

/// Segment and offset of a slot: 64 slots in the first segment, twice as many in each that follows.
#[inline]
fn place(index: u32) -> (usize, usize) {
    let shifted = index as usize + FIRST;
    let segment = shifted.ilog2() - FIRST.ilog2();
    (segment as usize, shifted - (FIRST << segment))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn an_old_key_does_not_find_the_next_entry_at_its_place() {
        let slab = Slab::new(10);
        let first = slab.insert("first").expect("room");
        assert_eq!(*slab.enter(first).expect("there"), "first");
        assert!(slab.remove(first));
        assert!(!slab.remove(first));
        let second = slab.insert("second").expect("room");
        assert_eq!(second.index, first.index);
        assert!(slab.enter(first).is_none());
        assert_eq!(*slab.enter(second).expect("there"), "second");
    }

    #[test]
    fn a_full_table_refuses_entries() {
        let slab = Slab::new(100);
        let keys: Vec<_> = (0..100).map(|n| slab.insert(n).expect("room")).collect();
        assert!(slab.insert(100).is_none());
        assert!(
            keys.iter()
                .enumerate()
                .all(|(n, &key)| *slab.enter(key).expect("there") == n)
        );
        assert!(slab.remove(keys[50]));
        assert!(slab.insert(100).is_some());
    }

    #[test]
    fn a_cleared_table_is_empty_and_has_room_again() {
        let slab = Slab::new(70);
        let keys: Vec<_> = (0..70).map(|n| slab.insert(n).expect("room")).collect();
        assert!(slab.remove(keys[3]));
        slab.clear();
        assert!(slab.is_empty());
        assert!(keys.iter().all(|&key| slab.enter(key).is_none()));
        assert!((0..70).all(|n| slab.insert(n).is_some()));
    }

    #[test]
    fn a_removed_entry_is_dropped_when_the_last_user_leaves() {
        let slab = Slab::new(1);
        let value = Arc::new(());
        let key = slab.insert(Arc::clone(&value)).expect("room");
        let inside = slab.enter(key).expect("there");
        assert!(slab.remove(key));
        assert!(slab.enter(key).is_none());
        assert_eq!(Arc::strong_count(&value), 2);
        assert!(
            slab.insert(Arc::clone(&value)).is_none(),
            "the slot is still in use"
        );
        drop(inside);
        assert_eq!(Arc::strong_count(&value), 1);
        assert!(slab.is_empty());
    }

    #[test]
    fn many_threads_enter_while_one_removes_and_inserts() {
        let slab = Slab::new(8);
        let key = Mutex::new(slab.insert(7u64).expect("room"));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..20_000 {
                        let now = *key.lock();
                        if let Some(value) = slab.enter(now) {
                            assert_eq!(*value, 7);
                        }
                    }
                });
            }
            scope.spawn(|| {
                for _ in 0..5_000 {
                    let old = *key.lock();
                    assert!(slab.remove(old));
                    let new = loop {
                        if let Some(new) = slab.insert(7) {
                            break new;
                        }
                    };
                    *key.lock() = new;
                }
            });
        });
        assert_eq!(slab.len(), 1);
    }
}
