//! Servants whose interface is known only at run time, and that may answer a call after they have returned.

use core::task::{Context, Poll};
use core::time::Duration;
use std::sync::Arc;

use rtorb::any::Value;
use rtorb::poa::ServerCall;
use rtorb::skeleton::DeferReply;
use rtorb::type_code::{Shape, TypeCode};
use rtorb::{
    CompletionStatus, ExceptionKind, ObjectRef, Poa, PoaError, Responder, SystemException,
};
use rtorb_wire::{EncodeError, Writer};

use crate::interface::{Interface, Operation};
use crate::json::known;
use crate::request::{Failure, Results};
use crate::servant::{BoundServant, Servant};
use crate::types::Types;

/// A servant that gets each operation with its decoded arguments, and answers at once or later.
pub trait DeferringServant: Send + Sync {
    /// Begins an operation. `inputs` are the values of the `in` and `inout` parameters in order. An attribute is the operation
    /// `_get_NAME` or `_set_NAME`.
    ///
    /// Returns the outcome; or `None` once [`reply.defer`](DeferrableReply::defer) has returned the responder that answers the call. The
    /// client gets NO_RESPONSE for `None` without a responder, and UNKNOWN for a user exception that the operation does not declare.
    fn begin(
        &self,
        operation: &Arc<Operation>,
        inputs: Vec<Value>,
        reply: &mut DeferrableReply<'_, '_>,
    ) -> Option<Result<Results, Failure>>;

    /// Reports a request for an operation that the interface does not have. The client gets `exception`.
    fn note_unknown(&self, _operation: &str, _exception: &SystemException) {}

    /// Reports a request whose arguments cannot be decoded. The client gets `exception`.
    fn note_not_decoded(&self, _operation: &Operation, _exception: &SystemException) {}

    /// The definition of the interface in an interface repository, which a client gets by `_interface`.
    fn interface_definition(&self) -> Option<ObjectRef> {
        None
    }
}

impl<S: Servant> DeferringServant for S {
    fn begin(
        &self,
        operation: &Arc<Operation>,
        inputs: Vec<Value>,
        _: &mut DeferrableReply<'_, '_>,
    ) -> Option<Result<Results, Failure>> {
        Some(self.call(operation, inputs))
    }

    fn note_unknown(&self, operation: &str, exception: &SystemException) {
        Servant::note_unknown(self, operation, exception);
    }

    fn note_not_decoded(&self, operation: &Operation, exception: &SystemException) {
        Servant::note_not_decoded(self, operation, exception);
    }

    fn interface_definition(&self) -> Option<ObjectRef> {
        Servant::interface_definition(self)
    }
}

/// Activates a servant that may defer its replies, under an id that the adapter makes.
///
/// # Errors
/// As [`Poa::activate`].
pub fn activate_deferring(
    poa: &Poa,
    interface: &Arc<Interface>,
    types: &Arc<Types>,
    servant: impl DeferringServant + 'static,
) -> Result<ObjectRef, PoaError> {
    poa.activate_dynamic(BoundServant::new(interface, types, servant))
}

/// The reply to the call that a servant begins.
pub struct DeferrableReply<'a, 'c> {
    pub(crate) operation: &'a Arc<Operation>,
    pub(crate) types: &'a Arc<Types>,
    pub(crate) call: &'a mut ServerCall<'c>,
    pub(crate) is_deferred: bool,
}

impl DeferrableReply<'_, '_> {
    /// Returns the responder that answers the call later, on any thread.
    ///
    /// # Errors
    /// As [`DeferReply::defer`]: TRANSIENT if too many replies are deferred.
    pub fn defer(&mut self) -> Result<DynamicResponder, SystemException> {
        let responder = self.call.defer(write_answer)?;
        self.is_deferred = true;
        Ok(DynamicResponder {
            responder,
            operation: Arc::clone(self.operation),
            types: Arc::clone(self.types),
        })
    }
}

/// The reply to one call, which its servant has deferred. Dropping it answers with NO_RESPONSE: see [`Responder`].
#[must_use = "dropping it answers with NO_RESPONSE"]
#[derive(Debug)]
pub struct DynamicResponder {
    responder: Responder<DeferredAnswer>,
    operation: Arc<Operation>,
    types: Arc<Types>,
}

impl DynamicResponder {
    /// Answers with the outcome of the call. If it does not fit the operation, the client gets a system exception.
    pub fn respond(self, outcome: Result<Results, Failure>) {
        self.responder.reply(DeferredAnswer {
            operation: self.operation,
            types: self.types,
            outcome,
        });
    }

    /// Returns the time until the deadline of the call: see [`Responder::remaining`].
    pub fn remaining(&self) -> Option<Duration> {
        self.responder.remaining()
    }

    /// Returns true if nobody waits for the answer: see [`Responder::is_cancelled`].
    pub fn is_cancelled(&self) -> bool {
        self.responder.is_cancelled()
    }

    /// Becomes ready once nobody waits for the answer: see [`Responder::poll_cancelled`].
    pub fn poll_cancelled(&self, context: &mut Context<'_>) -> Poll<()> {
        self.responder.poll_cancelled(context)
    }
}

/// The outcome of a call, with what its encoding needs.
struct DeferredAnswer {
    operation: Arc<Operation>,
    types: Arc<Types>,
    outcome: Result<Results, Failure>,
}

fn write_answer(
    answer: Result<DeferredAnswer, SystemException>,
    call: &mut ServerCall<'_>,
) -> Result<(), SystemException> {
    let answer = answer?;
    write_outcome(&answer.operation, &answer.types, answer.outcome, call)
}

/// Writes the outcome of a call into its reply.
pub(crate) fn write_outcome(
    operation: &Operation,
    types: &Types,
    outcome: Result<Results, Failure>,
    call: &mut ServerCall<'_>,
) -> Result<(), SystemException> {
    match outcome {
        Ok(results) => call.reply(|w| write_results(operation, types, &results, w)),
        Err(Failure::User { type_code, members }) => {
            raise(operation, types, &type_code, &members, call)
        }
        Err(Failure::Undeclared { .. }) => Err(UNDECLARED),
        Err(Failure::System(exception)) => Err(exception),
    }
}

fn write_results(
    operation: &Operation,
    types: &Types,
    results: &Results,
    w: &mut Writer<'_>,
) -> Result<(), EncodeError> {
    let known = known(types);
    if operation.outputs().count() != results.outputs.len() {
        return Err(EncodeError::WrongType);
    }
    results.returns.encode_with(&operation.returns, &known, w)?;
    let mut outputs = operation.outputs().zip(&results.outputs);
    outputs.try_for_each(|(it, value)| value.encode_with(&it.type_code, &known, w))
}

/// Sends a user exception.
fn raise(
    operation: &Operation,
    types: &Types,
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
        let known = known(types);
        let mut pairs = members.iter().zip(&made.members);
        pairs.try_for_each(|(value, it)| value.encode_with(&it.type_code, &known, w))
    })
}

/// The exception for a user exception that the operation does not declare (CORBA 3, 4.12.4, UNKNOWN 1).
const UNDECLARED: SystemException =
    SystemException::omg(ExceptionKind::Unknown, 1).with_completion(CompletionStatus::Yes);

/// The exception for a servant that has neither an outcome nor a responder.
pub(crate) const NO_OUTCOME: SystemException =
    SystemException::new(ExceptionKind::NoResponse, 0, CompletionStatus::Maybe);
