//! Servants whose interface is known only at run time (the dynamic skeleton interface).

use super::IdAssignment;
use super::adapter::{Activation, Poa, PoaError};
use crate::exception::SystemException;
use crate::reference::ObjectRef;
use crate::server::{LocatedId, Servant, ServerCall};
use rtorb_core::Described;
use rtorb_wire::ior::Ior;

/// A servant that decodes its arguments itself. The crate `rtorb-dynamic` decodes them by their types.
pub trait DynamicServant: Send + Sync {
    /// Returns the repository id of its interface, which never changes.
    fn repository_id(&self) -> &str;

    /// Returns true if its interface is the one with this repository id, or inherits from it.
    fn is_a(&self, repository_id: &str) -> bool;

    /// Carries out an operation: reads the arguments from the call, and writes the reply into it.
    ///
    /// # Errors
    /// A system exception, which the client gets.
    fn dispatch(&self, operation: &str, call: &mut ServerCall<'_>) -> Result<(), SystemException>;

    /// Returns the definition of the interface in an interface repository, which a client gets by `_interface`.
    fn interface_definition(&self) -> Option<ObjectRef> {
        None
    }

    /// Returns true if it forwards each request to another object ([`PassThrough`](crate::skeleton::PassThrough)). Then it also gets
    /// the operations of all objects, such as `_is_a` and `_non_existent`, and requests whose text is in a code set that this ORB does
    /// not have.
    fn is_proxy(&self) -> bool {
        false
    }
}

impl Poa {
    /// Activates a servant whose interface is known only at run time, under an id that the adapter makes.
    ///
    /// # Errors
    /// As [`activate`](Self::activate).
    pub fn activate_dynamic(
        &self,
        servant: impl DynamicServant + 'static,
    ) -> Result<ObjectRef, PoaError> {
        self.check_id_assignment(IdAssignment::System)?;
        self.place_dynamic(Activation::default(), servant)
    }

    /// Activates a servant whose interface is known only at run time, under an id that the application chooses.
    ///
    /// # Errors
    /// As [`activate_with_id`](Self::activate_with_id).
    pub fn activate_dynamic_with_id(
        &self,
        id: impl AsRef<[u8]>,
        servant: impl DynamicServant + 'static,
    ) -> Result<ObjectRef, PoaError> {
        self.check_id(id.as_ref())?;
        let activation = Activation {
            id: Some(id.as_ref()),
            priority: None,
        };
        self.place_dynamic(activation, servant)
    }

    fn place_dynamic(
        &self,
        activation: Activation<'_>,
        servant: impl DynamicServant + 'static,
    ) -> Result<ObjectRef, PoaError> {
        let repository_id = servant.repository_id().to_owned();
        self.place(activation, &repository_id, Box::new(Dynamic(servant)))
    }
}

struct Dynamic<S>(S);

impl<S: DynamicServant> Servant for Dynamic<S> {
    fn dispatch(
        &self,
        operation: &[u8],
        call: &mut ServerCall<'_>,
        _id: &LocatedId,
    ) -> Result<(), SystemException> {
        // Names in IDL are ASCII.
        let operation = core::str::from_utf8(operation).map_err(|_| super::unknown_operation())?;
        self.0.dispatch(operation, call)
    }
}

impl<S: DynamicServant> Described for Dynamic<S> {
    fn repository_id(&self) -> &str {
        self.0.repository_id()
    }

    fn is_a(&self, repository_id: &str) -> bool {
        self.0.is_a(repository_id)
    }

    fn interface_definition(&self) -> Option<Ior> {
        let definition = self.0.interface_definition()?;
        Some(definition.ior().clone())
    }

    fn is_proxy(&self) -> bool {
        self.0.is_proxy()
    }
}
