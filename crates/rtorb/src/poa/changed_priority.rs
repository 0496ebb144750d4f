//! Changes of the priorities of objects, while clients call them.

use super::adapter::{Poa, PoaError};
use crate::realtime::{CallPriority, Priority};
use crate::reference::ObjectRef;

/// These methods change priorities while clients call. A request runs at the old or at the new priority, and none is lost. If the objects
/// have lanes, the old lane sends a LOCATION_FORWARD for requests that still arrive there, so a client's next call takes one more
/// round trip, and a connection if it has none to that lane. A call during which the object moves more than
/// [`Limits::forwards_max`](crate::Limits::forwards_max) times gets TRANSIENT with COMPLETED_NO.
///
/// With SERVER_DECLARED they return BAD_PARAM for a priority that has no lane in the adapter's pool or is in no band. With each model they
/// return DATA_CONVERSION 2 for a priority without a native one.
impl Poa {
    /// Changes the priority of an active object, which has one of its own from then on.
    ///
    /// References to it that were made before remain valid.
    ///
    /// # Errors
    /// [`PoaError::WrongPolicy`] unless the priority model is SERVER_DECLARED; [`PoaError::WrongAdapter`];
    /// [`PoaError::ObjectNotActive`]; and those above.
    pub fn change_priority(&self, object: &ObjectRef, priority: Priority) -> Result<(), PoaError> {
        self.check_declares()?;
        let place = self.place_of(object)?;
        let new = self.adapter.rt.call_priority(&self.core, Some(priority))?;
        // Looked up before the lock is taken, and so released after it: the last user of a deactivated object drops its servant,
        // whose destructor may call this adapter.
        let active = self.active(place)?;
        // A change and an activation exclude each other.
        let mut objects = self.adapter.objects.lock();
        let now = objects.by_id.get(&active.id);
        if now.is_some_and(|now| *now != place) {
            // It has ended, and another object has its id.
            return Err(PoaError::ObjectNotActive);
        }
        if let Some(promised) = objects.promised.get_mut(&active.id) {
            *promised = priority;
        }
        active.priority.change_to(&new);
        Ok(())
    }

    /// Changes the server's priority of the priority model: that of objects without one of their own, or of requests without one.
    ///
    /// # Errors
    /// [`PoaError::WrongPolicy`] without a priority model; BAD_INV_ORDER if the adapter is destroyed; and those above.
    pub fn change_server_priority(&self, priority: Priority) -> Result<(), PoaError> {
        let adapter = &self.adapter;
        PoaError::wrong_policy_unless(adapter.rt.model().is_some())?;
        // Released after the lock, as in `change_priority`.
        let active: Vec<_>;
        let objects = adapter.objects.lock();
        objects.check_exists()?;
        adapter.rt.change_server_priority(&self.core, priority)?;
        let new = adapter.rt.call_priority(&self.core, None)?;
        let table = &self.core.server.objects;
        let others = objects.others.as_ref().map(|others| &others.place);
        let places = objects.by_id.values().chain(others);
        active = places.filter_map(|place| table.get(*place)).collect();
        for object in active.iter().filter(|object| !object.priority.is_own()) {
            object.priority.change_to(&new);
        }
        Ok(())
    }
}

impl CallPriority {
    /// True for an object with a priority of its own.
    fn is_own(&self) -> bool {
        matches!(self, Self::Declared(declared) if declared.is_own())
    }

    /// Takes the priority of another one of the same model.
    fn change_to(&self, new: &Self) {
        match (self, new) {
            (Self::Declared(declared), Self::Declared(new)) => declared.change_to(new),
            (Self::Propagated { otherwise }, Self::Propagated { otherwise: new }) => {
                otherwise.set(new.get());
            }
            _ => {}
        }
    }
}
