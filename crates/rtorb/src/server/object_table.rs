//! The active objects of all adapters.

use super::manager_state::ManagerState;
use super::names::{NameCache, Names, Unbindable};
use super::servant::{ObjectAdapter, Servant};
use crate::realtime::{CallPriority, ThreadpoolId};
use rtorb_os::slab::{Entered, Key, Slab};
use std::sync::Arc;

/// Every active object, by place and, for those with a readable key, by name.
#[derive(Debug)]
pub(crate) struct ObjectTable {
    objects: Slab<ActiveObject>,
    names: Names,
}

/// A servant at work, or what finds the servants of an adapter's objects that are not active.
pub(crate) struct ActiveObject {
    pub(crate) servant: Box<dyn Servant>,
    pub(crate) adapter: Arc<dyn ObjectAdapter>,
    /// Its adapter's.
    pub(crate) manager: Arc<ManagerState>,
    /// Its id in the adapter; empty for a locator.
    pub(crate) id: Vec<u8>,
    /// Which priority its calls have.
    pub(crate) priority: CallPriority,
    /// Whose threads serve it; those of other pools of the ORB do not.
    pub(crate) pool: ThreadpoolId,
}

impl ObjectTable {
    pub(crate) fn new(objects_max: usize) -> Self {
        Self {
            objects: Slab::new(objects_max),
            names: Names::default(),
        }
    }

    /// Adds the object that `make` makes; when there are too many it makes none, and the answer is `None`.
    pub(crate) fn insert_with(&self, make: impl FnOnce(Key) -> ActiveObject) -> Option<Key> {
        self.objects.insert_with(make)
    }

    /// Lets a readable key lead to a place; false if it leads to an object already.
    pub(crate) fn name(&self, key: Vec<u8>, place: Key) -> bool {
        let is_alive = |taken| self.objects.enter(taken).is_some();
        self.names.add(key, place, is_alive)
    }

    /// Where a readable key leads.
    pub(crate) fn place_of(&self, key: &[u8]) -> Option<Key> {
        self.names.place_of(key)
    }

    /// Takes a readable key away.
    pub(crate) fn forget_name(&self, key: &[u8]) {
        self.names.remove(key);
    }

    /// Adds what `make` makes as the locator of the adapter with that path, with a `/` behind it; `None` when there are too
    /// many objects.
    pub(crate) fn insert_locator(
        &self,
        adapter: Vec<u8>,
        make: impl FnOnce(Key) -> ActiveObject,
    ) -> Option<Key> {
        let place = self.objects.insert_with(make)?;
        self.names.add_locator(adapter, place);
        Some(place)
    }

    /// Takes the locator of an adapter away.
    pub(crate) fn remove_locator(&self, adapter: &[u8], place: Key) {
        self.names.remove_locator(adapter);
        self.objects.remove(place);
    }

    /// Lets a key of the application's stand for that of an object, if there are not `bound_max` of them yet.
    pub(crate) fn bind(
        &self,
        key: &[u8],
        object_key: Vec<u8>,
        bound_max: usize,
    ) -> Result<(), Unbindable> {
        self.names.bind(key, object_key, bound_max)
    }

    /// Takes a key of the application's away; false if there is none.
    pub(crate) fn unbind(&self, key: &[u8]) -> bool {
        self.names.unbind(key)
    }

    /// True if the application chose a key that begins with the path of an adapter, with a `/` behind it, and then an id.
    pub(crate) fn has_bound_in(&self, adapter: &[u8]) -> bool {
        self.names.has_bound_in(adapter)
    }

    /// Removes an object; it is dropped when the last call in it has ended.
    pub(crate) fn remove(&self, place: Key) -> bool {
        self.objects.remove(place)
    }

    #[inline]
    pub(crate) fn enter(&self, place: Key) -> Option<Entered<'_, ActiveObject>> {
        self.objects.enter(place)
    }

    /// Enters the object with a readable key, or the locator that knows it: its id is in `cache` then.
    pub(crate) fn enter_named(
        &self,
        key: &[u8],
        cache: &mut NameCache,
    ) -> Option<Entered<'_, ActiveObject>> {
        let known = cache.find(key, &self.names);
        if let Some(object) = known.and_then(|place| self.objects.enter(place)) {
            return Some(object);
        }
        let located = cache.find_locator(key);
        if let Some(locator) = located.and_then(|place| self.objects.enter(place)) {
            return Some(locator);
        }
        let found = self.names.find(key)?;
        cache.keep(key, &found);
        self.objects.enter(found.place)
    }
}
