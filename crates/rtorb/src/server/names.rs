//! The table of readable object keys, and each thread's cache of it.
//!
//! The key of a persistent object is `ADAPTER/ID`. A *bound* key, which the application chose, is an alias of another key. If no
//! object has a key, the servant locator of its adapter may know one.

use super::object_key::{self, ObjectKey};
use core::sync::atomic::{AtomicU32, Ordering};
use rtorb_os::slab::Key;
use rtorb_os::sync::Mutex;
use std::collections::HashMap;

/// The readable keys of one ORB.
#[derive(Debug, Default)]
pub(super) struct Names {
    table: Mutex<Table>,
    /// Counts what makes caches wrong: a bound key that was removed while its object exists, and an object that was added where a
    /// locator has served it before.
    version: AtomicU32,
}

#[derive(Debug, Default)]
struct Table {
    leads: HashMap<Vec<u8>, NamedTarget>,
    bound: usize,
    /// The places of locators, by the paths of their adapters, with the last `/`.
    locators: HashMap<Vec<u8>, Key>,
}

#[derive(Debug)]
enum NamedTarget {
    /// The place of an object.
    To(Key),
    /// The key of which this one is an alias.
    As(Box<[u8]>),
}

/// The reason why a key cannot be bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unbindable {
    /// The key is in use.
    Taken,
    /// The maximum number of keys is bound.
    TooMany,
}

/// The object or locator of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KeyTarget {
    pub(super) place: Key,
    /// The id for the locator at that place; `None` if an object is there.
    pub(super) id: Option<LocatedId>,
}

/// The id of an object that a locator serves. The serving thread keeps its memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LocatedId(Vec<u8>);

impl LocatedId {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Unescapes the id of a key. Returns false if the text is not an escaped id.
    fn read(&mut self, escaped: &[u8]) -> bool {
        object_key::unescape(escaped, &mut self.0)
    }

    fn of(escaped: &[u8]) -> Option<Self> {
        let mut id = Self::default();
        id.read(escaped).then_some(id)
    }
}

impl Names {
    /// Adds the key of the object at a place. Returns false if another object that `is_alive` has the key, or if it is bound.
    pub(super) fn add(&self, key: Vec<u8>, place: Key, is_alive: impl FnOnce(Key) -> bool) -> bool {
        let mut table = self.table.lock();
        match table.leads.get(&key) {
            Some(&NamedTarget::To(taken)) if is_alive(taken) => return false,
            Some(NamedTarget::As(_)) => return false,
            _ => {}
        }
        let has_locator = object_key::split(&key)
            .is_some_and(|(adapter, _)| table.locators.contains_key(adapter));
        table.leads.insert(key, NamedTarget::To(place));
        if has_locator {
            self.version.fetch_add(1, Ordering::Release);
        }
        true
    }

    pub(super) fn remove(&self, key: &[u8]) {
        self.table.lock().leads.remove(key);
    }

    /// Adds the locator of an adapter, for its keys without objects. `adapter` is the path with the last `/`.
    pub(super) fn add_locator(&self, adapter: Vec<u8>, place: Key) {
        self.table.lock().locators.insert(adapter, place);
    }

    pub(super) fn remove_locator(&self, adapter: &[u8]) {
        self.table.lock().locators.remove(adapter);
    }

    /// Binds a key as an alias of another one, unless `bound_max` keys are bound.
    pub(super) fn bind(
        &self,
        key: &[u8],
        other: Vec<u8>,
        bound_max: usize,
    ) -> Result<(), Unbindable> {
        let mut table = self.table.lock();
        if table.leads.contains_key(key) {
            return Err(Unbindable::Taken);
        }
        if table.bound >= bound_max {
            return Err(Unbindable::TooMany);
        }
        table.bound += 1;
        let lead = NamedTarget::As(other.into_boxed_slice());
        table.leads.insert(key.to_vec(), lead);
        Ok(())
    }

    /// Removes a bound key. Returns false if the key is not bound.
    pub(super) fn unbind(&self, key: &[u8]) -> bool {
        let mut table = self.table.lock();
        if !matches!(table.leads.get(key), Some(NamedTarget::As(_))) {
            return false;
        }
        table.leads.remove(key);
        table.bound -= 1;
        // Under the lock: who reads the new version finds the table without it.
        self.version.fetch_add(1, Ordering::Release);
        true
    }

    /// Returns the key of which this one is an alias, if it is bound.
    pub(super) fn bound_to(&self, key: &[u8]) -> Option<Box<[u8]>> {
        match self.table.lock().leads.get(key) {
            Some(NamedTarget::As(other)) => Some(other.clone()),
            _ => None,
        }
    }

