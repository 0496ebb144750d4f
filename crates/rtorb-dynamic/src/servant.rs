//! Servants whose interface is known only at run time.

use std::collections::HashMap;
use std::sync::Arc;

use rtorb::any::Value;
use rtorb::poa::{DynamicServant, ServerCall};
use rtorb::skeleton::unknown_operation;
use rtorb::{ObjectRef, Poa, PoaError, SystemException};

use crate::deferring::{DeferrableReply, DeferringServant, NO_OUTCOME, write_outcome};
use crate::interface::{Interface, Operation};
use crate::json::known;
use crate::request::{Failure, Results};
use crate::types::Types;

/// A servant that gets each operation with its decoded arguments.
pub trait Servant: Send + Sync {
    /// Carries out an operation. `inputs` are the values of the `in` and `inout` parameters in order. An attribute is the
    /// operation `_get_NAME` or `_set_NAME`.
    ///
    /// # Errors
    /// The exception that the client gets. It gets UNKNOWN for a user exception that the operation does not declare.
    fn call(&self, operation: &Operation, inputs: Vec<Value>) -> Result<Results, Failure>;

    /// Reports a request for an operation that the interface does not have. The client gets `exception`.
    fn note_unknown(&self, _operation: &str, _exception: &SystemException) {}

    /// Reports a request whose arguments cannot be decoded. The client gets `exception`.
    fn note_not_decoded(&self, _operation: &Operation, _exception: &SystemException) {}

    /// The definition of the interface in an interface repository, which a client gets by `_interface`.
    fn interface_definition(&self) -> Option<ObjectRef> {
        None
    }
}

impl<S: Servant + ?Sized> Servant for Arc<S> {
    fn call(&self, operation: &Operation, inputs: Vec<Value>) -> Result<Results, Failure> {
        (**self).call(operation, inputs)
    }

    fn note_unknown(&self, operation: &str, exception: &SystemException) {
        (**self).note_unknown(operation, exception);
    }

    fn note_not_decoded(&self, operation: &Operation, exception: &SystemException) {
        (**self).note_not_decoded(operation, exception);
    }

    fn interface_definition(&self) -> Option<ObjectRef> {
        (**self).interface_definition()
    }
}

/// Activates a servant for an interface, under an id that the adapter makes.
///
/// # Errors
/// As [`Poa::activate`].
pub fn activate(
    poa: &Poa,
    interface: &Arc<Interface>,
    types: &Arc<Types>,
    servant: impl Servant + 'static,
) -> Result<ObjectRef, PoaError> {
    poa.activate_dynamic(BoundServant::new(interface, types, servant))
}

/// Activates a servant for an interface, under an id that the application chooses.
///
/// # Errors
/// As [`Poa::activate_with_id`].
pub fn activate_with_id(
    poa: &Poa,
    id: &[u8],
    interface: &Arc<Interface>,
    types: &Arc<Types>,
    servant: impl Servant + 'static,
) -> Result<ObjectRef, PoaError> {
    poa.activate_dynamic_with_id(id, BoundServant::new(interface, types, servant))
}

/// A servant with the interface that it serves.
pub(crate) struct BoundServant<S> {
    interface: Arc<Interface>,
    operations: HashMap<String, Arc<Operation>>,
    types: Arc<Types>,
    servant: S,
}

impl<S> BoundServant<S> {
    pub(crate) fn new(interface: &Arc<Interface>, types: &Arc<Types>, servant: S) -> Self {
        let getters = interface.attributes.iter().map(|it| Arc::new(it.getter()));
        let setters = interface
            .attributes
            .iter()
            .filter_map(|it| it.setter().map(Arc::new));
        let operations = interface.operations.iter().cloned();
        let all = operations.chain(getters).chain(setters);
        Self {
            operations: all.map(|it| (it.name.clone(), it)).collect(),
            interface: Arc::clone(interface),
            types: Arc::clone(types),
            servant,
        }
    }

    /// Decodes the `in` and `inout` parameters.
    fn read(
        &self,
        operation: &Operation,
        call: &mut ServerCall<'_>,
    ) -> Result<Vec<Value>, SystemException> {
        let known = known(&self.types);
        let inputs = operation.inputs().map(|parameter| {
            Value::decode_with(&parameter.type_code, &known, call.arguments())
                .map_err(SystemException::from)
        });
        inputs.collect()
    }
}

impl<S: DeferringServant> DynamicServant for BoundServant<S> {
    fn repository_id(&self) -> &str {
        &self.interface.repository_id
    }

    fn is_a(&self, repository_id: &str) -> bool {
        self.interface.is_a(repository_id)
    }

    fn interface_definition(&self) -> Option<ObjectRef> {
        self.servant.interface_definition()
    }

    fn dispatch(&self, operation: &str, call: &mut ServerCall<'_>) -> Result<(), SystemException> {
        let Some(operation) = self.operations.get(operation) else {
            let exception = unknown_operation();
            self.servant.note_unknown(operation, &exception);
            return Err(exception);
        };
        let inputs = self.read(operation, call).inspect_err(|exception| {
            self.servant.note_not_decoded(operation, exception);
        })?;
        let mut reply = DeferrableReply {
            operation,
            types: &self.types,
            call: &mut *call,
            is_deferred: false,
        };
        match self.servant.begin(operation, inputs, &mut reply) {
            Some(outcome) => write_outcome(operation, &self.types, outcome, call),
            None if reply.is_deferred => Ok(()),
            None => Err(NO_OUTCOME),
        }
    }
}
