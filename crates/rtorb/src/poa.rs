//! The portable object adapter: [`Poa`] connects objects with servants.
//!
//! An object's key has its place in a table and a generation. Finding a servant takes no lock, and costs the same for one object
//! and for a million.

mod adapter;
mod adapter_activator;
mod adapters;
mod admission;
mod changed_priority;
mod chosen_policies;
mod completion;
mod dynamic;
mod locator;
mod manager;
mod policies;
mod published;
mod rt_poa;
mod rt_policies;
mod servant_activator;

pub use crate::server::PoaManagerState;
pub use crate::server::ServerCall;
pub use adapter::{Poa, PoaError};
pub use dynamic::DynamicServant;
pub use manager::PoaManager;
pub use policies::{IdAssignment, Lifespan, PoaPolicies};
#[doc(inline)]
pub use rtorb_core::ServedBy;
pub use servant_activator::ServantActivator;

pub(crate) use adapters::Adapters;
pub use admission::{AdmittedServant, ServantAdmission};
pub(crate) use chosen_policies::goes_by;

use crate::exception::SystemException;
use crate::reference::ObjectRef;
use crate::server::object_key::ObjectKey;
use crate::server::{LocatedId, Servant};
use crate::timing::{Enforcement, OperationTiming, ServantTiming};
use rtorb_core::codegen::ServantTraits;
use rtorb_core::{Interface, Tie, unknown_operation};
use std::sync::Arc;

/// Returns the key of the object with that id in the persistent adapter with that path: the names of the adapters from below the root, with a
/// `/` between them. A `corbaloc:` URL of the object has the key, with `%25` for each `%`.
///
/// ```
/// assert_eq!(rtorb::poa::object_key("Plant/Hall", "valve"), b"Plant/Hall/valve");
/// assert_eq!(rtorb::poa::object_key("Plant", "Hall/valve"), b"Plant/Hall%2Fvalve");
/// ```
pub fn object_key(adapter: &str, id: impl AsRef<[u8]>) -> Vec<u8> {
    ObjectKey::named(adapter, id.as_ref())
}

/// An active servant, whose interface the [`Tie`] around it has.
pub(crate) struct ActiveServant<S> {
    servant: Arc<S>,
    timing: ServantTiming,
    /// Dropped with the servant.
    _admitted: Option<AdmittedServant>,
}

/// The annotations of an operation of `I`; `None` if it has none.
fn timing_of<S, I: ServedBy<S>>(operation: &[u8]) -> Option<&'static OperationTiming> {
    I::timings().get(I::timing_of(I::find_operation(operation)?)?)
}

/// Finds an operation of `I`, and begins the timing of the call if the operation is annotated.
///
/// # Errors
/// BAD_OPERATION if there is no such operation; the exception of a call that its annotations refuse.
#[inline(always)]
fn begin<S, I: ServedBy<S>>(
    operation: &[u8],
    call: &mut ServerCall<'_>,
    timing: &ServantTiming,
) -> Result<usize, SystemException> {
    let operation = I::find_operation(operation).ok_or_else(unknown_operation)?;
    if let Some(place) = I::timing_of(operation) {
        let responder = &mut call.reply.responder;
        responder.begin_timing(I::timings(), place, timing)?;
    }
    Ok(operation)
}

impl<S> ActiveServant<S> {
    /// A servant of the interface `I`.
    pub(crate) fn new<I: Interface>(
        servant: S,
        enforcement: Enforcement,
        admitted: Option<AdmittedServant>,
    ) -> Self {
        Self {
            servant: Arc::new(servant),
            timing: ServantTiming::new(I::timings().len(), enforcement),
            _admitted: admitted,
        }
    }
}

impl<S: Send + Sync, I: ServedBy<S, Object = ObjectRef>> Servant for Tie<I, ActiveServant<S>> {
    fn dispatch(
        &self,
        operation: &[u8],
        call: &mut ServerCall<'_>,
        _id: &LocatedId,
    ) -> Result<(), SystemException> {
        let active = self.servant();
        let operation = begin::<S, I>(operation, call, &active.timing)?;
        I::dispatch(&active.servant, operation, call)
    }

    fn traits(&self) -> Option<ServantTraits> {
        I::traits(&self.servant().servant)
    }

    fn timing(&self, operation: &[u8]) -> Option<&'static OperationTiming> {
        timing_of::<S, I>(operation)
    }
}
