//! The active objects of all adapters.

use super::manager_state::ManagerState;
use super::names::{LocatedId, NameCache, Names, Unbindable};
use super::servant::{EnclosingAdapter, Servant};
use super::upcall;
use crate::realtime::{CallPriority, ThreadpoolId};
use rtorb_core::codegen::ServantTraits;
use rtorb_os::set_once::SetOnce;
use rtorb_os::slab::{Key, Slab, SlabGuard, SlabHandle};
use std::sync::Arc;

/// The table of active objects, by place and, if they have a readable key, by key.
#[derive(Debug)]
pub(crate) struct ObjectTable {
    objects: Arc<Slab<ActiveObject>>,
    names: Names,
}

/// A servant, or the locator of the servants of an adapter's other objects.
pub(crate) struct ActiveObject {
    /// The servant traits, made by the first call that needs no request. They are dropped before the servant.
    pub(crate) traits: SetOnce<Option<ServantTraits>>,
    pub(crate) servant: Box<dyn Servant>,
    /// Dropped after the servant.
    pub(crate) adapter: EnclosingAdapter,
    /// The state of its adapter's manager.
    pub(crate) manager: Arc<ManagerState>,
    /// Its id in the adapter; empty for a locator.
    pub(crate) id: Vec<u8>,
    /// The priority rule of its calls.
    pub(crate) priority: CallPriority,
    /// The pool whose threads serve it.
    pub(crate) pool: ThreadpoolId,
}

impl ActiveObject {
    /// Returns the id of the object in its adapter; `located` is that of an object that a locator serves.
    pub(crate) fn id_or<'i>(&'i self, located: &'i LocatedId) -> &'i [u8] {
        if self.servant.is_locator() {
            located.bytes()
        } else {
            &self.id
        }
    }

    /// Returns the servant traits; `None` if each call needs a request: its thread or its priority may be another one than the caller's,
    /// or its servant serves requests only.
    #[inline]
    pub(super) fn traits(&self) -> Option<&ServantTraits> {
        let traits = self.traits.get_or_make(|| {
            let is_as_its_caller =
                matches!(self.priority, CallPriority::AsItIs) && self.pool == ThreadpoolId::OWN;
            is_as_its_caller.then(|| self.servant.traits())?
        });
        traits.as_ref()
    }
}

impl ObjectTable {
    /// Makes an empty table of at most `objects_max` objects for the ORB with that number. `upcall` has it in the upper half.
    pub(crate) fn new(objects_max: usize, upcall: u64) -> Self {
        let objects = Slab::new(objects_max)
            .dropping_used_by(move |object| upcall::drop_removed(upcall, object));
        Self {
            objects: Arc::new(objects),
            names: Names::default(),
        }
    }

    /// Adds the object that `make` builds. Returns `None`, without calling `make`, if the table is full.
    pub(crate) fn insert_with(&self, make: impl FnOnce(Key) -> ActiveObject) -> Option<Key> {
        self.objects.insert_with(make)
    }

    /// Gives the object at a place a readable key. Returns false if the key is in use.
    pub(crate) fn name(&self, key: Vec<u8>, place: Key) -> bool {
        let is_alive = |taken| self.objects.get(taken).is_some();
        self.names.add(key, place, is_alive)
    }

    /// Returns the place of the object with a readable key.
    pub(crate) fn place_of(&self, key: &[u8]) -> Option<Key> {
        self.names.place_of(key)
    }

    /// Removes a readable key.
    pub(crate) fn forget_name(&self, key: &[u8]) {
        self.names.remove(key);
    }

    /// Adds the locator that `make` builds. `adapter` is its adapter's path with the last `/`. Returns `None` if the table is full.
    pub(crate) fn insert_locator(
        &self,
        adapter: Vec<u8>,
        make: impl FnOnce(Key) -> ActiveObject,
    ) -> Option<Key> {
        let place = self.objects.insert_with(make)?;
        self.names.add_locator(adapter, place);
        Some(place)
    }

    /// Removes the locator of an adapter.
    pub(crate) fn remove_locator(&self, adapter: &[u8], place: Key) {
        self.names.remove_locator(adapter);
        self.objects.remove(place);
    }

    /// Binds a key that the application chose to the key of an object, unless `bound_max` keys are bound.
    pub(crate) fn bind(
        &self,
        key: &[u8],
        object_key: Vec<u8>,
        bound_max: usize,
    ) -> Result<(), Unbindable> {
        self.names.bind(key, object_key, bound_max)
    }

    /// Removes a bound key. Returns false if the key is not bound.
    pub(crate) fn unbind(&self, key: &[u8]) -> bool {
        self.names.unbind(key)
    }

    /// Returns the key of which this one is an alias, if it is bound.
    pub(crate) fn bound_to(&self, key: &[u8]) -> Option<Box<[u8]>> {
        self.names.bound_to(key)
    }

    /// Returns true if a bound key has the form of an adapter's keys. `adapter` is the path with the last `/`.
    pub(crate) fn has_bound_in(&self, adapter: &[u8]) -> bool {
        self.names.has_bound_in(adapter)
    }

    /// Removes an object. It is dropped here, or as a servant of this ORB by the last thread that uses it.
    pub(crate) fn remove(&self, place: Key) -> bool {
        self.objects.remove(place)
    }

    #[inline]
    pub(crate) fn get(&self, place: Key) -> Option<SlabGuard<'_, ActiveObject>> {
        self.objects.get(place)
    }

    /// Returns true if calls of the object at a place are in progress. A call that begins later sees what the calling thread has written before.
    pub(crate) fn is_used(&self, place: Key) -> bool {
        self.objects.is_used(place)
    }

    /// Returns a handle of the object at a place; `None` if the table has never had such a place.
    pub(crate) fn handle(&self, place: Key) -> Option<SlabHandle<ActiveObject>> {
        self.objects.handle(place)
    }

    /// Returns the object with a readable key, or the locator of its adapter; then its id is in `cache`.
    pub(crate) fn get_named(
        &self,
        key: &[u8],
        cache: &mut NameCache,
    ) -> Option<SlabGuard<'_, ActiveObject>> {
        let known = cache.find(key, &self.names);
        if let Some(object) = known.and_then(|place| self.objects.get(place)) {
            return Some(object);
        }
        let located = cache.find_locator(key);
        if let Some(locator) = located.and_then(|place| self.objects.get(place)) {
            return Some(locator);
        }
        let found = self.names.find(key)?;
        cache.keep(key, &found);
        self.objects.get(found.place)
    }
}
