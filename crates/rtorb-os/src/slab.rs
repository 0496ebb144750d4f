//! A table with lock-free lookup by index and generation, while other threads add and remove entries.
//!
//! A lookup adds one to a counter of its entry, and the end of its guard subtracts one. There is no lock and no list of readers, and
//! the cost is the same for one entry and for a million. An entry that is removed while threads use it is dropped when the last of them leaves.
//! That may be a thread whose lookup finds nothing: it is counted until it has seen that the entry is removed.
//!
//! The table grows by one segment of 64 slots at a time, and by a directory of 8 KiB with every 65,536th entry. The longest insert
//! makes both. It takes 8 us, also in a table of a million entries. (A table that doubles took 64 ms.) Threads that insert at once
//! wait for each other only while one takes the number of a slot, under a mutex that inherits priority.

use crate::atomics::{AtomicU32, AtomicU64, Mutex, Ordering, UnsafeCell};
use crate::set_once::SetOnce;
use core::fmt;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ops::Deref;
use core::ptr::NonNull;
use std::sync::Arc;

/// The table.
pub struct Slab<T> {
    /// Slots never move, and growth copies nothing.
    directories: Box<[SetOnce<Directory<T>>]>,
    vacancies: Mutex<Vacancies>,
    entries_max: usize,
    drop_used: Option<DropUsed<T>>,
}

/// Drops an entry that was in use when it was removed.
type DropUsed<T> = Box<dyn Fn(T) + Send + Sync>;

/// The name of an entry: its place, and its generation at that place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// Place in the table.
    pub index: u32,
    /// The number of the entry among those of this place, from 1 on, modulo 2^32.
    pub generation: u32,
}

type Directory<T> = [SetOnce<Segment<T>>; SEGMENTS];

type Segment<T> = [Slot<T>; SLOTS];

struct Slot<T> {
    /// Generation (upper half), [`LIVE`], [`RETIRED`], and the number of threads that use the entry.
    state: AtomicU64,
    value: UnsafeCell<Option<T>>,
    /// While the slot is free: the next free one, or [`NONE`]. Read and written under the lock of the vacancies.
    next_free: AtomicU32,
}

struct Vacancies {
    /// The first of the free slots that were used before, or [`NONE`].
    first_free: u32,
    /// Slots below this were used at least once.
    first_unused: u32,
    /// The number of entries.
    entries: usize,
}

/// Slots of a segment.
const SLOTS: usize = if cfg!(loom) { 2 } else { 64 };
/// Segments of a directory.
const SEGMENTS: usize = if cfg!(loom) { 2 } else { 1024 };
/// No slot has this number.
const NONE: u32 = u32::MAX;
/// The slot has an entry that threads may enter.
const LIVE: u64 = 1 << 31;
/// The entry is removed, and is dropped when no thread uses it.
const RETIRED: u64 = 1 << 30;
const USERS: u64 = RETIRED - 1;
/// The state from this bit on: generation, [`LIVE`], [`RETIRED`], and the highest bit of [`USERS`].
const COMPARED_SHIFT: u32 = 29;

// SAFETY: the slab owns its entries; threads share them (`Sync`) and any of them may drop one (`Send`).
unsafe impl<T: Send + Sync> Send for Slab<T> {}
// SAFETY: threads that share the slab share its entries (`Sync`), add them and drop them (`Send`).
unsafe impl<T: Send + Sync> Sync for Slab<T> {}

impl<T> Slab<T> {
    /// An empty table of at most `entries_max` entries (and never more than 2^31).
    pub fn new(entries_max: usize) -> Self {
        let entries_max = entries_max.min(1 << 31);
        let directories = entries_max.div_ceil(SEGMENTS * SLOTS);
        Self {
            directories: (0..directories).map(|_| SetOnce::new()).collect(),
            vacancies: Mutex::new(Vacancies {
                first_free: NONE,
                first_unused: 0,
                entries: 0,
            }),
            entries_max,
            drop_used: None,
        }
    }

    /// Has `drop_used` drop each entry that is in use when it is removed: any thread that looks up entries may be the one that drops it,
    /// and its destructor may be long, or panic.
    pub fn dropping_used_by(mut self, drop_used: impl Fn(T) + Send + Sync + 'static) -> Self {
        self.drop_used = Some(Box::new(drop_used));
        self
    }