    /// Returns true if a bound key has the form of an adapter's keys. `adapter` is the path with the last `/`.
    pub(super) fn has_bound_in(&self, adapter: &[u8]) -> bool {
        let table = self.table.lock();
        table.leads.iter().any(|(key, lead)| {
            let is_there = object_key::split(key).is_some_and(|(path, _)| path == adapter);
            is_there && matches!(lead, NamedTarget::As(_))
        })
    }

    /// Returns the place of the object with exactly that key.
    pub(super) fn place_of(&self, key: &[u8]) -> Option<Key> {
        match self.table.lock().leads.get(key) {
            Some(&NamedTarget::To(place)) => Some(place),
            _ => None,
        }
    }

    pub(super) fn find(&self, key: &[u8]) -> Option<KeyTarget> {
        let table = self.table.lock();
        match table.leads.get(key) {
            Some(NamedTarget::As(other)) => match ObjectKey::parse(other) {
                ObjectKey::Transient { place, .. } => Some(KeyTarget { place, id: None }),
                ObjectKey::Named(other) => table.direct(other),
            },
            _ => table.direct(key),
        }
    }

    #[inline]
    fn version(&self) -> u32 {
        self.version.load(Ordering::Acquire)
    }
}

impl Table {
    /// Returns the object or locator of a key that is not bound.
    fn direct(&self, key: &[u8]) -> Option<KeyTarget> {
        if let Some(&NamedTarget::To(place)) = self.leads.get(key) {
            return Some(KeyTarget { place, id: None });
        }
        let (adapter, id) = object_key::split(key)?;
        let place = *self.locators.get(adapter)?;
        let id = Some(LocatedId::of(id)?);
        Some(KeyTarget { place, id })
    }
}

/// A thread's cache of the keys of its last requests, so that it looks up each key under the lock only once.
///
/// A place that was reused has another generation, so stale entries are detected.
#[derive(Debug, Default)]
pub(crate) struct NameCache {
    known: Vec<CachedKey>,
    next: usize,
    version: u32,
    /// The id of the last object, if a locator serves it.
    pub(crate) id: LocatedId,
}

/// An entry of the cache: a key, or the path of an adapter with a locator.
#[derive(Debug)]
struct CachedKey {
    key: Vec<u8>,
    is_adapter: bool,
    found: KeyTarget,
}

const KNOWN_MAX: usize = 8;

impl NameCache {
    /// Returns the cached place of a key. If a locator serves the object, sets `id`.
    pub(super) fn find(&mut self, key: &[u8], names: &Names) -> Option<Key> {
        let version = names.version();
        if self.version != version {
            self.known.clear();
            self.version = version;
        }
        let mut known = self.known.iter();
        if let Some(known) = known.find(|known| !known.is_adapter && known.key == key) {
            if let Some(id) = &known.found.id {
                self.id.0.clone_from(&id.0);
            }
            return Some(known.found.place);
        }
        None
    }

    /// Returns the cached place of the locator of the key's adapter, and sets `id`.
    pub(super) fn find_locator(&mut self, key: &[u8]) -> Option<Key> {
        let (adapter, id) = object_key::split(key)?;
        let mut known = self.known.iter();
        let known = known.find(|known| known.is_adapter && known.key == adapter)?;
        self.id.read(id).then_some(known.found.place)
    }

