//! Requests that are made at run time: two-way, one-way, and deferred.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use rtorb::any::Value;
use rtorb::exception::{TextCodeSet, local};
use rtorb::type_code::{Kind, Shape, TypeCode};
use rtorb::{ObjectRef, SystemException, UntypedCall};
use rtorb_wire::{DecodeError, EncodeError, Reader, Writer};

use crate::interface::Operation;
use crate::json::known;
use crate::types::Types;
use crate::walk::Part;

/// A request with its arguments. It may be invoked many times.
#[derive(Clone, Debug)]
pub struct Request {
    object: ObjectRef,
    operation: Arc<Operation>,
    types: Arc<Types>,
    inputs: Vec<Value>,
}

/// The result of an operation, with the values of its `out` and `inout` parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Results {
    /// The result; [`Value::Nothing`] for none.
    pub returns: Value,
    /// The values of the `out` and `inout` parameters in order.
    pub outputs: Vec<Value>,
}

impl Results {
    /// The results of an operation that returns nothing.
    pub const NONE: Self = Self {
        returns: Value::Nothing,
        outputs: Vec::new(),
    };
}

/// The exception with which an operation ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Failure {
    /// A user exception.
    User {
        /// Its type.
        type_code: TypeCode,
        /// Its members in order.
        members: Vec<Value>,
    },
    /// A user exception that the operation does not declare, and whose type is unknown.
    Undeclared {
        /// Its repository id.
        repository_id: String,
    },
    /// A system exception.
    System(SystemException),
}

impl From<SystemException> for Failure {
    fn from(exception: SystemException) -> Self {
        Self::System(exception)
    }
}