    /// Adds an entry that `make` builds from its key; `None` when the table is full.
    pub fn insert_with(&self, make: impl FnOnce(Key) -> T) -> Option<Key> {
        let index = {
            let mut vacancies = self.vacancies.lock();
            if vacancies.entries == self.entries_max {
                return None;
            }
            vacancies.entries += 1;
            match self.slot(vacancies.first_free) {
                Some(free) => {
                    let next = free.next_free.load(Ordering::Relaxed);
                    core::mem::replace(&mut vacancies.first_free, next)
                }
                None => {
                    vacancies.first_unused += 1;
                    vacancies.first_unused - 1
                }
            }
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

    /// Looks up an entry and keeps it until the guard is dropped; `None` if it was removed, or has 2^29 guards.
    // Always: it is in the path of every call, and its other callers are rare.
    #[inline(always)]
    pub fn get(&self, key: Key) -> Option<SlabGuard<'_, T>> {
        self.enter(self.slot(key.index)?, key)
    }

    /// Returns true if threads use an entry, also one that was removed. A thread that looks the entry up later sees what the calling thread has
    /// written before.
    pub fn is_used(&self, key: Key) -> bool {
        let Some(slot) = self.slot(key.index) else {
            return false;
        };
        // A write, though of nothing new: a later lookup reads it, and so comes after this.
        let state = slot.state.fetch_add(0, Ordering::AcqRel);
        (state >> 32) as u32 == key.generation && state & USERS != 0
    }

    /// Finds the place of an entry once, for many lookups; `None` if the table has never had such a place.
    pub fn handle(self: &Arc<Self>, key: Key) -> Option<SlabHandle<T>> {
        Some(SlabHandle {
            slot: NonNull::from(self.slot(key.index)?),
            slab: Arc::clone(self),
            key,
        })
    }

    #[inline(always)]
    fn enter<'s>(&'s self, slot: &'s Slot<T>, key: Key) -> Option<SlabGuard<'s, T>> {
        #[cfg(simulation)]
        crate::simulation::point();
        let state = slot.state.fetch_add(1, Ordering::Acquire);
        // One comparison for all: this generation, live, not retired, and not so many users that their number could overflow.
        // Guards that are leaked could make it.
        let awaited = (u64::from(key.generation) << 32 | LIVE) >> COMPARED_SHIFT;
        if state >> COMPARED_SHIFT != awaited {
            self.release(slot, key.index);
            return None;
        }
        // SAFETY: the entry was live when this thread was counted, so it stays until the count goes down.
        let value = slot.value.with(|place| unsafe { &*place });
        let Some(value) = value else {
            unreachable!("a live slot has a value")
        };
        Some(SlabGuard {
            slab: self,
            slot,
            index: key.index,
            value: NonNull::from(value),
            lent: PhantomData,
        })
    }

    /// Removes an entry, so that no thread enters it from now on. False if the entry did not exist.
    ///
    /// The entry is dropped here, or by the last thread that leaves it.
    pub fn remove(&self, key: Key) -> bool {
        #[cfg(simulation)]
        crate::simulation::point();
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
            drop(self.reclaim_if_unused(slot, key.index));
        }
        removed.is_ok()
    }

    /// Removes every entry. An entry that is added during the call may stay.
    pub fn clear(&self) {
        self.retain(|_| false);
    }

