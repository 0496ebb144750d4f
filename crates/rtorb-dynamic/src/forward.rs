//! A servant that passes its calls on to another object.

use std::sync::Arc;

use rtorb::any::Value;
use rtorb::rt::{Policy, Priority, RtCurrent};
use rtorb::{ObjectRef, Orb, PoaPolicies, SystemException};
use rtorb_wire::Decode as _;

use crate::interface::Operation;
use crate::request::{Failure, Request, Results};
use crate::servant::{Servant, UNDECLARED};
use crate::types::Types;

/// Makes the same request to a target, and returns what the target returns.
///
/// Exceptions keep their minor code and completion status. A LOCATION_FORWARD of the target is followed here, so that the client does
/// not leave. An exception that the operation does not declare becomes UNKNOWN, as in every client. A reference in an argument or a result is passed unchanged.
#[derive(Clone, Debug)]
pub struct Forward {
    target: ObjectRef,
    types: Arc<Types>,
    priority: Option<OwnPriority>,
}

/// A priority of the calls to the target.
#[derive(Clone, Debug)]
struct OwnPriority {
    current: RtCurrent,
    priority: Priority,
}

impl Forward {
    /// A servant for the object `target`.
    pub const fn new(target: ObjectRef, types: Arc<Types>) -> Self {
        Self {
            target,
            types,
            priority: None,
        }
    }

    /// The same servant, whose calls to the target have this priority instead of that of the client.
    #[must_use]
    pub fn with_priority(mut self, orb: &Orb, priority: Priority) -> Self {
        let current = orb.rt_current();
        self.priority = Some(OwnPriority { current, priority });
        self
    }

    pub(crate) const fn target(&self) -> &ObjectRef {
        &self.target
    }

    /// Gives the calls of this thread the priority of the calls to the target.
    pub(crate) fn set_priority(&self) -> Result<(), SystemException> {
        match &self.priority {
            Some(own) => own.current.set_the_priority(own.priority),
            None => Ok(()),
        }
    }

    /// The policies of an adapter for this servant: the priority model of the target, if its reference says it. Then calls come and
    /// go with the priority that they have without this servant.
    pub fn policies(&self) -> PoaPolicies {
        let is_model = |it: &Policy| matches!(it, Policy::PriorityModel { .. });
        let model = self.target.policies().into_iter().find(is_model);
        let usual = PoaPolicies::default();
        match model {
            Some(model) => usual.with(model),
            None => usual,
        }
    }
}

impl Servant for Forward {
    fn call(&self, operation: &Operation, inputs: Vec<Value>) -> Result<Results, Failure> {
        self.set_priority()?;
        let operation = Arc::new(operation.clone());
        let outcome = Request::new(&self.target, &operation, &self.types, inputs)?.invoke();
        outcome.map_err(|failure| match &failure {
            Failure::User { type_code, .. } => {
                let id = type_code.repository_id().unwrap_or_default();
                let is_declared = operation.exception(id).is_some();
                if is_declared {
                    failure
                } else {
                    UNDECLARED.into()
                }
            }
            Failure::Undeclared { .. } => UNDECLARED.into(),
            Failure::System(_) => failure,
        })
    }

    fn interface_definition(&self) -> Option<ObjectRef> {
        let asked = self
            .target
            .invoke("_interface", |_| Ok(()), Option::<ObjectRef>::decode);
        asked.ok().flatten()
    }
}