impl Request {
    /// A request to an object, with the values of the `in` and `inout` parameters in order. `types` has the valuetypes that may
    /// take the place of their bases.
    ///
    /// # Errors
    /// BAD_PARAM if the number of values is wrong, or one of them is not of its type.
    pub fn new(
        object: &ObjectRef,
        operation: &Arc<Operation>,
        types: &Arc<Types>,
        inputs: Vec<Value>,
    ) -> Result<Self, SystemException> {
        if operation.inputs().count() != inputs.len() {
            return Err(local::WRONG_COUNT);
        }
        let request = Self {
            object: object.clone(),
            operation: Arc::clone(operation),
            types: Arc::clone(types),
            inputs,
        };
        // Finds a wrong value here and not in each call. The code set is not known yet, because the connection chooses it.
        match request.write(&mut Writer::new(Vec::new(), usize::MAX >> 1)) {
            Ok(()) | Err(EncodeError::NotInCodeSet { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(request)
    }

    /// Invokes the operation and waits for its reply, or until a oneway is sent.
    ///
    /// # Errors
    /// The exception of the object, of its server or of this ORB.
    pub fn invoke(&self) -> Result<Results, Failure> {
        if self.operation.is_oneway {
            return Ok(self.send().map(|()| Results::NONE)?);
        }
        self.object.invoke_raising(
            &self.operation.name,
            |w| self.write(w),
            |r| read_results(&self.operation, &self.types, r),
            |id, r| read_exception(&self.operation, &self.types, id, r).map(Some),
        )
    }

    /// Sends the request as a oneway: there is no reply, whatever the operation's declaration says.
    ///
    /// # Errors
    /// A system exception if it could not be sent.
    pub fn send(&self) -> Result<(), SystemException> {
        self.object
            .invoke_oneway(&self.operation.name, |w| self.write(w))
    }

    /// Sends the request, with the priority of the calling thread, and returns before the reply comes. A oneway has ended then.
    ///
    /// It is a started call ([`rtorb::Call`]), which needs connection strategy `multiplexed` or `banded`: no thread is started for it, and
    /// who reads the reply depends on the wait strategy. An exception of sending is the result, as is INV_POLICY with other strategies.
    pub fn defer(&self) -> Deferred {
        let state = if self.operation.is_oneway {
            DeferredState::Sent(self.send())
        } else {
            let name = &self.operation.name;
            DeferredState::Started(self.object.start_untyped(name, |w| self.write(w)))
        };
        Deferred {
            state,
            operation: Arc::clone(&self.operation),
            types: Arc::clone(&self.types),
        }
    }

    /// The argument or member with the character that could not be sent: `argument 2 (who).nickname`. `None` if an exception is
    /// about something else, or if the character is inside of an any.
    pub fn unsent_place(&self, exception: &SystemException) -> Option<String> {
        let unsent = exception.unsent_character()?;
        let character = unsent.character()?;
        let is_it = |value: &Value| match (value, unsent.code_set()) {
            (Value::String(text), TextCodeSet::Latin1 | TextCodeSet::Latin9) => {
                text.contains(character)
            }
            (
                Value::Char(it),
                TextCodeSet::Latin1 | TextCodeSet::Latin9 | TextCodeSet::Utf8Char,
            )
            | (Value::WChar(it), TextCodeSet::Utf16WChar) => *it == character,
            _ => false,
        };
        let inputs = self.operation.inputs().zip(&self.inputs).enumerate();
        let places = inputs.filter_map(|(place, (parameter, value))| {
            let whole = Part::whole(&self.types, value, &parameter.type_code);
            let path = path_to(&whole, &is_it, &mut BTreeSet::new())?;
            Some(format!("argument {} ({}){path}", place + 1, parameter.name))
        });
        places.into_iter().next()
    }

    fn write(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        let known = known(&self.types);
        for (parameter, value) in self.operation.inputs().zip(&self.inputs) {
            value.encode_with(&parameter.type_code, &known, w)?;
        }
        if self.operation.has_context {
            w.count(0)?;
        }
        Ok(())
    }
}

/// The path to the first part for which `is_wanted` returns true: `.stops[2].name`. `searched` has the addresses of the valuetypes in which
/// there is none: a few that are shared could make the search endless.
fn path_to(
    part: &Part<'_>,
    is_wanted: &impl Fn(&Value) -> bool,
    searched: &mut BTreeSet<usize>,
) -> Option<String> {
    if is_wanted(part.value()) {
        return Some(String::new());
    }
    if let Value::Valuetype(Some(state)) = part.value()
        && !searched.insert(Arc::as_ptr(state).addr())
    {
        return None;
    }
    part.parts().iter().find_map(|inner| {
        let rest = path_to(inner, is_wanted, searched)?;
        let dot = if inner.name().starts_with('[') {
            ""
        } else {
            "."
        };
        Some(format!("{dot}{}{rest}", inner.name()))
    })
}

/// Reads the results of an operation.
pub(crate) fn read_results(
    operation: &Operation,
    types: &Types,
    r: &mut Reader<'_>,
) -> Result<Results, DecodeError> {
    let known = known(types);
    let returns = Value::decode_with(&operation.returns, &known, r)?;
    let outputs = operation.outputs();
    let outputs = outputs.map(|it| Value::decode_with(&it.type_code, &known, r));
    Ok(Results {
        returns,
        outputs: outputs.collect::<Result<_, _>>()?,
    })
}

/// Reads the members of a user exception, if its type is known.
pub(crate) fn read_exception(
    operation: &Operation,
    types: &Types,
    id: &str,
    r: &mut Reader<'_>,
) -> Result<Failure, DecodeError> {
    let declared = operation.exception(id);
    let is_exception = |it: &&TypeCode| it.kind() == Kind::Except;
    let found = declared.or_else(|| types.by_id(id).filter(is_exception));
    let Some(type_code) = found else {
        let repository_id = id.to_owned();
        return Ok(Failure::Undeclared { repository_id });
    };
    let mut members = Vec::new();
    if let Shape::Except(made) = type_code.unaliased().shape() {
        let known = known(types);
        for member in &made.members {
            members.push(Value::decode_with(&member.type_code, &known, r)?);
        }
    }
    Ok(Failure::User {
        type_code: type_code.clone(),
        members,
    })
}

/// A request that was sent, and whose reply is taken later. Dropping it gives the call up.
#[must_use = "a request that is dropped is given up"]
#[derive(Debug)]
pub struct Deferred {
    state: DeferredState,
    operation: Arc<Operation>,
    types: Arc<Types>,
}

#[derive(Debug)]
enum DeferredState {
    /// A oneway was sent, or could not be.
    Sent(Result<(), SystemException>),
    Started(UntypedCall),
}

impl Deferred {
    /// Returns true if the reply is there: `poll_response` of CORBA. It receives what has arrived, so that a loop of it ends.
    pub fn is_ready(&mut self) -> bool {
        match &mut self.state {
            DeferredState::Sent(_) => true,
            DeferredState::Started(call) => call.wait_until_ready(Instant::now()),
        }
    }

    /// Waits for the reply until `until` at the latest. Returns `None` if it is not there by then; the call goes on.
    ///
    /// The reply is taken once. Afterwards this returns BAD_INV_ORDER.
    pub fn wait_until(&mut self, until: Instant) -> Option<Result<Results, Failure>> {
        let (operation, types) = (&self.operation, &self.types);
        match &mut self.state {
            DeferredState::Sent(sent) => {
                Some(sent.clone().map(|()| Results::NONE).map_err(Failure::from))
            }
            DeferredState::Started(call) => call.wait_until(
                until,
                |r| read_results(operation, types, r),
                |id, r| read_exception(operation, types, id, r).map(Some),
            ),
        }
    }

    /// Waits for the reply: `get_response` of CORBA.
    ///
    /// # Errors
    /// As [`Request::invoke`].
    pub fn wait(self) -> Result<Results, Failure> {
        let (operation, types) = (&self.operation, &self.types);
        match self.state {
            DeferredState::Sent(sent) => Ok(sent.map(|()| Results::NONE)?),
            DeferredState::Started(call) => call.wait(
                |r| read_results(operation, types, r),
                |id, r| read_exception(operation, types, id, r).map(Some),
            ),
        }
    }
}

impl Future for Deferred {
    type Output = Result<Results, Failure>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Self {
            state,
            operation,
            types,
        } = &mut *self;
        match state {
            DeferredState::Sent(sent) => Poll::Ready(Ok(sent.clone().map(|()| Results::NONE)?)),
            DeferredState::Started(call) => call.poll(
                context,
                |r| read_results(operation, types, r),
                |id, r| read_exception(operation, types, id, r).map(Some),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rtorb::any::State;

    #[test]
    fn a_shared_valuetype_is_searched_once() {
        let mut types = Types::default();
        let idl = "valuetype Twice { public Twice one; public Twice other; };";
        types.add_text("twice.idl", idl).expect("the IDL is right");
        let twice = types.by_id("IDL:Twice:1.0").expect("it is declared");
        let value = (0..40).fold(Value::Valuetype(None), |inner, _| {
            let state = State {
                repository_id: "IDL:Twice:1.0".into(),
                members: vec![inner.clone(), inner],
            };
            Value::Valuetype(Some(Arc::new(state)))
        });
        let mut searched = BTreeSet::new();
        let whole = Part::whole(&types, &value, twice);
        assert_eq!(path_to(&whole, &|_| false, &mut searched), None);
        assert_eq!(searched.len(), 40);
    }
}