    /// Removes the entries for which `keeps` returns false. An entry that is added during the call may be left out.
    pub fn retain(&self, mut keeps: impl FnMut(&T) -> bool) {
        let used = self.vacancies.lock().first_unused;
        for index in 0..used {
            let Some(slot) = self.slot(index) else {
                continue;
            };
            let generation = (slot.state.load(Ordering::Acquire) >> 32) as u32;
            let key = Key { index, generation };
            if self.get(key).is_some_and(|entry| !keeps(&entry)) {
                self.remove(key);
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
        let index = index as usize;
        let directory = self.directories.get(index / (SEGMENTS * SLOTS))?.get()?;
        let segment = directory[index / SLOTS % SEGMENTS].get()?;
        Some(&segment[index % SLOTS])
    }

    fn slot_or_grow(&self, index: u32) -> &Slot<T> {
        let index = index as usize;
        let directory = &self.directories[index / (SEGMENTS * SLOTS)];
        let directory = directory
            .get()
            .unwrap_or_else(|| directory.put(boxed(SetOnce::new)));
        let segment = &directory[index / SLOTS % SEGMENTS];
        let segment = segment
            .get()
            .unwrap_or_else(|| segment.put(boxed(Slot::vacant)));
        &segment[index % SLOTS]
    }

    #[inline]
    fn release(&self, slot: &Slot<T>, index: u32) {
        if slot.end_use() {
            self.drop_after_use(slot, index);
        }
    }

    // A function of its own: in its callers, what drops the entry would cost each use of one 40 instructions.
    #[cold]
    #[inline(never)]
    fn drop_after_use(&self, slot: &Slot<T>, index: u32) {
        let Some(entry) = self.reclaim_if_unused(slot, index) else {
            return;
        };
        match &self.drop_used {
            Some(drop_used) => drop_used(entry),
            None => drop(entry),
        }
    }

    /// Empties a retired slot that no thread uses, and returns its entry. Exactly one of the threads that try succeeds.
    #[cold]
    fn reclaim_if_unused(&self, slot: &Slot<T>, index: u32) -> Option<T> {
        let state = slot.state.load(Ordering::Acquire);
        if state & (LIVE | RETIRED | USERS) != RETIRED {
            return None;
        }
        let next = (state >> 32).wrapping_add(1) << 32;
        if slot
            .state
            .compare_exchange(state, next, Ordering::AcqRel, Ordering::Relaxed)
            .is_err()
        {
            return None;
        }
        // SAFETY: the slot is neither live nor retired, no thread uses it, and its index is not free yet.
        let value = slot.value.with_mut(|place| unsafe { (*place).take() });
        let mut vacancies = self.vacancies.lock();
        vacancies.entries -= 1;
        slot.next_free
            .store(vacancies.first_free, Ordering::Relaxed);
        vacancies.first_free = index;
        value
    }
}

impl<T> fmt::Debug for Slab<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slab")
            .field("entries_max", &self.entries_max)
            .finish_non_exhaustive()
    }
}

/// The place of an entry, and the entry's generation there. It keeps the table, and not the entry.
pub struct SlabHandle<T> {
    slab: Arc<Slab<T>>,
    /// A slot of that table.
    slot: NonNull<Slot<T>>,
    key: Key,
}

// SAFETY: it is a shared reference to a slot of a table that it shares, and threads may share such tables.
unsafe impl<T: Send + Sync> Send for SlabHandle<T> {}
// SAFETY: as above; the handle itself never changes.
unsafe impl<T: Send + Sync> Sync for SlabHandle<T> {}

impl<T> SlabHandle<T> {
    /// Looks up the entry as [`Slab::get`] does.
    #[inline(always)]
    pub fn get(&self) -> Option<SlabGuard<'_, T>> {
        // SAFETY: the slot is in a segment of the table, which is there as long as the handle. Slots never move.
        let slot = unsafe { self.slot.as_ref() };
        self.slab.enter(slot, self.key)
    }
}

impl<T> fmt::Debug for SlabHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.key.fmt(f)
    }
}

/// Access to an entry, or to a part of it. The entry stays until this is dropped.
pub struct SlabGuard<'s, T, P = T> {
    slab: &'s Slab<T>,
    slot: &'s Slot<T>,
    index: u32,
    /// No reference: the entry may be dropped while a function that drops the guard still has it as an argument.
    value: NonNull<P>,
    lent: PhantomData<&'s P>,
}

// SAFETY: it is a shared reference to the entry, and to the table.
unsafe impl<T: Send + Sync, P: Sync> Send for SlabGuard<'_, T, P> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync, P: Sync> Sync for SlabGuard<'_, T, P> {}

impl<'s, T> SlabGuard<'s, T> {
    /// Narrows the access to a part of the entry. If there is no such part, ends the access.
    #[inline]
    pub fn part<P>(
        guard: Self,
        part: impl FnOnce(&T) -> Option<&P>,
    ) -> Option<SlabGuard<'s, T, P>> {
        let value = NonNull::from(part(&guard)?);
        let guard = ManuallyDrop::new(guard);
        let Self {
            slab, slot, index, ..
        } = *guard;
        Some(SlabGuard {
            slab,
            slot,
            index,
            value,
            lent: PhantomData,
        })
    }
}

impl<T, P> Deref for SlabGuard<'_, T, P> {
    type Target = P;
    #[inline]
    fn deref(&self) -> &P {
        // SAFETY: the entry stays until the guard is dropped.
        unsafe { self.value.as_ref() }
    }
}

