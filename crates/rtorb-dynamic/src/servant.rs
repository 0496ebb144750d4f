//! Servants whose interface is known only at run time.

use std::collections::HashMap;
use std::sync::Arc;

use rtorb::any::Value;
use rtorb::poa::{DynamicServant, ServerCall};
use rtorb::skeleton::unknown_operation;
use rtorb::type_code::{Shape, TypeCode};
use rtorb::{CompletionStatus, ExceptionKind, ObjectRef, Poa, PoaError, SystemException};
use rtorb_wire::{EncodeError, Writer};

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
struct BoundServant<S> {
    interface: Arc<Interface>,
    operations: HashMap<String, Arc<Operation>>,
    types: Arc<Types>,
    servant: S,
}

impl<S> BoundServant<S> {
    fn new(interface: &Arc<Interface>, types: &Arc<Types>, servant: S) -> Self {
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

    fn write(
        &self,
        operation: &Operation,
        results: &Results,
        w: &mut Writer<'_>,
    ) -> Result<(), EncodeError> {
        let known = known(&self.types);
        if operation.outputs().count() != results.outputs.len() {
            return Err(EncodeError::WrongType);
        }
        results.returns.encode_with(&operation.returns, &known, w)?;
        let mut outputs = operation.outputs().zip(&results.outputs);
        outputs.try_for_each(|(it, value)| value.encode_with(&it.type_code, &known, w))
    }

    /// Sends a user exception.
    fn raise(
        &self,
        operation: &Operation,
        type_code: &TypeCode,
        members: &[Value],
        call: &mut ServerCall<'_>,
    ) -> Result<(), SystemException> {
        let id = type_code.repository_id().unwrap_or_default();
        let declared = operation.exception(id).ok_or(UNDECLARED)?;
        let Shape::Except(made) = declared.unaliased().shape() else {
            return Err(UNDECLARED);
        };
        call.raise_with(id, |w| {
            if members.len() != made.members.len() {
                return Err(EncodeError::WrongType);
            }
            let known = known(&self.types);
            let mut pairs = members.iter().zip(&made.members);
            pairs.try_for_each(|(value, it)| value.encode_with(&it.type_code, &known, w))
        })
    }
}

impl<S: Servant> DynamicServant for BoundServant<S> {
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
        match self.servant.call(operation, inputs) {
            Ok(results) => call.reply(|w| self.write(operation, &results, w)),
            Err(Failure::User { type_code, members }) => {
                self.raise(operation, &type_code, &members, call)
            }
            Err(Failure::Undeclared { .. }) => Err(UNDECLARED),
            Err(Failure::System(exception)) => Err(exception),
        }
    }
}

/// The exception for a user exception that the operation does not declare (CORBA 3, 4.12.4, UNKNOWN 1).
pub(crate) const UNDECLARED: SystemException =
    SystemException::omg(ExceptionKind::Unknown, 1).with_completion(CompletionStatus::Yes);
