//! Objects with a priority of their own (RTPortableServer::POA).

use super::adapter::{Activation, Poa, PoaError};
use super::{IdAssignment, ServedBy};
use crate::exception::{SystemException, local};
use crate::realtime::Priority;
use crate::reference::ObjectRef;
use rtorb_core::Interface;

/// These methods need the priority model SERVER_DECLARED and return [`PoaError::WrongPolicy`] without it. They return BAD_PARAM for
/// a priority that has no lane in the adapter's pool or is in no band, and DATA_CONVERSION 2 for a priority without a native one.
impl Poa {
    /// Activates a servant with a priority of its own, under an id that the adapter makes.
    ///
    /// # Errors
    /// As [`activate`](Self::activate), and those above.
    pub fn activate_with_priority<
        I: ServedBy<S, Object = ObjectRef> + 'static,
        S: Send + Sync + 'static,
    >(
        &self,
        servant: S,
        priority: Priority,
    ) -> Result<I, PoaError> {
        self.check_declared(IdAssignment::System)?;
        let activation = Activation {
            id: None,
            priority: Some(priority),
        };
        self.activate_tie(activation, servant)
    }

    /// Activates a servant with a priority of its own, under an id that the application chooses, or that
    /// [`create_reference_with_priority`](Self::create_reference_with_priority) made.
    ///
    /// # Errors
    /// As [`activate_with_id`](Self::activate_with_id), and those above; BAD_INV_ORDER 18 when a reference was made for that
    /// id with another priority.
    pub fn activate_with_id_and_priority<
        I: ServedBy<S, Object = ObjectRef> + 'static,
        S: Send + Sync + 'static,
    >(
        &self,
        id: impl AsRef<[u8]>,
        servant: S,
        priority: Priority,
    ) -> Result<I, PoaError> {
        self.check_id(id.as_ref())?;
        self.check_declares()?;
        let activation = Activation {
            id: Some(id.as_ref()),
            priority: Some(priority),
        };
        self.activate_tie(activation, servant)
    }

    /// Makes a reference to an object with that priority, which may be activated later, under an id that the adapter makes;
    /// [`reference_to_id`](Self::reference_to_id) returns that id.
    ///
    /// # Errors
    /// [`PoaError::WrongPolicy`] unless the adapter is persistent and makes the ids, and those above; NO_RESOURCES when
    /// there are `Limits::objects_max` such references.
    pub fn create_reference_with_priority<I: Interface<Object = ObjectRef>>(
        &self,
        priority: Priority,
    ) -> Result<I, PoaError> {
        self.check_declared(IdAssignment::System)?;
        let id = self.adapter.make_id(self.core.server.epoch);
        self.reference_with_priority(id, priority)
    }

    /// Makes a reference to an object with that priority, which may be activated later.
    ///
    /// # Errors
    /// [`PoaError::WrongPolicy`] unless the adapter is persistent and the application gives the ids, and those above;
    /// BAD_INV_ORDER 18 when there is one of another priority; NO_RESOURCES when there are `Limits::objects_max`.
    pub fn create_reference_with_id_and_priority<I: Interface<Object = ObjectRef>>(
        &self,
        id: impl AsRef<[u8]>,
        priority: Priority,
    ) -> Result<I, PoaError> {
        self.check_declared(IdAssignment::User)?;
        self.reference_with_priority(id.as_ref().to_vec(), priority)
    }

    fn reference_with_priority<I: Interface<Object = ObjectRef>>(
        &self,
        id: Vec<u8>,
        priority: Priority,
    ) -> Result<I, PoaError> {
        self.check_persistent()?;
        let core = &self.core;
        self.adapter.rt.call_priority(core, Some(priority))?;
        self.adapter
            .promise(&id, priority, core.server.limits.objects_max)?;
        Ok(self.named_reference(&id, Some(priority)))
    }

    fn check_declared(&self, id_assignment: IdAssignment) -> Result<(), PoaError> {
        self.check_declares()?;
        self.check_id_assignment(id_assignment)
    }

    pub(super) fn check_declares(&self) -> Result<(), PoaError> {
        PoaError::wrong_policy_unless(self.adapter.rt.declares())
    }
}

/// The exception for a second, different priority of one object.
pub(super) fn priority_is_settled() -> SystemException {
    local::PRIORITY_SETTLED
}