    /// Caches the place of a key; of a key that a locator serves, the place of the adapter's locator.
    pub(super) fn keep(&mut self, key: &[u8], found: &KeyTarget) {
        if let Some(id) = &found.id {
            self.id.0.clone_from(&id.0);
        }
        let adapter = object_key::split(key).filter(|_| found.id.is_some());
        let known = CachedKey {
            key: adapter.map_or(key, |(adapter, _)| adapter).to_vec(),
            is_adapter: adapter.is_some(),
            found: found.clone(),
        };
        let is_same =
            |old: &&mut CachedKey| old.key == known.key && old.is_adapter == known.is_adapter;
        if let Some(old) = self.known.iter_mut().find(is_same) {
            *old = known;
        } else if self.known.len() < KNOWN_MAX {
            self.known.push(known);
        } else {
            self.known[self.next] = known;
            self.next = (self.next + 1) % KNOWN_MAX;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_leads_to_its_object_before_the_locator_of_its_adapter() {
        let names = Names::default();
        let (own, locator) = (place(1), place(2));
        assert!(names.add(b"A/x".to_vec(), own, |_| true));
        names.add_locator(b"A/".to_vec(), locator);
        assert!(!names.add(b"A/x".to_vec(), place(3), |_| true));
        assert_eq!(names.find(b"A/x"), Some(found(own, None)));
        assert_eq!(names.find(b"A/y%2F"), Some(found(locator, Some(b"y/"))));
        assert_eq!(names.find(b"A/"), Some(found(locator, Some(b""))));
        assert_eq!(names.find(b"A/B/y"), None);
        assert_eq!(names.find(b"y"), None);
        names.remove_locator(b"A/");
        assert_eq!(names.find(b"A/y"), None);
    }

    #[test]
    fn a_bound_key_leads_where_the_other_one_does_at_the_time() {
        let names = Names::default();
        let bind = |key: &[u8], other: &[u8]| names.bind(key, other.to_vec(), 2);
        assert_eq!(bind(b"NameService", b"A/root"), Ok(()));
        assert_eq!(bind(b"NameService", b"A/root"), Err(Unbindable::Taken));
        assert_eq!(names.find(b"NameService"), None);
        names.add_locator(b"A/".to_vec(), place(1));
        let located = found(place(1), Some(b"root"));
        assert_eq!(names.find(b"NameService"), Some(located));
        assert!(names.add(b"A/root".to_vec(), place(2), |_| true));
        assert_eq!(names.find(b"NameService"), Some(found(place(2), None)));
        assert_eq!(bind(b"Other", &ObjectKey::transient(7, place(3))), Ok(()));
        assert_eq!(names.find(b"Other"), Some(found(place(3), None)));
        assert_eq!(bind(b"Third", b"A/root"), Err(Unbindable::TooMany));
        assert!(names.unbind(b"Other") && !names.unbind(b"Other"));
        assert!(!names.unbind(b"A/root"), "it is bound by nobody");
        assert_eq!(bind(b"Third", b"A/root"), Ok(()));
    }

    #[test]
    fn an_object_does_not_take_a_bound_key_nor_hide_that_it_is_bound() {
        let names = Names::default();
        assert_eq!(names.bind(b"a/b/c", b"A/root".to_vec(), 1), Ok(()));
        assert!(!names.add(b"a/b/c".to_vec(), place(1), |_| true));
        let is_bound_in =
            ["a/b/", "a/", "a/b", "/", ""].map(|path| names.has_bound_in(path.as_bytes()));
        assert_eq!(is_bound_in, [true, false, false, false, false]);
        assert!(names.unbind(b"a/b/c"));
        assert!(!names.has_bound_in(b"a/b/"));
        assert!(names.add(b"a/b/c".to_vec(), place(1), |_| true));
        assert!(!names.has_bound_in(b"a/b/"), "it is an object's own");
    }

    #[test]
    fn a_thread_forgets_a_key_that_was_taken_away_and_finds_every_id_of_a_locator() {
        let names = Names::default();
        let mut cache = NameCache::default();
        names.add_locator(b"A/".to_vec(), place(1));
        names.bind(b"N", b"A/root".to_vec(), 1).expect("it is free");
        cache.keep(b"N", &names.find(b"N").expect("it is bound"));
        cache.keep(b"A/x", &names.find(b"A/x").expect("it is located"));
        assert_eq!(cache.id.bytes(), b"x");
        assert_eq!(cache.find(b"N", &names), Some(place(1)));
        assert_eq!(cache.id.bytes(), b"root");
        assert_eq!(cache.find(b"A/y", &names), None);
        assert_eq!(cache.find_locator(b"A/y"), Some(place(1)));
        assert_eq!(cache.id.bytes(), b"y");
        assert!(names.unbind(b"N"));
        assert_eq!(cache.find(b"N", &names), None);
        assert_eq!(names.find(b"N"), None);
    }

    #[test]
    fn a_thread_finds_an_object_that_was_added_where_a_locator_had_served_it() {
        let names = Names::default();
        let mut cache = NameCache::default();
        names.add_locator(b"A/".to_vec(), place(1));
        cache.keep(b"A/x", &names.find(b"A/x").expect("it is located"));
        assert!(names.add(b"A/x".to_vec(), place(2), |_| true));
        assert_eq!(cache.find(b"A/x", &names), None);
        assert_eq!(cache.find_locator(b"A/x"), None);
        assert_eq!(names.find(b"A/x"), Some(found(place(2), None)));
    }

    fn place(index: u32) -> Key {
        Key {
            index,
            generation: 1,
        }
    }

    fn found(place: Key, id: Option<&[u8]>) -> KeyTarget {
        let id = id.map(|id| LocatedId(id.to_vec()));
        KeyTarget { place, id }
    }
}
