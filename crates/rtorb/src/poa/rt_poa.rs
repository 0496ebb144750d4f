//! Objects with a priority of their own (RTPortableServer::POA).

use super::adapter::{Activation, Poa, PoaError};
use super::{IdAssignment, Lifespan, ServedBy, Tie};
use crate::exception::{ExceptionKind, SystemException};
use crate::interface::Interface;
use crate::realtime::Priority;

/// All of this needs SERVER_DECLARED, and raises [`PoaError::WrongPolicy`] without it; BAD_PARAM for a priority that no lane
/// of the adapter's pool has, or that is in no band; DATA_CONVERSION 2 for one that this host has not.
impl Poa {
    /// Activates a servant whose calls have that priority, under an id that the adapter makes.
    ///
    /// # Errors
    /// As [`activate`](Self::activate), and those above.
    pub fn activate_with_priority<I: ServedBy<S> + 'static, S: Send + Sync + 'static>(
        &self,
        servant: S,
        priority: Priority,
    ) -> Result<I, PoaError> {
        self.check_declared(IdAssignment::System)?;
        let activation = Activation {
            id: None,
            priority: Some(priority),
        };
        self.place::<I>(activation, Box::new(Tie::<I, S>::new(servant)))
    }

    /// Activates a servant whose calls have that priority, under an id of the application's, or one that
    /// [`create_reference_with_priority`](Self::create_reference_with_priority) made.
    ///
    /// # Errors
    /// As [`activate_with_id`](Self::activate_with_id), and those above; BAD_INV_ORDER 18 when a reference was made for that
    /// id with another priority.
    pub fn activate_with_id_and_priority<I: ServedBy<S> + 'static, S: Send + Sync + 'static>(
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
        self.place::<I>(activation, Box::new(Tie::<I, S>::new(servant)))
    }

    /// A reference to an object of that priority that is not active yet, under an id that the adapter makes;
    /// [`reference_to_id`](Self::reference_to_id) tells it.
    ///
    /// # Errors
    /// [`PoaError::WrongPolicy`] unless the adapter is persistent and makes the ids, and those above; NO_RESOURCES when
    /// there are `Limits::objects_max` such references.
    pub fn create_reference_with_priority<I: Interface>(
        &self,
        priority: Priority,
    ) -> Result<I, PoaError> {
        self.check_declared(IdAssignment::System)?;
        let id = self.adapter.make_id(self.core.server.epoch);
        self.reference_with_priority(id, priority)
    }

    /// A reference to an object of that priority that is not active yet.
    ///
    /// # Errors
    /// [`PoaError::WrongPolicy`] unless the adapter is persistent and the application gives the ids, and those above;
    /// BAD_INV_ORDER 18 when there is one of another priority; NO_RESOURCES when there are `Limits::objects_max`.
    pub fn create_reference_with_id_and_priority<I: Interface>(
        &self,
        id: impl AsRef<[u8]>,
        priority: Priority,
    ) -> Result<I, PoaError> {
        self.check_declared(IdAssignment::User)?;
        self.reference_with_priority(id.as_ref().to_vec(), priority)
    }

    fn reference_with_priority<I: Interface>(
        &self,
        id: Vec<u8>,
        priority: Priority,
    ) -> Result<I, PoaError> {
        if self.adapter.policies.lifespan == Lifespan::Transient {
            return Err(PoaError::WrongPolicy);
        }
        let core = &self.core;
        self.adapter.rt.call_priority(core, Some(priority))?;
        self.adapter
            .promise(&id, priority, core.server.limits.objects_max)?;
        Ok(self.named_reference(&id, Some(priority)))
    }

    fn check_declared(&self, id_assignment: IdAssignment) -> Result<(), PoaError> {
        self.check_declares()?;
        match self.adapter.policies.id_assignment == id_assignment {
            true => Ok(()),
            false => Err(PoaError::WrongPolicy),
        }
    }

    fn check_declares(&self) -> Result<(), PoaError> {
        match self.adapter.rt.declares() {
            true => Ok(()),
            false => Err(PoaError::WrongPolicy),
        }
    }
}

/// The answer to a second priority for one object.
pub(super) fn priority_is_settled() -> SystemException {
    SystemException::omg(ExceptionKind::BadInvOrder, 18)
}
