//! The active objects of all adapters.

use super::{Adapter, Servant};
use crate::rt::{CallPriority, ThreadpoolId};
use rtorb_os::slab::{Entered, Key, Slab};
use rtorb_os::sync::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

/// Every active object, by place and, for those with a readable key, by name.
#[derive(Debug)]
pub(crate) struct ObjectTable {
    objects: Slab<ActiveObject>,
    names: Mutex<HashMap<Vec<u8>, Key>>,
}

/// A servant at work.
pub(crate) struct ActiveObject {
    pub(crate) servant: Box<dyn Servant>,
    pub(crate) adapter: Arc<Adapter>,
    /// Its id in the adapter.
    pub(crate) id: Vec<u8>,
    /// Which priority its calls have.
    pub(crate) priority: CallPriority,
    /// Whose threads serve it; those of other pools of the ORB do not.
    pub(crate) pool: ThreadpoolId,
}

/// The names that one thread was asked for last, so that a name is looked up under the lock only once.
///
/// A place that was reused has another generation, so a stale entry is noticed.
#[derive(Debug, Default)]
pub(crate) struct NameCache {
    entries: Vec<(Vec<u8>, Key)>,
    next: usize,
}

const CACHED_NAMES: usize = 8;

impl ObjectTable {
    pub(crate) fn new(objects_max: usize) -> Self {
        Self {
            objects: Slab::new(objects_max),
            names: Mutex::new(HashMap::new()),
        }
    }

    /// Adds the object that `make` makes; when there are too many it makes none, and the answer is `None`.
    pub(crate) fn insert_with(&self, make: impl FnOnce(Key) -> ActiveObject) -> Option<Key> {
        self.objects.insert_with(make)
    }

    /// Lets a readable key lead to a place; false if it leads to an object already.
    pub(crate) fn name(&self, name: Vec<u8>, place: Key) -> bool {
        let mut names = self.names.lock();
        if names
            .get(&name)
            .is_some_and(|&taken| self.objects.enter(taken).is_some())
        {
            return false;
        }
        names.insert(name, place);
        true
    }

    /// Where a readable key leads.
    pub(crate) fn place_of(&self, name: &[u8]) -> Option<Key> {
        self.names.lock().get(name).copied()
    }

    /// Takes a readable key away.
    pub(crate) fn forget_name(&self, name: &[u8]) -> Option<Key> {
        self.names.lock().remove(name)
    }

    /// Removes an object; it is dropped when the last call in it has ended.
    pub(crate) fn remove(&self, place: Key) -> bool {
        self.objects.remove(place)
    }

    #[inline]
    pub(crate) fn enter(&self, place: Key) -> Option<Entered<'_, ActiveObject>> {
        self.objects.enter(place)
    }

    pub(crate) fn enter_named(
        &self,
        name: &[u8],
        cache: &mut NameCache,
    ) -> Option<Entered<'_, ActiveObject>> {
        let cached = cache.entries.iter().find(|(cached, _)| cached == name);
        if let Some(object) = cached.and_then(|(_, place)| self.objects.enter(*place)) {
            return Some(object);
        }
        let place = *self.names.lock().get(name)?;
        cache.keep(name, place);
        self.objects.enter(place)
    }
}

impl NameCache {
    fn keep(&mut self, name: &[u8], place: Key) {
        if let Some(entry) = self.entries.iter_mut().find(|(cached, _)| cached == name) {
            entry.1 = place;
        } else if self.entries.len() < CACHED_NAMES {
            self.entries.push((name.to_vec(), place));
        } else {
            self.entries[self.next] = (name.to_vec(), place);
            self.next = (self.next + 1) % CACHED_NAMES;
        }
    }
}