impl<T, P> Drop for SlabGuard<'_, T, P> {
    #[inline]
    fn drop(&mut self) {
        // This tells loom that the value was read until now. It does nothing to a real cell.
        self.slot.value.with(|_| ());
        self.slab.release(self.slot, self.index);
    }
}

impl<T, P: fmt::Debug> fmt::Debug for SlabGuard<'_, T, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T> Slot<T> {
    /// Counts off a thread that uses the entry; returns true if the entry was removed, and this was its last use.
    #[inline]
    fn end_use(&self) -> bool {
        let state = self.state.fetch_sub(1, Ordering::AcqRel);
        state & (LIVE | RETIRED | USERS) == RETIRED | 1
    }

    fn vacant() -> Self {
        Self {
            state: AtomicU64::new(1 << 32),
            value: UnsafeCell::new(None),
            next_free: AtomicU32::new(NONE),
        }
    }
}

/// Makes an array on the heap, without one on the stack.
fn boxed<E, const N: usize>(make: impl FnMut() -> E) -> Box<[E; N]> {
    let all: Box<[E]> = core::iter::repeat_with(make).take(N).collect();
    let Ok(array) = all.try_into() else {
        unreachable!("it has {N} elements")
    };
    array
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn an_old_key_does_not_find_the_next_entry_at_its_place() {
        let slab = Slab::new(10);
        let first = slab.insert("first").expect("room");
        assert_eq!(*slab.get(first).expect("there"), "first");
        assert!(slab.remove(first));
        assert!(!slab.remove(first));
        let second = slab.insert("second").expect("room");
        assert_eq!(second.index, first.index);
        assert!(slab.get(first).is_none());
        assert_eq!(*slab.get(second).expect("there"), "second");
    }

    #[test]
    fn a_full_table_refuses_entries() {
        let slab = Slab::new(100);
        let keys: Vec<_> = (0..100).map(|n| slab.insert(n).expect("room")).collect();
        assert!(slab.insert(100).is_none());
        assert!(
            keys.iter()
                .enumerate()
                .all(|(n, &key)| *slab.get(key).expect("there") == n)
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
        assert!(keys.iter().all(|&key| slab.get(key).is_none()));
        assert!((0..70).all(|n| slab.insert(n).is_some()));
    }

    #[test]
    fn the_entries_that_are_not_retained_are_removed() {
        let slab = Slab::new(70);
        let keys: Vec<_> = (0..70).map(|n| slab.insert(n).expect("room")).collect();
        assert!(slab.remove(keys[4]));
        let mut seen = Vec::new();
        slab.retain(|&n| {
            seen.push(n);
            n % 2 == 0
        });
        assert!(seen.into_iter().eq((0..70).filter(|&n| n != 4)));
        let is_even = |(n, &key)| slab.get(key).is_some() == (n % 2 == 0 && n != 4);
        assert!(keys.iter().enumerate().all(is_even));
        assert_eq!(slab.len(), 34);
    }

    #[test]
    fn a_removed_entry_is_dropped_when_the_last_user_leaves() {
        let slab = Slab::new(1);
        let value = Arc::new(());
        let key = slab.insert(Arc::clone(&value)).expect("room");
        let inside = slab.get(key).expect("there");
        assert!(slab.remove(key));
        assert!(slab.get(key).is_none());
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
    fn an_entry_is_used_until_its_last_user_leaves_also_if_it_is_removed() {
        let slab = Slab::new(1);
        let first = slab.insert("first").expect("room");
        assert!(!slab.is_used(first));
        let inside = slab.get(first).expect("there");
        assert!(slab.is_used(first));
        assert!(slab.remove(first));
        assert!(slab.is_used(first));
        drop(inside);
        assert!(!slab.is_used(first));
        let second = slab.insert("second").expect("room");
        let inside = slab.get(second).expect("there");
        assert!(slab.is_used(second) && !slab.is_used(first));
        drop(inside);
        assert!(!slab.is_used(second));
    }

    #[test]
    fn a_handle_finds_its_entry_and_not_the_next_one_and_keeps_the_table() {
        let slab = Arc::new(Slab::new(100));
        let value = Arc::new(());
        let keys: Vec<_> = (0..70)
            .map(|n| slab.insert((n, Arc::clone(&value))).expect("room"))
            .collect();
        let beyond = Key {
            index: 1 << 20,
            generation: 1,
        };
        assert!(slab.handle(beyond).is_none());
        let handle = slab.handle(keys[69]).expect("it has such a place");
        let found = handle.get().map(|entry| entry.0);
        assert_eq!(found, Some(69));
        let inside = handle.get().expect("there");
        assert!(slab.remove(keys[69]));
        assert!(handle.get().is_none());
        drop(inside);
        let next = slab.insert((7, Arc::clone(&value))).expect("room");
        assert_eq!(next.index, keys[69].index);
        assert!(handle.get().is_none(), "it is another entry");
        let last = slab.handle(keys[0]).expect("it has such a place");
        drop((slab, handle));
        assert_eq!(last.get().map(|entry| entry.0), Some(0));
        drop(last);
        assert_eq!(Arc::strong_count(&value), 1);
    }

    #[test]
    fn access_to_a_part_keeps_the_whole_entry() {
        let slab = Slab::new(1);
        let value = Arc::new(());
        let key = slab.insert((Some(7), Arc::clone(&value))).expect("room");
        let enter = || slab.get(key).expect("there");
        let part = SlabGuard::part(enter(), |entry| entry.0.as_ref()).expect("it has one");
        assert!(SlabGuard::part(enter(), |_| None::<&()>).is_none());
        assert!(slab.remove(key));
        assert_eq!((*part, Arc::strong_count(&value)), (7, 2));
        drop(part);
        assert_eq!((slab.len(), Arc::strong_count(&value)), (0, 1));
    }

    /// Notes in which way it was dropped.
    struct Noting(Arc<Mutex<Vec<&'static str>>>);

    impl Drop for Noting {
        fn drop(&mut self) {
            self.0.lock().push("dropped");
        }
    }

    #[test]
    fn an_entry_in_use_is_dropped_as_the_table_says_also_by_a_lookup_that_finds_nothing() {
        let notes: Arc<Mutex<Vec<_>>> = Arc::default();
        let note = Arc::clone(&notes);
        let slab = Slab::new(1).dropping_used_by(move |entry: Noting| {
            note.lock().push("handed over");
            drop(entry);
        });
        let insert = || slab.insert(Noting(Arc::clone(&notes))).expect("room");

        let unused = insert();
        assert!(slab.remove(unused));
        assert_eq!(*notes.lock(), ["dropped"]);

        let key = insert();
        let inside = slab.get(key).expect("there");
        assert!(slab.remove(key));
        // The first step of a lookup by another thread, which ends after the use that was there before.
        let slot = slab.slot(key.index).expect("it is used");
        slot.state.fetch_add(1, Ordering::Acquire);
        drop(inside);
        assert_eq!(*notes.lock(), ["dropped"], "the lookup is counted");
        slab.release(slot, key.index);
        assert_eq!(*notes.lock(), ["dropped", "handed over", "dropped"]);
    }

    #[test]
    fn an_entry_with_too_many_guards_cannot_be_entered_and_stays() {
        let slab = Slab::new(1);
        let key = slab.insert(7).expect("room");
        let inside = slab.get(key).expect("there");
        // As many guards as a program may leak.
        slab.slot(0)
            .expect("it is used")
            .state
            .fetch_add((1 << COMPARED_SHIFT) - 1, Ordering::Relaxed);
        for _ in 0..3 {
            assert!(slab.get(key).is_none());
        }
        assert_eq!((*inside, slab.len()), (7, 1));
    }

    #[test]
    fn entries_of_several_directories_are_found_and_their_places_are_used_again() {
        const COUNT: u32 = (SEGMENTS * SLOTS + 2 * SLOTS + 1) as u32;
        let slab = Slab::new(COUNT as usize);
        let keys: Vec<_> = (0..COUNT).map(|n| slab.insert(n).expect("room")).collect();
        assert!(slab.insert(COUNT).is_none());
        let is_there = |(n, key): (u32, &Key)| slab.get(*key).is_some_and(|found| *found == n);
        assert!((0..).zip(&keys).all(is_there));
        let beyond = Key {
            index: u32::MAX,
            generation: 1,
        };
        assert!(slab.get(beyond).is_none() && !slab.remove(beyond));
        for key in &keys {
            assert!(slab.remove(*key));
        }
        let again: Vec<_> = (0..COUNT).map(|n| slab.insert(n).expect("room")).collect();
        assert!((0..).zip(&again).all(is_there));
        let mut places: Vec<_> = again.iter().map(|key| key.index).collect();
        places.sort_unstable();
        assert!(places.into_iter().eq(0..COUNT));
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
                        if let Some(value) = slab.get(now) {
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
